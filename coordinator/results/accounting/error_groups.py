"""Distinct errors of a workload's iterations, grouped over all workers, with counts."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from osbench.common.errors import kind_of
from osbench.common.protocol.columns import Failure

_UNIT = r"(?:ns|us|ms|s|m|h|[kMG]?i?B)\b"
#: Numbers that `kind_of` leaves: a fraction, a number with its unit, an address in memory.
_MEASURED = re.compile(
    rf"\b0x[0-9a-f]+\b|(?<![\w.])(?:[\d*]+(?:\.[\d*]+)+|[\d*]+(?={_UNIT}))(?:{_UNIT})?",
    re.IGNORECASE,
)

#: Exception type, message and traceback.
Texts = tuple[str, str, str]

#: Type of the error of iterations whose error is in no group.
UNKNOWN = "(not described)"

#: Groups kept apart; errors beyond are only counted.
LIMIT = 1000


@functools.lru_cache(4096)
def shown_kind(message: str) -> str:
    """Return the message with `*` instead of numbers, ids, durations, sizes and memory addresses.

    Status codes and errno stay. Results are cached.
    """
    return _MEASURED.sub("*", kind_of(message))


class FailurePlace(NamedTuple):
    """The failed action of an iteration, and the status code of its last error response."""

    #: The last action that failed or did not end; "" for none.
    step: str = ""
    #: Status code of the last response with an error; 0 for none.
    status: int = 0


_NOWHERE = FailurePlace()


@dataclass(frozen=True, kw_only=True)
class ErrorGroup:
    """Iterations that ended with the same error, if numbers and ids in its texts are ignored.

    The texts are an example; `count` is the number of iterations.
    """

    etype: str
    message: str
    traceback: str
    count: int
    #: Lowest iteration number with this error.
    iteration: int
    #: Resource that a worker lacked, such as open files; "" for other errors.
    resource: str = ""
    #: Where that iteration failed.
    place: FailurePlace = _NOWHERE


@dataclass(slots=True)
class _Tally:
    """Number of iterations of a group, and its lowest iteration with the place of that failure."""

    count: int = 0
    iteration: int = 0
    place: FailurePlace = _NOWHERE

    def add(self, count: int, iteration: int, place: Callable[[], FailurePlace]) -> None:
        """Count `count` more iterations of the group, of which `iteration` is the lowest number.

        If it is lower than all before, it becomes the group's first, and `place()` the group's
        place; else `place` is not called.
        """
        if not self.count or iteration < self.iteration:
            self.iteration, self.place = iteration, place()
        self.count += count

    def join(self, other: _Tally) -> None:
        """Add the count of `other` to this tally, which keeps the lower of both iterations."""
        self.add(other.count, other.iteration, lambda: other.place)


class ErrorGroups:
    """Counts failed iterations by type, message and traceback of their error, in bounded memory.

    Each worker (a membership's name) numbers its distinct failures. `learn` takes the texts of
    these failure numbers, `add` counts result rows that have them; either may come first.
    """

    __slots__ = ("_groups", "_meaning", "_resources", "_shown", "_waiting", "other")

    def __init__(self) -> None:
        #: By kind: texts without numbers and ids.
        self._groups: dict[Texts, _Tally] = {}
        #: The texts that stand for a kind: the least, in whatever order they come.
        self._shown: dict[Texts, Texts] = {}
        #: Resource that workers lacked, by kind; other errors are not in it.
        self._resources: dict[Texts, str] = {}
        #: worker -> its failure number -> kind
        self._meaning: dict[str, dict[int, Texts]] = {}
        #: By worker and failure number, failures not described yet: blocks come in any order. They
        #: are counted in `other`, too.
        self._waiting: dict[tuple[str, int], _Tally] = {}
        #: Failed iterations whose error is in no group: beyond the limit, or not described.
        self.other = 0

    def learn(self, worker: str, failures: Iterable[Failure]) -> None:
        """Store the texts of a worker's failure numbers; count failures that came before them.

        Beyond `LIMIT` groups, new errors are not stored: their iterations stay in `other`.
        """
        meaning = self._meaning.setdefault(worker, {})
        for failure in failures:
            texts = (failure.etype, failure.message, failure.traceback)
            kind = (failure.etype, kind_of(failure.message), kind_of(failure.traceback))
            group = self._group(kind)
            if group is not None:
                self._shown[kind] = min(texts, self._shown.get(kind, texts))
                meaning[failure.number] = kind
                if failure.resource:
                    self._resources[kind] = failure.resource
                waited = self._waiting.pop((worker, failure.number), None)
                if waited is not None:
                    self.other -= waited.count
                    group.join(waited)

    def texts(self, worker: str, numbers: NDArray[np.uint32]) -> dict[int, Texts]:
        """Return (type, message, traceback) by failure number, without unknown numbers.

        `numbers` are of `worker`. The texts are the example of the failure's group.
        """
        meaning = self._meaning.get(worker, {})
        return {n: self._shown[meaning[n]] for n in _distinct(numbers) if n in meaning}

    def types(self, worker: str, numbers: NDArray[np.uint32]) -> list[str]:
        """Return the error type for each of a worker's failure numbers, in order.

        `UNKNOWN` if the number is not described, or beyond `LIMIT` groups.
        """
        meaning = self._meaning.get(worker, {})
        return [meaning[number][0] if number in meaning else UNKNOWN for number in numbers.tolist()]

    def add(
        self,
        worker: str,
        numbers: NDArray[np.uint32],
        iterations: NDArray[np.int64],
        place: Callable[[int], FailurePlace] = lambda _: _NOWHERE,
    ) -> None:
        """Count failed iterations of a worker; `numbers` has the failure number of each.

        A number without a group counts in `other`. It stays there if it is 0 or beyond a limit,
        else until `learn` describes it. `place` returns the place of failure of an iteration
        number; it is called only for the lowest one so far of a group, or of a number without.
        """
        meaning = self._meaning.get(worker, {})
        for number in _distinct(numbers):
            found = iterations[numbers == number]
            group = self._groups.get(meaning[number]) if number in meaning else None
            count, first = len(found), int(np.minimum.reduce(found))
            if group is None:
                self.other += count
                group = self._awaited((worker, number)) if number else None
            if group is not None:
                group.add(count, first, functools.partial(place, first))

    def are_lacking(self, worker: str, numbers: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """Return for each of a worker's failure numbers whether the worker lacked a resource."""
        lacking = {kind for kind, resource in self._resources.items() if resource}
        if not lacking:
            return np.zeros(len(numbers), np.bool_)
        meaning = self._meaning.get(worker, {})
        return np.isin(numbers, [number for number, kind in meaning.items() if kind in lacking])

    def lacking(self) -> Counter[str]:
        """Return how many iterations failed for want of the generator's resources, by resource."""
        found: Counter[str] = Counter()
        for kind, resource in self._resources.items():
            if resource and kind in self._groups:
                found[resource] += self._groups[kind].count
        return +found

    def groups(self) -> list[ErrorGroup]:
        """Return the groups with iterations, the most frequent error first."""
        found = [
            ErrorGroup(
                etype=self._shown[kind][0],
                message=self._shown[kind][1],
                traceback=self._shown[kind][2],
                count=one.count,
                iteration=one.iteration,
                resource=self._resources.get(kind, ""),
                place=one.place,
            )
            for kind, one in self._groups.items()
            if one.count
        ]
        return sorted(
            found,
            key=lambda one: (-one.count, one.iteration, one.etype, one.message, one.traceback),
        )

    def counts(self) -> dict[Texts, int]:
        """Return the number of failed iterations by the group's (type, message, traceback)."""
        return {self._shown[kind]: one.count for kind, one in self._groups.items() if one.count}

    def _group(self, key: Texts) -> _Tally | None:
        group = self._groups.get(key)
        if group is None and len(self._groups) < LIMIT:
            group = self._groups[key] = _Tally()
        return group

    def _awaited(self, key: tuple[str, int]) -> _Tally | None:
        """Return the tally for a (worker, failure number) without texts yet; make it if missing.

        None if there are `LIMIT` others.
        """
        if key not in self._waiting and len(self._waiting) >= LIMIT:
            return None
        return self._waiting.setdefault(key, _Tally())


def _distinct(numbers: NDArray[np.uint32]) -> list[int]:
    """Return the distinct failure numbers, ascending; fast if nearly all are 0."""
    found = set(numbers[numbers.nonzero()].tolist())
    if np.count_nonzero(numbers) < len(numbers):
        found.add(0)
    return sorted(found)
