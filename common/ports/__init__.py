"""Clock, threads, chance and disk of this process, as modules that a simulation can replace.

Each module has names of the standard library and passes them on, so that a call costs the same as
without the port. A simulation sets the attributes of these modules before it imports any other
module of osbench, because names are bound at import: `from osbench.common.ports.clock import
monotonic_ns` binds `time.monotonic_ns` itself.
"""
