"""Contexts around real runs: what workers see, what failing ones do, and what a dead one leaves."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from helpers.runs import Cluster, Site, checked, site
from servers import redis_server

pytestmark = pytest.mark.functional

PLUGIN = """
import time
from pathlib import Path
from osbench.plugin import context, scenario


class Shelf(context.Context):
    NAME = "shelf"
    HIDDEN = True

    def setup(self):
        self.made["books"] = []
        for number in range(self.config["books"]):
            book = Path(self.config["folder"], f"{self.surroundings.run}-{number}")
            book.write_text("")
            self.made["books"].append(str(book))
            self.keep()

    def cleanup(self):
        for book in self.made.get("books", []):
            Path(book).unlink(missing_ok=True)


@scenario.configure(name="Library.read", context={"shelf": {"folder": "FOLDER", "books": 3}})
class Read(scenario.Scenario):
    def run(self, sleep=0.0, marks=""):
        assert len(self.context["books"]) == 3
        if marks:
            self.read_slowly(Path(marks))
        assert all(Path(book).exists() for book in self.context["books"])
        self.sleep_between(sleep)

    def read_slowly(self, marks):
        Path(marks, f"{self.context['iteration']}-begun").write_text("")
        while not Path(marks, "go").exists():
            time.sleep(0.01)
        there = all(Path(book).exists() for book in self.context["books"])
        Path(marks, f"{self.context['iteration']}-{'there' if there else 'gone'}").write_text("")
