"""Options of the command line: their declaration, and options that several commands have."""
