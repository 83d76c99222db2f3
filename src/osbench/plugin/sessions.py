"""HTTP for plug-ins of the coordinator.

- `bounded_session()`: a `requests.Session` whose answers are read up to 64 MiB
"""

from osbench.common.network.bounded_adapter import bounded_session

__all__ = ["bounded_session"]
