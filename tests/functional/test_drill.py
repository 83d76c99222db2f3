"""Drills in real runs: their figures are those of the proxy's own log."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.engines import until
from helpers.machine import Machine
from helpers.readme import REPOSITORY, blocks
from helpers.runs import Finished, Site, checked, site
from servers import CountingServer, counting_server, folder

pytestmark = pytest.mark.functional

GUIDE = "docs/drill.md"


def test_the_drill_of_the_guide_counts_what_the_proxy_has_noted() -> None:
    server, drill = blocks("drill", GUIDE)
    with folder() as home:
        desk = home / "desk"
        desk.mkdir()
        (desk / "samples").symlink_to(REPOSITORY / "samples")
        machine = Machine(home, folder=desk)
        # hooks of the sample speak to port 8080; a busy machine may break a limit of it
        command = drill.text.replace(".yaml", ".yaml --json --task-args port=8080 > result.json")
        command = f"{command.rstrip()} || [ $? = 1 ]"
        with machine.running(server) as shops:
            machine.wait_for_port("8080", shops)
            machine.run(dataclasses.replace(drill, text=command))
            log = (desk / "proxy.log").read_text("utf-8").splitlines()
        result = json.loads((desk / "result.json").read_text("utf-8"))

    (workload,) = result["workloads"]
    sums, found = checked(workload), workload["drill"]
    requests = Counter(line.split()[1] for line in log if " GET " in line)
    commands = [line for line in log if " GET " not in line]
    assert commands == ["stop 2 begins", "stop 2 ends", "start 2 begins", "start 2 ends"]
    assert (sums["planned"], sums["ok"], sums["failed"]) == (960, requests["200"], requests["502"])
    assert (found["bad"], found["problem"]) == (requests["502"], "")
    assert requests["502"] > 0
    before, fault, after = found["phases"]
    assert [phase["name"] for phase in (before, fault, after)] == ["before", "fault", "after"]
    assert before["failed"] == 0
    assert sum(phase["ok"] for phase in found["phases"]) == sums["ok"]
    assert sum(phase["failed"] for phase in found["phases"]) == sums["failed"]
    # what the proxy noted before the command had ended before it
    begun, restarted = log.index("stop 2 begins"), log.index("start 2 begins")
    assert before["ok"] <= begun
    assert not [line for line in log[:begun] if " 502 " in line]
    # none of these was sent after the hook that ends the fault fired
    between = [line for line in log[begun:restarted] if " 502 " in line]
    assert fault["failed"] <= len(between)
    assert fault["to_s"] == after["from_s"] == found["after_s"]


@pytest.fixture(scope="module")
def here() -> Iterator[Site]:
    with site() as found:
        yield found


def at(unit: str, value: int) -> dict[str, Any]:
    return {"event": {"unit": unit, "at": [value]}}


def hook(name: str, command: str, trigger: dict[str, Any]) -> dict[str, Any]:
    return {"description": name, "action": {"sys_call": command}, "trigger": trigger}


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

    text = " ".join(here.coord("results", name).out.split())
    made = here.coord("report", name, "--html", str(page))

    assert "nothing lasted: a total outage of up to" in text
    assert "the hook that begins the fault (“stop”) has not fired" in text
    assert made.code == 0, made.err
    assert "Phases of the drill" in page.read_text("utf-8")
    (mark, *_) = [one for one in here.marks(name) if one["kind"] == "phase"]
    assert mark["from_s"] <= mark["to_s"]


def test_a_drill_goes_on_after_its_coordinator_was_killed(
    here: Site, counting_of_module: CountingServer
) -> None:
    counting = counting_of_module
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
    (name,) = {
        one["run"]
        for one in json.loads(here.coord("runs", "list", "--json").out)
        if one["state"] == "resumable"
    }

    done = here.coord("resume", name, "--json")

    (workload,) = done.printed["workloads"]
    sums, found = checked(workload), workload["drill"]
    assert sums["planned"] == 400
    before, *rest = found["phases"]
    assert before["ok"] >= 100 - 1
    # what was due while no coordinator was there is in the sums, and in no phase
    counted = sum(one[key] for one in (before, *rest) for key in ("ok", "failed", "timed_out"))
    assert counted == sums["ok"] + sums["failed"] + sums["timed_out"]
    assert "failed: the coordinator was killed meanwhile" in found["problem"]
    assert found["fault_s"] is not None
    here.await_nothing_left()
