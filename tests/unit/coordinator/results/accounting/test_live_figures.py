"""Figures of a workload under load: rates over the last seconds, percentiles, worker rows."""

from __future__ import annotations

import itertools

import pytest

from helpers.memberships import handle
from helpers.result_rows import row_of
from osbench.common.plugin.plugins import Plugins
from osbench.common.plugin.sla import Verdict
from osbench.common.protocol.columns import encode_rows
from osbench.common.protocol.messages import Block
from osbench.common.task import Named
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.plugins.sla.evaluator import SlaEvaluator
from osbench.coordinator.results.accounting.live_figures import (
    FAILURES,
    RATE_S,
    LiveFigures,
    RecentRates,
)
from osbench.coordinator.results.accounting.workload_results import WorkloadResults

MS = 10**6
CRITERIA = [Named(name="failure_rate", config={"max": 0}), Named(name="max_avg_duration", config=9)]


@pytest.fixture
def results() -> WorkloadResults:
    found = WorkloadResults(idempotent=False, sla=SlaEvaluator(CRITERIA, Plugins(())))
    found.ledger.cut("w1", 1, found.ledger.allot(100, 100))
    found.t0_at = 1000.0
    return found


def add(results: WorkloadResults, numbers: range, outcome: Outcome = Outcome.OK) -> None:
    """Iterations of n milliseconds that were started n microseconds late."""
    rows = [
        row_of(n, int(outcome), 0, n * 1000, n * 1000 + n * MS, 0, 0, (), None) for n in numbers
    ]
    columns = encode_rows(rows, (), 0)
    results.add(
        Block(run="r", membership="m", incarnation="w1", number=1, workload=0, columns=columns)
    )


def fail(results: WorkloadResults, numbers: range, failure: int, etype: str, message: str) -> None:
    """Iterations that failed with an error."""
    outcome = int(Outcome.FAILED)
    rows = [row_of(n, outcome, 0, 0, MS, 0, failure, (), None) for n in numbers]
    block = Block(
        run="r",
        membership="m",
        incarnation="w1",
        number=1,
        workload=0,
        columns=encode_rows(rows, (), 0),
        failures=[[failure, etype, message, "at line 1"]],
    )
    results.add(block)


def test_rates_are_over_the_last_seconds() -> None:
    rates = RecentRates()
    assert rates.rate("a") == 0

    for second in range(20):
        # ten a second at first, then none
        rates.add(float(second), {"a": min(second, 10) * 10})

        if 1 <= second <= 10:
            assert rates.rate("a") == pytest.approx(10)
    assert rates.rate("a") == 0
    assert rates.rate("unknown") == 0


def test_a_rate_is_over_about_five_seconds_however_seldom_it_is_asked() -> None:
    rates = RecentRates()
    for at in (0.0, 2.0, 60.0, 62.0):
        rates.add(at, {"a": int(at)})

    assert rates.rate("a") == pytest.approx(1)
    assert RATE_S == 5


def test_percentiles_are_of_service_time_or_of_response_time(results: WorkloadResults) -> None:
    add(results, range(1, 101))

    closed = LiveFigures(results, is_open=False).fields(0.0, ())
    opened = LiveFigures(results, is_open=True).fields(0.0, ())

    assert (closed["latency"], opened["latency"]) == ("service", "response")
    assert closed["p50_s"] == pytest.approx(0.050, rel=0.002)
    assert closed["p95_s"] == pytest.approx(0.095, rel=0.002)
    assert closed["p99_s"] == pytest.approx(0.099, rel=0.002)
    assert opened["p50_s"] == pytest.approx(0.05005, rel=0.002)
    assert closed["lag_p99_s"] == pytest.approx(99e-6, rel=0.002)


def test_before_the_first_result_nothing_is_judged(results: WorkloadResults) -> None:
    found = LiveFigures(results, is_open=False).fields(0.0, ())

    assert (found["p50_s"], found["lag_p99_s"], found["sla"], found["rate"]) == (None, None, (), 0)


def test_criteria_say_what_they_have_found(results: WorkloadResults) -> None:
    add(results, range(1, 10))
    add(results, range(10, 11), Outcome.FAILED)

    found = LiveFigures(results, is_open=False).fields(0.0, ())

    assert [(one.name, one.met) for one in found["sla"]] == [
        ("failure_rate", False),
        ("max_avg_duration", True),
    ]
    assert "1 of 10" in found["sla"][0].detail
    assert found["failing"] == ("failure_rate",)


