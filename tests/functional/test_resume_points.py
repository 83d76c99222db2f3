"""A coordinator that is killed at a certain line, and the run that goes on with another one.

The run has all that a run can have: contexts, hooks, a data file, loads one after the other and at
once, closed and open ones. Not all lines are tried, unless OSBENCH_RESUME_MOMENTS is set.
"""

from __future__ import annotations

import os
import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.refolded import refolded, reported
from helpers.runs import Cluster, Finished, checked, site
from osbench.coordinator.storage.run_directory import RunDirectory
from servers import redis_server

pytestmark = [pytest.mark.functional, pytest.mark.timeout(300)]

#: For workers and coordinator.
PLUGINS = """
import pathlib
import time

from osbench.plugin import atomic, context, scenario

HERE = pathlib.Path(__file__).parent


def note(what):
    with (HERE / "log").open("a") as file:
        file.write(f"{what}\\n")


@scenario.configure(name="Logged.run")
class Logged(scenario.Scenario):
    def run(self, name, row="", sleep=0.01):
        number = self.context["iteration"]
        note(f"{name} {number} {row}")
        with atomic.ActionTimer(self, "step"):
            time.sleep(sleep * (1 + number % 3))
        self.add_output(additive={
            "title": "numbers", "chart_plugin": "StatsTable", "data": [["of", number]],
        })
        if number % 9 == 0:
            raise ValueError("a ninth of them")


class Noted(context.Context):
    NAME = "noted"

    def setup(self):
        note("setup")
        self.made["noted"] = "it"
        self.keep()

    def cleanup(self):
        note("cleanup")
"""

#: For the coordinator alone: it kills itself, once, when it comes to the point that a file names,
#: or has an error there.
DEATH = """
import importlib
import os
import pathlib
import signal

from osbench.common.errors import StoreError

ORDER = pathlib.Path(__file__).parent / "die-at"


def arm(place, nth, how):
    module, _, path = place.partition(":")
    owner = importlib.import_module(f"osbench.coordinator.{module}")
    *above, name = path.split(".")
    for part in above:
        owner = getattr(owner, part)
    found, calls = getattr(owner, name), []

    def deadly(*given, **named):
        calls.append(1)
        if len(calls) == nth and how == "error":
            raise StoreError("a planted error")
        if len(calls) == nth:
            os.kill(os.getpid(), signal.SIGKILL)
        return found(*given, **named)

    setattr(owner, name, deadly)


if ORDER.exists():
    place, nth, *how = ORDER.read_text().split()
    ORDER.unlink()
    arm(place, int(nth), *how or ["death"])
"""

#: Where it dies, before the call of that number; what that is.
POINTS = {
    "storage.run_directory:RunDirectory.write 1": "nothing but the plan is written",
    "transport.channel:Channel.specify 1": "workers have joined, contexts are set up",
    "run.workload:WorkloadRun.start 1": "all have prepared",
    "run.workload:WorkloadRun._write_controls 1": "the start is journalled, and told nobody",
    "run.workload:WorkloadRun.start 3": "one of two loads at once has begun",
    "results.accounts:Accounts.take 5": "blocks are on disk, and not counted",
    "transport.channel:Channel.delete 5": "blocks are counted, and not acknowledged",
    "hooks.executor:Firing 1": "a hook is journalled, and has not fired",
    "run.workload:WorkloadRun.settle 1": "the first load is over, and not closed",
    "run.workload:WorkloadRun.end_hooks 1": "the first load is closed",
    "run.workload:WorkloadRun.settle 3": "one of two loads at once is closed",
    "contexts.context_stack:undo 1": "contexts are about to be undone",
    "run.release:release 1": "all load is over, and workers know nothing of it",
    "run.lifecycle:write_timeline 1": "workers are released",
}
#: Those that are always tried.
SHORT = (
    "run.workload:WorkloadRun._write_controls 1",
    "run.workload:WorkloadRun.start 3",
    "transport.channel:Channel.delete 5",
    "hooks.executor:Firing 1",
    "run.workload:WorkloadRun.end_hooks 1",
    "run.lifecycle:write_timeline 1",
)
TRIED = tuple(POINTS) if "OSBENCH_RESUME_MOMENTS" in os.environ else SHORT


