"""Files of recorded arrivals, for runners that replay them.

- `ArrivalFile(path)`: instants and names of requests, read in blocks
- `ArrivalFileError`: the file cannot be used; the message says why
- `ArrivalRows`: what `Runner.rows` returns: each iteration gets the name of its arrival's request
"""

from osbench.coordinator.arrivals.arrival_file import ArrivalFile, ArrivalFileError
from osbench.coordinator.arrivals.arrival_rows import ArrivalRows

__all__ = ["ArrivalFile", "ArrivalFileError", "ArrivalRows"]
