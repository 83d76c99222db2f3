"""Collects the disturbances of a run from its services, and restores earlier counts."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Mapping

from osbench.coordinator.load.fleet.worker import LASTING
from osbench.coordinator.load.run.resumption.outcome_notes import RunNotes
from osbench.coordinator.load.run.services import RunServices
from osbench.coordinator.report.run_outcome import Disturbances

#: Kinds of errors outside of iterations that the report shows per workload, the most frequent.
ASIDES_TOLD = 5


def refusals_of(services: RunServices) -> Mapping[str, int]:
    """Return how many messages the coordinators of the run have refused, by reason in words.

    Heartbeats of unknown senders are among them. Refusals by workers are not.
    """
    refused = Counter(services.channel.refusals)
    if services.pool.refused:
        refused["heartbeats of unknown senders"] += services.pool.refused
    return refused


def restore(services: RunServices, notes: RunNotes) -> None:
    """Add the refused messages and rollbacks of Redis in `notes` to the counts of the channel.

    `notes` are of earlier coordinators of the run. A rollback is a loss of data that had been
    written to Redis.
    """
    services.channel.refusals.update(notes.refusals)
    services.channel.rollbacks += notes.rollbacks


def disturbances_of(services: RunServices) -> Disturbances:
    """Return the disturbances of the run so far, such as refused messages and steps of clocks."""
    accounts, workers = services.accounts, services.pool.workers.values()
    results = accounts.results.values()
    return Disturbances(
        resumptions=max(0, accounts.epoch - 1),
        rollbacks=services.channel.rollbacks,
        undelivered={worker.name: worker.undelivered for worker in workers if worker.undelivered},
        clock_steps=_clock_steps(services),
        refused=_all_refusals(services),
        departed={
            worker.name: worker.leave_reason.value
            for worker in workers
            if worker.leave_reason in LASTING
        },
        asides=tuple(pair for one in results for pair in one.asides.most_common(ASIDES_TOLD)),
        log_cut=accounts.log_cut,
        started_late=sum(one.started_late for one in results),
    )


def _all_refusals(services: RunServices) -> Mapping[str, int]:
    refused = Counter(refusals_of(services))
    for worker in services.pool.workers.values():
        refused.update(worker.beat.refusals)
    accounts = services.accounts
    unread = accounts.refused + sum(one.refused for one in accounts.results.values())
    if unread:
        refused["results of another shape, or of no workload"] = unread
    return dict(refused.most_common())


def _clock_steps(services: RunServices) -> Mapping[str, tuple[float, float]]:
    """Return seconds back and forward by host, this one too; without hosts whose clock ran on.

    If several processes of a host report steps, the largest counts.
    """
    steps = services.pool.clock_steps
    set_s = {socket.gethostname(): (steps.back_s, steps.forward_s)}
    for worker in services.pool.workers.values():
        host, moved = worker.beat.host, worker.clock_moved_s
        known = set_s.get(host, (0.0, 0.0))
        # all processes of a host have seen the same steps
        set_s[host] = max(known[0], moved[0]), max(known[1], moved[1])
    return {host: moved for host, moved in sorted(set_s.items()) if any(moved)}