class Desk:
    """A cluster whose workers know the plug-ins, and a task."""

    def __init__(self, cluster: Cluster, plugins: Path, death: Path) -> None:
        self.cluster = cluster
        self._plugins = plugins
        self._death = death
        self._log = plugins / "log"
        (cluster.site.home / "rows.csv").write_text(
            "row\n" + "".join(f"row-{number}\n" for number in range(1, 41))
        )

    def workloads(self) -> list[dict[str, Any]]:
        """Of three, the second and third are under load at once."""
        hook = {
            "action": {"sys_call": f"sh -c 'echo hook >> {self._log}'"},
            "trigger": {"event": {"unit": "iteration", "at": [10, 30]}},
        }
        closed = {
            "scenario": {"Logged.run": {"name": "closed"}},
            "runner": {"constant": {"times": 60, "concurrency": 4}},
            "contexts": {"noted": {}},
            "hooks": [hook],
            "sla": {"failure_rate": {"max": 50}, "outliers": {"max": 60, "min_iterations": 5}},
        }
        fed = {
            "scenario": {"Logged.run": {"name": "fed"}},
            "runner": {"constant": {"times": 40, "concurrency": 2}},
            "args_from": "rows.csv",
            "sla": {"failure_rate": {"max": 50}},
        }
        offered = {
            "scenario": {"Logged.run": {"name": "offered"}},
            "runner": {"rps": {"times": 30, "rps": 30}},
            "contexts": {"noted": {}},
            "sla": {"failure_rate": {"max": 50}},
        }
        return [closed, fed, offered]

    def task(self) -> str:
        closed, *others = self.workloads()
        return self.cluster.site.task(closed, {"workloads": others, "run_in_parallel": True})

    def die_at(self, point: str) -> None:
        """Have the next coordinator kill itself."""
        (self._death / "die-at").write_text(point)

    def run(self, point: str = "") -> Finished:
        self._log.unlink(missing_ok=True)
        if point:
            self.die_at(point)
        paths = [part for path in (self._plugins, self._death) for part in ("--plugin-path", path)]
        return self.cluster.site.run(self.task(), *map(str, paths))

    def notes(self) -> list[str]:
        return self._log.read_text().splitlines()


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    with redis_server(password="functional") as redis, site() as here:
        plugins, death = here.home / "both", here.home / "death"
        for folder, text in ((plugins, PLUGINS), (death, DEATH)):
            folder.mkdir()
            (folder / "plugins.py").write_text(textwrap.dedent(text))
        cluster = Cluster(here, redis)
        for _ in range(2):
            cluster.start_worker("--plugin-path", str(plugins))
        cluster.await_idle(2)
        yield Desk(cluster, plugins, death)


