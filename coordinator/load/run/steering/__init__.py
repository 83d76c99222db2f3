"""Changes to the load of a run while it goes on."""
