"""An HTTP endpoint from which Prometheus reads metrics, for as long as a block runs."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, Metric, make_wsgi_app

from osbench.common.errors import UsageError
from osbench.common.network.listen_address import parse_listen_address

#: Connections at once: for each one more, the oldest is closed.
CONNECTIONS = 32
#: Longest wait for some more of a request, or for the client to read the response, seconds.
WAIT_S = 10.0
#: Longest wait for the endpoint to end, seconds.
END_S = 0.05


class _Source:
    """Collects the metrics anew for each request."""

    def __init__(self, collect: Callable[[], Iterable[Metric]]) -> None:
        self._collect = collect

    def collect(self) -> Iterable[Metric]:
        """Return the present metrics."""
        return self._collect()


class _Handler(WSGIRequestHandler):
    """Serves one request; logs nothing."""

    def setup(self) -> None:
        """Bound each wait."""
        self.request.settimeout(WAIT_S)
        super().setup()

    def handle(self) -> None:
        """Respond, if the client lets us."""
        # it stopped, or is closed for others
        with contextlib.suppress(OSError):
            super().handle()

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


class _Server(ThreadingMixIn, WSGIServer):
    """A thread for each of a bounded number of connections."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, *args: Any, **options: Any) -> None:
        self._lock = threading.Lock()
        #: The oldest comes first.
        self._open: dict[socket.socket, None] = {}
        super().__init__(*args, **options)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread."""
        with self._lock:
            if len(self._open) >= CONNECTIONS:
                oldest = next(iter(self._open))
                del self._open[oldest]
                # its thread closes it
                with contextlib.suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)
            self._open[request] = None
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Release the thread of a connection that is over."""
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)


class _Server6(_Server):
    address_family = socket.AF_INET6


@contextlib.contextmanager
def metrics_endpoint(
    listen: str | None, collect: Callable[[], Iterable[Metric]]
) -> Iterator[int | None]:
    """Serve the metrics of `collect`; yields the port. Serves nothing if `listen` is empty.

    `collect` is called in other threads, and must not raise. Raises UsageError if the address
    cannot be used.
    """
    if not listen:
        yield None
        return
    address, port = parse_listen_address(listen)
    registry = CollectorRegistry(auto_describe=False)
    try:
        server = _listening(address, port, registry)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot listen on {listen}: {reason}") from None
    thread = threading.Thread(
        target=server.serve_forever, args=(END_S,), name="metrics", daemon=True
    )
    thread.start()
    # registered now, since to register asks for the metrics
    registry.register(_Source(collect))
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _listening(address: str, port: int, registry: CollectorRegistry) -> WSGIServer:
    """Return a server of a registry at an address. Raises OSError."""
    family, *_, found = socket.getaddrinfo(
        address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    kind = _Server6 if family == socket.AF_INET6 else _Server
    app: Any = make_wsgi_app(registry)
    return make_server(str(found[0]), port, app, kind, handler_class=_Handler)
