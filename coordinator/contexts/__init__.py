"""The built-in contexts, one per file, and the stack that sets them up and undoes them."""
