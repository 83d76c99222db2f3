"""Explanations by what the client alone has measured: parts add up, planted causes are named."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from helpers.examples import examples
from osbench.common.protocol.columns import encode_rows, pack_actions, row
from osbench.common.protocol.exchanges import OWN, PHASES, pack_exchange, pack_other
from osbench.common.values.outcomes import Outcome
from osbench.edges.traces.analysis.explanation import explain
from osbench.edges.traces.analysis.features import Features
from osbench.edges.traces.collection import client_times
from osbench.edges.traces.collection.collected import Collected
from osbench.edges.traces.collection.untraced_workloads import with_client_times

MS = 1_000_000
NAMES = ["buy", "list", "order"]
LATE = "late start (no virtual user was free, or the generator was late)"

#: What is planted, by the name that an explanation has for it.
PLANTED = {
    "name lookup for buy > list": "lookup",
    "connecting for buy > order": "connect",
    "TLS handshake for buy > order": "tls",
    "first byte of buy > order": "wait",
    "transfer of buy > list": "rest",
    "time in action buy": "own",
    LATE: "late",
    "code outside of actions": "outside",
}
NOTHING = "nothing"
#: With --examples=many.
RUNS = 20
ITERATIONS = 2000


class Directory:
    """As much of a run directory as is read."""

    def __init__(self, bodies: Sequence[dict[str, Any]]) -> None:
        self._bodies = bodies

    def blocks(self) -> Iterator[dict[str, Any]]:
        yield from self._bodies


def iteration(number: int, draw: random.Random, planted: str) -> Any:
    """A row of two requests in two actions within another; one in forty has what is planted."""

    def took(part: str, usual_ms: float) -> int:
        extra = 40 if part == planted and number % 40 == 7 else 0
        return int(draw.lognormvariate(0, 0.3) * (usual_ms + extra) * MS)

    due = number * 10 * MS
    started = due + took("late", 0.05)
    opened = number % 10 == 7
    flat: list[int] = []
    packed = b""
    at = started + took("outside", 0.2)
    flat += [0, -1, at, 0, 0]
    # where a part may take longer
    for action, own in ((1, ("lookup", "rest")), (2, ("connect", "tls", "wait"))):
        first = at
        phases = [
            took(phase if phase in own else "", usual) if opened or phase in ("wait", "rest") else 0
            for phase, usual in zip(PHASES, (0.1, 0.5, 1.0, 5.0, 1.0), strict=True)
        ]
        at += sum(phases) + int(0.1 * MS)
        packed += pack_exchange(action, OWN, *phases, 100, 100, 200)
        flat += [action, 0, first, at, 0]
    at += took("own", 0.5)
    flat[3] = at
    return row(
        iteration=number,
        outcome=Outcome.OK,
        due=due,
        started=started,
        ended=at,
        actions=pack_actions(flat),
        extra=(b"", None, packed),
    )


def run_of(planted: str, seed: int, size: int = 500) -> Directory:
    draw = random.Random(seed)
    rows = [iteration(number, draw, planted) for number in range(1, ITERATIONS + 1)]
    blocks = [rows[at : at + size] for at in range(0, len(rows), size)]
    return Directory([{"workload": 0, "columns": encode_rows(one, NAMES, 0)} for one in blocks])


def features_of(directory: Directory, only: Sequence[int] = (0,)) -> Features:
    found = client_times.client_times(directory, ["shop"], {}, only)  # type: ignore[arg-type]
    return found.features


def named(directory: Directory) -> set[str]:
    (answer,) = explain(features_of(directory)).answers
    return {str(cause.key) for band in answer.bands for cause in band.named}


@pytest.mark.parametrize("cause", PLANTED)
def test_a_planted_cause_is_named_and_no_other(cause: str) -> None:
    found = [named(run_of(PLANTED[cause], seed)) for seed in range(examples(RUNS))]

    wrong = [names - {cause} for names in found if names - {cause}]
    right = sum(cause in names for names in found)
    assert (right, wrong) == (len(found), [])


def test_nothing_is_named_where_nothing_is_planted() -> None:
    found = [named(run_of(NOTHING, seed)) for seed in range(examples(RUNS))]

    assert sum(bool(names) for names in found) <= 1


def test_the_sentence_speaks_of_iterations() -> None:
    found = explain(features_of(run_of("wait", 1)))

    assert found.sentence.startswith("The slowest 2 % of iterations (p98+) take ")
    assert "of that is first byte of buy > order, " in found.sentence
    assert found.answers[0].unit == "iteration"


def test_parts_add_up_to_the_response_time() -> None:
    features = features_of(run_of("wait", 3))

    summed = np.bincount(features.rows(), features.time, minlength=len(features))
    # phases are floats of 32 bits
    assert np.abs(summed - features.total).max() <= 16


def test_parts_of_requests_at_the_same_time_are_not_more_than_the_whole() -> None:
    packed = b"".join(pack_exchange(1, OWN, 0, 0, 0, 4.0 * MS, MS, 9, 9, 200) for _ in range(3))
    flat = [0, -1, 0, 10 * MS, 0, 1, 0, MS, 7 * MS, 0]
    rows = [
        row(
            iteration=1,
            outcome=Outcome.OK,
            due=0,
            started=0,
            ended=10 * MS,
            idle=2 * MS,
            actions=pack_actions(flat),
            extra=(b"", None, packed),
        )
    ]
    features = features_of(Directory([{"workload": 0, "columns": encode_rows(rows, NAMES, 0)}]))

    keys = [str(features.keys[key]) for key in features.place]
    assert features.total.tolist() == [8 * MS]
    # three requests of 5 ms at once: nothing is left for the actions around them
    assert set(keys) == {"first byte of buy > list", "transfer of buy > list"}
    assert 8 * MS - 8 <= features.time.sum() <= 8 * MS


def test_a_pause_within_an_action_counts_neither_for_it_nor_for_the_late_start() -> None:
    rows = [
        row(
            iteration=1,
            outcome=Outcome.OK,
            due=0,
            started=5 * MS,
            ended=15 * MS,
            idle=2 * MS,
            actions=pack_actions([1, -1, 5 * MS, 15 * MS, 0]),
        )
    ]
    features = features_of(Directory([{"workload": 0, "columns": encode_rows(rows, NAMES, 0)}]))

    keys = [str(features.keys[key]) for key in features.place]
    times = dict(zip(keys, features.time.tolist(), strict=True))
    assert times == {LATE: 5 * MS, "time in action list": 8 * MS}


def test_requests_of_other_clients_count_for_their_action() -> None:
    rows = [
        row(
            iteration=1,
            outcome=Outcome.OK,
            due=0,
            started=0,
            ended=10 * MS,
            actions=pack_actions([1, -1, 0, 10 * MS, 0]),
            extra=(b"", None, pack_other(0, 0)),
        )
    ]
    features = features_of(Directory([{"workload": 0, "columns": encode_rows(rows, NAMES, 0)}]))

    assert [str(features.keys[key]) for key in features.place] == ["time in action list"]


def test_only_some_workloads_are_read_and_each_iteration_once() -> None:
    (body, *_) = run_of(NOTHING, 1).blocks()
    other = {**body, "workload": 1}

    assert len(features_of(Directory([body, body, other]))) == 500
    assert len(features_of(Directory([body, other]), only=())) == 0


def test_of_many_iterations_whole_blocks_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_times, "MOST", 900)

    features = features_of(run_of(NOTHING, 1, size=50))

    assert 450 <= len(features) <= 950
    assert features.iteration[0] == 1
    assert features.iteration[-1] > 0.9 * ITERATIONS


@pytest.mark.parametrize(
    ("traced", "queried", "before", "explained"),
    [
        (0, False, "", True),
        # the backend that was queried has given nothing
        (ITERATIONS, True, "", True),
        (ITERATIONS, True, "by its traces", False),
        (ITERATIONS, False, "", False),
    ],
)
def test_workloads_without_an_explanation_by_traces_get_one_by_client_times(
    traced: int, queried: bool, before: str, explained: bool
) -> None:
    workload: Any = SimpleNamespace(
        name="shop",
        statistics=SimpleNamespace(requests=SimpleNamespace(actions={"buy": 1})),
        tracing=SimpleNamespace(traced=traced),
        warmup=SimpleNamespace(seconds=0.0),
        search=None,
        counters=None,
    )
    directory: Any = run_of("wait", 1)

    found = with_client_times(
        directory, [workload], Collected(sentences=(before,)), lambda: True, queried=queried
    )

    (sentence,) = found.sentences
    assert ("first byte of buy > order" in sentence) == explained
    assert explained or sentence == before
