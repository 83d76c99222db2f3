"""What a coordinator notes of a run for one that resumes it, and what that makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgpack
import pytest

from helpers.sample_reports import constant_workload, restart_hook
from osbench.common.plugin.hook import Event
from osbench.common.protocol.messages import Block
from osbench.coordinator.results.marks import CONTEXT, HOOK, LOSS, STOP, WARMUP, Mark
from osbench.coordinator.results.outcome import WorkloadOutcome
from osbench.coordinator.results.workload_results import WorkloadResults
from osbench.coordinator.run.resumption.outcome_notes import (
    NOTES,
    UNREAD,
    OutcomeNotes,
    RunNotes,
    carried_on,
    note,
    noted,
    notes_of,
)
from osbench.coordinator.sla.evaluator import SlaEvaluator
from osbench.coordinator.storage.run_directory import RunDirectory


def mark(kind: str, at_s: float = 1.0) -> Mark:
    return Mark(kind=kind, from_s=at_s, to_s=at_s, label=kind, text=f"A {kind}.")


def worker(name: str, **more: Any) -> dict[str, Any]:
    return {"incarnation": name, "host": "h", "pid": 1, "iterations": 3, "refused": 0, **more}


@pytest.fixture
def results() -> WorkloadResults:
    return WorkloadResults(idempotent=False, sla=SlaEvaluator((), None))  # type: ignore[arg-type]


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path)


def full() -> WorkloadOutcome:
    """An outcome of which there is much to note."""
    first = constant_workload()
    made: WorkloadOutcome = replace(
        first,
        workers=(worker("w1"), worker("w2", refused=2)),
        marks=tuple(map(mark, (WARMUP, CONTEXT, LOSS, HOOK, STOP))),
        hooks=(restart_hook(),),
        accounting=replace(first.accounting, duplicates=4),
        tracing=replace(first.tracing, spans_written=50, spans_dropped=1),
        offered=replace(first.offered, cut_short="interrupted"),
    )
    made.cpu.add("w1", 0.5, 0.25)
    return made


def there_and_back(
    outcome: WorkloadOutcome, results: WorkloadResults, directory: RunDirectory
) -> OutcomeNotes:
    note(directory, RunNotes(workloads=notes_of({3: outcome}, {3: results})))
    return noted(directory).workloads[3]


def test_notes_come_back_as_they_were(results: WorkloadResults, directory: RunDirectory) -> None:
    written = RunNotes(
        workloads=notes_of({0: full(), 2: full()}, {0: results, 2: results}),
        losses=["w1 was lost"],
        refusals={"bad seal": 3},
        rollbacks=2,
    )

    note(directory, written)

    found = noted(directory)
    assert (found.losses, found.refusals, found.rollbacks) == (["w1 was lost"], {"bad seal": 3}, 2)
    assert found.workloads.keys() == {0, 2}
    one = found.workloads[0]
    assert [dict(entry) for entry in one.workers] == [worker("w1"), worker("w2", refused=2)]
    assert one.marks == list(full().marks)
    assert one.cpu == {"w1": [[0.5, 0.25]]}
    # the other firing had not ended: it has no result yet
    assert one.hooks == [[restart_hook().results[0]]]
    assert (one.hook_counts, one.duplicates, one.cut_short) == ([{"success": 1}], 4, "interrupted")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xc1",
        msgpack.packb([1]),
        msgpack.packb({"workloads": {}, "losses": []}),
        msgpack.packb({"workloads": {0: {"marks": 1}}, "losses": [], "refusals": {}}),
        msgpack.packb({"workloads": {0: {"marks": [{"a": 1}], "hooks": []}}}),
        # announces 4 billion elements
        b"\xdd\xff\xff\xff\xff",
        b"\x91" * 1000,
    ],
)
def test_notes_that_cannot_be_read_say_so(directory: RunDirectory, content: bytes) -> None:
    (directory.path / NOTES).write_bytes(content)

    assert noted(directory) == RunNotes(
        losses=[f"{directory.path / NOTES} cannot be read: {UNREAD}"]
    )


def test_a_run_without_notes_has_none(directory: RunDirectory) -> None:
    assert noted(directory) == RunNotes()


def carried(
    notes: OutcomeNotes,
    outcome: WorkloadOutcome | None = None,
    firings: Sequence[Sequence[Event]] = (),
    *,
    was_over: bool = False,
) -> WorkloadOutcome:
    return carried_on(outcome or constant_workload(), notes, firings, was_over=was_over)


def test_sums_go_on_from_what_was_noted(results: WorkloadResults, directory: RunDirectory) -> None:
    notes = there_and_back(full(), results, directory)

    found = carried(notes, replace(full(), workers=(worker("w1", iterations=9),)))

    assert found.accounting.duplicates == 8
    # of the worker that is gone; the other still counts itself
    assert found.accounting.refused == 2
    assert [(one["incarnation"], one["iterations"]) for one in found.workers] == [
        ("w1", 9),
        ("w2", 3),
    ]
    assert (found.tracing.spans_written, found.tracing.spans_dropped) == (100, 2)


def test_why_a_workload_could_not_begin_is_known_afterwards(
    results: WorkloadResults, directory: RunDirectory
) -> None:
    notes = there_and_back(replace(full(), error="no image"), results, directory)

    assert carried(notes).error == "no image"


def test_what_is_carried_on_is_not_counted_again_with_the_next_note(
    results: WorkloadResults, directory: RunDirectory
) -> None:
    """A coordinator notes what it carried on, once a second, and always from the same notes."""
    earlier = there_and_back(full(), results, directory)

    for _ in range(3):
        now = carried(earlier)
        later = there_and_back(now, results, directory)

    assert later.duplicates == 4
    assert later.spans_written == 50
    assert later.hook_counts == earlier.hook_counts or not now.hooks
    assert len(later.marks) == len({(one.kind, one.from_s) for one in later.marks})


def test_a_worker_that_is_gone_has_what_it_delivered_since() -> None:
    (part,) = constant_workload().statistics.over_time.workers.items()
    name, delivered = part

    found = carried(OutcomeNotes(workers=[worker(name, iterations=1)]))

    assert found.workers[0]["iterations"] == delivered.iterations == 8


def test_marks_that_can_be_found_again_are_not_taken_from_notes() -> None:
    every = [mark(kind) for kind in (WARMUP, CONTEXT, LOSS, HOOK, STOP)]
    again = replace(constant_workload(), marks=(mark(CONTEXT, 1.001), mark(WARMUP)))

    going_on = carried(OutcomeNotes(marks=every, cut_short="interrupted"), again)
    ended = carried(OutcomeNotes(marks=every, cut_short="interrupted"), again, was_over=True)

    assert sorted(one.kind for one in going_on.marks) == sorted((WARMUP, CONTEXT, LOSS, HOOK))
    assert sorted(one.kind for one in ended.marks) == sorted((WARMUP, CONTEXT, LOSS, HOOK, STOP))
    # a load that goes on is not cut short any more
    assert going_on.offered.cut_short is None
    assert ended.offered.cut_short == "interrupted"


def test_a_firing_without_a_result_has_failed() -> None:
    hook = restart_hook()
    before = OutcomeNotes(hooks=[hook.results[:1]], hook_counts=[{"success": 1}])
    events = [one.event for one in hook.results]
    bare = replace(constant_workload(), hooks=(replace(hook, results=(), counts={}),))

    (found,) = carried(before, bare, [events]).hooks

    assert [(one.status, one.event.value) for one in found.results] == [
        ("success", 100),
        ("failed", 500),
    ]
    assert found.counts == {"failed": 1, "success": 1}
    error = found.results[1].error
    assert error is not None
    assert error.etype == "CoordinatorGone"


def test_time_without_users_adds_up(results: WorkloadResults, directory: RunDirectory) -> None:
    first = constant_workload()
    half = replace(first.offered, concurrency=2, concurrency_held=0.5, waited_s=5.0)
    results.add(
        Block(run="r", incarnation="w", membership="m", number=1, workload=0, want_ns=4 * 10**9)
    )

    notes = there_and_back(replace(first, offered=half), results, directory)
    found = carried(notes, replace(first, offered=half)).offered

    # 10 user-seconds were waited for, 4 of them are in the blocks
    assert notes.missing_s == 6.0
    assert found.waited_s == pytest.approx((10 + 6) / 2)
    assert found.concurrency_held == pytest.approx(10 / 26)
