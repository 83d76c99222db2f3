"""A change of the load while it goes on, as the journal records it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class LoadChange:
    """A change of the requested load at a time: to a constant level, or back to the plan.

    In a search, it begins or ends a trial.
    """

    #: Id of the request for it: no request is followed twice.
    request: str
    #: Seconds after t0.
    at_s: float
    #: Virtual users (closed loads) or arrivals per second (open ones); None: as planned.
    level: float | None
    #: Open loads: arrivals planned before it.
    number: int = 0
    #: Open loads as planned: how many arrivals of the plan come before the next one, and how many
    #: seconds later than planned it and its successors are.
    skipped: int = 0
    late_s: float = 0.0
    #: The load from `at_s` on, as `Runner.asked` has it.
    asked: tuple[tuple[float, float], ...] = ()
    #: Searches: no load follows; how many iterations of the trial before it had not ended, how many
    #: were lost with a worker, and how many of its users had not begun.
    last: bool = False
    unended: int = 0
    lost: int = 0
    waiting: int = 0
    #: Searches, at the end of a trial's load: some of it was not made, as no coordinator was there.
    interrupted: bool = False
    #: Searches for users, then: how many of them no worker had.
    missing: int = 0

    def to_record(self, workload: int) -> dict[str, Any]:
        """Return the change's journal record; `workload` is the workload's index in the run."""
        return {
            "do": "control",
            "workload": workload,
            "request": self.request,
            "at_s": self.at_s,
            "level": self.level,
            "number": self.number,
            "skipped": self.skipped,
            "late_s": self.late_s,
            "asked": [list(point) for point in self.asked],
            "last": self.last,
            "unended": self.unended,
            "lost": self.lost,
            "interrupted": self.interrupted,
            "missing": self.missing,
            "waiting": self.waiting,
        }

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> LoadChange:
        """Return a record's change. Raises KeyError, TypeError, ValueError for another shape."""
        level = record["level"]
        return cls(
            request=str(record["request"]),
            at_s=float(record["at_s"]),
            level=None if level is None else float(level),
            number=int(record["number"]),
            skipped=int(record["skipped"]),
            late_s=float(record["late_s"]),
            asked=tuple((float(at_s), float(value)) for at_s, value in record["asked"]),
            last=bool(record.get("last", False)),
            unended=int(record.get("unended", 0)),
            lost=int(record.get("lost", 0)),
            interrupted=bool(record.get("interrupted", False)),
            missing=int(record.get("missing", 0)),
            waiting=int(record.get("waiting", 0)),
        )