def check(desk: Desk, done: Finished, name: str) -> None:
    """All of the plan has run once; the report tells what the directory holds."""
    notes = desk.notes()
    # contexts were made as often as they were undone, and the last to come was the end of them
    steps = [note for note in notes if note in ("setup", "cleanup")]
    assert steps == ["setup", "cleanup"] * (len(steps) // 2)
    assert notes.count("hook") <= 2
    started = Counter(note for note in notes if note not in ("setup", "cleanup", "hook"))
    assert set(started.values()) == {1}

    directory = RunDirectory(desk.cluster.site.data / "runs" / name)
    closed, fed, offered = done.printed["workloads"]
    by_name = Counter(note.split()[0] for note in started)
    for one, planned in ((closed, 60), (fed, 40), (offered, 30)):
        sums = checked(one)
        assert sums["planned"] == planned
        assert (sums["lost"], sums["not_started"]) == (0, 0)
        assert sum(worker["iterations"] for worker in one["workers"]) == sums["ok"] + sums["failed"]
    assert (checked(closed)["dropped"], checked(fed)["dropped"]) == (0, 0)
    dropped = checked(offered)["dropped"]
    assert checked(offered)["drops"].get("coordinator_gone", 0) == dropped
    assert by_name == {"closed": 60, "fed": 40, "offered": 30 - dropped}
    # iteration n has row n
    assert all(f"fed {number} row-{number}" in started for number in range(1, 41))
    assert offered["offered"]["rate_planned"] == pytest.approx(30)
    (hook,) = closed["hooks"]
    assert sum(hook["summary"].values()) == 2
    # a firing that a killed coordinator had begun is not known to have succeeded
    failed = hook["summary"].get("success", 0) < 2
    assert done.code == (3 if dropped else 5 if failed else 0), done.err
    assert reported(directory) == refolded(directory, desk.workloads())
    assert not (directory.path / "plan").exists()


def test_a_run_that_nobody_disturbs_has_the_numbers_of_its_directory(desk: Desk) -> None:
    done = desk.run()

    check(desk, done, done.printed["run_id"])
    assert Counter(desk.notes())["hook"] == 2


@pytest.mark.parametrize("point", TRIED, ids=lambda point: POINTS[point].replace(" ", "-"))
def test_killed_where(desk: Desk, point: str) -> None:
    desk.cluster.await_idle(2)
    here = desk.cluster.site
    before = {one.path.name for one in RunDirectory.all(str(here.data))}

    killed = desk.run(point)
    (name,) = {one.path.name for one in RunDirectory.all(str(here.data))} - before
    print(here.coord("status", name).out)
    done = here.coord("resume", name, "--json")
    print(f"resumed: code {done.code}, {done.err}")

    assert killed.code == -9, killed.err
    assert "Traceback" not in done.err
    check(desk, done, name)


def test_those_that_resume_are_killed_too(desk: Desk) -> None:
    desk.cluster.await_idle(2)
    here = desk.cluster.site
    points = (
        ("the epoch is journalled", "fleet.pool:WorkerPool.restore 1"),
        ("workers are asked to follow", "run.workload:WorkloadRun.resume 1"),
        ("blocks are counted, and not acknowledged", "transport.channel:Channel.delete 2"),
        ("one of two loads at once is closed", "run.workload:WorkloadRun.settle 2"),
    )

    # the first load has begun then, and is not over
    assert desk.run("results.accounts:Accounts.take 1").code == -9
    for what, point in points:
        desk.die_at(point)
        assert here.coord("resume", "last").code == -9, what
    done = here.coord("resume", "last", "--json")

    print(f"resumed: code {done.code}, {done.err}")
    check(desk, done, done.printed["run_id"])
    assert "the run was resumed 5 times, after its coordinator had ended" in done.printed["notes"]


def test_what_workers_deliver_after_an_error_is_in_the_report(desk: Desk) -> None:
    desk.cluster.await_idle(2)

    done = desk.run("transport.channel:Channel.delete 3 error")

    assert done.code == 3
    assert "the run could not go on: a planted error" in done.err
    directory = RunDirectory(desk.cluster.site.data / "runs" / done.printed["run_id"])
    begun = desk.workloads()[:1]
    assert reported(directory)[:1] == refolded(directory, begun)
    closed, *never = done.printed["workloads"]
    assert {one["not_begun"] for one in never} == {"the run could not go on"}
    rows = desk.cluster.site.coord("results", directory.path.name, "--csv").out.splitlines()[1:]
    assert checked(closed)["ok"] + checked(closed)["failed"] == len(rows) > 0


def test_killed_when_all_is_done(desk: Desk) -> None:
    """The report is written, and the plan is still there."""
    desk.cluster.await_idle(2)
    here = desk.cluster.site

    killed = desk.run("storage.resumable:forget 1")
    status = here.coord("status", "last")
    resumed = here.coord("resume", "last")
    cleaned = here.coord("cleanup", "last")

    assert killed.code == -9
    assert "finished, exit code 0" in status.out
    assert resumed.code == 0
    assert "is finished" in resumed.err
    assert cleaned.code == 0
    left = {path.name for path in RunDirectory.find(str(here.data), "last").path.iterdir()}
    assert not left & {"plan", "prepared", "notes", "failure.json"}
