"""What disturbed a run from outside, in sentences: what Redis lost, and what was refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from osbench.coordinator.fleet.worker import LASTING
from osbench.coordinator.formatting import plain
from osbench.coordinator.run.resumption.outcome_notes import RunNotes
from osbench.coordinator.run.services import RunServices


def refusals_of(services: RunServices) -> Mapping[str, int]:
    """Messages that the coordinator itself has refused, by reason."""
    refused = Counter(services.channel.refusals)
    if services.pool.refused:
        refused["heartbeats of unknown senders"] += services.pool.refused
    return refused


def restore(services: RunServices, notes: RunNotes) -> None:
    """Count on from what an earlier coordinator of the run has noted."""
    services.channel.refusals.update(notes.refusals)
    services.channel.rollbacks += notes.rollbacks


def remarks_of(services: RunServices) -> Iterator[str]:
    """Sentences for the report."""
    lost = services.channel.rollbacks
    if lost:
        times = "once" if lost == 1 else f"{lost} times"
        yield f"Redis had lost what was written to it {times}; the run went on with what it knew"
    refused = Counter(refusals_of(services))
    for worker in services.pool.workers.values():
        refused.update(worker.beat.refusals)
    if refused:
        reasons = ", ".join(f"{plain(reason)}: {count}" for reason, count in refused.most_common())
        yield f"messages were refused ({reasons}); nothing was done for them"
    for worker in services.pool.workers.values():
        if worker.leave_reason in LASTING:
            yield f"worker {plain(worker.name)} {worker.leave_reason.value} and got no more work"
    late = sum(results.started_late for results in services.accounts.results.values())
    if late:
        many = "1 iteration" if late == 1 else f"{late} iterations"
        yield f"{many} started after the lease to start them had ended: their worker was held up"
