"""An HTTP endpoint from which Prometheus reads metrics, for as long as a block runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, Metric, start_http_server

from osbench.common.errors import UsageError
from osbench.common.network.listen_address import parse_listen_address


class _Source:
    """Asks for the metrics anew at each request."""

    def __init__(self, collect: Callable[[], Iterable[Metric]]) -> None:
        self._collect = collect

    def collect(self) -> Iterable[Metric]:
        """What is known now."""
        return self._collect()


@contextlib.contextmanager
def metrics_endpoint(
    listen: str | None, collect: Callable[[], Iterable[Metric]]
) -> Iterator[int | None]:
    """Serve what `collect` returns; gives the port. Nothing where `listen` is empty.

    `collect` is called in other threads, and must not raise. Raises UsageError where the address
    cannot be used.
    """
    if not listen:
        yield None
        return
    address, port = parse_listen_address(listen)
    registry = CollectorRegistry(auto_describe=False)
    try:
        server, thread = start_http_server(port, address, registry)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot listen on {listen}: {reason}") from None
    # registered now, since to register asks for the metrics
    registry.register(_Source(collect))
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
