"""Clocks that are set or drift during a run: what is slow is named all the same."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import asdict

import pytest

from helpers.synthetic_traces import (
    BEGIN,
    MS,
    Fault,
    Work,
    find,
    queue_wait,
    slow_query,
    stretch,
    traces,
)
from osbench.edges.traces.analysis.digest import Digest, digest_of
from osbench.edges.traces.analysis.explanation import Explanation, explain
from osbench.edges.traces.analysis.notes import trace_notes
from osbench.edges.traces.model.clock_skew import Clocks, clocks_from
from osbench.edges.traces.model.spans import Span

#: How far a clock is ahead in milliseconds, by the part of the run that is over.
Move = Callable[[float], float]


def step(by: float, at: float = 0.5) -> Move:
    return lambda over: by if over > at else 0.0


def drift(by: float) -> Move:
    return lambda over: by * over


MOVES: dict[str, Move] = {
    **{f"step {by}": step(by) for by in (2, 5, 30, -30)},
    "late step 30": step(30, at=0.93),
    "two steps": lambda over: 30.0 if 0.3 < over <= 0.6 else 0.0,
    **{f"drift {by}": drift(by) for by in (2, 12, 50, -50)},
    **{f"constant {by}": lambda _, by=by: by for by in (200, -200)},
    "ahead by a minute, then set": lambda over: 60_000.0 if over < 0.4 else 0.0,
}


def report(chance: random.Random) -> Work:
    """An iteration whose service asks another one, and then a database, without client's spans."""

    def about(middle: float) -> float:
        return middle * chance.lognormvariate(0.0, 0.3)

    root = Work(name="osbench.iteration", start=0, length=0, host="w1")
    web = Work(name="wsgi", start=0.4, length=0, service="web", host="web", detail="GET /report")
    stock = Work(name="wsgi", start=0.7 + about(1), length=0, service="stock", host="stock")
    asked = Work(name="db", start=stock.start + 0.5, length=about(5), service="stock", host="stock")
    stock.length = asked.length + 1
    told = Work(name="db", start=stock.end + 0.3, length=about(4), service="web", host="web")
    told.detail, asked.detail = "SELECT user", "SELECT stock"
    web.add(stock.add(asked), told).length = told.end + about(2) - web.start
    root.length = web.end + 0.4
    return root.add(web)


def _longer(root: Work, inner: str, detail: str) -> None:
    work = find(root, inner, detail)
    stretch(root, work.end - 0.01, 150.0)


def slow_stock(root: Work, chance: random.Random) -> None:
    """The database of the second service takes 150 ms longer."""
    _longer(root, "db", "SELECT stock")


def slow_user(root: Work, chance: random.Random) -> None:
    """The database of the first service takes 150 ms longer."""
    _longer(root, "db", "SELECT user")


def slow_itself(root: Work, chance: random.Random) -> None:
    """The first service takes 150 ms longer at the end of its work."""
    stretch(root, find(root, "db", "SELECT user").end + 0.1, 150.0)


CAUSES = {
    slow_stock: "stock db SELECT stock on host stock",
    slow_user: "web db SELECT user on host web",
    slow_itself: "web wsgi GET /report on host web",
}


def explained(
    move: Move, cause: Callable[[Work, random.Random], None], host: str = "stock", count: int = 1500
) -> tuple[Explanation, Digest]:
    found = traces(
        count,
        Fault(share=0.03, harm=cause),
        clocks=lambda over: {host: move(over)},
        healthy=report,
    )
    digest = digest_of(found)
    return explain(digest.table.close(), digest.clocks), digest


DEAR = pytest.mark.dear


def some_dear(few: tuple[str, ...], *others: str) -> list[object]:
    """Names of moves for `parametrize`: the others are for `make test-all`."""
    return [*few, *(pytest.param(move, marks=DEAR) for move in others)]


#: One of each kind, for causes other than the first.
KINDS = ("step 30", "late step 30", "two steps", "drift -50", "constant 200")
OTHERS = tuple(move for move in MOVES if move not in KINDS)


@pytest.mark.parametrize(
    ("cause", "move"),
    [
        pytest.param(cause, move, marks=DEAR if cause is not slow_stock or move in OTHERS else ())
        for cause in CAUSES
        for move in (*KINDS, *(OTHERS if cause is slow_stock else ()))
    ],
)
def test_the_cause_is_named_whatever_the_clock_of_a_host_does(cause, move):
    found, _ = explained(MOVES[move], cause)

    assert CAUSES[cause] in found.sentence
    assert "no single cause" not in found.sentence


