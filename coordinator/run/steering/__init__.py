"""The load of a run is changed while it goes on."""
