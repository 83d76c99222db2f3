"""Overloads of real services: one that stays down, one that comes back, and a late generator."""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from helpers.machine import Machine, with_worker
from helpers.readme import REPOSITORY, blocks
from helpers.runs import Finished, Site, checked, site
from servers import folder

pytestmark = pytest.mark.functional

GUIDE = "docs/overload.md"
#: Arrivals of the plan below: before, in the overload, and after it.
BEFORE, OVERLOAD, AFTER = 100, 240, 160
PLAN = {"of": 80, "times": 2, "for": 1.5, "back_to": 0.5, "before": 2.5, "watch": 4}


class Service(ThreadingHTTPServer):
    """Fails requests by their number, whenever they come: each path has its own numbers."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.requests: dict[str, int] = {}

    def fails(self, path: str) -> bool:
        """Count a request, and say whether it fails."""
        with self.lock:
            number = self.requests.get(path, 0)
            self.requests[path] = number + 1
        if path == "/stuck":
            return number >= BEFORE
        return BEFORE <= number < BEFORE + OVERLOAD


class Handler(BaseHTTPRequestHandler):
    """Answers 200 or 503."""

    server: Service
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(503 if self.server.fails(self.path) else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def served() -> Iterator[str]:
    """The URL of a service."""
    with Service() as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture(scope="module")
def here() -> Iterator[Site]:
    """A site whose runs start their workers."""
    with site() as found:
        yield found


@pytest.fixture(scope="module")
def several(here: Site) -> Finished:
    """Overloads at once: of a service that stays down, of one that comes back, of a full limit."""

    def workload(name: str, scenario: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {
            "name": name,
            "scenario": scenario,
            "runner": {"overload": {**PLAN, "timeout": 60, **more}},
            "sla": {"recovers": {"within": 3}},
        }

    with served() as url:
        requests = [
            workload(
                name,
                {
                    "HttpRequests.check_request": {
                        "url": f"{url}/{name}",
                        "method": "GET",
                        "status_code": 200,
                    }
                },
            )
            for name in ("stuck", "back")
        ]
        # 40/s of half a second each need 20 users: the rest of the overload waits in osbench
        full = workload("full", {"Dummy.dummy": {"sleep": 0.5}}, max_concurrency=30)
        subtask = {
            "title": "At once",
            "run_in_parallel": True,
            "workloads": [*requests, full],
        }
        task = {"version": 2, "title": "Overloads", "subtasks": [subtask]}
        return here.run(str(here.write("overloads.json", json.dumps(task))), "--workers", "3")


def overload(done: Finished, name: str) -> dict[str, Any]:
    (workload,) = [one for one in done.result["workloads"] if one["name"] == name]
    checked(workload)
    found = workload["drill"]["overload"]
    return {**found, "sla": workload["sla"][0], "exit": done.code}


def test_a_service_that_stays_down_is_stuck(several: Finished) -> None:
    found = overload(several, "stuck")

    assert found["sla"]["success"] is False
    assert several.code in (1, 4)
    # only a generator that was late itself may doubt it
    assert found["verdict"] == "stuck" or found["is_generators"], found["sentences"]
    assert found["verdict"] != "stuck" or "the generator's own doing" not in found["sla"]["detail"]


def test_a_service_that_comes_back_does(several: Finished) -> None:
    found = overload(several, "back")

    assert found["verdict"] == "back" or found["is_generators"], found["sentences"]
    assert found["phases"][3]["bad_share"] == 0


def test_arrivals_that_the_limit_of_the_task_drops_are_not_the_services(several: Finished) -> None:
    found = overload(several, "full")

    assert found["verdict"] not in ("back", "stuck")
    # where they may wait for long, as on machines of tests, they start late instead
    late = found["phases"][1]["ran_per_s"] > 60
    assert late or found["phases"][1]["own_share"] > 0


def test_terminal_and_page_show_the_answer_and_the_loop(
    here: Site, several: Finished, tmp_path: Path
) -> None:
    name = several.result["run_id"]
    page = tmp_path / "page.html"

    text = " ".join(here.call("results", name).out.split())
    made = here.call("report", name, "--html", str(page))

    for sentence in (overload(several, each)["sentences"][0] for each in ("stuck", "back")):
        assert sentence[:60] in text
    assert made.code == 0, made.err
    assert page.read_text("utf-8").count("Loop of load and latency") == 3


def test_the_shop_of_the_guide_stays_down() -> None:
    server, running = blocks("overload", GUIDE)
    with folder() as home:
        desk = home / "desk"
        desk.mkdir()
        (desk / "samples").symlink_to(REPOSITORY / "samples")
        machine = Machine(home, folder=desk, forked=True)
        late = "OS_BENCHMARK__LAG_LIMIT_S=60 OS_BENCHMARK__MAX_LAG_S=60"
        command = running.text.replace(".yaml", ".yaml --json --task-args port=8080 > result.json")
        with machine.running(server) as shop, with_worker(machine):
            machine.wait_for_port("8080", shop)
            printed = machine.run(dataclasses.replace(running, text=f"{late} {command}"))
        result = json.loads((desk / "result.json").read_text("utf-8"))

    (workload,) = result["workloads"]
    found = workload["drill"]["overload"]
    assert found["verdict"] == "stuck" or found["is_generators"], found["sentences"]
    # 4 if this machine was so busy that the generator may be the limit
    assert printed.strip() in ("exit code 1", "exit code 4")
    # nothing was sold after the return, though requests came as before
    assert found["phases"][3]["ok_per_s"] == 0
