"""Iterations with a group of steps at once, of a shape drawn at random, and one slow step in it."""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

from osbench.common.protocol.columns import encode_rows, pack_actions, row
from osbench.common.protocol.exchanges import OWN, pack_exchange
from osbench.common.values.outcomes import Outcome
from osbench.edges.traces.analysis.explanation import explain
from osbench.edges.traces.analysis.features import Features
from osbench.edges.traces.collection import client_times

MS = 1_000_000
ITERATIONS = 2000
#: Verdicts on an explanation.
ALONE, BESIDE, MISSED = "named alone", "named beside others", "not named"


@dataclass(frozen=True, kw_only=True)
class GroupShape:
    """A flow with a group, and the delay that one of its members has in some iterations."""

    #: Usual milliseconds of each member, and of the steps before and after the group.
    members_ms: Sequence[float]
    before_ms: Sequence[float]
    after_ms: Sequence[float]
    at_once: int
    #: The group is below a branch of mix.
    is_nested: bool
    #: Spread of usual times: sigma of a lognormal distribution.
    sigma: float
    #: Number of the slow member, its additional milliseconds, and one iteration in so many has it.
    slow: int
    extra_ms: tuple[float, float]
    one_in: int

    @classmethod
    def drawn(cls, draw: random.Random) -> Self:
        """Return a shape: 2 to 6 members, any `at_once`, other steps, a delay from a range."""
        count = draw.randint(2, 6)
        low_ms = draw.uniform(20, 100)
        return cls(
            members_ms=[draw.uniform(2, 12) for _ in range(count)],
            before_ms=[draw.uniform(1, 8) for _ in range(draw.randint(0, 2))],
            after_ms=[draw.uniform(1, 8) for _ in range(draw.randint(0, 2))],
            at_once=draw.randint(1, count),
            is_nested=draw.random() < 0.5,
            sigma=draw.uniform(0.1, 0.4),
            slow=draw.randrange(count),
            extra_ms=(low_ms, low_ms * draw.uniform(1, 3)),
            one_in=draw.randint(15, 60),
        )

    @property
    def cause(self) -> str:
        """The name of the cause that an explanation should have."""
        return f"first byte of {'branch > ' if self.is_nested else ''}page > m{self.slow}"

    def names(self) -> list[str]:
        """Names of actions, by number: branch, page, members, other steps."""
        others = [f"s{number}" for number in range(len(self.before_ms) + len(self.after_ms))]
        return ["branch", "page", *(f"m{k}" for k in range(len(self.members_ms))), *others]


class _Iteration:
    """An iteration that is recorded step by step."""

    def __init__(self, shape: GroupShape, number: int, draw: random.Random) -> None:
        self._shape, self._draw = shape, draw
        self._is_slow = number % shape.one_in == 7
        self._begin = number * 10 * MS
        self.actions: list[int] = []
        self.packed = b""

    def row(self, number: int) -> Any:
        shape, now = self._shape, self._begin
        outer = self._open(0, -1, now) if shape.is_nested else -1
        first = 2 + len(shape.members_ms)
        for at, usual_ms in enumerate(shape.before_ms):
            now = self._request(first + at, outer, now, self._took(usual_ms))
        page = self._open(1, outer, now)
        slots = [now] * shape.at_once
        for at, usual_ms in enumerate(shape.members_ms):
            took = self._took(usual_ms)
            if at == shape.slow and self._is_slow:
                took += int(self._draw.uniform(*shape.extra_ms) * MS)
            began = heapq.heappop(slots)
            heapq.heappush(slots, self._request(2 + at, page, began, took))
        now = self._close(page, max(slots))
        for at, usual_ms in enumerate(shape.after_ms, len(shape.before_ms)):
            now = self._request(first + at, outer, now, self._took(usual_ms))
        if outer >= 0:
            self._close(outer, now)
        return row(
            iteration=number,
            outcome=Outcome.OK,
            due=self._begin,
            started=self._begin,
            ended=now,
            actions=pack_actions(self.actions),
            extra=(b"", None, self.packed),
        )

    def _took(self, usual_ms: float) -> int:
        return int(self._draw.lognormvariate(0, self._shape.sigma) * usual_ms * MS)

    def _open(self, name: int, outer: int, begin: int) -> int:
        self.actions += (name, outer, begin, 0, 0)
        return len(self.actions) // 5 - 1

    def _close(self, at: int, end: int) -> int:
        self.actions[at * 5 + 3] = end
        return end

    def _request(self, name: int, outer: int, begin: int, took: int) -> int:
        at = self._open(name, outer, begin)
        self.packed += pack_exchange(at, OWN, 0, 0, 0, took, 0.01 * MS, 9, 9, 200)
        return self._close(at, begin + took + 20_000)


class _Directory:
    """As much of a run directory as is read."""

    def __init__(self, body: dict[str, Any]) -> None:
        self._body = body

    def blocks(self) -> Iterator[dict[str, Any]]:
        yield self._body


def features_of(shape: GroupShape, draw: random.Random) -> Features:
    """Features of a run of the shape."""
    made = [_Iteration(shape, number, draw).row(number) for number in range(1, ITERATIONS + 1)]
    body = {"workload": 0, "columns": encode_rows(made, shape.names(), 0)}
    directory: Any = _Directory(body)
    return client_times.client_times(directory, ["shop"], {}, (0,)).features


def verdict(seed: int) -> tuple[GroupShape, str, list[str]]:
    """Return a shape drawn by `seed`, the verdict on its explanation, and the named causes."""
    draw = random.Random(f"groups of steps, {seed}")
    shape = GroupShape.drawn(draw)
    (answer,) = explain(features_of(shape, draw)).answers
    found = sorted({str(cause.key) for band in answer.bands for cause in band.named})
    if found == [shape.cause]:
        return shape, ALONE, found
    return shape, BESIDE if shape.cause in found else MISSED, found
