"""Optional parts of osbench, which the core finds by entry points and never imports."""
