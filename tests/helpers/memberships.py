"""Workers of a run as its coordinator sees them, of which a test says only what matters to it."""

from __future__ import annotations

import time
from typing import Any

from helpers.heartbeats import heartbeat
from osbench.coordinator.load.fleet.membership import Membership
from osbench.coordinator.load.fleet.worker import Readiness, WorkerHandle


def handle(name: str = "w", **fields: Any) -> WorkerHandle:
    """A worker that has joined, prepared its workload and was heard just now.

    `fields` are those of its heartbeat or of the handle.
    """
    ours = {"readiness": Readiness.READY, "workload": 0, "alive_at": time.monotonic()}
    # what both have is that of the handle, but for these
    slots = set(WorkerHandle.__slots__) - {"beat", "session", "membership", "state"}
    ours |= {key: value for key, value in fields.items() if key in slots}
    said = {key: value for key, value in fields.items() if key not in slots}
    mid = f"m-{name}"
    beat = heartbeat(name, **{"membership": mid, "session": f"s-{name}", **said})
    membership = Membership(mid=mid, incarnation=name, name=name)
    return WorkerHandle(beat, membership, session=f"s-{name}", **ours)
