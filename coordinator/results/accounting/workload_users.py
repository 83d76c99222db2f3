"""Virtual users of a workload: their numbers by membership, and their starts and ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from osbench.common.errors import Untrusted
from osbench.common.values.histogram import Histogram
from osbench.common.values.intervals import Interval, Intervals
from osbench.common.values.outcomes import LifeEvent
from osbench.coordinator.results.accounting.error_groups import UNKNOWN, Texts


class UserRegister:
    """Assigns numbers to the virtual users of each membership (a worker process's stay in a run).

    There is one register for a workload. Does no I/O.
    """

    def __init__(self) -> None:
        self._of: dict[str, list[Interval]] = {}
        self._last = 0
        #: Numbers of memberships whose users certainly do not run any more.
        self._free = Intervals()
        #: Memberships that are over, perhaps before anybody sees that they are silent.
        self._over: set[str] = set()

    def of(self, mid: str, first: int | None = None) -> list[Interval]:
        """Return numbers of a membership's users, half-open intervals: all, or the `first` ones."""
        numbers = self._of.get(mid, [])
        return numbers if first is None else _split_at(numbers, first)[0]

    def beyond(self, mid: str, first: int) -> list[Interval]:
        """Return the numbers of a membership's users without the `first` ones."""
        return _split_at(self.of(mid), first)[1]

    def count(self, mid: str) -> int:
        """Return how many user numbers a membership has."""
        return _size(self.of(mid))

    def numbers_for(self, mid: str, least: int, most: int, planned: int) -> list[Interval]:
        """Return the numbers that a membership lacks to have `most`: freed ones, then new ones.

        New ones beyond `planned` only complete `least` numbers. Changes nothing: pass the result to
        `give`. Empty also for a membership that is over, whose freed numbers are for others.
        """
        if mid in self._over:
            return []
        have = self.count(mid)
        found, _ = _split_at(list(self._free), max(0, most - have))
        have += _size(found)
        fresh = max(least - have, min(most - have, planned - self._last))
        if fresh > 0:
            found.append((self._last + 1, self._last + 1 + fresh))
        return found

    def spare(self, planned: int) -> int:
        """Return how many numbers up to `planned` no membership has: freed and new ones."""
        return len(self._free) + max(0, planned - self._last)

    def give(self, mid: str, numbers: list[Interval]) -> None:
        """Assign numbers to a membership, in addition to its present ones.

        Numbers among them that were free are not free any more.
        """
        self._of.setdefault(mid, []).extend(numbers)
        for low, high in numbers:
            self._free = Intervals(_without(self._free, low, high))
            self._last = max(self._last, high - 1)

    @property
    def given(self) -> bool:
        """Return whether any membership was ever given numbers."""
        return self._last > 0

    def take_back(self, mid: str, numbers: list[Interval]) -> None:
        """Free the last numbers of a membership, which are `numbers`: their users have ended."""
        self._of[mid] = self.of(mid, self.count(mid) - _size(numbers))
        self._free.update(Intervals(numbers))

    def free(self, mid: str) -> None:
        """Mark a membership as over and free its numbers: none of its users runs any more."""
        self._over.add(mid)
        for low, high in self._of.pop(mid, []):
            self._free.add(low, high)


def _size(numbers: Iterable[Interval]) -> int:
    return sum(high - low for low, high in numbers)


def _split_at(numbers: Iterable[Interval], first: int) -> tuple[list[Interval], list[Interval]]:
    """Return the `first` numbers, and the others, in the order of intervals."""
    head: list[Interval] = []
    tail: list[Interval] = []
    for low, high in numbers:
        middle = low + min(high - low, first)
        first -= middle - low
        head += [(low, middle)] if low < middle else []
        tail += [(middle, high)] if middle < high else []
    return head, tail


def _without(numbers: Intervals, low: int, high: int) -> list[Interval]:
    found = []
    for begin, end in numbers:
        found += [(begin, min(end, low)), (max(begin, high), end)]
    return [(begin, end) for begin, end in found if begin < end]


#: Distinct kinds of errors at most.
ERRORS = 50
#: Instants, nanoseconds, are below it, and not below its negative.
_END = 2**62
#: Numbers of failures are below it: a column of result rows has 32 bits for them.
FAILURES_END = 2**32

#: What happened, to which user, how long it took (nanoseconds), and the number of the failure.
Event = tuple[LifeEvent, int, int, int]


class UserLives:
    """Figures of virtual users: starts, ends, failures, durations of `on_start` and `on_stop`.

    In bounded memory. Also has how the runner's own code ended.
    """

    def __init__(self) -> None:
        self.counts: Counter[LifeEvent] = Counter()
        #: How long successful `on_start` and `on_stop` took, nanoseconds.
        self.begin = Histogram()
        self.end = Histogram()
        #: (what failed, type, message) -> how often.
        self.errors: Counter[tuple[str, str, str]] = Counter()
        #: Numbers of users that began once, and of users whose start failed once.
        self.began = Intervals()
        self._failed = Intervals()
        #: End of the runner's own code in a worker: "" by itself, else its exception; None if it
        #: has not ended.
        self.script_end: str | None = None

    def __bool__(self) -> bool:
        return bool(self.counts)

    @property
    def start_failures(self) -> int:
        """Number of failed starts of users; a user may fail several times."""
        return self.counts[LifeEvent.NOT_BEGUN]

    @property
    def never_began(self) -> int:
        """Number of users that tried to begin, and never did."""
        return len(self._failed) - len(self._failed.intersection(self.began))

    @property
    def tried(self) -> int:
        """Number of users that tried to begin."""
        return len(self.began) + self.never_began

    @property
    def shortfall(self) -> str:
        """A message on users that never began, if some did begin; "" otherwise."""
        if not self.never_began or self.none_began:
            return ""
        return (
            f"{self.never_began} of {self.tried} virtual users could not begin: {self.first_error}"
        )

    def add(self, events: Iterable[Event], texts: Mapping[int, Texts]) -> None:
        """Count events of virtual users of one worker, and the end of the runner's own code.

        `texts` has type, message and traceback by failure number; `UNKNOWN` stands for a missing
        one. Errors beyond `ERRORS` kinds count as "(other errors)".
        """
        for kind, number, lasted, failure in events:
            if kind in (LifeEvent.SCRIPT_ENDED, LifeEvent.SCRIPT_FAILED):
                self._end_script(texts.get(failure) if failure else None)
                continue
            self.counts[kind] += 1
            if kind is LifeEvent.NOT_BEGUN:
                self._failed.add(number, number + 1)
            if kind is LifeEvent.BEGUN:
                self.began.add(number, number + 1)
                self.begin.add(np.array([lasted], np.int64))
            elif kind is LifeEvent.ENDED:
                self.end.add(np.array([lasted], np.int64))
            elif failure:
                etype, message, _ = texts.get(failure, (UNKNOWN, "", ""))
                what = "on_start" if kind is LifeEvent.NOT_BEGUN else "on_stop"
                key = (what, etype, message)
                known = key in self.errors or len(self.errors) < ERRORS
                self.errors[key if known else (what, "(other errors)", "")] += 1

    def _end_script(self, failure: Texts | None) -> None:
        if self.script_end is None:
            etype, message, _ = failure or ("", "", "")
            self.script_end = f"{etype}: {message}".partition("\n")[0] if etype else ""

    @property
    def none_began(self) -> bool:
        """Return whether users tried to begin, and none could."""
        return bool(self.counts[LifeEvent.NOT_BEGUN]) and not self.counts[LifeEvent.BEGUN]

    @property
    def first_error(self) -> str:
        """The most frequent error of starting a user, in one line; "" without errors."""
        for (what, etype, message), _ in self.errors.most_common():
            if what == "on_start":
                return f"{etype}: {message}".partition("\n")[0]
        return ""

    def to_dict(self) -> dict[str, Any] | None:
        """Return the figures for the summary; None if there were no events.

        Counts of users, starts, ends and replacements; p50, p95 and max of `on_start` and `on_stop`
        in seconds; errors with counts.
        """
        if not self:
            return None
        return {
            "tried": self.tried,
            "never_started": self.never_began,
            "started": self.counts[LifeEvent.BEGUN],
            "start_failures": self.start_failures,
            "stopped": self.counts[LifeEvent.ENDED],
            "stop_failures": self.counts[LifeEvent.NOT_ENDED],
            "replaced": self.counts[LifeEvent.REPLACED],
            "start_s": _times(self.begin),
            "stop_s": _times(self.end),
            "errors": [
                {"what": what, "type": etype, "message": message, "count": count}
                for (what, etype, message), count in self.errors.most_common()
            ],
        }


def read_events(rows: Iterable[Any]) -> list[Event]:
    """Return a block's events of virtual users. Raises Untrusted if a row has another shape."""
    return [_event(row) for row in rows]


def _event(row: Any) -> Event:
    try:
        kind, number, begun, ended, failure = row
        sound = all(type(value) is int and -_END < value < _END for value in row)
        if not sound or number < 1 or not 0 <= failure < FAILURES_END:
            raise ValueError("no integers")
        return LifeEvent(kind), number, max(0, ended - begun), failure
    except (TypeError, ValueError):
        raise Untrusted("lives of virtual users of another shape") from None


def _times(times: Histogram) -> dict[str, float] | None:
    if not times.count:
        return None
    return {
        "p50": times.percentile(50) / 1e9,
        "p95": times.percentile(95) / 1e9,
        "max": times.percentile(100) / 1e9,
    }
