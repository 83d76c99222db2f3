"""Every Redis key of osbench: what it is, who writes it, when it goes.

osbench:worker:INC      string, sealed heartbeat
    written by the worker every 0.5 s; gone 5 s after the last beat, and at its exit
osbench:workers         set of incarnations, so that nobody searches all keys for heartbeats
    each added by the worker itself every 2 s; taken out at its exit, or by a coordinator that
    finds no heartbeat of it
osbench:busy:INC        string, id of the run that holds the worker
    written by the coordinator where it is free, renewed; gone 60 s after that, and at release
osbench:run:ID:head     hash: epoch, boot (Redis' own run id), state
    written by the coordinator; gone when the run closes
osbench:run:ID:claims   hash: batch id -> incarnation, or - for revoked
    written by workers and coordinator, by HSETNX only; gone when the run closes
osbench:run:ID:results  stream of sealed blocks and fences
    made empty by the coordinator; written by workers, who never make it, fences by the
    coordinator; trimmed as read; gone when the run closes
osbench:run:ID:specs    hash: workload -> encrypted specification
    written by the coordinator; gone when the run closes
osbench:run:ID:ctl:INC  string, sealed control record
    written by the coordinator; gone when the run closes
osbench:osbench.w.INC   list, Celery's queue on a Redis broker
    written by the coordinator, read by the worker; gone at its exit, or when it is fenced
osbench:_kombu.binding.osbench.w.INC, osbench:_kombu.binding_deadlines
    set and sorted set, Celery's note of that queue on a Redis broker; gone with it
osbench:unacked, osbench:unacked_index
    hash and sorted set, Celery's messages on their way to a worker; gone as they are delivered

All keys of a run also expire two days after the coordinator last renewed them, so that a run
whose coordinator never came back does not stay for ever.
"""

from __future__ import annotations

PREFIX = "osbench:"

#: Incarnations of the workers there are.
WORKERS = f"{PREFIX}workers"

#: Seconds after which a heartbeat is forgotten by Redis.
WORKER_TTL_S = 5
#: Seconds after which a worker is free again when its coordinator is not heard.
BUSY_TTL_S = 60
#: Seconds for which the keys of a run outlive their coordinator.
RUN_TTL_S = 2 * 24 * 3600

#: Owner of a batch in the claims that nobody may start any more.
REVOKED = b"-"


def worker(incarnation: str) -> str:
    """Heartbeat of a worker process."""
    return f"{PREFIX}worker:{incarnation}"


def busy(incarnation: str) -> str:
    """The run that holds a worker process."""
    return f"{PREFIX}busy:{incarnation}"


def run(run_id: str, part: str) -> str:
    """A key of a run: head, claims, results, specs, or ctl:INCARNATION."""
    return f"{PREFIX}run:{run_id}:{part}"


def queue(incarnation: str) -> str:
    """Celery's queue of one worker process; on a Redis broker `PREFIX` stands before it."""
    return f"osbench.w.{incarnation}"
