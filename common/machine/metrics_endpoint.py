"""An HTTP endpoint for Prometheus that serves metrics while a `with` block runs."""

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
    """Adapter that passes `collect` to prometheus_client, which calls it for each request."""

    def __init__(self, collect: Callable[[], Iterable[Metric]]) -> None:
        self._collect = collect

    def collect(self) -> Iterable[Metric]:
        return self._collect()


class _Handler(WSGIRequestHandler):
    """Handles one connection of the metrics server; limits waits, and logs nothing."""

    def setup(self) -> None:
        self.request.settimeout(WAIT_S)
        super().setup()

    def handle(self) -> None:
        # it stopped, or is closed for others
        with contextlib.suppress(OSError):
            super().handle()

    def log_message(self, format: str, *args: Any) -> None:
        """Do nothing, so that requests are not logged."""


class _Server(ThreadingMixIn, WSGIServer):
    """HTTP server with a thread per connection, at most CONNECTIONS; then the oldest is closed."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, *args: Any, **options: Any) -> None:
        self._lock = threading.Lock()
        #: The oldest comes first.
        self._open: dict[socket.socket, None] = {}
        super().__init__(*args, **options)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a new connection in a new thread; if CONNECTIONS are open, close the oldest one."""
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
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)


class _Server6(_Server):
    address_family = socket.AF_INET6


@contextlib.contextmanager
def metrics_endpoint(
    listen: str | None, collect: Callable[[], Iterable[Metric]]
) -> Iterator[int | None]:
    """Serve metrics to Prometheus over HTTP during the block; yields the port.

    `listen`: PORT or ADDRESS:PORT; if empty, serves nothing and yields None. `collect` returns the
    metrics; server threads call it for each request, and it must not raise. Raises UsageError if
    the address is invalid or cannot be bound.
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
        raise UsageError(
            f"cannot listen on {listen}: {reason}; give another address or port, or end the "
            "process that listens there"
        ) from None
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
    """Return an HTTP server for the metrics of `registry`, bound to an address, not serving yet.

    Port 0 is any free port. Raises OSError or UnicodeError if the address cannot be resolved or
    bound.
    """
    family, *_, found = socket.getaddrinfo(
        address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    kind = _Server6 if family == socket.AF_INET6 else _Server
    app: Any = make_wsgi_app(registry)
    return make_server(str(found[0]), port, app, kind, handler_class=_Handler)
