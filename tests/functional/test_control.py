"""`control`: the load of a run is changed while it goes on; every iteration is accounted for."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from helpers.runs import Finished, Site, Started, checked, site

pytestmark = pytest.mark.functional

NOOP = {"Dummy.dummy": {"sleep": 0.001}}


@pytest.fixture
def here() -> Iterator[Site]:
    with site() as found:
        yield found


def begun(here: Site, *workloads: dict[str, Any]) -> Started:
    """A run that is under load."""
    run = here.start("osbench-coord", "run", "--json", here.task(*workloads))
    run.wait_for(lambda: settled(here) > 0)
    return run


def settled(here: Site) -> int:
    """Iterations that the run has counted."""
    return int(here.status().get("settled", 0))


def busy(here: Site) -> int:
    """Iterations that run."""
    return int(here.status()["busy"])


def control(here: Site, *options: str) -> Finished:
    return here.coord("control", *options)


def test_a_rate_is_changed_paused_and_taken_up_again(here: Site) -> None:
    runner = {"stages": {"start": 20, "stages": [{"duration": 600, "target": 20}]}}
    run = begun(here, {"scenario": NOOP, "runner": runner})

    faster = control(here, "--rate", "200")
    at = settled(here)
    run.wait_for(lambda: settled(here) > at + 400)
    paused = control(here, "--pause")
    again = control(here, "--resume-load")
    slow = control(here, "--rate", "1")
    # arrivals of the load before are granted up to there
    found = re.search(r"from (\S+) s on", slow.err)
    run.wait_for(lambda: found is None or here.status()["elapsed_s"] > 0.1 + float(found[1]))
    run.interrupt()
    done = run.finish()

    assert done.code == 130, done.err
    assert [one.code for one in (faster, paused, again, slow)] == [0] * 4, faster.err
    assert "Dummy.dummy: 200 arrivals/s from " in faster.err
    assert "Dummy.dummy: paused from " in paused.err
    assert "Dummy.dummy: as planned from " in again.err
    (workload,) = done.result["workloads"]
    checked(workload)
    run_id = done.result["run_id"]
    marks = [one for one in here.marks(run_id) if one["kind"] == "control"]
    assert [one["label"] for one in marks] == [
        "200 arrivals/s",
        "paused",
        "as planned",
        "1 arrivals/s",
    ]
    dues = [float(row["due_s"]) for row in here.rows(run_id)]
    first, second = marks[0]["from_s"], marks[1]["from_s"]
    planned, changed = (
        [at for at in dues if at < first],
        [at for at in dues if first <= at < second],
    )
    assert len(planned) == pytest.approx(20 * first, abs=2)
    assert len(changed) == pytest.approx(200 * (second - first), abs=2)
    assert [stage["end"] for stage in workload["stages"][:2]] == [20, 200]


def test_users_are_added_and_taken_away(here: Site) -> None:
    runner = {"constant_for_duration": {"duration": 600, "concurrency": 2}}
    run = begun(here, {"scenario": {"Dummy.dummy": {"sleep": 0.1}}, "runner": runner})

    more = control(here, "--users", "6")
    run.wait_for(lambda: busy(here) == 6)
    paused = control(here, "--pause")
    run.wait_for(lambda: here.status()["phase"] == "paused" and busy(here) == 0)
    again = control(here, "--resume-load")
    run.wait_for(lambda: busy(here) == 2)
    run.interrupt()
    done = run.finish()

    assert [one.code for one in (more, paused, again)] == [0] * 3, more.err
    (workload,) = done.result["workloads"]
    checked(workload)
    assert [stage["end"] for stage in workload["stages"]][:3] == [2, 6, 0]


def test_what_cannot_be_changed_is_refused_with_what_to_do(here: Site) -> None:
    runner = {"constant_for_duration": {"duration": 600, "concurrency": 1}}
    run = begun(here, {"scenario": {"Dummy.dummy": {"sleep": 0.1}}, "runner": runner})

    refusals = {
        ("--rate", "5"): "has virtual users instead of a rate; give --users",
        ("--users", "1000000"): "is more than the workers of Dummy.dummy carry; give at most ",
        (
            "--workload",
            "2",
            "--users",
            "1",
        ): "workload 2 is not under load now; choose from 0 (Dummy.dummy)",
        ("--resume-load",): "the load of Dummy.dummy is as planned",
        (): "give --rate N, --users N, --pause or --resume-load",
        ("--rate", "1", "--pause"): "--rate and --pause cannot be combined",
        ("--rate", "fast"): "'fast' is not a valid float",
        ("--rate", "-1"): "-1",
    }
    for options, said in refusals.items():
        done = control(here, *options)
        assert (done.code, said in done.err) == (2, True), done.err
    run.interrupt()
    run.finish()
    over = control(here, "--users", "1")

    assert over.code == 2
    assert "is not running on this machine" in over.err


def test_a_resumed_run_goes_on_with_the_changed_load(here: Site) -> None:
    runner = {"stages": {"start": 10, "stages": [{"duration": 12, "target": 10}]}}
    run = begun(here, {"scenario": NOOP, "runner": runner})
    assert control(here, "--rate", "100").code == 0
    os.kill(run.process.pid, signal.SIGKILL)
    run.finish()

    done = here.coord("resume", "--json", "last")

    (workload,) = done.result["workloads"]
    sums = checked(workload)
    (mark,) = [one for one in here.marks(done.result["run_id"]) if one["kind"] == "control"]
    at_s = mark["from_s"]
    assert sums["planned"] == pytest.approx(10 * at_s + 100 * (12 - at_s), abs=3)
    assert workload["stages"][-1]["end"] == 100
    numbers = sorted(int(row["iteration"]) for row in here.rows("last"))
    # what killed workers could not deliver in time is lost
    assert len(set(numbers)) == len(numbers) == sums["planned"] - sums["lost"]
    assert set(numbers) <= set(range(1, sums["planned"] + 1))
