"""Drills in real runs: their figures are those of the proxy's own log."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from helpers.drills import at, hook, phase_of, resumable
from helpers.engines import until
from helpers.machine import Machine, with_worker
from helpers.readme import REPOSITORY, blocks
from helpers.runs import Cluster, Finished, Site, checked, site
from servers import Child, CountingServer, counting_server, folder, free_port, nginx_server

pytestmark = pytest.mark.functional

GUIDE = "docs/drill.md"


def test_the_drill_of_the_guide_counts_what_the_proxy_has_noted() -> None:
    server, drill = blocks("drill", GUIDE)
    with folder() as home:
        desk = home / "desk"
        desk.mkdir()
        (desk / "samples").symlink_to(REPOSITORY / "samples")
        machine = Machine(home, folder=desk, forked=True)
        # hooks speak to port 8080; a busy machine may be late, and break a limit of the sample
        command = drill.text.replace(".yaml", ".yaml --json --task-args port=8080 > result.json")
        late = "OS_BENCHMARK__LAG_LIMIT_S=60 OS_BENCHMARK__MAX_LAG_S=60"
        command = f"{late} {command.rstrip()} || [ $? = 1 ]"
        with machine.running(server) as shops, with_worker(machine):
            machine.wait_for_port("8080", shops)
            machine.run(dataclasses.replace(drill, text=command))
            log = (desk / "proxy.log").read_text("utf-8").splitlines()
        result = json.loads((desk / "result.json").read_text("utf-8"))

    (workload,) = result["workloads"]
    commands = [line for line in log if " GET " not in line]
    assert commands == ["stop 2 begins", "stop 2 ends", "start 2 begins", "start 2 ends"]
    noted = Counter(line.split()[1] for line in log if " GET " in line)
    before, fault, after = compared(workload, 960, noted)
    # what the proxy noted before the command had ended before it
    begun, restarted = log.index("stop 2 begins"), log.index("start 2 begins")
    assert before["ok"] <= begun
    assert not [line for line in log[:begun] if " 502 " in line]
    # none of these was sent after the hook that ends the fault fired
    between = [line for line in log[begun:restarted] if " 502 " in line]
    assert fault["failed"] <= len(between)
    assert fault["to_s"] == after["from_s"] == workload["drill"]["after_s"]


def compared(
    workload: dict[str, Any], planned: int, noted: Mapping[str, int]
) -> list[dict[str, Any]]:
    """The phases of a drill, whose sums are those that its proxy has noted, by status."""
    sums, found = checked(workload), workload["drill"]
    phases: list[dict[str, Any]] = found["phases"]
    assert set(noted) == {"200", "502"}
    assert (sums["planned"], sums["ok"], sums["failed"]) == (planned, noted["200"], noted["502"])
    assert (found["bad"], found["problem"]) == (noted["502"], "")
    assert [phase["name"] for phase in phases] == ["before", "fault", "after"]
    assert phases[0]["failed"] == 0
    assert sum(phase["ok"] for phase in phases) == noted["200"]
    assert sum(phase["failed"] for phase in phases) == noted["502"]
    return phases


#: Serves until it is killed, then again once there is a file `go`.
INSTANCE = """
while :; do
  {python} {service} --port {port} --database {folder}/shop.sqlite3 > out & echo $! > pid
  wait $!
  until [ -e go ]; do sleep 0.05; done
  rm go
