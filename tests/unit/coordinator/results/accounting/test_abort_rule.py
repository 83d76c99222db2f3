"""The rule of a workload's key `abort`."""

import numpy as np
import pytest

from helpers.result_rows import row_of
from osbench.common.protocol.columns import decode_rows, encode_rows
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.results.accounting.abort_rule import AbortRule

SECOND = 1_000_000_000


def rows(begin_s, end_s, *, failing=0.0, took_s=0.01, due_before_s=0.0):
    """A hundred iterations a second, some of which fail."""
    found = []
    for number, ended in enumerate(np.arange(begin_s, end_s, 0.01) + 0.005, 1):
        outcome = Outcome.FAILED if number % 100 < 100 * failing else Outcome.OK
        started = ended - took_s
        instants = [int(at * SECOND) for at in (started - due_before_s, started, ended)]
        found.append(row_of(number, int(outcome), *instants, 0, 0, (), None))
    return decode_rows(encode_rows(found, [], 0))


def watched(config, *blocks):
    rule = AbortRule(config)
    for block in blocks:
        rule.add(block)
    rule.watch()
    return rule


HALF = {"failure_rate": 50, "over_s": 10, "after_s": 30}


def test_half_of_a_window_that_failed_ends_the_load():
    rule = watched(HALF, rows(0, 30), rows(30, 41, failing=0.5))

    assert rule.reason.startswith("500 of 1000 iterations failed from 30 s to 40 s: 50.0 %, abort")
    assert not rule.verdict().success
    assert rule.verdict().detail == rule.reason


def test_the_verdict_follows_from_the_rows_where_nobody_has_watched():
    rule = AbortRule(HALF)
    rule.add(rows(30, 41, failing=0.5))

    assert not rule.verdict().success


def test_less_does_not_and_the_verdict_tells_the_worst_window():
    rule = watched(HALF, rows(0, 41, failing=0.49))

    assert rule.reason == ""
    assert rule.verdict().success
    assert "490 of 1000 iterations failed" in rule.verdict().detail


def test_a_load_that_ends_before_a_window_is_not_aborted_and_says_so():
    rule = watched({"failure_rate": 50, "over_s": 2}, rows(0, 1, failing=0.6))

    assert rule.verdict().success
    assert rule.verdict().detail == (
        "60 of 100 iterations failed from 0 s to 2 s: 60.0 %, abort at 50 % over 2 s,"
        " but the load ended before this window"
    )


def test_what_fails_at_the_start_does_not_count_where_the_rule_says_so():
    assert watched(HALF, rows(0, 29, failing=1), rows(30, 60)).reason == ""
    assert watched(HALF | {"after_s": 0}, rows(0, 29, failing=1)).reason


def test_a_window_that_has_not_ended_ends_nothing():
    assert watched(HALF, rows(30, 39.9, failing=1)).reason == ""


def test_the_window_is_ten_seconds_long_unless_given():
    assert watched({"failure_rate": 100}, rows(0, 9.9, failing=1)).reason == ""
    assert watched({"failure_rate": 100}, rows(0, 10.1, failing=1)).reason


@pytest.mark.parametrize(("of", "due_before_s"), [("service", 0.0), ("response", 2.0)])
def test_slow_windows_end_the_load(of, due_before_s):
    config = {"percentile": {"p": 95, "max_s": 1.0, "of": of}, "over_s": 5}
    took_s = 2.0 if of == "service" else 0.01

    assert watched(config, rows(0, 20)).reason == ""
    rule = watched(config, rows(0, 6, took_s=took_s, due_before_s=due_before_s))
    assert "took longer than 1.00s from 0 s to 5 s" in rule.reason


def test_a_reason_stays_whatever_comes_late():
    rule = watched(HALF, rows(30, 41, failing=0.5))
    before = rule.reason

    rule.add(rows(30, 40))
    rule.watch()

    assert rule.reason == before
    assert not rule.verdict().success


def test_a_load_without_iterations_was_not_aborted():
    assert watched(HALF).verdict().success
