"""Samples that a report needs in addition to journal and blocks, saved during the run.

For a workload: workers and their CPU, spans, duplicates. For the run: refused messages, rollbacks
of Redis. The notes are written with every checkpoint, and before a load is closed: if a coordinator
is killed under load, its last notes are a few seconds old. Events are in the journal, see
`run_history.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import msgpack

from osbench.common.files.regular_files import read_regular
from osbench.common.protocol.unpacking import unpack
from osbench.coordinator.results.accounting.outcome import WorkloadOutcome
from osbench.coordinator.results.accounting.worker_figures import WorkerFigures
from osbench.coordinator.results.accounting.workload_statistics import WorkloadStatistics
from osbench.coordinator.results.storage.run_directory import RunDirectory

#: File of the run directory.
NOTES = "notes"
#: Largest one that is read, bytes.
NOTES_BYTES = 64 << 20
#: Parts that a report lacks if the notes cannot be read.
UNREAD = "earlier workers of the run, their CPU and spans are not in this report"


@dataclass(frozen=True, kw_only=True)
class OutcomeNotes:
    """Figures of one workload, saved for a coordinator that resumes the run.

    `cpu`: by worker, pairs of seconds after t0 and CPU in cores.
    """

    workers: tuple[WorkerFigures, ...] = ()
    cpu: Mapping[str, Sequence[Sequence[float]]] = field(default_factory=dict)
    spans_written: int = 0
    spans_dropped: int = 0
    rate_planned: float | None = None
    #: Reason if the workload could not begin.
    error: str = ""
    #: Blocks that arrived more than once.
    duplicates: int = 0


@dataclass(frozen=True, kw_only=True)
class RunNotes:
    """Figures of a run, saved for a coordinator that resumes it."""

    #: By number.
    workloads: Mapping[int, OutcomeNotes] = field(default_factory=dict)
    #: Messages that were refused, by reason.
    refusals: Mapping[str, int] = field(default_factory=dict)
    #: How often Redis had lost written data.
    rollbacks: int = 0
    #: Reason if they could not be read; else "".
    problem: str = ""


class NotesFile:
    """Writes the file `notes` of a run, many times; packs notes of finished workloads only once."""

    def __init__(self, directory: RunDirectory) -> None:
        self._directory = directory
        #: By number, as msgpack.
        self._over: dict[int, bytes] = {}

    def settle(self, number: int, notes: OutcomeNotes) -> None:
        """Keep the final notes of workload `number`, packed, for later writes.

        Writes nothing itself.
        """
        self._over[number] = _packed_notes(notes)

    def write(self, notes: RunNotes) -> None:
        """Replace the file; does not wait for the disk. Raises OsbenchError.

        `notes` has only workloads that were not settled; the others are added.
        """
        open_ones = {number: _packed_notes(one) for number, one in notes.workloads.items()}
        packer = msgpack.Packer()
        parts = [packer.pack_map_header(3), packer.pack("workloads")]
        workloads = {**self._over, **open_ones}
        parts.append(packer.pack_map_header(len(workloads)))
        for number, content in workloads.items():
            parts += (packer.pack(number), content)
        for name in ("refusals", "rollbacks"):
            parts += (packer.pack(name), packer.pack(getattr(notes, name)))
        self._directory.replace(NOTES, b"".join(parts), sync=False)


def _packed_notes(notes: OutcomeNotes) -> bytes:
    content: bytes = msgpack.packb(asdict(notes))
    return content


def saved_notes(directory: RunDirectory) -> RunNotes:
    """Return the saved notes of a run; empty notes if the file is missing.

    If it cannot be read, the notes are empty and have a `problem`.
    """
    path = directory.path / NOTES
    if not path.exists():
        return RunNotes()
    try:
        document = unpack(read_regular(path, NOTES_BYTES))
        return RunNotes(
            workloads={int(key): _notes(**one) for key, one in document["workloads"].items()},
            refusals={str(why): int(count) for why, count in document["refusals"].items()},
            rollbacks=int(document["rollbacks"]),
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return RunNotes(problem=f"{path} cannot be read: {UNREAD}")


def _notes(*, workers: Sequence[Mapping[str, Any]], **others: Any) -> OutcomeNotes:
    return OutcomeNotes(workers=tuple(WorkerFigures(**one) for one in workers), **others)


def carried_on(outcome: WorkloadOutcome, notes: OutcomeNotes) -> WorkloadOutcome:
    """Return a copy of `outcome` with the figures that earlier coordinators noted for its workload.

    Adds workers that are gone and counts of duplicates, refusals and spans. Error and planned rate
    are taken if `outcome` has none. CPU is not added.
    """
    here = {one.incarnation for one in outcome.workers}
    gone = [
        _as_it_left(one, outcome.statistics) for one in notes.workers if one.incarnation not in here
    ]
    accounting = replace(
        outcome.accounting,
        duplicates=outcome.accounting.duplicates + notes.duplicates,
        refused=outcome.accounting.refused + sum(one.refused for one in gone),
    )
    tracing, offered = outcome.tracing, outcome.offered
    return replace(
        outcome,
        error=outcome.error or notes.error,
        accounting=accounting,
        workers=tuple(sorted((*gone, *outcome.workers), key=lambda one: one.incarnation)),
        tracing=replace(
            tracing,
            spans_written=tracing.spans_written + notes.spans_written,
            spans_dropped=tracing.spans_dropped + notes.spans_dropped,
        ),
        offered=replace(offered, rate_planned=offered.rate_planned or notes.rate_planned),
    )


def _as_it_left(worker: WorkerFigures, statistics: WorkloadStatistics) -> WorkerFigures:
    """Return a copy of `worker`, which has left, with its count of iterations in `statistics`.

    It may have delivered more than were noted. Unchanged if the statistics do not have the worker.
    """
    part = statistics.part_of(worker.incarnation)
    return replace(worker, iterations=part.iterations) if part else worker


def notes_of(outcome: WorkloadOutcome) -> OutcomeNotes:
    """Return the figures of `outcome` that journal and blocks lack, to be saved."""
    tracing = outcome.tracing
    return OutcomeNotes(
        workers=outcome.workers,
        cpu=outcome.cpu.points(),
        spans_written=tracing.spans_written,
        spans_dropped=tracing.spans_dropped,
        rate_planned=outcome.offered.rate_planned,
        error=outcome.error,
        duplicates=outcome.accounting.duplicates,
    )
