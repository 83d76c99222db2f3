"""Results of Rally: runs written in its JSON form, and runs made of it."""
