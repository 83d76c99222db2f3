"""Coordinators that are killed at a certain call, or at a wait, and those that go on."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from helpers.refolded import refolded, reported
from osbench.coordinator.results.accounting.block_contents import counted_rows
from osbench.coordinator.results.storage import resumable
from osbench.coordinator.results.storage.run_directory import RunDirectory
from world.coordinators import SimulatedRun
from world.resumed_scenes import (
    Points,
    Waits,
    added,
    all_kinds,
    code,
    in_hand,
    iterations,
    played,
    steps,
    sums,
    workloads,
)
from world.scenes import staffed, when
from world.world import World

#: How many waits of a coordinator it is killed at, of all kinds of load; every third in make test.
WAITS, APART = 60, 3
#: Where a coordinator dies, before the call of that number; what that is.
POINTS = {
    "results.storage.run_directory:RunDirectory.write 1": "nothing but the plan is written",
    "load.transport.channel:Channel.specify 1": "workers have joined, contexts are set up",
    "load.run.workload.workload_run:WorkloadRun.start 1": "all have prepared",
    "load.run.workload.workload_run:WorkloadRun._write_controls 1": "a start is journalled, untold",
    "load.run.workload.workload_run:WorkloadRun.start 3": "one of two loads at once has begun",
    "results.accounting.accounts:Accounts.take 5": "blocks are on disk, and not counted",
    "load.transport.channel:Channel.delete 5": "blocks are counted, and not acknowledged",
    "plugins.hooks.executor:Firing 1": "a hook is journalled, and has not fired",
    "load.run.workload.workload_run:WorkloadRun.settle 1": "the first load is over, and not closed",
    "load.run.workload.workload_run:WorkloadRun.end_hooks 1": "the first load is closed",
    "load.run.workload.workload_run:WorkloadRun.settle 3": "one of two loads at once is closed",
    "plugins.contexts.context_stack:undo 1": "contexts are about to be undone",
    "load.run.release:release 1": "all load is over, and workers know nothing of it",
    "load.run.run_files:write_timeline 1": "workers are released",
}


@pytest.fixture
def world() -> Iterator[World]:
    """Two workers."""
    with staffed() as found:
        yield found


def check(run: SimulatedRun, document: dict[str, Any]) -> None:
    """All of the plan has run once; the report tells what the directory holds."""
    assert run.summary is not None
    found, directory = iterations(run), RunDirectory(run.folder)
    assert set(found.values()) == {1}
    closed, fed, offered = run.summary["workloads"]
    by_name = Counter(note.split()[0] for note in found)
    for number, (one, planned) in enumerate(((closed, 60), (fed, 40), (offered, 30))):
        accounting = sums(run, number)
        assert accounting["planned"] == planned
        assert (accounting["lost"], accounting["not_started"]) == (0, 0)
        made = sum(worker["iterations"] for worker in one["workers"])
        assert made == accounting["ok"] + accounting["failed"]
    assert (sums(run, 0)["dropped"], sums(run, 1)["dropped"]) == (0, 0)
    dropped = sums(run, 2)["dropped"]
    assert sums(run, 2)["drops"].get("coordinator_gone", 0) == dropped
    assert by_name == {"closed": 60, "fed": 40, "offered": 30 - dropped}
    # iteration n has row n
    assert all(f"fed {number} row-{number}" in found for number in range(1, 41))
    assert offered["offered"]["rate_planned"] == pytest.approx(30)
    (hook,) = closed["hooks"]
    assert sum(hook["summary"].values()) == 2
    assert run.known.notes.count("hook") <= 2
    # a firing that a killed coordinator had begun is not known to have succeeded
    failed = hook["summary"].get("success", 0) < 2
    assert code(run) == (3 if dropped else 5 if failed else 0)
    assert reported(directory) == refolded(directory, workloads(document))
    assert not in_hand(run)


def made_and_undone(run: SimulatedRun) -> None:
    """Contexts were made as often as they were undone, and the last to come was the end."""
    found = [step for step in steps(run) if step != "cleaned"]
    assert found == ["setup", "cleanup"] * (len(found) // 2)


def of_all_kinds(world: World) -> tuple[SimulatedRun, dict[str, Any]]:
    document = all_kinds(world.folder / "rows.csv")
    return world.begin(document, at_s=0.0, workers=2), document


@cache
def waits_of_all_kinds() -> int:
    """How often the coordinator of a run waits that nobody disturbs."""
    with staffed() as world:
        run, document = of_all_kinds(world)
        waits = Waits(world, run)
        played(world)

        check(run, document)
        made_and_undone(run)
        assert run.known.notes.count("hook") == 2
        return waits.count


def test_a_run_that_nobody_disturbs_has_the_numbers_of_its_directory() -> None:
    assert waits_of_all_kinds() > WAITS


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.dear) for first in range(1, APART))]
)
def test_killed_at_one_of_its_waits(first: int) -> None:
    count = waits_of_all_kinds()

    for number in range(first, WAITS, APART):
        with staffed() as world:
            run, document = of_all_kinds(world)
            Waits(world, run, fatal=1 + number * count // WAITS)
            played(world)

            if run.summary is None:
                # its plan was not written
                assert number == 0
                assert not run.known.notes
                continue
            check(run, document)
            assert len(run.coordinators) == 2
            # what one had begun to undo is undone by the next
            assert steps(run).count("cleanup") >= steps(run).count("setup")
            assert steps(run)[-1] == "cleaned"


@pytest.mark.parametrize("point", POINTS, ids=lambda point: POINTS[point].replace(" ", "-"))
def test_killed_where(world: World, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    run, document = of_all_kinds(world)
    points = Points(monkeypatch, run)

    points.die_at(point)
    played(world)

    assert points.met == [point]
    assert len(run.coordinators) == 2
    check(run, document)
    made_and_undone(run)


def test_those_that_resume_are_killed_too(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    places = (
        # the first load has begun then, and is not over
        "results.accounting.accounts:Accounts.take 1",
        # the epoch is journalled
        "load.fleet.pool:WorkerPool.restore 1",
        # workers are asked to follow
        "load.run.workload.workload_run:WorkloadRun.resume 1",
        # blocks are counted, and not acknowledged
        "load.transport.channel:Channel.delete 2",
        # one of two loads at once is closed
        "load.run.workload.workload_run:WorkloadRun.settle 2",
    )
    run, document = of_all_kinds(world)
    points = Points(monkeypatch, run)

    points.die_at(*places)
    played(world)

    assert points.met == list(places)
    check(run, document)
    made_and_undone(run)
    assert run.summary is not None
    notes = run.summary["notes"]
    assert "the run was resumed 5 times, after its coordinator had ended" in notes


def test_what_workers_deliver_after_an_error_is_in_the_report(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with staffed(trace=True) as world:
        run, document = of_all_kinds(world)
        points = Points(monkeypatch, run)

        points.fail_at("load.transport.channel:Channel.delete 3")
        played(world)

        assert run.summary is not None
        assert code(run) == 3
        told = "the run could not continue: a planted error"
        assert any(told in line for line in world.trace or ())
        directory = RunDirectory(run.folder)
        assert reported(directory)[:1] == refolded(directory, workloads(document)[:1])
        _, *never = run.summary["workloads"]
        assert {one["not_begun"] for one in never} == {"the run could not continue"}
        rows = sum(len(rows.iteration) for *_, rows in counted_rows(directory))
        assert sums(run)["ok"] + sums(run)["failed"] == rows > 0


def test_a_run_whose_coordinator_was_killed_after_its_report_has_it_told(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    criterion = {"max_seconds_per_iteration": 0.001}
    run = added(world, {"constant": {"times": 4}}, sla=criterion)
    seen: list[tuple[str, bool]] = []

    def look() -> None:
        seen.append(((run.folder / "summary.json").read_text("utf-8"), in_hand(run)))

    Points(monkeypatch, run).die_at("results.storage.resumable:forget 1")
    when(world, lambda: run.coordinator is not None and run.coordinator.ended, look)
    played(world)

    ((written, had_plan),) = seen
    assert had_plan
    assert run.summary == json.loads(written)
    assert code(run) == 1
    assert len(run.coordinators) == 2
    assert run.coordinator is not None
    # nothing of it was run again
    assert run.coordinator.entry is None
    left = {path.name for path in run.folder.iterdir()}
    assert not left & {"plan", "prepared", "notes", "failure.json"}
    assert "is finished" in resumable.refusal(RunDirectory(run.folder))
