"""The distinct errors of a workload, grouped over workers, with counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osbench.common.errors import kind_of
from osbench.common.protocol.columns import Failure

#: Exception type, message and traceback.
Texts = tuple[str, str, str]

#: Type of the error of iterations whose error is in no group.
UNKNOWN = "(not described)"

#: Groups kept apart; errors beyond are only counted.
LIMIT = 1000


@dataclass(frozen=True, kw_only=True)
class ErrorGroup:
    """Iterations that ended with the same error."""

    etype: str
    message: str
    traceback: str
    count: int
    #: Lowest iteration number with this error.
    iteration: int
    #: Resource that a worker lacked, such as open files; "" for other errors.
    resource: str = ""


class ErrorGroups:
    """Counts errors by type, message and traceback.

    Workers number their own failures; `learn` says what a number means, `add` counts rows.
    """

    __slots__ = ("_groups", "_meaning", "_resources", "_shown", "_waiting", "other")

    def __init__(self) -> None:
        #: Kind -> [count, lowest iteration]; a kind is texts without numbers and ids.
        self._groups: dict[Texts, list[int]] = {}
        #: The texts that stand for a kind: the least, in whatever order they come.
        self._shown: dict[Texts, Texts] = {}
        #: Resource that workers lacked, by kind; other errors are not in it.
        self._resources: dict[Texts, str] = {}
        #: worker -> its failure number -> kind
        self._meaning: dict[str, dict[int, Texts]] = {}
        #: (worker, failure number) that is not described yet, for blocks come in any order ->
        #: [count, lowest iteration]. They are counted in `other`, too.
        self._waiting: dict[tuple[str, int], list[int]] = {}
        #: Failed iterations whose error is in no group: beyond the limit, or not described.
        self.other = 0

    def learn(self, worker: str, failures: Iterable[Failure]) -> None:
        """Keep what the failure numbers of a worker stand for."""
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
                    self.other -= waited[0]
                    self._count(group, *waited)

    def texts(self, worker: str, numbers: NDArray[np.uint32]) -> dict[int, Texts]:
        """Type, message and traceback by failure number of a worker, as far as they are kept."""
        meaning = self._meaning.get(worker, {})
        return {n: self._shown[meaning[n]] for n in _distinct(numbers) if n in meaning}

    def types(self, worker: str, numbers: NDArray[np.uint32]) -> list[str]:
        """Type of the error of each failure number; `UNKNOWN` where there is none."""
        meaning = self._meaning.get(worker, {})
        return [meaning[number][0] if number in meaning else UNKNOWN for number in numbers.tolist()]

    def add(self, worker: str, numbers: NDArray[np.uint32], iterations: NDArray[np.int64]) -> None:
        """Count failed iterations by the failure number that their worker gave them."""
        meaning = self._meaning.get(worker, {})
        for number in _distinct(numbers):
            found = iterations[numbers == number]
            group = self._groups.get(meaning[number]) if number in meaning else None
            count, first = len(found), int(np.minimum.reduce(found))
            self._count(group, count, first)
            if group is None and number:
                self._await_description((worker, number), count, first)

    def groups(self) -> list[ErrorGroup]:
        """All groups, the most frequent first."""
        found = [
            ErrorGroup(
                etype=self._shown[kind][0],
                message=self._shown[kind][1],
                traceback=self._shown[kind][2],
                count=n,
                iteration=at,
                resource=self._resources.get(kind, ""),
            )
            for kind, (n, at) in self._groups.items()
            if n
        ]
        return sorted(
            found,
            key=lambda one: (-one.count, one.iteration, one.etype, one.message, one.traceback),
        )

    def counts(self) -> dict[Texts, int]:
        """Failed iterations by type, message and traceback."""
        return {self._shown[kind]: n for kind, (n, _) in self._groups.items() if n}

    def _group(self, key: Texts) -> list[int] | None:
        group = self._groups.get(key)
        if group is None and len(self._groups) < LIMIT:
            group = self._groups[key] = [0, 0]
        return group

    def _await_description(self, key: tuple[str, int], count: int, iteration: int) -> None:
        if key in self._waiting or len(self._waiting) < LIMIT:
            waiting = self._waiting.setdefault(key, [0, iteration])
            waiting[0] += count
            waiting[1] = min(waiting[1], iteration)

    def _count(self, group: list[int] | None, count: int, iteration: int) -> None:
        if group is None:
            self.other += count
        else:
            group[1] = min(group[1], iteration) if group[0] else iteration
            group[0] += count


def _distinct(numbers: NDArray[np.uint32]) -> list[int]:
    """The failure numbers among some, ascending. In most blocks all of them are 0."""
    found = set(numbers[numbers.nonzero()].tolist())
    if np.count_nonzero(numbers) < len(numbers):
        found.add(0)
    return sorted(found)
