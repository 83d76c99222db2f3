"""Virtual users in stages, on real workers: who runs when, and what is reported of each stage."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.runs import Site, checked, site

pytestmark = pytest.mark.functional

STAGES = [
    {"duration": 1, "users": 4},
    {"duration": 2, "users": 4},
    {"duration": 0, "users": 0},
    {"duration": 2, "users": 0},
    {"duration": 0, "users": 2},
    # long enough for users that a busy machine starts late
    {"duration": 4, "users": 2},
]


def test_users_come_pause_and_come_again_and_each_stage_is_reported(guest: Site) -> None:
    task = guest.task(
        {
            "scenario": {"Dummy.dummy": {"sleep": 0.05}},
            "runner": {"user_stages": {"stages": STAGES}},
        }
    )
    done = guest.run(task)
    rows = guest.rows("last")
    text = " ".join(guest.call("results", "last", "--details").out.split())
    page = guest.home / "page.html"
    assert guest.call("report", "last", "--html", str(page)).code == 0

    (workload,) = done.result["workloads"]
    sums = checked(workload)
    assert done.code in (0, 4), done.err
    assert sums["ok"] == sums["planned"] == len(rows)
    started = np.array([float(row["started_s"]) for row in rows])
    ended = started + np.array([float(row["service_s"]) for row in rows])
    assert np.count_nonzero(started < 4)
    assert np.count_nonzero(started >= 5)
    assert max(np.count_nonzero((started <= at) & (ended > at)) for at in started) <= 4
    stages = workload["stages"]
    assert [(one["from_s"], one["to_s"]) for one in stages] == [(0, 1), (1, 3), (3, 5), (5, 9)]
    assert [(one["begin"], one["end"]) for one in stages] == [(0, 4), (4, 4), (0, 0), (2, 2)]
    assert sum(one["ok"] for one in stages) == sums["ok"]
    assert stages[1]["p50_s"] >= 0.05
    assert "stages 0 s to 1 s, 0 to 4 users: " in text
    # users that work all the time: as many are in flight, and N / X is the time of an iteration
    steps = workload["staircase"]["steps"]
    assert [one["load"] for one in steps] == [one["concurrency"] for one in steps] == [2, 4]
    assert 0 < stages[1]["in_flight"] <= 4.001
    assert 0 < steps[1]["throughput"] <= 4 / 0.05 + 1
    assert "staircase users ok/s in flight" in text
    assert workload["staircase"]["fit_sentence"] in text
    assert ">Stages</a></h3>" in page.read_text("utf-8")


@pytest.mark.timing
def test_a_change_reaches_the_workers_within_a_second_on_an_idle_machine() -> None:
    with site() as here:
        runner = {"user_stages": {"stages": STAGES}}
        here.run(here.task({"scenario": {"Dummy.dummy": {"sleep": 0.05}}, "runner": runner}))

        started = np.array([float(row["started_s"]) for row in here.rows("last")])
        assert not np.count_nonzero((started > 4) & (started < 5))