"""


def equip(found: Site, *more: Mapping[str, Mapping[str, Any]]) -> None:
    """Give a site the plug-ins, and configuration beside."""
    shelf = found.home / "books"
    shelf.mkdir()
    plugin = found.write("plugins/library.py", PLUGIN.replace("FOLDER", str(shelf)))
    path = {"plugin_path": plugin.parent}
    found.configure({"coordinator": path, "worker": path}, *more)


@pytest.fixture(scope="module")
def here() -> Iterator[Site]:
    """A site with two workers, which start once for all runs."""
    with redis_server(password="functional") as redis, site() as found:
        cluster = Cluster(found, redis)
        equip(found, cluster.messaging)
        for _ in range(2):
            cluster.start_worker()
        cluster.await_idle(2)
        yield found


def books(here: Site) -> int:
    return len(list((here.home / "books").iterdir()))


def test_workers_see_what_contexts_made_and_nothing_stays(here: Site) -> None:
    task = here.task(
        {
            "scenario": {"Library.read": {}},
            "contexts": {"dummy_context": {}},
            "runner": {"constant": {"times": 40, "concurrency": 4}},
        }
    )

    done = here.run(task, "--workers", "2")

    assert done.code == 0, done.err
    assert done.sums["ok"] == 40
    assert books(here) == 0
    run = here.data / "runs" / done.result["run_id"]
    assert not (run / "contexts").exists()


def test_a_failing_setup_loads_nothing_and_undoes_all(here: Site) -> None:
    task = here.task(
        {
            "scenario": {"Library.read": {}},
            "contexts": {"dummy_context": {"fail_setup": True}},
        }
    )

    done = here.run(task, "--workers", "1")

    assert done.code == 2
    why = (
        "context dummy_context cannot be set up: RuntimeError: fail_setup is true; "
        "check contexts.dummy_context of the task"
    )
    assert f"Library.read could not begin: {why}" in done.err
    (note,) = done.result["notes"]
    assert note == f"Library.read could not begin: {why}"
    (workload,) = done.result["workloads"]
    assert workload["error"] == why
    assert checked(workload)["not_started"] == checked(workload)["planned"] == 1
    assert workload["sla"][-1]["criterion"] == "something_went_wrong"
    assert workload["sla"][-1]["success"] is False
    assert books(here) == 0


def three(here: Site) -> str:
    """A task whose second workload cannot begin."""
    good = {"scenario": {"Library.read": {}}}
    bad = {**good, "contexts": {"dummy_context": {"fail_setup": True}}}
    return here.task(good, bad, good)


def test_a_run_goes_on_with_the_workload_after_one_whose_setup_fails(here: Site) -> None:
    done = here.run(three(here), "--workers", "1", "--export", f"rally={here.home}/rally.json")

    assert done.code == 2
    assert [checked(one)["ok"] for one in done.result["workloads"]] == [1, 0, 1]
    assert [bool(one["error"]) for one in done.result["workloads"]] == [False, True, False]
    (task,) = json.loads((here.home / "rally.json").read_text())["tasks"]
    assert (task["status"], task["pass_sla"]) == ("aborted", False)
    parts = task["subtasks"]
    assert [one["status"] for one in parts] == ["finished", "aborted", "finished"]
    assert [one["workloads"][0]["pass_sla"] for one in parts] == [True, False, True]
    assert books(here) == 0


def test_workloads_that_run_at_once_begin_together_or_not_at_all(here: Site) -> None:
    good = {"scenario": {"Library.read": {}}}
    bad = {**good, "contexts": {"dummy_context": {"fail_setup": True}}}
    task = {
        "version": 2,
        "title": "At once, then alone",
        "subtasks": [
            {"title": "at once", "run_in_parallel": True, "workloads": [good, bad]},
            {"title": "alone", **good},
        ],
    }

    done = here.run(str(here.write("parallel.yaml", json.dumps(task))), "--workers", "2")

    assert done.code == 2
    assert [checked(one)["ok"] for one in done.result["workloads"]] == [0, 0, 1]
    errors = [one["error"] for one in done.result["workloads"]]
    assert errors[0] == errors[1] != errors[2] is None
    assert books(here) == 0


def test_a_run_may_end_at_a_workload_whose_setup_fails(here: Site) -> None:
    rally = here.home / "rally.json"
    done = here.run(three(here), "--workers", "1", "--stop-on-error", "--export", f"rally={rally}")

    assert done.code == 2
    assert [checked(one)["ok"] for one in done.result["workloads"]] == [1, 0, 0]
    never = done.result["workloads"][2]
    assert never["not_begun"] == "the run ended at a workload that could not begin"
    assert never["accounting"]["planned"] == never["accounting"]["not_started"] > 0
    assert done.result["notes"][1:] == [
        "Library.read [2] was not begun: the run ended at a workload that could not begin"
    ]
    (task,) = json.loads(rally.read_text())["tasks"]
    assert (task["status"], task["pass_sla"]) == ("aborted", False)
    assert books(here) == 0


def test_a_failing_cleanup_is_reported_and_can_be_repeated(here: Site) -> None:
    task = here.task(
        {
            "scenario": {"Library.read": {}},
            "contexts": {"dummy_context": {"fail_cleanup": True}},
        }
    )

    done = here.run(task, "--workers", "1")
    again = here.coord("cleanup", "last")

    assert done.code == again.code == 5
    assert done.sums["ok"] == 1
    (note,) = done.result["notes"]
    assert "context dummy_context cannot be undone: RuntimeError: fail_cleanup is true" in note
    assert f"`osbench-coord cleanup {done.result['run_id']}` tries again" in note
    assert "0 of 1 context undone" in again.out
    assert books(here) == 0


def test_what_a_killed_coordinator_of_local_mode_leaves_is_undone_by_cleanup() -> None:
    with site() as here:
        equip(here)
        undo_what_a_killed_coordinator_leaves(here)


def undo_what_a_killed_coordinator_leaves(here: Site) -> None:
    task = here.task({"scenario": {"Library.read": {"sleep": 60}}})
    started = here.begin("osbench-coord", "run", task, "--workers", "1")
    started.wait_for(lambda: "running" in started.said())
    refused = here.coord("cleanup", "last")

    os.kill(started.process.pid, signal.SIGKILL)
    started.process.wait()
    left = books(here)
    here.await_nothing_left()
    done = here.coord("cleanup", "last")
    over = here.coord("cleanup", "last")

    assert refused.code == 2
    assert "has a coordinator already" in refused.err
    assert left == 3
    assert (done.code, done.out.strip().rpartition(": ")[2]) == (0, "1 of 1 context undone")
    assert (over.code, over.out.strip().rpartition(": ")[2]) == (0, "0 of 0 contexts undone")
    assert books(here) == 0


def test_contexts_outlive_the_iterations_that_a_second_interrupt_does_not_wait_for(
    here: Site,
) -> None:
    marks = here.home / "marks"
    marks.mkdir()
    task = here.task(
        {
            "scenario": {"Library.read": {"marks": str(marks)}},
            "runner": {"constant": {"times": 2, "concurrency": 2}},
        }
    )
    run = here.begin("osbench-coord", "run", "--json", task, "--workers", "1")
    run.wait_for(lambda: len(list(marks.glob("*-begun"))) >= 2)

    run.interrupt()
    run.await_said("stopping")
    run.interrupt()
    run.await_said("contexts are undone when no iteration runs any more")
    (marks / "go").touch()

    done = run.finish()
    assert done.code == 130
    assert len(list(marks.glob("*-there"))) == 2
    assert not list(marks.glob("*-gone"))
    assert books(here) == 0
