"""Iterations as the code of a scripted runner gets them, and the end of its threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class DoneAction:
    """An atomic action of an iteration that has ended; times are seconds since 1970-01-01 UTC."""

    name: str
    #: Position of the enclosing action in the iteration; -1 without one.
    parent: int
    started_at: float
    ended_at: float
    failed: bool


@dataclass(frozen=True, kw_only=True)
class DoneIteration:
    """Result of one iteration, as the code of a scripted runner gets it."""

    number: int
    #: Seconds since 1970-01-01 UTC.
    started_at: float
    #: Without think time, and the think time; seconds.
    duration_s: float
    idle_s: float
    #: Type, message and traceback of the failure; empty if it succeeded.
    error: tuple[str, ...]
    actions: Sequence[DoneAction]
    #: Packed charts.
    outputs: Sequence[bytes]


class LoadOver(SystemExit):
    """Raised in a thread that would start an iteration when the load is over, to end the thread.

    Python ends a thread by it without a message, and `except Exception` does not catch it.
    """
