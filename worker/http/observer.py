"""Type of the function that is called with each request of a workload, as by `run --once`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from osbench.worker.http.wire.raw_response import RawResponse
from osbench.worker.http.wire.wire_request import WireRequest

#: Key of a workload's context for its observer, if it has one.
OBSERVER_KEY = "request_observer"

#: Gets each request, its header lines for the first host, its response or error, and its seconds.
Observer = Callable[[WireRequest, Sequence[str], RawResponse | Exception, float], None]
