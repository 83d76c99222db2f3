"""An HTTP endpoint from which Prometheus reads metrics, for as long as a block runs."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, Metric, start_http_server

from osbench.common.errors import UsageError

#: Where it listens unless an address is given: what it shows is for this host.
LOOPBACK = "127.0.0.1"

_ADDRESS = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]:|(?P<host>[^\s:/\[\]]+):)?(?P<port>\d{1,5})")


class _Source:
    """Asks for the metrics anew at each request."""

    def __init__(self, collect: Callable[[], Iterable[Metric]]) -> None:
        self._collect = collect

    def collect(self) -> Iterable[Metric]:
        """What is known now."""
        return self._collect()


def parse_listen(text: str) -> tuple[str, int]:
    """Address and port of `[ADDRESS:]PORT`. Raises UsageError."""
    found = _ADDRESS.fullmatch(text)
    port = int(found["port"]) if found else -1
    if found is None or port > 65535:
        raise UsageError(f"cannot listen on {text!r}: write PORT or ADDRESS:PORT")
    return found["six"] or found["host"] or LOOPBACK, port


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
    address, port = parse_listen(listen)
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
