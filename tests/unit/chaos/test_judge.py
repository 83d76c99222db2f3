"""The judge sees each lie that a run can tell, and none where it tells the truth."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from helpers.judge import Ending, Seen, Told, miscounts, violations, wrong_code
from servers.iteration_log import Line

OK = {"ok": 3, "failed": 0, "timed_out": 0, "dropped": 0, "lost": 0, "not_started": 0}


def told(rows: str = "", **changed: Any) -> Told:
    """A workload of four iterations, of which one is lost, but for what a test changes."""
    sums = {**OK, "planned": 4, "lost": 1, "drops": {}}
    more = {name: changed.pop(name) for name in list(changed) if name not in sums}
    return Told(
        run="r",
        tag="t",
        accounting={**sums, **changed},
        rows=[(int(one.split(":")[0]), one.split(":")[1]) for one in rows.split()],
        **more,
    )


def seen(*numbers: int, answered: tuple[int, ...] = (1, 2, 3)) -> Seen:
    return Seen(starts=Counter(numbers), answered=frozenset(answered))


def test_a_run_that_tells_the_truth_fits() -> None:
    assert violations(told("1:ok 2:ok 3:ok"), seen(1, 2, 3, 4)) == []
    # lost is what may have started: it need not have
    assert violations(told("1:ok 2:ok 3:ok"), seen(1, 2, 3)) == []


@pytest.mark.parametrize(
    ("run", "server", "says"),
    [
        (told("1:ok 2:ok 3:ok", lost=0), seen(1, 2, 3), "unaccounted: 1 of 4"),
        (told("1:ok 2:ok 3:ok"), seen(1, 2, 3, 3), "started twice: 3"),
        (told("1:ok 2:ok 2:ok"), seen(1, 2, 3), "counted twice: 2"),
        (told("1:ok 2:ok"), seen(1, 2, 3), "ok: 3 in the summary, 2 in the rows"),
        (told("1:ok 2:ok 3:ok"), seen(1, 2), "ok, and the server did not answer: 3"),
        (
            told("1:ok 2:ok 3:ok", lost=0, not_started=1),
            seen(1, 2, 3, 4),
            "1 told as not_started; 4",
        ),
        (
            told("1:ok 2:ok 3:ok 4:dropped_worker_lost", lost=0, dropped=1),
            seen(1, 2, 3, 4),
            "dropped, though started: 4",
        ),
        (told("1:ok 2:ok 3:ok"), seen(1, 2, 3, 9), "started, and not planned: 9"),
        (told("1:ok 2:ok 3:ok", failed=1, lost=0), seen(1, 2, 3), "1 failed"),
    ],
)
def test_a_lie_is_named(run: Told, server: Seen, says: str) -> None:
    if says.startswith("ok, and"):
        server = Seen(starts=server.starts, answered=frozenset({1, 2}))

    found = violations(run, server)

    assert any(says in one for one in found), found


def test_an_idempotent_iteration_may_start_again() -> None:
    run = told("1:ok 2:ok 3:ok", is_idempotent=True)

    assert violations(run, seen(1, 1, 2, 2, 2, 3)) == []


def ending(code: int, *, notes: tuple[str, ...] = (), ctrl_c: bool = False, **sums: Any) -> Ending:
    accounting = {**OK, "planned": 4, "ok": 4, "drops": {}, **sums}
    return Ending(code=code, accountings=[accounting], notes=notes, is_interrupted=ctrl_c)


@pytest.mark.parametrize(
    ("run", "says"),
    [
        (ending(0), []),
        (ending(3, lost=1), []),
        (ending(0, lost=1), ["exit code 0, not 3"]),
        (ending(0, not_started=1), ["exit code 0, not 3"]),
        (ending(3), ["exit code 3, not 0"]),
        (ending(0, dropped=1, drops={"coordinator_gone": 1}), ["exit code 0, not 3"]),
        (ending(0, notes=("the run could not continue: Redis",)), ["exit code 0, not 3"]),
        (ending(130), ["exit code 130, not 0"]),
        (ending(130, not_started=1, ctrl_c=True), []),
        # Ctrl-C came when all was done
        (ending(0, ctrl_c=True), []),
        (ending(0, not_started=1, ctrl_c=True), ["exit code 0, not 3 or 130"]),
    ],
)
def test_the_exit_code_fits_with_the_end(run: Ending, says: list[str]) -> None:
    assert wrong_code(run) == says


def test_what_is_not_accounted_for_exactly_once_is_counted() -> None:
    counts = miscounts(told("1:ok 2:ok 2:ok", lost=0), seen(1, 2, 3, 3))

    assert counts == {"unaccounted": 1, "counted twice": 1, "started twice": 1}


def test_only_the_lines_of_a_run_and_its_tag_count() -> None:
    def line(run: str, tag: str, iteration: int, *, answered: bool = False) -> Line:
        return Line(answered=answered, at=1.0, run=run, tag=tag, iteration=iteration)

    lines = [
        line("r", "t", 1),
        line("r", "t", 1, answered=True),
        line("r", "t", 2),
        line("r", "other", 3),
        line("other", "t", 4),
    ]

    found = Seen.of(lines, "r", "t")

    assert found.starts == {1: 1, 2: 1}
    assert found.answered == {1}


def test_what_may_run_again_is_dropped_where_there_is_no_time_left() -> None:
    run = told("1:ok 2:ok 3:ok 4:dropped_worker_lost", lost=0, dropped=1, drops={"worker_lost": 1},
        is_idempotent=True,
    )  # fmt: skip

    assert violations(run, seen(1, 2, 3, 4)) == []
