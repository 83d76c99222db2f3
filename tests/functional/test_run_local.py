"""Runs in local mode: every runner, what is printed, traces, and nothing left behind."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import socket
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from helpers.processes import command_of
from helpers.runs import STATES, Finished, Site, by_iteration, checked, site
from servers import CountingServer, RedisServer

pytestmark = pytest.mark.functional

PLUGIN = """
import time
from osbench.plugin import atomic, scenario


@scenario.configure(name="Shop.buy")
class Buy(scenario.Scenario):
    def run(self, item, wait_s):
        with atomic.ActionTimer(self, "pay"):
            time.sleep(wait_s)
        self.add_output(
            complete={"title": "bought", "chart_plugin": "TextArea", "data": [item]}
        )
"""


@pytest.fixture
def here() -> Iterator[Site]:
    with site() as found:
        yield found


@pytest.fixture(scope="module")
def all_runners() -> Iterator[tuple[Site, Finished]]:
    """One run with a workload for each runner."""
    with site() as found:
        task = found.task(
            {
                "scenario": {"Dummy.dummy": {"sleep": 0.01}},
                "runner": {"constant": {"times": 60, "concurrency": 3}},
            },
            {
                "scenario": {"Dummy.dummy": {"sleep": 0.01}},
                "runner": {"constant_for_duration": {"duration": 1, "concurrency": 3}},
            },
            {"scenario": {"Dummy.dummy": {"sleep": 0.001}}, "runner": {"serial": {"times": 20}}},
            {
                "scenario": {"Dummy.failure": {"sleep": 0, "to_iteration": 50, "each": 5}},
                "runner": {"rps": {"times": 50, "rps": 100}},
                "sla": {"failure_rate": {"max": 50}},
            },
            {
                "scenario": {"Shop.buy": {"item": "tea", "wait_s": 0.001}},
                "runner": {"constant": {"times": 30, "concurrency": 2}},
            },
        )
        found.write("plugins/shop.py", PLUGIN)
        yield found, found.run(task, "--plugin-path", "plugins")


def test_each_runner_does_what_the_task_says(all_runners: tuple[Site, Finished]) -> None:
    _, done = all_runners

    constant, duration, serial, rps, _ = map(checked, done.result["workloads"])

    assert done.code == 0, done.err
    assert constant["planned"] == constant["ok"] == 60
    assert duration["planned"] == duration["ok"]
    assert 0 < duration["ok"] <= 300
    assert serial["planned"] == serial["ok"] == 20
    assert rps["planned"] == 50
    assert (rps["ok"], rps["failed"]) == (40, 10)


def test_json_is_one_object_and_the_rest_goes_to_stderr(
    all_runners: tuple[Site, Finished],
) -> None:
    _, done = all_runners

    assert done.out == done.out.splitlines()[0] + "\n"
    assert done.result["run_id"] in done.err
    assert "Traceback" not in done.err


def test_concurrency_and_rate_were_held(all_runners: tuple[Site, Finished]) -> None:
    _, done = all_runners

    constant, duration, serial, rps, _ = (one["offered"] for one in done.result["workloads"])

    assert [one["concurrency"] for one in (constant, duration, serial)] == [3, 3, 1]
    assert rps["rate_planned"] == pytest.approx(100)


def test_results_agree_with_what_the_run_printed(all_runners: tuple[Site, Finished]) -> None:
    here, done = all_runners

    again = here.coord("results", "last", "--json")
    rows = here.rows("last")

    assert again.printed == done.result
    for at, workload in enumerate(done.result["workloads"]):
        lines = [row for row in rows if row["workload"] == str(at)]
        counts = Counter(row["outcome"] for row in lines)
        assert {state: counts[state] for state in ("ok", "failed", "timed_out")} == {
            state: workload["accounting"][state] for state in ("ok", "failed", "timed_out")
        }
        numbers = {int(row["iteration"]) for row in lines}
        assert len(numbers) == len(lines)
        if workload["runner"]["type"] != "constant_for_duration":
            assert numbers == set(range(1, len(lines) + 1))
    assert by_iteration([row for row in rows if row["workload"] == "3"], "failed") == set(
        range(5, 51, 5)
    )


def test_no_more_iterations_ran_at_once_than_asked_for(
    all_runners: tuple[Site, Finished],
) -> None:
    here, _ = all_runners

    instants: list[tuple[float, int]] = []
    for row in here.rows("last"):
        if row["workload"] in "01":
            shift = 1000 * int(row["workload"])
            begin = shift + float(row["started_s"])
            instants += [(begin, 1), (begin + float(row["service_s"]), -1)]
    running = most = 0
    for _, change in sorted(instants):
        running += change
        most = max(most, running)

    assert most == 3


def test_results_as_text_name_the_run(all_runners: tuple[Site, Finished]) -> None:
    here, done = all_runners

    shown = here.coord("results", "last")

    assert shown.code == 0
    assert done.result["run_id"] in shown.out
    assert "Exit code 0" in shown.out
    assert all(name in shown.out for name in ("constant_for_duration", "serial", "rps"))


def test_a_successful_run_leaves_only_its_directory(all_runners: tuple[Site, Finished]) -> None:
    here, done = all_runners

    here.await_nothing_left()

    assert [path.name for path in (here.data / "runs").iterdir()] == [done.result["run_id"]]
    assert {path.name for path in here.data.iterdir()} == {"contexts.key", "osbench.conf", "runs"}


def test_a_foreign_broker_and_a_narrow_encoding_of_the_environment(here: Site) -> None:
    with socket.create_server(("127.0.0.1", 0)) as foreign:
        port = foreign.getsockname()[1]
        here.variables = {
            "CELERY_BROKER_URL": f"redis://127.0.0.1:{port}/5",
            "CELERY_CONFIG_MODULE": "no.such.module",
            "PICKLE_PROTOCOL": "none",
            "PYTHONIOENCODING": "ascii",
        }
        task = here.write(
            "kürzer.yaml",
            "version: 2\ntitle: kürzer als 日本 ✓\nsubtasks:\n"
            "  - {title: größe, scenario: {Dummy.dummy: {sleep: 0}}, "
            "runner: {constant: {times: 6, concurrency: 2}}}\n",
        )

        done = here.start("osbench-coord", "run", str(task)).finish()
        foreign.setblocking(False)
        with pytest.raises(BlockingIOError):
            foreign.accept()

    assert done.code == 0, done.err
    assert done.err.count("CELERY_BROKER_URL") == 1
    assert "kurzer als ?? +" in done.out
    assert "(grosse)" in done.out


def test_a_plugin_of_the_users_own(all_runners: tuple[Site, Finished]) -> None:
    _, done = all_runners

    bought = done.result["workloads"][-1]

    assert checked(bought)["ok"] == 30
    assert bought["actions"]["pay"]["ok"]["count"] == 30


def test_every_iteration_is_traced_and_its_requests_are_told(
    here: Site, redis: RedisServer, counting: CountingServer
) -> None:
    here.deployment(
        {
            "osbench": {
                "services": {"web": counting.url},
                "profiler_hmac_key": "a key",
                "profiler_conn_str": redis.url,
            }
        }
    )
    request = {
        "url": counting.url + "/{run}/{iteration}",
        "method": "GET",
        "status_code": 200,
        "headers": {"X-Mine": "{iteration}"},
    }
    task = here.task(
        {
            "scenario": {"Dummy.dummy": {"sleep": 0}},
            "runner": {"constant": {"times": 3, "concurrency": 1}},
        },
        {
            "scenario": {"HttpRequests.check_request": {**request, "auth": ["me", "password"]}},
            "runner": {"constant": {"times": 3, "concurrency": 1}},
        },
        {
            "scenario": {"HttpRequests.check_request": request},
            "runner": {"constant": {"times": 40, "concurrency": 10}},
        },
    )

    done = here.run(task, "--report", "report.html")

    assert done.code == 0, done.err
    assert [checked(one)["ok"] for one in done.result["workloads"]] == [3, 3, 40]
    are_traced(here, redis, counting, done)
    are_told(done)
    assert here.coord("results", "last", "--json").printed == done.result
    page = (here.home / "report.html").read_text("utf-8")
    assert page.count("Where the time of requests goes</a></h3>") == 2


def are_traced(here: Site, redis: RedisServer, counting: CountingServer, done: Finished) -> None:
    """Each iteration has its own id, which the service and the trace store know."""
    rows = here.rows("last")
    traces = {row["trace_id"] for row in rows}
    assert len(traces) == len(rows) == 46
    assert set(counting.by_run) == {(done.result["run_id"], n) for n in range(1, 41)}
    assert "x-trace-info" in counting.last_headers
    assert counting.last_headers["x-mine"] == counting.last_headers["x-osbench-iteration"]
    stored = stored_traces(redis)
    assert set(stored) == traces
    # the root and the action, a start and a stop each
    assert {stored[row["trace_id"]] for row in rows if row["workload"] == "2"} == {4}


def are_told(done: Finished) -> None:
    """Phases of requests, and the workers that made them."""
    none, others, own = (one["requests"] for one in done.result["workloads"])
    (path, action), *more = own["actions"].items()
    assert (path, more, action) == ("requests.check_request", [], own["total"])
    assert (action["requests"], action["unanswered"], own["clients"]) == (40, 0, [])
    assert action["new_connections"] >= 1
    assert action["new_connections"] + action["reused_connections"] == 40
    counts = {name: times["count"] for name, times in action["phases"].items()}
    opened = action["new_connections"]
    assert counts == {"lookup": opened, "connect": opened, "tls": 0, "wait": 40, "rest": 40}
    whole = done.result["workloads"][2]["actions"][path]["ok"]["mean"]
    assert 0 < action["phases"]["wait"]["mean"] + action["phases"]["rest"]["mean"] < whole
    assert action["sent_bytes"] > 40 * len("GET / HTTP/1.1")
    assert action["received_bytes"] > 40 * len("HTTP/1.1 200 OK")
    assert others["clients"] == [{"client": "requests", "why": "option auth", "requests": 3}]
    assert none is None
    loops = [one["loops"] for one in done.result["workloads"]]
    assert loops[2]["lag"]["count"] > 0
    # so few users are threads
    assert loops[:2] == [None, None]
    said = [note for note in done.result["notes"] if "requests made" in note]
    (remark,) = said
    assert remark.startswith("HttpRequests.check_request ")
    assert remark.endswith(": requests made 3 of 3 requests, which costs more CPU: option auth")


def stored_traces(redis: RedisServer) -> Counter[str]:
    """Events in the trace store by trace id."""
    client = redis.client()
    found: Counter[str] = Counter()
    for key in client.scan_iter("osprofiler*"):
        for event in client.lrange(key, 0, -1):
            found[json.loads(event)["base_id"]] += 1
    client.close()
    return found


LONG = {
    "scenario": {"Dummy.dummy": {"sleep": 0.1}},
    "runner": {"constant": {"times": 5000, "concurrency": 4}},
}


def test_ctrl_c_at_the_terminal_lets_iterations_end_and_reports(here: Site) -> None:
    run = here.start("osbench-coord", "run", "--json", here.task(LONG))
    run.await_said("running")

    run.interrupt()

    done = run.finish()
    assert done.code == 130
    sums = done.sums
    assert sums["planned"] == 5000
    assert sums["not_started"] > 0
    assert sums["ok"] == 5000 - sums["not_started"]
    assert len(here.rows("last")) == sums["ok"]
    here.await_nothing_left()


def test_a_coordinator_killed_at_any_moment_of_its_start_leaves_nothing(here: Site) -> None:
    instants = random.Random(11)
    for _ in range(3):
        run = here.start("osbench-coord", "run", "--json", here.task(LONG))
        run.wait_for(lambda: list(here.runtime.iterdir()))
        time.sleep(instants.uniform(0.0, 1.0))

        os.kill(run.process.pid, signal.SIGKILL)

        run.finish()
        here.await_nothing_left()
        assert not here.private()


def test_a_task_that_is_refused_leaves_nothing_of_what_had_started(here: Site) -> None:
    refused = here.coord("run", "missing.yaml")

    assert refused.code == 2
    assert "missing.yaml" in refused.err
    here.await_nothing_left()


@pytest.mark.parametrize(
    ("victim", "says"), [("redis|valkey", "private server"), ("osbench-worker", "workers")]
)
def test_a_private_process_that_dies_is_reported_and_ends_the_run_soon(
    here: Site, victim: str, says: str
) -> None:
    run = here.begin("osbench-coord", "run", "--json", here.task(LONG))
    run.await_said("running")
    # their supervisor, which may be at rest; forked processes keep the name of its first program
    names = {"osbench-worker": r"osbench.worker.main|resting\.py"}.get(victim, victim)
    found = [
        one for one in here.private() if re.search(names, " ".join(command_of(one).split()[:5]))
    ]
    (first,) = [one for one in found if one.ppid() not in [other.pid for other in found]]

    first.kill()

    done = run.finish()
    assert done.code == 3
    assert done.sums["lost"] + done.sums["not_started"] > 0
    assert f"{says}" in " ".join(done.result["notes"])
    assert "SIGKILL" in " ".join(done.result["notes"])
    assert "Traceback" not in done.err
    here.await_nothing_left()


def test_several_results_can_be_distinguished(all_runners: tuple[Site, Finished]) -> None:
    here, done = all_runners
    run_id: Any = done.result["run_id"]

    by_beginning = here.coord("results", run_id[:8], "--json")
    unknown = here.coord("results", "19990101", "--json")

    assert by_beginning.printed["run_id"] == run_id
    assert unknown.code == 2
    assert "19990101" in unknown.result["error"]["message"]
    assert set(STATES) < set(done.result["workloads"][0]["accounting"])
