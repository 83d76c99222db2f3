"""Every Redis key of osbench: its type, its writers and its lifetime.

Nothing here gives a right to start an iteration: a key that is deleted, rolled back, or put back
delays a run and does no more. Whoever owns a key writes it again and again.

osbench:worker:INC      string, signed heartbeat
    written by the worker every 0.5 s; expires 5 s after the last beat, deleted at worker exit
osbench:workers         set of incarnations, so that no one scans all keys for heartbeats
    added by each worker every 2 s; removed at worker exit, or by a coordinator that finds no
    heartbeat
osbench:offer:INC       string, signed offer of a run to a worker
    written by any coordinator; the worker decides; expires 5 s later
osbench:run:ID:results  stream of signed blocks and wills: a bag, read from its beginning
    created empty by the coordinator, again when it is gone; entries added by workers and
    supervisors, who never create it, and deleted by the coordinator once they are on disk;
    deleted when the run closes
osbench:run:ID:specs    hash: workload -> encrypted specification
    written by the coordinator, repeatedly; deleted when the run closes
osbench:run:ID:turns    string, a count of the coordinator's turns
    raised by the coordinator; a count that falls shows that Redis has lost data; deleted when the
    run closes
osbench:run:ID:ctl:MID  string, signed control record of a membership
    written by the coordinator, repeatedly; once the run is over, it expires soon if the worker
    has left, else in two days: an unreachable worker may read it hours later
osbench:osbench.w.INC   list, Celery's queue on a Redis broker
    written by the coordinator, read by the worker; deleted at worker exit or when it is lost

All keys of a run also expire two days after the coordinator last renewed them, so that no run
whose coordinator was lost stays for ever.
"""

from __future__ import annotations

PREFIX = "osbench:"

#: Set of the incarnations of all workers.
WORKERS = f"{PREFIX}workers"

#: Seconds after which a heartbeat expires, and an offer.
WORKER_TTL_S = 5
OFFER_TTL_S = 5
#: Seconds for which the keys of a run outlive the coordinator.
RUN_TTL_S = 2 * 24 * 3600
#: Seconds for which the control record of a membership that has left outlives its run.
OVER_TTL_S = 2 * 3600


def worker(incarnation: str) -> str:
    """Return the key of the heartbeat of the worker process `incarnation`."""
    return f"{PREFIX}worker:{incarnation}"


def offer(incarnation: str) -> str:
    """Return the key of the offer to the worker process `incarnation`."""
    return f"{PREFIX}offer:{incarnation}"


def run(run_id: str, part: str) -> str:
    """Return a key of a run; `part`: "results", "specs", "turns" or "ctl:MEMBERSHIP"."""
    return f"{PREFIX}run:{run_id}:{part}"


def control(run_id: str, membership: str) -> str:
    """Return the key of the control record: the coordinator's instructions to a membership."""
    return run(run_id, f"ctl:{membership}")


def queue(incarnation: str) -> str:
    """Return the name of the Celery queue of the worker process `incarnation`.

    On a Redis broker the list's key has `PREFIX` before it.
    """
    return f"osbench.w.{incarnation}"
