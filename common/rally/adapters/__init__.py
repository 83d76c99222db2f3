"""Rally plug-ins behind the interfaces of osbench: one module per kind."""