def test_a_criterion_that_raises_tells_no_password(
    results: WorkloadResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdict = Verdict(criterion="x", success=False, detail="at http://u:planted-1@h/\x1b[2J")
    monkeypatch.setattr(results.sla, "judge", lambda *_, **__: (verdict,))
    add(results, range(1, 3))

    (found,) = LiveFigures(results, is_open=False).fields(0.0, ())["sla"]

    assert "planted-1" not in found.detail
    assert "\x1b" not in found.detail


def test_they_are_computed_once_a_second_at_most(results: WorkloadResults) -> None:
    figures = LiveFigures(results, is_open=False)
    first = figures.fields(10.0, ())
    add(results, range(1, 100))

    assert figures.fields(10.9, ()) is first
    later = figures.fields(11.0, ())
    assert later["rate"] == pytest.approx(99)


def test_what_is_recent_leaves_out_what_was_before(results: WorkloadResults) -> None:
    figures = LiveFigures(results, is_open=False)
    assert figures.fields(0.0, ())["recent"] is None
    add(results, range(1, 11))
    add(results, range(11, 14), Outcome.FAILED)
    before = figures.fields(5.0, ())["recent"]
    add(results, range(50, 60))
    add(results, range(60, 61), Outcome.TIMED_OUT)

    recent = figures.fields(15.0, ())["recent"]

    assert (before.span_s, before.failed, before.rate) == (5.0, 3, pytest.approx(13 / 5))
    assert (recent.span_s, recent.failed, recent.rate) == (10.0, 1, pytest.approx(11 / 10))
    assert recent.failed_share == pytest.approx(1 / 11)
    assert recent.p50_s == pytest.approx(0.054, rel=0.002)
    assert recent.p95_s == pytest.approx(0.059, rel=0.002)
    quiet = figures.fields(40.0, ())["recent"]
    assert (quiet.rate, quiet.p50_s, quiet.failed) == (0.0, None, 0)


def test_the_most_frequent_error_of_the_last_seconds_is_named(results: WorkloadResults) -> None:
    figures = LiveFigures(results, is_open=False)
    fail(results, range(1, 10), 1, "Refused", "no more")
    figures.fields(0.0, ())
    fail(results, range(10, 12), 2, "Gone", "away\x1b[2J\nsecond line")
    fail(results, range(12, 13), 1, "Refused", "no more")

    recent = figures.fields(10.0, ())["recent"]

    assert recent.error.startswith("Gone: away")
    assert "\x1b" not in recent.error
    assert "second" not in recent.error


def test_failures_that_differ_in_numbers_are_one_kind(results: WorkloadResults) -> None:
    fail(results, range(1, 4), 1, "Refused", "no answer after 1.5s")
    fail(results, range(4, 9), 2, "Refused", "no answer after 2.25s")
    fail(results, range(9, 11), 3, "Gone", "away\x1b[2J, token=planted-1")

    found = LiveFigures(results, is_open=False).fields(0.0, ())

    first, second = found["failures"]
    assert found["failure_kinds"] == 2
    assert (first.type, first.message, first.count) == ("Refused", "no answer after *", 8)
    assert (second.type, second.count, second.step, second.status) == ("Gone", 2, "", 0)
    assert "planted-1" not in second.message
    assert "\x1b" not in second.message


def test_failures_are_bounded(results: WorkloadResults) -> None:
    names = ["".join(pair) for pair in itertools.product("abcdefgh", repeat=2)]
    for number, name in enumerate(names):
        fail(results, range(number + 1, number + 2), number + 1, name, f"{name} " * 900)

    found = LiveFigures(results, is_open=False).fields(0.0, ())

    assert len(found["failures"]) == FAILURES
    assert found["failure_kinds"] == len(names)
    assert max(len(one.message) for one in found["failures"]) < 500


def test_each_worker_has_a_row(results: WorkloadResults) -> None:
    at_work = handle("w1", label="rack", cpu=0.5, busy=3, user_limit=4)
    silent = handle("w2", pid=8, user_limit=4, silence_s=3.0)
    lost = handle("w3", pid=9, busy=2, cpu=0.9, user_limit=4)
    lost.declare_lost()
    figures = LiveFigures(results, is_open=False)
    figures.fields(0.0, ())
    add(results, range(1, 51))

    one, two, three = figures.fields(2.0, (at_work, silent, lost))["rows"]

    assert (one.name, one.label, one.state, one.users, one.busy) == ("h:7", "rack", "running", 4, 3)
    assert one.rate == pytest.approx(25)
    assert one.lag_p99_s == pytest.approx(50e-6, rel=0.02)
    assert (two.state, two.rate, two.lag_p99_s) == ("silent", 0, None)
    assert (three.state, three.users, three.busy, three.cpu) == ("lost", 0, 0, 0)
    assert (one.silent_s, two.silent_s) == (0, 3.0)


def test_rows_say_what_users_are_and_how_busy_the_host_is(results: WorkloadResults) -> None:
    threads = handle("w1", cores=4, cores_used=3.0)
    coroutines = handle("w2", pid=8, cores=4, cores_used=-1.0)
    coroutines.uses_coroutines = True
    left = handle("w3", pid=9)
    left.mark_left()

    rows = LiveFigures(results, is_open=False).fields(0.0, (threads, coroutines, left))["rows"]

    assert [one.coroutines for one in rows] == [False, True, False]
    assert [one.host_cpu for one in rows] == [0.75, None, None]
    assert rows[2].state == "left"