@pytest.mark.parametrize("move", some_dear(("step -30",), "step 30", "drift 50"))
def test_the_clock_between_two_others_may_move(move):
    """Both of its offsets change, and the calls of both pairs are corrected."""
    found, _ = explained(MOVES[move], slow_stock, host="web")

    assert CAUSES[slow_stock] in found.sentence


@pytest.mark.parametrize("move", some_dear(("drift 12",), "step 5", "step -30", "constant -200"))
def test_so_it_is_where_clients_have_spans(move):
    for harm, named in ((slow_query, "db SELECT prices on host b"), (queue_wait, "in the queue")):
        digest = digest_of(
            traces(1500, Fault(share=0.03, harm=harm), clocks=lambda now: {"c": MOVES[move](now)})
        )

        found = explain(digest.table.close(), digest.clocks)

        assert named in found.sentence


def at(host: str, second: float) -> Span:
    return Span("1", "", "work", "s", host, BEGIN + round(second * 1000) * MS, MS)


@pytest.mark.parametrize(
    "move", some_dear(("late step 30", "drift 50"), "step 30", "step -30", "two steps")
)
def test_an_offset_is_the_one_of_its_time(move):
    _, digest = explained(MOVES[move], slow_stock)

    for over in (0.02, 0.28, 0.48, 0.55, 0.9, 0.99):
        # trace n of 1500 begins at second n
        caller, span = at("web", 1500 * over), at("stock", 1500 * over)
        wrong = digest.clocks.add_ns(caller, span) / MS + MOVES[move](over)
        assert abs(wrong) <= digest.clocks.error_ns("web", "stock") / MS < 6
        assert digest.clocks.add_ns(span, caller) == -digest.clocks.add_ns(caller, span)


def test_a_clock_that_was_set_is_named_with_how_far():
    lines = {}
    for move in ("step 30", "drift -50", "two steps"):
        _, digest = explained(MOVES[move], slow_stock)
        (lines[move],) = (
            line for line in trace_notes(digest.coverage, digest.clocks, 0) if "moved" in line
        )

    assert lines["step 30"].startswith("the clock of stock moved during the run (set once)")
    assert "of web, corrected (+-" in lines["step 30"]
    assert "(it drifted): between " in lines["drift -50"]
    assert "(set 2 times): between 0 ahead and " in lines["two steps"]


def test_clocks_that_do_not_move_are_said_to_have_one_offset():
    for move in ("constant 200", "step 2"):
        _, digest = explained(MOVES[move], slow_stock)

        assert not any(one.stretches or one.unsteady for one in digest.clocks.skews)


def test_a_clock_that_moves_from_call_to_call_gives_no_verdict():
    chance = random.Random(2)

    found, digest = explained(lambda _: chance.uniform(-60, 60), slow_stock)

    assert found.sentence.startswith(
        "No verdict: the clocks of stock and web moved against each other "
    )
    assert not any(band.clear for answer in found.answers for band in answer.bands)
    assert not any(band.repeated for answer in found.answers for band in answer.bands)
    note = "the clocks of stock and web moved against each other from call to call: no correction"
    assert any(note in line for line in trace_notes(digest.coverage, digest.clocks, 0))


@pytest.mark.parametrize("most", [0, 60])
def test_failed_traces_get_no_verdict_either_if_a_clock_moves_from_call_to_call(most: int):
    chance = random.Random(2)

    def slow_and_failed(root: Work, chance: random.Random) -> None:
        slow_stock(root, chance)
        root.error = "no stock"

    found, _ = explained(lambda _: chance.uniform(-most, most), slow_and_failed)

    (answer,) = found.answers
    assert answer.failures is not None
    assert (answer.failures.clear is None) == (most > 0)


def test_calls_that_are_not_waited_for_do_not_move_a_clock():
    def cast(work, chance):
        web = find(work, "wsgi")
        late = chance.choice((chance.uniform(-1, 0), chance.uniform(0, 400)))
        web.add(Work(name="cast", start=web.end + late, length=3, service="stock", host="stock"))

    found = digest_of(traces(600, change=cast, healthy=report))

    assert not any(one.stretches or one.unsteady for one in found.clocks.skews)


def test_what_an_archive_keeps_of_clocks_is_all_of_it():

    _, digest = explained(MOVES["two steps"], slow_stock)

    again = clocks_from([asdict(one) for one in digest.clocks.skews])

    assert again.skews == digest.clocks.skews
    assert isinstance(again, Clocks)
