"""`control`: the load of a run is changed while it goes on; every iteration is accounted for."""

from __future__ import annotations

import os
import re
import signal
import statistics
from collections.abc import Iterator
from itertools import pairwise
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
    run = here.begin("osbench-coord", "run", "--json", here.task(*workloads))
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


def test_a_rate_is_changed_paused_and_taken_up_again_over_a_kill(here: Site) -> None:
    runner = {"stages": {"start": 20, "stages": [{"duration": 600, "target": 20}]}}
    run = begun(here, {"scenario": NOOP, "runner": runner})

    faster = control(here, "--rate", "100")
    at = settled(here)
    run.wait_for(lambda: settled(here) > at + 100)
    paused = control(here, "--pause")
    again = control(here, "--resume-load")
    last = control(here, "--rate", "50")
    # arrivals of the load before are granted up to there
    found = re.search(r"from (\S+) s on", last.err)
    run.wait_for(lambda: found is None or here.status()["elapsed_s"] > 0.1 + float(found[1]))
    os.kill(run.process.pid, signal.SIGKILL)
    run.finish()
    before = settled(here)
    run = here.begin("osbench-coord", "resume", "--json", "last")
    run.wait_for(lambda: settled(here) > before + 50)
    run.interrupt()
    done = run.finish()

    assert done.code == 130, done.err
    assert [one.code for one in (faster, paused, again, last)] == [0] * 4, faster.err
    assert "Dummy.dummy: 100 arrivals/s from " in faster.err
    assert "Dummy.dummy: paused from " in paused.err
    assert "Dummy.dummy: as planned from " in again.err
    (workload,) = done.result["workloads"]
    sums = checked(workload)
    run_id = done.result["run_id"]
    marks = [one for one in here.marks(run_id) if one["kind"] == "control"]
    assert [one["label"] for one in marks] == [
        "100 arrivals/s",
        "paused",
        "as planned",
        "50 arrivals/s",
    ]
    rows = here.rows(run_id)
    dues = sorted(float(row["due_s"]) for row in rows)
    # what a killed worker could not deliver in time is lost
    lost = sums["lost"]
    first, second, _, last_s = (one["from_s"] for one in marks)
    for rate, begin, end in ((20, 0.0, first), (100, first, second)):
        due = sum(begin <= at < end for at in dues)
        assert rate * (end - begin) - 2 - lost <= due <= rate * (end - begin) + 2
    # the last load is the same after the kill; what was due meanwhile is dropped
    apart = [after - at for at, after in pairwise(dues) if at >= last_s]
    assert statistics.median(apart) == pytest.approx(1 / 50, rel=0.01)
    assert [stage["end"] for stage in workload["stages"][:2]] == [20, 100]
    assert workload["stages"][-1]["end"] == 50
    numbers = [int(row["iteration"]) for row in rows]
    assert len(set(numbers)) == len(numbers) == sums["planned"] - lost - sums["not_started"]


def test_users_are_added_and_taken_away(here: Site) -> None:
    runner = {"constant_for_duration": {"duration": 600, "concurrency": 2}}
    run = begun(here, {"scenario": {"Dummy.dummy": {"sleep": 0.1}}, "runner": runner})

    more = control(here, "--users", "6")
    run.wait_for(lambda: busy(here) == 6)
    paused = control(here, "--pause")
    run.wait_for(lambda: here.status()["phase"] == "paused" and busy(here) == 0)
    again = control(here, "--resume-load")
    run.wait_for(lambda: busy(here) == 2)
    refused = control(here, "--rate", "5")
    run.interrupt()
    done = run.finish()
    over = control(here, "--users", "1")

    assert [one.code for one in (more, paused, again)] == [0] * 3, more.err
    assert (refused.code, over.code) == (2, 2)
    assert "has virtual users instead of a rate; give --users" in refused.err
    assert "is not running on this machine" in over.err
    (workload,) = done.result["workloads"]
    checked(workload)
    assert [stage["end"] for stage in workload["stages"]][:3] == [2, 6, 0]
