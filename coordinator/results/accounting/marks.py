"""Marks of events on the time axis of reports."""

from __future__ import annotations

from dataclasses import dataclass

#: Kinds of marks.
WARMUP, CONTEXT, HOOK, LOSS, JOIN, STOP = "warmup", "context", "hook", "loss", "join", "stop"
CONTROL, PHASE = "control", "phase"


@dataclass(frozen=True, kw_only=True)
class Mark:
    """An event that a report marks on the time axis; seconds after t0, which may be negative."""

    kind: str
    from_s: float
    to_s: float
    #: A few words for a chart, and a message.
    label: str
    text: str
