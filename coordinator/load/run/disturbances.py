"""Messages on disturbances of a run: data that Redis lost, refused messages, set clocks."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterator, Mapping

from osbench.coordinator.formatting import count, plain
from osbench.coordinator.load.fleet.worker import LASTING
from osbench.coordinator.load.run.resumption.outcome_notes import RunNotes
from osbench.coordinator.load.run.services import RunServices

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


def remarks_of(services: RunServices) -> Iterator[str]:
    """Yield messages for the report on disturbances of the run; nothing if there were none.

    They are on data that Redis lost, undelivered blocks, set clocks, messages refused by any
    process, workers that got no more work, errors outside of iterations, cut log entries, and
    starts after the lease.
    """
    lost = services.channel.rollbacks
    if lost:
        often = "once" if lost == 1 else f"{lost} times"
        yield f"Redis had lost what was written to it {often}; the run went on with what it knew"
    yield from _undelivered_blocks(services)
    yield from _clocks(services)
    refused = Counter(refusals_of(services))
    for worker in services.pool.workers.values():
        refused.update(worker.beat.refusals)
    accounts = services.accounts
    unread = accounts.refused + sum(one.refused for one in accounts.results.values())
    if unread:
        refused["results of another shape, or of no workload"] = unread
    if refused:
        reasons = ", ".join(f"{plain(reason)}: {count}" for reason, count in refused.most_common())
        yield f"messages were refused ({reasons}); nothing was done for them"
    for worker in services.pool.workers.values():
        if worker.leave_reason in LASTING:
            yield f"worker {plain(worker.name)} {worker.leave_reason.value} and got no more work"
    for results in services.accounts.results.values():
        for aside, times in results.asides.most_common(ASIDES_TOLD):
            yield f"{plain(aside)} ({count(times, 'time')})"
    cut = services.accounts.log_cut
    if cut:
        entries = "1 entry was" if cut == 1 else f"{cut:,} entries were"
        yield f"of what workers printed and logged {entries} too many or too long, and not kept"
    late = sum(results.started_late for results in services.accounts.results.values())
    if late:
        many = "1 iteration" if late == 1 else f"{late} iterations"
        yield f"{many} started after the lease to start them had ended: their worker was delayed"


def _clocks(services: RunServices) -> Iterator[str]:
    """Yield a message for each host, this one too, and direction in which a wall clock was set.

    If several processes of a host report steps, the largest counts.
    """
    steps = services.pool.clock_steps
    set_s = {socket.gethostname(): (steps.back_s, steps.forward_s)}
    for worker in services.pool.workers.values():
        host, moved = worker.beat.host, worker.clock_moved_s
        known = set_s.get(host, (0.0, 0.0))
        # all processes of a host have seen the same steps
        set_s[host] = max(known[0], moved[0]), max(known[1], moved[1])
    for host, (back_s, forward_s) in sorted(set_s.items()):
        if back_s:
            yield (
                f"the wall clock of {plain(host)} was set back by {back_s:,.1f} s during the run: "
                "dates of the report, of logs and of spans may be out of order; durations are right"
            )
        if forward_s:
            yield (
                f"the wall clock of {plain(host)} was set forward by {forward_s:,.1f} s during the "
                "run, or the host slept: dates lie further apart than durations say"
            )


def _undelivered_blocks(services: RunServices) -> Iterator[str]:
    """Yield one message with the count of undelivered result blocks and the names of their workers.

    Yields nothing if all blocks were delivered.
    """
    lacking = {worker.name: worker.undelivered for worker in services.pool.workers.values()}
    lacking = {name: blocks for name, blocks in lacking.items() if blocks}
    if lacking:
        many = count(sum(lacking.values()), "result block")
        names = ", ".join(sorted(map(plain, lacking)))
        yield (
            f"{many} did not arrive from {names}: what they report is in no number of this report, "
            "and iterations of which nothing else is known count as lost"
        )
