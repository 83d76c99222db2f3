"""The end of a run for its workers: spans flushed, workers released, the run's keys deleted."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping

from osbench.common.errors import OsbenchError, StoreUnreachable
from osbench.common.ports import clock as time
from osbench.common.protocol import timers
from osbench.coordinator.load.fleet.pool import WorkerPool
from osbench.coordinator.load.fleet.worker import WorkerState
from osbench.coordinator.load.run.services import RunServices
from osbench.coordinator.load.run.status import RunStatus

LOG = logging.getLogger(__name__)

#: Longest wait for workers to write out their spans, seconds.
RELEASE_S = 3.0
#: Between two polls, seconds.
POLL_S = 0.05
#: Seconds between two tries while Redis is unreachable, and seconds for which they are made.
AWAY_S = 0.5
RELEASE_AWAY_S = 15.0


def await_spans(services: RunServices, status: RunStatus) -> None:
    """Wait until workers report that they have written out their spans, so that all are counted.

    Waits at most RELEASE_S seconds; returns early if the user stops the run. Errors are ignored.
    """
    workers = services.pool.present
    deadline = time.monotonic() + RELEASE_S
    # heartbeats that were sent under load, and not read yet, know nothing of its end
    with contextlib.suppress(OsbenchError):
        services.pool.poll()
    marks = {worker: worker.beat.beat for worker in workers}
    while time.monotonic() < deadline and not status.interruption.stops:
        with contextlib.suppress(OsbenchError):
            services.pool.poll()
        if all(one.beat.beat > marks[one] and not one.beat.spans[2] for one in workers):
            return
        time.sleep(POLL_S)


def release(services: RunServices, patience_s: float) -> None:
    """Release the workers from the run, and delete the run's keys in Redis.

    Also deletes queues and heartbeats of lost workers. Waits at most `patience_s` seconds for an
    unreachable Redis. Workers that do not learn of the end wait for another coordinator, with
    results that they have not delivered. Errors are logged, not raised.
    """
    pool, channel = services.pool, services.channel
    try:
        invited = pool.invited
        away_until = time.monotonic() + patience_s
        while True:
            try:
                _tell_end(services, invited)
                break
            except StoreUnreachable:
                if time.monotonic() >= away_until:
                    raise
            services.check()
            time.sleep(AWAY_S)
        workers = list(pool.workers.values())
        offered = [*invited, *(one.incarnation for one in workers)]
        left = [one.mid for one in workers if one.gone or one.membership.final]
        channel.close(offered, left)
        for one in workers:
            if one.state is WorkerState.LOST:
                pool.forget(one.incarnation)
    except OsbenchError as error:
        LOG.warning("the run's keys could not be removed: %s", error)


def _tell_end(services: RunServices, invited: Mapping[str, str]) -> None:
    """Notify workers of the end until they have left, for at most `FAREWELL_S` seconds.

    `invited`: offered memberships by incarnation, of workers that have not joined; they are
    dismissed. Receives last results meanwhile. Raises StoreUnreachable and other OsbenchErrors.
    """
    pool, controls = services.pool, services.controls
    deadline = time.monotonic() + timers.FAREWELL_S
    # a Redis that has lost the run's keys gets the keys by which workers deliver
    services.channel.tend()
    # an invited worker may follow its offer at this moment
    controls.dismiss(invited)
    ends = False
    while not ends:
        # once more after the time is over, for workers that slept through an outage of Redis
        ends = time.monotonic() >= deadline
        workers = list(pool.workers.values())
        controls.restate(workers)
        controls.change(workers, over=True)
        pool.poll()
        wait_s = 0.0 if _all_left(pool) else min(POLL_S, services.limits.block_s)
        # also of workers that were never seen to join
        for arrival in services.receiver.receive(wait_s):
            if arrival.mid not in pool.workers:
                pool.restore(services.accounts.memberships[arrival.mid])
        if _all_left(pool):
            return


def _all_left(pool: WorkerPool) -> bool:
    return all(not one.present or one.gone for one in pool.workers.values())
