"""Of actions at the same time, the one that made its iteration slower explains it, wholly."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from helpers.examples import examples
from osbench.common.protocol.columns import encode_rows, pack_actions, row
from osbench.common.protocol.exchanges import OWN, pack_exchange
from osbench.common.values.outcomes import Outcome
from osbench.edges.traces.analysis.explanation import explain
from osbench.edges.traces.analysis.features import Features
from osbench.edges.traces.collection import client_times
from osbench.edges.traces.collection.awaited_actions import awaited_shares

MS = 1_000_000
MEMBERS = ["a", "b", "c", "d"]
NAMES = ["page", *MEMBERS]
ITERATIONS = 2000
#: With --examples=many.
RUNS = 20


def shares(*lines: tuple[int, int, int, int]) -> list[float]:
    """Of lines (row, parent, begin, end)."""
    return awaited_shares(
        np.array([(row, 0, parent, begin, end, 0) for row, parent, begin, end in lines])
    ).tolist()


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        # one after another
        ([(0, -1, 0, 9), (0, 0, 1, 4), (0, 0, 4, 8)], [1, 1, 1]),
        # at once: 3 of 6 at the same time, the other 3 alone
        ([(0, -1, 0, 9), (0, 0, 1, 4), (0, 0, 1, 7)], [1, 1 / 2, 3 / 4]),
        # two at a time: the third began when the first had ended
        ([(0, -1, 0, 8), (0, 0, 0, 4), (0, 0, 0, 8), (0, 0, 4, 8)], [1, 1 / 2, 1 / 2, 1 / 2]),
        # also what is inside of one of them
        ([(0, -1, 0, 9), (0, 0, 1, 5), (0, 0, 1, 5), (0, 1, 2, 3)], [1, 1 / 2, 1 / 2, 1 / 2]),
        # without an action around them, and one that did not end
        ([(0, -1, 0, 4), (0, -1, 2, 4), (0, -1, 3, 0)], [3 / 4, 1 / 2, 0]),
        # of no time at all
        ([(0, -1, 5, 9), (0, 0, 5, 5), (0, 0, 5, 8), (0, 0, 6, 6)], [1, 0, 1, 0]),
        # one that went on after its parent
        ([(0, -1, 0, 8), (0, 0, 4, 12), (0, 0, 4, 8)], [1, 1 / 4, 1 / 2]),
        # rows do not meet
        ([(0, -1, 0, 9), (1, -1, 0, 9), (1, 0, 0, 9), (1, 0, 0, 3)], [1, 1, 7.5 / 9, 1 / 2]),
    ],
)
def test_each_moment_is_divided_among_what_ran_then(lines, expected) -> None:
    assert shares(*lines) == pytest.approx(expected)


def test_no_actions_at_all() -> None:
    assert awaited_shares(np.zeros((0, 6), np.int64)).tolist() == []


class Directory:
    """As much of a run directory as is read."""

    def __init__(self, bodies: Sequence[dict[str, Any]]) -> None:
        self._bodies = bodies

    def blocks(self) -> Iterator[dict[str, Any]]:
        yield from self._bodies


def iteration(number: int, draw: random.Random, planted: str, extra_ms: float) -> Any:
    """A row of a page whose requests are made at once; one in forty has the planted delay."""
    begin = number * 10 * MS
    flat, packed, last = [0, -1, begin, 0, 0], b"", 0
    for at, name in enumerate(MEMBERS, 1):
        took_ms = draw.lognormvariate(1.6, 0.3)
        if name == planted:
            took_ms += extra_ms if number % 40 == 7 else 0
        packed += pack_exchange(at, OWN, 0, 0, 0, took_ms * MS, 0.01 * MS, 9, 9, 200)
        end = begin + int((took_ms + 0.02) * MS)
        flat += [at, 0, begin, end, 0]
        last = max(last, end)
    flat[3] = last
    return row(
        iteration=number,
        outcome=Outcome.OK,
        due=begin,
        started=begin,
        ended=last,
        actions=pack_actions(flat),
        extra=(b"", None, packed),
    )


@pytest.mark.parametrize("seed", range(examples(RUNS)))
def test_the_slow_one_of_requests_at_once_is_named_with_its_whole_time(seed: int) -> None:
    draw = random.Random(seed)
    planted, extra_ms = draw.choice(MEMBERS), draw.uniform(20, 200)
    print(f"seed {seed}: {planted} is {extra_ms:.0f} ms slower")

    made = [iteration(number, draw, planted, extra_ms) for number in range(1, ITERATIONS + 1)]
    body = {"workload": 0, "columns": encode_rows(made, NAMES, 0)}
    directory: Any = Directory([body])
    features: Features = client_times.client_times(directory, ["shop"], {}, (0,)).features

    (answer,) = explain(features).answers
    found = {str(cause.key) for band in answer.bands for cause in band.named}
    assert found == {f"first byte of page > {planted}"}
    # with all that it made its iteration slower, not a part of it
    (cause,) = answer.bands[0].named
    assert cause.share == pytest.approx(1, abs=0.1)
    # and the parts are never more than the whole
    summed = np.bincount(features.rows(), features.time, minlength=len(features))
    assert np.abs(summed - features.total).max() <= 16
