"""Clock offsets between hosts, and the conversion of times of one host to another host's clock."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from osbench.edges.traces.model.spans import Span

_Pair = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class ClockStretch:
    """A period in which the clock offset between two hosts is constant, or drifts linearly.

    Times are nanoseconds by the clock of the reference host, offsets nanoseconds.
    """

    #: Its begin and its last call by the clock of the reference, nanoseconds since 1970.
    from_ns: int
    to_ns: int
    #: Nanoseconds to add to the times of the other host, at its begin.
    add_ns: int
    #: Change of `add_ns` per nanosecond.
    drift: float = 0.0

    @property
    def last_add_ns(self) -> int:
        """Nanoseconds to add to times of the other host at the end of the period."""
        return self.add_ns + round(self.drift * (self.to_ns - self.from_ns))


@dataclass(frozen=True, kw_only=True)
class HostSkew:
    """Estimated clock offset of a pair of hosts, from the calls between them.

    Made by `ClockSamples`; nanoseconds.
    """

    #: The host whose clock is the reference, and the other one.
    reference: str
    host: str
    #: Nanoseconds to add to the times of `host`; 0 if the clocks may agree. If the offset changed
    #: it is the first one.
    add_ns: int
    #: Bounds of the correction, nanoseconds; None if no call bounds it, or if it changed.
    low_ns: int | None
    high_ns: int | None
    #: Number of pairs of spans that it was estimated from.
    samples: int
    #: In order of time; empty if the offset was constant.
    stretches: tuple[ClockStretch, ...] = ()
    #: Largest error of a corrected time, nanoseconds; at least `width_ns`.
    error_ns: int = 0
    #: No correction fits: the offset changed from call to call.
    unsteady: bool = False

    @property
    def agrees(self) -> bool:
        """Return whether the clocks may agree: the offset is bounded on both sides, and 0 fits."""
        bounded = self.low_ns is not None and self.high_ns is not None
        return bounded and not (self.add_ns or self.unsteady)

    @property
    def width_ns(self) -> int:
        """Half the width between the bounds, nanoseconds; 0 if a bound is missing."""
        if self.low_ns is None or self.high_ns is None:
            return 0
        return max(self.high_ns - self.low_ns, 0) // 2


class Clocks:
    """Estimated clock offsets of pairs of hosts; converts times of one host to another.

    A pair without an estimate counts as 0.
    """

    def __init__(self, skews: Iterable[HostSkew] = ()) -> None:
        self.skews = tuple(skews)
        self._agree = Counter(
            host for one in self.skews if one.agrees for host in (one.reference, one.host)
        )
        #: By caller's and callee's host.
        self._add: dict[_Pair, int | _Course] = {}
        self._error: dict[_Pair, int] = {}
        for one in self.skews:
            there, back = (one.reference, one.host), (one.host, one.reference)
            self._add[there] = _Course(one.stretches, 1) if one.stretches else one.add_ns
            self._add[back] = _Course(one.stretches, -1) if one.stretches else -one.add_ns
            self._error[there] = self._error[back] = max(one.width_ns, one.error_ns)

    @property
    def unsteady(self) -> tuple[HostSkew, ...]:
        """Pairs of hosts whose offset changes from call to call, so that it cannot be corrected."""
        return tuple(one for one in self.skews if one.unsteady)

    def odd(self, one: HostSkew) -> tuple[str, str]:
        """Return the host of pair `one` whose clock is more likely wrong, then its other host.

        More likely wrong is the clock that agrees with fewer hosts; if equally many, the clock of
        `one.host`.
        """
        if self._agree[one.host] > self._agree[one.reference]:
            return one.reference, one.host
        return one.host, one.reference

    def add_ns(self, caller: Span, span: Span) -> int:
        """Return the nanoseconds to add to times of `span` for the clock of its caller's host.

        If the offset changes over time, the result holds at the start of the call. 0 if there is no
        estimate for the pair of hosts.
        """
        found = self._add.get((caller.host, span.host), 0)
        return found if type(found) is int else found.at(caller, span)  # type: ignore[union-attr] # not an int

    def error_ns(self, reference: str, host: str) -> int:
        """Return the largest error of times of `host` converted to the clock of `reference`.

        In nanoseconds; 0 if there is no estimate for the pair. The order of the two hosts does not
        matter.
        """
        return self._error.get((reference, host), 0)


class _Course:
    """Clock offset between two hosts over time, for calls in one direction.

    `at` returns the nanoseconds to add to times of the callee.
    """

    __slots__ = ("_begins", "_sign", "_stretches")

    def __init__(self, stretches: tuple[ClockStretch, ...], sign: int) -> None:
        """Keep the periods, which are in order of time.

        `sign`: 1 for calls from the reference host, -1 for calls to it.
        """
        self._stretches = stretches
        self._begins = [one.from_ns for one in stretches]
        self._sign = sign

    def at(self, caller: Span, span: Span) -> int:
        instant = caller.start_ns if self._sign > 0 else span.start_ns
        stretch = self._stretches[max(bisect_right(self._begins, instant) - 1, 0)]
        drifted = round(stretch.drift * (instant - stretch.from_ns))
        return self._sign * (stretch.add_ns + drifted)


def clocks_from(rows: Iterable[Mapping[str, Any]]) -> Clocks:
    """Return clock offsets from mappings with the fields of `HostSkew`, as archives store them.

    Raises TypeError for a missing or unknown field.
    """
    # archives of earlier versions have no stretches
    return Clocks(
        HostSkew(**{**row, "stretches": tuple(map(_stretch_from, row.get("stretches", ())))})
        for row in rows
    )


def _stretch_from(form: Mapping[str, Any]) -> ClockStretch:
    return ClockStretch(**form)
