"""The observer of a workload's requests, such as the requests of `run --once`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from osbench.worker.http.wire.raw_response import RawResponse
from osbench.worker.http.wire.wire_request import WireRequest

#: Key of a workload's context for its observer, if it has one.
OBSERVER_KEY = "request_observer"

#: Gets each request, its header lines for the first host, its response or error, and its seconds.
Observer = Callable[[WireRequest, Sequence[str], RawResponse | Exception, float], None]
