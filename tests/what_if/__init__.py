"""`make what-if`: predictions beside runs in which the calls are really faster."""
