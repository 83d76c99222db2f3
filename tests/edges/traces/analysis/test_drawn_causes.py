"""Causes whose kind, number, share and size are drawn at random: named, each of them, and no other.

With spans, and by what the client alone has measured.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from helpers.examples import examples
from helpers.synthetic_traces import Fault, Work, find, stretch, traces
from osbench.common.protocol.columns import encode_rows, pack_actions, row
from osbench.common.protocol.exchanges import OWN, PHASES, pack_exchange
from osbench.common.values.outcomes import Outcome
from osbench.edges.traces.analysis.digest import digest_of
from osbench.edges.traces.analysis.explanation import Explanation, explain
from osbench.edges.traces.analysis.features import Features
from osbench.edges.traces.analysis.sentences import words
from osbench.edges.traces.collection.client_times import client_times

MS = 1_000_000
#: With --examples=many.
SEEDS = 20
COUNT = 2000

#: Spans that may take longer, by the words of the explanation.
SPANS = {
    "shop/api db SELECT prices": ("db", "SELECT prices"),
    "shop/api db SELECT items": ("db", "SELECT items"),
    "stock/engine reserve": ("reserve", ""),
    "shop/api wsgi GET /items": ("wsgi", ""),
    "waiting in the queue to stock/engine (from shop/api, rpc -> reserve)": ("", ""),
}
#: Calls that may be made more often, and the words for them.
CALLED = {
    "shop/api db SELECT items": ("db", "SELECT items"),
    "shop/api wsgi GET /items": ("wsgi", ""),
}
ACTIONS = ["list", "look", "add", "pay", "log out"]


def walk(work: Work) -> Iterator[Work]:
    yield work
    for inner in work.inner:
        yield from walk(inner)


def longer(name: str, detail: str, by_ms: float) -> Callable[[Work, random.Random], None]:
    """A harm: a span, or the wait in the queue, takes longer."""

    def harm(root: Work, chance: random.Random) -> None:
        at = find(root, name, detail).end - 0.01 if name else find(root, "reserve").start
        stretch(root, at, by_ms * chance.lognormvariate(0, 0.15))

    return harm


def repeated(name: str, detail: str, calls: int) -> Callable[[Work, random.Random], None]:
    """A harm: a span and all within it are there so many times."""

    def harm(root: Work, chance: random.Random) -> None:
        first = copy.deepcopy(find(root, name, detail))
        apart = first.length + 0.05
        stretch(root, first.end + 1e-6, (calls - 1) * apart)
        parent = next(one for one in walk(root) if any(first == inner for inner in one.inner))
        for number in range(1, calls):
            again = copy.deepcopy(first)
            for one in walk(again):
                one.start += number * apart
            parent.add(again)

    return harm


def explained(*faults: Fault, seed: int) -> Explanation:
    return explain(digest_of(traces(COUNT, *faults, seed=seed)).table.close())


@dataclass
class Client:
    """Iterations of requests, one action each, some of which are slow or made more often."""

    actions: int
    #: (share of the iterations, position of the action, milliseconds more or calls)
    slower: Sequence[tuple[float, int, float]] = ()
    more: Sequence[tuple[float, int, int]] = ()

    def features(self, seed: int) -> Features:
        chance = random.Random(seed)
        rows = [self._row(number, chance) for number in range(1, COUNT + 1)]
        body = {"workload": 0, "columns": encode_rows(rows, ACTIONS, 0)}
        directory = SimpleNamespace(blocks=lambda: [body])
        return client_times(directory, ["shop"], {}, [0]).features  # type: ignore[arg-type]

    def _row(self, number: int, chance: random.Random) -> object:
        def took(usual_ms: float) -> int:
            return int(chance.lognormvariate(0, 0.25) * usual_ms * MS)

        extra = {at: ms for share, at, ms in self.slower if chance.random() < share}
        calls = {at: count for share, at, count in self.more if chance.random() < share}
        due = number * 10 * MS
        started = at = due + took(0.05)
        flat: list[int] = []
        packed = b""
        for action in range(self.actions):
            for again in range(calls.get(action, 1)):
                slow = extra.get(action, 0.0) if not again else 0.0
                phases = [0, 0, 0, took(5) + took(slow), took(0.5)]
                assert len(phases) == len(PHASES)
                first, at = at, at + sum(phases) + took(0.2)
                packed += pack_exchange(len(flat) // 5, OWN, *phases, 100, 100, 200)
                flat += [action, -1, first, at, 0]
            at += took(0.1)
        return row(
            iteration=number,
            outcome=Outcome.OK,
            due=due,
            started=started,
            ended=at,
            actions=pack_actions(flat),
            extra=(b"", None, packed),
        )


def named(explanation: Explanation) -> list[str]:
    """The causes that are named, repeated calls by the first of them."""
    (answer,) = explanation.answers
    band = answer.described_band
    assert band is not None
    rest = {key for one in band.repeated for key in one.keys}
    return [
        *(words(one.first.key) for one in band.repeated),
        *(words(cause.key) for cause in band.named if cause.key not in rest),
    ]


@dataclass(frozen=True)
class Drawn:
    """The planted causes, in words of the explanation, and the explained ones."""

    planted: set[str]
    found: Explanation


def equal_spans(chance: random.Random, seed: int) -> Drawn:
    """Two to five causes of the same size and share."""
    share, by_ms, number = chance.uniform(0.02, 0.1), chance.uniform(20, 200), chance.randint(2, 5)
    planted = chance.sample(list(SPANS), number)
    faults = [Fault(share=share / number, harm=longer(*SPANS[one], by_ms)) for one in planted]
    return Drawn(set(planted), explained(*faults, seed=seed))


def more_spans(chance: random.Random, seed: int) -> Drawn:
    share, calls, called = (
        chance.uniform(0.02, 0.1),
        chance.randint(4, 20),
        chance.choice(list(CALLED)),
    )
    fault = Fault(share=share, harm=repeated(*CALLED[called], calls))
    return Drawn({called}, explained(fault, seed=seed))


def equal_requests(chance: random.Random, seed: int) -> Drawn:
    share, by_ms, number = chance.uniform(0.02, 0.1), chance.uniform(20, 200), chance.randint(2, 5)
    planted = chance.sample(range(5), number)
    client = Client(5, slower=[(share / number, at, by_ms) for at in planted])
    return Drawn({first_byte(at) for at in planted}, explain(client.features(seed)))


def more_requests(chance: random.Random, seed: int) -> Drawn:
    """One kind of request of one to five is made more often."""
    share, calls, actions = chance.uniform(0.02, 0.1), chance.randint(4, 20), chance.randint(1, 5)
    at = chance.randrange(actions)
    found = explain(Client(actions, more=[(share, at, calls)]).features(seed))
    return Drawn({first_byte(at)}, found)


def first_byte(action: int) -> str:
    return f"first byte of {ACTIONS[action]}"


def noise(chance: random.Random) -> Callable[[Work, random.Random], None]:
    """Pauses of a machine at any time, a heavy tail of one part, or all parts slow at once."""
    kind, by_ms = chance.randrange(3), chance.uniform(20, 100)

    def change(work: Work, chance: random.Random) -> None:
        if kind == 0 and chance.random() < 0.03:
            stretch(work, chance.uniform(0, work.length), by_ms * chance.random())
        if kind == 1:
            part = find(work, "reserve")
            stretch(work, part.end - 1e-6, part.length * chance.lognormvariate(0, 0.9))
        if kind == 2:
            factor = chance.lognormvariate(0, 0.5)
            for one in walk(work):
                one.start, one.length = one.start * factor, one.length * factor

    return change


def no_spans(chance: random.Random, seed: int) -> Drawn:
    table = digest_of(traces(COUNT, seed=seed, change=noise(chance))).table.close()
    return Drawn(set(), explain(table))


def no_requests(chance: random.Random, seed: int) -> Drawn:
    return Drawn(set(), explain(Client(chance.randint(1, 5)).features(seed)))


def drawn(kind: Callable[[random.Random, int], Drawn]) -> list[Drawn]:
    return [kind(random.Random(seed), seed) for seed in range(examples(SEEDS))]


@pytest.mark.parametrize("kind", [equal_spans, equal_requests])
def test_equal_causes_are_all_named_and_no_other(
    kind: Callable[[random.Random, int], Drawn],
) -> None:
    found = drawn(kind)

    assert [one for one in found if set(named(one.found)) - one.planted] == []
    missed = [one for one in found if set(named(one.found)) != one.planted]
    # by chance the slowest traces have hardly any of one of five
    assert len(missed) <= 1, [one.found.sentence for one in missed]


@pytest.mark.parametrize("kind", [more_spans, more_requests])
def test_calls_that_are_made_more_often_are_named_once(
    kind: Callable[[random.Random, int], Drawn],
) -> None:
    found = drawn(kind)

    wrong = [one.found.sentence for one in found if named(one.found) != list(one.planted)]
    assert wrong == []
    for one in found:
        assert " calls instead of 1" in one.found.sentence


@pytest.mark.parametrize("kind", [no_spans, no_requests])
def test_without_a_cause_hardly_any_explanation_names_one(
    kind: Callable[[random.Random, int], Drawn],
) -> None:
    found = [one.found.sentence for one in drawn(kind)]

    assert sum("no single cause stands out" not in sentence for sentence in found) <= 1, found


def test_four_causes_are_said_to_be_four() -> None:
    faults = [Fault(share=0.015, harm=longer(*SPANS[one], 60)) for one in list(SPANS)[:4]]

    sentence = explained(*faults, seed=2).sentence

    assert "; four causes of about equal weight: " in sentence
    assert sentence.count(" % (95 %: ") == 4


@pytest.mark.parametrize("share", [0.3, 0.5])
def test_a_cause_in_more_than_a_quarter_of_all_is_not_found(share: float) -> None:
    """As docs/causes.md says: it is part of the usual spread."""
    found = [
        explained(Fault(share=share, harm=longer("reserve", "", 40)), seed=1),
        explain(Client(3, slower=[(share, 1, 40)]).features(1)),
        explain(Client(3, more=[(share, 1, 8)]).features(1)),
    ]

    assert [named(one) for one in found] == [[], [], []]
