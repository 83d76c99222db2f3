"""A shop of two services, web and stock, both traced by OSProfiler; stock may be slow at times.

    GET web/buy        asks stock to reserve an item
    GET stock/reserve  one query; and a row lock in one of --every requests, of 1 to 1.5
                       times --planted seconds

As a script it is one of the services. The key that signs trace headers and the trace store come
from the environment variables OSPROFILER_HMAC_KEY and OSPROFILER_CONN_STR.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import socketserver
import sys
import time
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from osprofiler import notifier, profiler, web

KEY = "key-of-the-shop"


class Service:
    """The WSGI application of one of the services."""

    def __init__(self, stock: str, planted_s: float, every: int) -> None:
        self._stock = stock
        self._planted_s = planted_s
        self._every = every
        self._number = itertools.count(1)

    def __call__(self, environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        if self._stock:
            request = urllib.request.Request(
                f"{self._stock}/reserve", headers=web.get_trace_id_headers() or {}
            )
            with urllib.request.urlopen(request, timeout=30) as answer:
                body = answer.read()
        else:
            body = self._reserve()
        start("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
        return [body]

    def _reserve(self) -> bytes:
        number = next(self._number) if self._every else 1
        if self._every and number % self._every == 0:
            with profiler.Trace("row lock", info={"db": {"statement": "UPDATE items SET n = 1"}}):
                time.sleep(self._planted_s * (1 + number // self._every % 10 / 20))
        statement = "SELECT id FROM items WHERE name = 'lamp'"
        with profiler.Trace("db", info={"db": {"statement": statement, "params": {"n": 7}}}):
            time.sleep(0.001)
        return b"reserved"


class Threads(socketserver.ThreadingMixIn, WSGIServer):
    """A thread for each connection."""

    daemon_threads = True
    request_queue_size = 256


class Silent(WSGIRequestHandler):
    """Without a line for each request."""

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextlib.contextmanager
def traced_shop(
    home: Path,
    store: str,
    *,
    planted_s: float = 0.0,
    every: int = 0,
    python: Path | str = sys.executable,
) -> Iterator[str]:
    """Both services as processes of their own; gives the address of the first."""
    from servers.child import Child

    environment = {**os.environ, "OSPROFILER_HMAC_KEY": KEY, "OSPROFILER_CONN_STR": store}
    with contextlib.ExitStack() as stack:

        def started(name: str, *arguments: str) -> str:
            log = home / f"{name}.log"
            command = [str(python), __file__, name, *arguments]
            child = Child(command, folder=home, log=log, env=environment)
            stack.callback(child.end)
            assert child.wait_until(lambda: "\n" in log.read_text()), child.tail()
            return log.read_text().splitlines()[0]

        stock = started("stock", "--planted", str(planted_s), "--every", str(every))
        yield started("web", "--stock", stock)


def main() -> None:
    """Serve until killed; the first line is the address."""
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--stock", default="")
    parser.add_argument("--planted", type=float, default=0.0)
    parser.add_argument("--every", type=int, default=0)
    args = parser.parse_args()
    driver = notifier.create(
        os.environ["OSPROFILER_CONN_STR"],
        conf={},
        project="shop",
        service=args.name,
    )
    notifier.set(driver)
    service = Service(args.stock, args.planted, args.every)
    application = web.WsgiMiddleware(
        service, hmac_keys=os.environ["OSPROFILER_HMAC_KEY"], enabled=True
    )
    with make_server("127.0.0.1", 0, application, Threads, Silent) as server:
        print(f"http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
