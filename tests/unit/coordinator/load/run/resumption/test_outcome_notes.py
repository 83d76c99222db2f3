"""What a coordinator notes of a run for one that resumes it, and what that makes of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgpack
import pytest

from helpers.sample_reports import constant_workload
from osbench.coordinator.load.run.resumption.outcome_notes import (
    NOTES,
    UNREAD,
    NotesFile,
    OutcomeNotes,
    RunNotes,
    carried_on,
    notes_of,
    saved_notes,
)
from osbench.coordinator.results.accounting.outcome import WorkloadOutcome
from osbench.coordinator.results.accounting.worker_figures import WorkerFigures
from osbench.coordinator.results.storage.run_directory import RunDirectory


def worker(name: str, **more: Any) -> WorkerFigures:
    return WorkerFigures(incarnation=name, host="h", pid=1, **{"iterations": 3, **more})


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path)


def full() -> WorkloadOutcome:
    """An outcome of which there is much to note."""
    first = constant_workload()
    made: WorkloadOutcome = replace(
        first,
        workers=(worker("w1"), worker("w2", refused=2)),
        accounting=replace(first.accounting, duplicates=4),
        tracing=replace(first.tracing, spans_written=50, spans_dropped=1),
    )
    made.cpu.add("w1", 0.5, 0.25)
    return made


def there_and_back(outcome: WorkloadOutcome, directory: RunDirectory) -> OutcomeNotes:
    NotesFile(directory).write(RunNotes(workloads={3: notes_of(outcome)}))
    return saved_notes(directory).workloads[3]


def test_notes_come_back_as_they_were(directory: RunDirectory) -> None:
    written = RunNotes(
        workloads={0: notes_of(full()), 2: notes_of(full())},
        refusals={"bad signature": 3},
        rollbacks=2,
    )

    NotesFile(directory).write(written)

    found = saved_notes(directory)
    assert (found.problem, found.refusals, found.rollbacks) == ("", {"bad signature": 3}, 2)
    assert found.workloads.keys() == {0, 2}
    one = found.workloads[0]
    assert one.workers == (worker("w1"), worker("w2", refused=2))
    assert one.cpu == {"w1": [[0.5, 0.25]]}
    assert (one.duplicates, one.spans_written, one.spans_dropped) == (4, 50, 1)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xc1",
        msgpack.packb([1]),
        msgpack.packb({"workloads": {}}),
        msgpack.packb({"workloads": {0: {"marks": 1}}, "refusals": {}, "rollbacks": 0}),
        # announces 4 billion elements
        b"\xdd\xff\xff\xff\xff",
        b"\x91" * 1000,
    ],
)
def test_notes_that_cannot_be_read_say_so(directory: RunDirectory, content: bytes) -> None:
    (directory.path / NOTES).write_bytes(content)

    assert saved_notes(directory) == RunNotes(
        problem=f"{directory.path / NOTES} cannot be read: {UNREAD}"
    )


def test_a_run_without_notes_has_none(directory: RunDirectory) -> None:
    assert saved_notes(directory) == RunNotes()


def carried(notes: OutcomeNotes, outcome: WorkloadOutcome | None = None) -> WorkloadOutcome:
    return carried_on(outcome or constant_workload(), notes)


def test_sums_go_on_from_what_was_noted(directory: RunDirectory) -> None:
    notes = there_and_back(full(), directory)

    found = carried(notes, replace(full(), workers=(worker("w1", iterations=9),)))

    assert found.accounting.duplicates == 8
    # of the worker that is gone; the other still counts itself
    assert found.accounting.refused == 2
    assert [(one.incarnation, one.iterations) for one in found.workers] == [
        ("w1", 9),
        ("w2", 3),
    ]
    assert (found.tracing.spans_written, found.tracing.spans_dropped) == (100, 2)


def test_why_a_workload_could_not_begin_is_known_afterwards(directory: RunDirectory) -> None:
    notes = there_and_back(replace(full(), error="no image"), directory)

    assert carried(notes).error == "no image"


def test_notes_of_workloads_that_are_over_are_in_each_later_file(directory: RunDirectory) -> None:
    file, notes = NotesFile(directory), notes_of(full())
    file.settle(0, notes)

    file.write(RunNotes(workloads={1: OutcomeNotes(error="e")}, refusals={"bad signature": 3}))
    file.write(RunNotes(workloads={2: notes}, rollbacks=1))

    assert saved_notes(directory) == RunNotes(workloads={0: notes, 2: notes}, rollbacks=1)


def test_what_is_carried_on_is_not_counted_again_with_the_next_note(
    directory: RunDirectory,
) -> None:
    """A coordinator notes what it carried on, once a second, and always from the same notes."""
    earlier = there_and_back(full(), directory)

    for _ in range(3):
        now = carried(earlier)
        later = there_and_back(now, directory)

    assert later.duplicates == 4
    assert later.spans_written == 50


def test_a_worker_that_is_gone_has_what_it_delivered_since() -> None:
    (part,) = constant_workload().statistics.over_time.workers.items()
    name, delivered = part

    found = carried(OutcomeNotes(workers=(worker(name, iterations=1),)))

    assert found.workers[0].iterations == delivered.iterations == 8
