"""Charts that iterations make: those that add up over iterations, in bounded memory."""
