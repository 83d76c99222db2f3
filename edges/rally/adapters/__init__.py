"""Adapters of Rally's plug-ins to the interfaces of osbench: one module per kind."""
