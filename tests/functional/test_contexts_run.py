"""Contexts around real runs: what workers see, what failing ones do, and what a dead one leaves."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from helpers.runs import Site, checked, site

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
            self.read_slowly(Path(marks), sleep)
        assert all(Path(book).exists() for book in self.context["books"])
        self.sleep_between(sleep)

    def read_slowly(self, marks, sleep):
        Path(marks, f"{self.context['iteration']}-begun").write_text("")
        time.sleep(sleep)
        there = all(Path(book).exists() for book in self.context["books"])
        Path(marks, f"{self.context['iteration']}-{'there' if there else 'gone'}").write_text("")
"""


@pytest.fixture
def here() -> Iterator[Site]:
    with site() as found:
        books = found.home / "books"
        books.mkdir()
        plugin = found.write("plugins/library.py", PLUGIN.replace("FOLDER", str(books)))
        found.configure({"coordinator": {"plugin_path": plugin.parent}})
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

    done = here.coord("run", task, "--workers", "1")

    assert done.code == 2
    assert "context dummy_context cannot be set up: RuntimeError: fail_setup is true" in done.err
    assert books(here) == 0


def test_a_later_setup_that_fails_leaves_the_report_of_what_ran(here: Site) -> None:
    task = here.task(
        {"scenario": {"Library.read": {}}},
        {
            "scenario": {"Library.read": {}},
            "contexts": {"dummy_context": {"fail_setup": True}},
        },
        {"scenario": {"Library.read": {}}},
    )

    done = here.run(task, "--workers", "1")

    assert done.code == 2
    (first,) = done.result["workloads"]
    assert checked(first)["ok"] == 1
    assert any("dummy_context cannot be set up" in note for note in done.result["notes"])
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


def test_what_a_killed_coordinator_leaves_is_undone_by_cleanup(here: Site) -> None:
    task = here.task({"scenario": {"Library.read": {"sleep": 60}}})
    started = here.start("osbench-coord", "run", task, "--workers", "1")
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
            "scenario": {"Library.read": {"sleep": 5.0, "marks": str(marks)}},
            "runner": {"constant": {"times": 100, "concurrency": 2}},
        }
    )
    run = here.start("osbench-coord", "run", "--json", task, "--workers", "1")
    run.wait_for(lambda: len(list(marks.glob("*-begun"))) >= 2)

    run.interrupt()
    run.await_said("stopping")
    run.interrupt()

    done = run.finish()
    assert done.code == 130
    assert "contexts are undone when no iteration runs any more" in done.err
    assert len(list(marks.glob("*-there"))) == 2
    assert not list(marks.glob("*-gone"))
    assert books(here) == 0
