"""Rally's context object: made, stored, read and cleaned up."""
