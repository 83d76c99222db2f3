"""Every Redis key of osbench: its type, its writers and its lifetime.

osbench:worker:INC      string, sealed heartbeat
    written by the worker every 0.5 s; expires 5 s after the last beat, deleted at worker exit
osbench:workers         set of incarnations, so that no one scans all keys for heartbeats
    added by each worker every 2 s; removed at worker exit, or by a coordinator that finds no
    heartbeat
osbench:busy:INC        string, id of the run that holds the worker
    set by the coordinator if the worker is free, renewed; expires 60 s later, deleted at release
osbench:run:ID:head     hash: epoch, boot (run id of the Redis server), state
    written by the coordinator; deleted when the run closes
osbench:run:ID:claims   hash: batch id -> incarnation, or - for revoked
    written by workers and coordinator, by HSETNX only; deleted when the run closes
osbench:run:ID:results  stream of sealed blocks and fences
    created empty by the coordinator; blocks added by workers, who never create it, fences by the
    coordinator; trimmed as read; deleted when the run closes
osbench:run:ID:specs    hash: workload -> encrypted specification
    written by the coordinator; deleted when the run closes
osbench:run:ID:ctl:INC  string, sealed control record
    written by the coordinator; deleted when the run closes
osbench:osbench.w.INC   list, Celery's queue on a Redis broker
    written by the coordinator, read by the worker; deleted at worker exit or when it is fenced
osbench:_kombu.binding.osbench.w.INC, osbench:_kombu.binding_deadlines
    set and sorted set, Celery's record of that queue on a Redis broker; deleted with it
osbench:unacked, osbench:unacked_index
    hash and sorted set, Celery's messages in delivery to a worker; deleted on delivery

All keys of a run also expire two days after the coordinator last renewed them, so that no run
whose coordinator was lost stays for ever.
"""

from __future__ import annotations

PREFIX = "osbench:"

#: Set of the incarnations of all workers.
WORKERS = f"{PREFIX}workers"

#: Seconds after which a heartbeat expires.
WORKER_TTL_S = 5
#: Seconds after which a worker is free again when its coordinator does not renew the key.
BUSY_TTL_S = 60
#: Seconds for which the keys of a run outlive the coordinator.
RUN_TTL_S = 2 * 24 * 3600

#: Owner, in the claims, of a batch that no worker may start any more.
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
    """Celery's queue of one worker process; on a Redis broker it is prefixed with `PREFIX`."""
    return f"osbench.w.{incarnation}"
