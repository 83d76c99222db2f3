"""An OSProfiler driver for services under test that does not delay their requests."""

#: The version of osbench that it comes with.
__version__ = "0.2.0"
