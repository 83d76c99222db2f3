"""The distinct errors of a workload, grouped over workers, with counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osbench.common.blocks import Failure

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


class ErrorGroups:
    """Counts errors by type, message and traceback.

    Workers number their own failures; `learn` says what a number means, `add` counts rows.
    """

    __slots__ = ("_groups", "_meaning", "other")

    def __init__(self) -> None:
        #: (etype, message, traceback) -> [count, lowest iteration]
        self._groups: dict[tuple[str, str, str], list[int]] = {}
        #: worker -> its failure number -> the list in _groups: texts are not kept twice
        self._meaning: dict[str, dict[int, list[int]]] = {}
        #: Failed iterations whose error is in no group: beyond the limit, or not described.
        self.other = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ErrorGroups) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]  # it changes

    def learn(self, worker: str, failures: Iterable[Failure]) -> None:
        """Keep what the failure numbers of a worker stand for."""
        meaning = self._meaning.setdefault(worker, {})
        for failure in failures:
            group = self._group((failure.etype, failure.message, failure.traceback))
            if group is not None:
                meaning[failure.number] = group

    def add(self, worker: str, numbers: NDArray[np.uint32], iterations: NDArray[np.int64]) -> None:
        """Count failed iterations by the failure number that their worker gave them."""
        meaning = self._meaning.get(worker, {})
        for number in np.unique(numbers).tolist():
            found = iterations[numbers == number]
            self._count(meaning.get(number), len(found), int(found.min()))

    def merge(self, other: ErrorGroups) -> None:
        """Add the counts of another one; what its workers' numbers mean is left behind."""
        for key, (count, iteration) in other._groups.items():
            if count:
                self._count(self._group(key), count, iteration)
        self.other += other.other

    def groups(self) -> list[ErrorGroup]:
        """All groups, the most frequent first."""
        order = sorted(self._groups.items(), key=lambda item: (-item[1][0], item[1][1], item[0]))
        return [
            ErrorGroup(etype=key[0], message=key[1], traceback=key[2], count=n, iteration=first)
            for key, (n, first) in order
            if n
        ]

    def to_dict(self) -> dict[str, Any]:
        """A form for msgpack."""
        groups = [
            [group.etype, group.message, group.traceback, group.count, group.iteration]
            for group in self.groups()
        ]
        return {"groups": groups, "other": self.other}

    @classmethod
    def from_dict(cls, form: dict[str, Any]) -> ErrorGroups:
        """The groups that `to_dict` described."""
        errors = cls()
        rows: Sequence[Any] = form["groups"]
        for etype, message, traceback, count, iteration in rows:
            errors._groups[(etype, message, traceback)] = [count, iteration]
        errors.other = form["other"]
        return errors

    def _group(self, key: tuple[str, str, str]) -> list[int] | None:
        group = self._groups.get(key)
        if group is None and len(self._groups) < LIMIT:
            group = self._groups[key] = [0, 0]
        return group

    def _count(self, group: list[int] | None, count: int, iteration: int) -> None:
        if group is None:
            self.other += count
        else:
            group[1] = min(group[1], iteration) if group[0] else iteration
            group[0] += count
