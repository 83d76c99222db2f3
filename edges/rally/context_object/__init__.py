"""Rally's context object: creation, storage, access by iterations, cleanup."""