done
"""
STOP = "sh -c 'kill -9 $(cat {folder}/pid)'"
#: Waits until requests have failed, however slow this machine is, and then for the instance.
START = (
    'sh -c \'cd {folder}; until grep -q "^502 " {log}; do sleep 0.05; done; rm out; touch go;'
    " until grep -qs http out; do sleep 0.05; done'"
)
#: One request of the drill a line: status and iteration.
LOG = """
log_format drill "$status $http_x_osbench_iteration";
access_log {log} drill;
upstream shops {{ server 127.0.0.1:{one} max_fails=0; server 127.0.0.1:{two} max_fails=0; }}
"""
LOCATIONS = "location / { proxy_pass http://shops; proxy_next_upstream off; }"


@contextlib.contextmanager
def instance(folder: Path) -> Iterator[int]:
    """The port of an instance of the demo service, which starts again when it is told to."""
    folder.mkdir()
    port = free_port()
    service = REPOSITORY / "samples" / "webservice.py"
    text = INSTANCE.format(python=sys.executable, service=service, port=port, folder=folder)
    child = Child(["bash", "-c", text], folder=folder, log=folder / "log")
    said = folder / "out"
    try:
        # it prints its address once it has the port
        assert child.wait_until(lambda: said.exists() and f":{port}" in said.read_text("utf-8")), (
            child.tail()
        )
        yield port
    finally:
        child.end()


def test_a_drill_behind_nginx_counts_what_nginx_has_logged(here: Site) -> None:
    with contextlib.ExitStack() as stack:
        home = stack.enter_context(folder())
        one, two = (stack.enter_context(instance(home / name)) for name in ("one", "two"))
        log = home / "access.log"
        text = LOG.format(log=log, one=one, two=two)
        url = stack.enter_context(nginx_server(home, text, LOCATIONS))
        places = {"folder": home / "two", "log": log}

        done = here.run(
            here.task(
                {
                    "scenario": {
                        "HttpRequests.check_request": {
                            "url": f"{url}/items",
                            "method": "GET",
                            "status_code": 200,
                        }
                    },
                    "runner": {"rps": {"rps": 40, "times": 400}},
                    "hooks": [
                        hook("kill shop 2", STOP.format(**places), at("iteration", 100)),
                        hook("start shop 2", START.format(**places), at("iteration", 220)),
                    ],
                    "phases": {"fault": "kill shop 2", "after": "start shop 2"},
                    "sla": {"drill": {"failed": {"max": 300}}},
                }
            )
        )
        lines = [line.split() for line in log.read_text("utf-8").splitlines()]

    assert done.code == 0, done.out + done.err
    (workload,) = done.result["workloads"]
    phases = compared(workload, 400, Counter(status for status, _ in lines))
    statuses = {int(iteration): status for status, iteration in lines}
    assert sorted(statuses) == list(range(1, 401))
    rows = {int(row["iteration"]): row for row in here.rows(done.result["run_id"])}
    failed = [number for number, row in sorted(rows.items()) if row["outcome"] == "failed"]
    assert failed == sorted(number for number, status in statuses.items() if status == "502")
    logged = Counter(
        (phase_of(row, workload["drill"]), statuses[number]) for number, row in rows.items()
    )
    for figures in phases:
        name = figures["name"]
        assert (figures["ok"], figures["failed"]) == (logged[name, "200"], logged[name, "502"])


@pytest.fixture(scope="module")
def here(fleet: Cluster) -> Site:
    """A site whose runs have a worker."""
    return fleet.site


def requests(counting: CountingServer, *hooks: dict[str, Any], **more: Any) -> dict[str, Any]:
    request = {"url": counting.url, "method": "GET", "status_code": 200}
    return {
        "scenario": {"HttpRequests.check_request": request},
        "runner": {"rps": {"rps": 50, "times": 200}},
        "hooks": list(hooks),
        "sla": {"drill": {"failed": {"max": 0}, "recovery_s": {"max": 5}}},
        **more,
    }


def hurry(counting: CountingServer, after: int) -> None:
    """Have a server answer at once after some requests."""
    until(lambda: counting.counts.total() >= after)
    counting.delay_s = 0.0


@pytest.fixture(scope="module")
def several(here: Site, counting_of_module: CountingServer) -> Finished:
    """A drill in which nothing happens, one whose hook fails, and one that never begins."""
    counting = counting_of_module
    # slow until the fault, so that no later request is slower, however busy the machine is then
    counting.delay_s = 0.5
    threading.Thread(target=hurry, args=(counting, 90), daemon=True).start()
    fault = at("iteration", 100)
    ended = {"constant_for_duration": {"duration": 1, "concurrency": 1}}
    never = at("iteration", 900_000)
    return here.run(
        here.task(
            requests(counting, hook("stop", "true", fault), phases={"fault": "stop"}),
            requests(counting, hook("stop", "false", fault), phases={"fault": "stop"}),
            requests(counting, hook("stop", "true", never), phases={"fault": "stop"}, runner=ended),
            requests(counting, sla={"failure_rate": {"max": 0}}),
        )
    )


@pytest.fixture(scope="module")
def counting_of_module() -> Iterator[CountingServer]:
    with counting_server() as found:
        yield found


def test_a_drill_without_effect_passes_and_has_recovered_at_once(several: Finished) -> None:
    calm, *_ = several.result["workloads"]

    assert checked(calm)["ok"] == 200
    assert [one["success"] for one in calm["sla"]] == [True]
    assert (calm["drill"]["recovery_s"], calm["drill"]["bad"]) == (0, 0)
    assert sum(phase["ok"] for phase in calm["drill"]["phases"]) == 200


def test_a_fault_that_was_not_caused_fails_the_criterion(several: Finished) -> None:
    _, failed, never, plain = several.result["workloads"]

    assert several.code == 1
    assert (
        failed["sla"][0]["detail"]
        == "the hook that begins the fault (“stop”) failed: the command returned 1"
    )
    assert never["sla"][0]["detail"] == "the hook that begins the fault (“stop”) has not fired"
    assert [one["name"] for one in never["drill"]["phases"]] == ["before"]
    assert plain["drill"] is None


def test_terminal_and_page_say_it(here: Site, several: Finished, tmp_path: Path) -> None:
    name = several.result["run_id"]
    page = tmp_path / "page.html"

    text = " ".join(here.call("results", name).out.split())
    made = here.call("report", name, "--html", str(page))

    assert "no effect lasted: an outage of" in text
    assert "the hook that begins the fault (“stop”) has not fired" in text
    assert made.code == 0, made.err
    assert "Phases of the drill" in page.read_text("utf-8")
    (mark, *_) = [one for one in here.marks(name) if one["kind"] == "phase"]
    assert mark["from_s"] <= mark["to_s"]


def test_a_drill_goes_on_after_its_coordinator_was_killed(
    counting_of_module: CountingServer,
) -> None:
    with site() as here:
        resume_a_drill(here, counting_of_module)


def resume_a_drill(here: Site, counting: CountingServer) -> None:
    hung, over = here.home / "hung", here.home / "over"
    stop = f"sh -c 'touch {hung}; while ! test -e {over}; do sleep 0.1; done'"
    task = here.task(
        requests(
            counting,
            hook("stop", stop, at("iteration", 100)),
            phases={"fault": "stop"},
            runner={"rps": {"rps": 50, "times": 400}},
        )
    )
    run = here.start("osbench-coord", "run", "--json", "--workers", "1", task)
    run.wait_for(hung.exists)
    os.kill(run.process.pid, signal.SIGKILL)
    run.process.wait()
    over.touch()
    (name,) = resumable(here)

    done = here.coord("resume", name, "--json")

    (workload,) = done.printed["workloads"]
    sums, found = checked(workload), workload["drill"]
    assert sums["planned"] == 400
    before, *rest = found["phases"]
    assert before["ok"] >= 100 - 1
    # what was due while no coordinator was there is in the sums, and in no phase
    counted = sum(one[key] for one in (before, *rest) for key in ("ok", "failed", "timed_out"))
    assert counted == sums["ok"] + sums["failed"] + sums["timed_out"]
    assert "failed: the coordinator was killed during the hook" in found["problem"]
    assert found["fault_s"] is not None
    here.await_nothing_left()
