"""The runner `search` for users at once: whole runs, also with a coordinator that is killed.

Whether users are sustained does not depend on how busy the machine is: the criterion reads how many
iterations overlapped, of a service in which each waits for all others of its trial.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from helpers.runs import Cluster, Site, checked, site
from servers import redis_server

pytestmark = pytest.mark.functional

#: More users at once break the criterion.
MOST = 5
CRITERION = f"""
import numpy as np

from osbench.plugin import sla


class FewAtOnce(sla.Sla):
    NAME = "few_at_once"

    def __init__(self, config):
        super().__init__(config)
        self.begun, self.ended = [], []

    def add(self, columns):
        self.begun += columns.started.tolist()
        self.ended += columns.ended.tolist()

    def check(self, statistics):
        begun, ended = np.sort(self.begun), np.sort(self.ended)
        most = max(
            int(np.searchsorted(begun, at, "right") - np.searchsorted(ended, at, "right"))
            for at in self.begun
        )
        return self.verdict(most <= {MOST}, f"{{most}} at once")
"""


@pytest.fixture(scope="module")
def here(fleet: Cluster) -> Site:
    """A site whose runs have a worker; criteria are the coordinator's."""
    (fleet.site.home / "at_once.py").write_text(CRITERION)
    return fleet.site


@pytest.fixture
def apart() -> Iterator[Site]:
    """A site of a test that ends a coordinator."""
    with site() as found:
        (found.home / "at_once.py").write_text(CRITERION)
        yield found


def task(here: Site, **keys: Any) -> list[str]:
    """Arguments of a run that searches for users at once."""
    search = {"users": {"low": 1, "high": 12}, "hold": 1, "settle": 0.5}
    workload = {
        "scenario": {"Dummy.dummy": {"sleep": 0.2}},
        "runner": {"search": search},
        "sla": {"few_at_once": {}},
        **keys,
    }
    return ["--json", here.task(workload), "--plugin-path", str(here.home / "at_once.py")]


def test_the_users_that_are_sustained_are_found_and_every_iteration_is_accounted_for(
    here: Site,
) -> None:
    done = here.coord("run", *task(here))

    assert done.code == 0, done.err
    (workload,) = done.result["workloads"]
    sums = checked(workload)
    assert sums["ok"] == sums["planned"]
    search = workload["search"]
    assert (search["kind"], search["precise"], search["unit"]) == ("found", True, "users")
    assert search["low"] <= MOST <= search["high"] <= search["low"] + 1
    assert (search["held"], search["limit"]) == (MOST, None)
    assert [trial["rate"] for trial in search["trials"]][:4] == [1, 2, 4, 8]
    assert all(trial["held"] == (trial["rate"] <= MOST) for trial in search["trials"])
    assert workload["offered"]["concurrency"] == 8
    assert workload["staircase"]["is_open"] is False
    report = " ".join(here.call("results", "last", "--details").out.split())
    assert "5 users sustained; 6 users not: few_at_once: 6 at once" in report
    assert "8 users not sustained: " in report
    # users ended between trials, and none is lost with them
    assert "8 virtual users requested" in report

    # counted again from the files alone, it is the same run
    key, sealed = str(here.home / "key"), str(here.home / "users.json")
    assert here.call("certify", "--new-key", key).code == 0
    criterion = ("--plugin-path", str(here.home / "at_once.py"))
    done = here.call("certify", "last", "--key", key, "--output", sealed, *criterion)
    assert done.code == 0, done.err


def test_users_of_a_search_whose_coordinator_is_killed_go_on(apart: Site) -> None:
    with redis_server(password="functional") as redis:
        cluster = Cluster(apart, redis)
        cluster.start_worker("--plugin-path", str(apart.home / "at_once.py"))
        cluster.await_idle(1)
        run = apart.begin("osbench-coord", "run", *task(apart))
        run.wait_for(lambda: "trial 4 at 8 users" in apart.status().get("search", ""))

        os.kill(run.process.pid, signal.SIGKILL)
        run.process.wait()
        (listed,) = json.loads(apart.coord("runs", "list", "--json").out)
        done = apart.coord("resume", listed["run"], "--json")

    assert done.code == 0, done.err
    (workload,) = done.result["workloads"]
    checked(workload)
    search = workload["search"]
    assert search["kind"] == "found"
    assert search["low"] <= MOST <= search["high"]
    assert [trial["rate"] for trial in search["trials"]][:4] == [1, 2, 4, 8]
    told = [trial for trial in search["trials"] if trial["cause"] != "disturbed"]
    assert all(trial["held"] == (trial["rate"] <= MOST) for trial in told)


def test_users_that_the_generator_starts_late_end_the_run_by_its_own_exit_code(
    here: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    # no generator is as punctual
    monkeypatch.setitem(here.variables, "OS_BENCHMARK__LAG_LIMIT_S", "0.0000001")

    done = here.coord("run", *task(here))

    assert done.code == 4, done.err
    (workload,) = done.result["workloads"]
    checked(workload)
    search = workload["search"]
    assert "start lag" in search["limit"] or "load generator disturbed" in search["limit"]
    assert (search["held"], search["advice"]) == (None, "")
    assert {trial["cause"] for trial in search["trials"]} <= {
        "generator",
        "generator_late",
        "disturbed",
    }
    (verdict,) = workload["sla"]
    assert (verdict["criterion"], verdict["success"]) == ("search", False)
