"""Marks: what happened at an instant of the load, for the time axis of reports."""

from __future__ import annotations

from dataclasses import dataclass

#: Kinds of marks.
WARMUP, CONTEXT, HOOK, LOSS, JOIN, STOP = "warmup", "context", "hook", "loss", "join", "stop"
CONTROL, PHASE = "control", "phase"


@dataclass(frozen=True, kw_only=True)
class Mark:
    """Something that happened from one instant to another, seconds after t0; may be negative."""

    kind: str
    from_s: float
    to_s: float
    #: A few words for a chart, and a sentence.
    label: str
    text: str
