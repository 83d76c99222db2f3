"""The sample service that sends its spans by OTLP, as a process."""

from __future__ import annotations

import contextlib
import socket
import sys
import time

from helpers.readme import REPOSITORY
from helpers.runs import Site
from servers import Child, free_port


class Service:
    """The sample service, whose spans go to a place."""

    def __init__(self, here: Site, place: str, slow: str = "db", token: str = "") -> None:
        self.port = free_port()
        headers = {"OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer%20{token}"} if token else {}
        sample = str(REPOSITORY / "samples" / "otlp_service.py")
        self._child = Child(
            [sys.executable, sample, "--port", str(self.port), "--slow", slow],
            folder=here.home,
            log=here.home / f"service-{self.port}",
            env={"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{place}", **headers},
        )
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            assert self._child.process.poll() is None, self._child.tail()
            time.sleep(0.02)

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.end()

    def workload(self, times: int = 1200, concurrency: int = 6) -> dict[str, object]:
        url = f"http://127.0.0.1:{self.port}/items"
        return {
            "scenario": {
                "HttpRequests.check_request": {"url": url, "method": "GET", "status_code": 200}
            },
            "runner": {"constant": {"times": times, "concurrency": concurrency}},
        }
