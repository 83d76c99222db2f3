"""The front: the command line, the pages of a browser, and checks of this host."""
