"""Options of the command line: how they are declared, and those that several commands have."""
