"""Heartbeats of workers of which a test says only what matters to it."""

from __future__ import annotations

from typing import Any

from osbench import __version__
from osbench.common.protocol.messages import Heartbeat


def heartbeat(incarnation: str = "w", **fields: Any) -> Heartbeat:
    """One of a worker that runs, with eight virtual users, but for `fields`."""
    usual = {
        "beat": 1,
        "host": "h",
        "pid": 7,
        "label": "",
        "version": __version__,
        "capacity": 8,
        "coroutines": 1000,
        "state": "running",
    }
    return Heartbeat(incarnation=incarnation, **{**usual, **fields})
