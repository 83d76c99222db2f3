"""OpenTelemetry's own SDKs as they are sent spans by: Flask, aiohttp and Node services.

`make otlp-sdks` installs them below `build/otlp-sdks` and runs these tests.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.readme import REPOSITORY
from helpers.runs import Site, site
from servers import Child, free_port

pytestmark = pytest.mark.functional

SERVICES = REPOSITORY / "tests" / "otlp_sdks"
INSTALLED = Path(os.environ.get("OSBENCH_OTLP_SDKS", REPOSITORY / "build" / "otlp-sdks"))
PYTHON = (str(INSTALLED / "venv" / "bin" / "opentelemetry-instrument"), "python")
NODE = ("node", "--require", "@opentelemetry/auto-instrumentations-node/register")


@pytest.fixture
def here() -> Iterator[Site]:
    with site() as found:
        yield found


@contextlib.contextmanager
def running(
    here: Site, command: tuple[str, ...], name: str, slow: str, place: str
) -> Iterator[int]:
    """A service under its SDK, with the settings of its makers but for the address; its port."""
    port = free_port()
    child = Child(
        [*command, str(SERVICES / name), str(port), slow],
        folder=here.home,
        log=here.home / f"service-{port}",
        env={
            "PATH": f"{INSTALLED / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "NODE_PATH": str(INSTALLED / "node_modules"),
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{place}",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "OTEL_SERVICE_NAME": "items",
            "OTEL_METRICS_EXPORTER": "none",
            "OTEL_LOGS_EXPORTER": "none",
        },
    )
    try:
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port)).close()
                break
            assert child.process.poll() is None, child.tail()
            time.sleep(0.05)
        yield port
    finally:
        child.end()


@pytest.mark.parametrize(
    ("command", "name", "slow", "cause"),
    [
        (PYTHON, "flask_service.py", "db", "items SELECT pause(...) AS items"),
        (PYTHON, "flask_service.py", "queue", "waiting for items"),
        (PYTHON, "aiohttp_service.py", "lock", "items acquire row lock"),
        (NODE, "node_service.js", "db", "SELECT * FROM items WHERE owner = ?"),
    ],
)
def test_what_is_planted_is_named(
    here: Site, command: tuple[str, ...], name: str, slow: str, cause: str
) -> None:
    if not (INSTALLED / ("node_modules" if command is NODE else "venv")).exists():
        pytest.skip("OpenTelemetry's SDKs are not installed: make otlp-sdks")
    place = f"127.0.0.1:{free_port()}"
    with running(here, command, name, slow, place) as port:
        url = f"http://127.0.0.1:{port}/items/17"
        request = {"url": url, "method": "GET", "status_code": 200}
        task = here.task(
            {
                "scenario": {"HttpRequests.check_request": request},
                "runner": {"constant": {"times": 2000, "concurrency": 4}},
            }
        )
        done = here.run(task, "--otlp", place)

    (workload,) = done.result["workloads"]
    tracing = workload["tracing"]
    print(tracing["explanation"])
    print([note for note in done.result["notes"] if "OTLP" in note])
    assert tracing["traced"] == 2000
    assert cause in tracing["explanation"]
    assert "stands out" not in tracing["explanation"]
    (note,) = [one for one in done.result["notes"] if "received by OTLP" in one]
    assert "refused" not in note
    assert "malformed" not in note
