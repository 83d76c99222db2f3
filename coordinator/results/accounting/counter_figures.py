"""Counters of the system under test as a report has them: mean, p95 and maximum over a load."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from osbench.coordinator.formatting import size, three_digits

#: Unit of values from 0 to 1, shown in percent.
SHARE_UNIT = "share"
#: Used fraction of a resource from which on it is near its limit.
NEAR_LIMIT = 0.9


class CounterKind(StrEnum):
    """Kinds of counters: SHARE is full at 1, of a QUEUE more is worse, of a FLOW it is not."""

    #: Used part of a resource that is full at 1.
    SHARE = "share"
    #: Work that waits, or its reasons to wait: more is worse, without a limit.
    QUEUE = "queue"
    #: Work that passes, or another value: more is not worse.
    FLOW = "flow"


@dataclass(frozen=True, kw_only=True)
class CounterFigures:
    """Mean, 95th percentile and maximum of the known values of one counter over a load.

    In the unit of the counter. The percentile is of time, not of iterations.
    """

    name: str = ""
    host: str = ""
    kind: str = CounterKind.FLOW.value
    unit: str = ""
    mean: float = 0.0
    p95: float = 0.0
    max: float = 0.0

    @property
    def label(self) -> str:
        """Name and host, such as "CPU of db1"; only the name if no host is known."""
        return counter_label(self.name, self.host)

    @property
    def is_near_limit(self) -> bool:
        """Return whether a resource was at least 90 % full for a twentieth of the load or more.

        False for counters that are not of the kind "share".
        """
        return self.kind == CounterKind.SHARE and self.p95 >= NEAR_LIMIT


class Counters(Protocol):
    """Counters of one load, as the report asks for them; the package that reads them has more."""

    def figures(self) -> tuple[CounterFigures, ...]:
        """Return the figures of each counter, resources first."""

    def shares(self, stretches: Iterable[tuple[float, float]]) -> dict[str, float]:
        """Return the mean used fraction (0 to 1) of each resource in stretches, by its label.

        `stretches`: (begin, end) in seconds after t0.
        """


def counter_label(name: str, host: str) -> str:
    """Return "NAME of HOST", or only the name if `host` is ""."""
    return f"{name} of {host}" if host else name


def value_text(value: float, unit: str) -> str:
    """Return a value with its unit as text, such as "97 %", "1.20 MB/s", "12.3/s" or "5".

    The unit "share" is shown in percent: 1.0 is 100 %. Bytes are shown in kB, MB and so on.
    """
    if unit == SHARE_UNIT:
        return f"{100 * value:.0f} %"
    if unit.startswith("bytes"):
        return size(round(value)) + unit.removeprefix("bytes")
    text = three_digits(value) if math.isfinite(value) else str(value)
    if not unit:
        return text
    return f"{text}{unit}" if unit.startswith("/") else f"{text} {unit}"
