import itertools

import numpy as np
import pytest

from helpers import result_rows
from helpers.result_rows import row_of
from osbench.common.protocol.columns import Failure, decode_rows, encode_rows, select
from osbench.common.protocol.exchanges import OWN, pack_exchange
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.results.accounting.error_groups import LIMIT
from osbench.coordinator.results.accounting.workload_statistics import (
    ACTIONS,
    OTHER_ACTIONS,
    WorkloadStatistics,
)

MS = 1_000_000
SECOND = 1_000_000_000
NAMES = ("boot", "wait", "delete")


def row(iteration, **columns):
    return result_rows.row(iteration, **columns, names=NAMES)


def block(*rows):
    return result_rows.block(*rows, names=NAMES)


def statistics_of(*rows, failures=()):
    statistics = WorkloadStatistics()
    statistics.add_failures("w1", failures)
    statistics.add(block(*rows), worker="w1")
    return statistics


def error(number, message, etype="Boom"):
    return Failure(number=number, etype=etype, message=message, traceback="")


def test_service_response_and_start_lag_are_told_apart():
    statistics = statistics_of(row(1, due=10, started=15, ended=115, idle=40))

    assert statistics.service.ok.max == 60 * MS
    assert statistics.response.ok.max == 65 * MS
    assert statistics.start_lag.max == 5 * MS


def test_each_state_has_its_own_times():
    statistics = statistics_of(
        row(1, ended=10),
        row(2, ended=20, outcome=Outcome.FAILED),
        row(3, ended=30, outcome=Outcome.TIMED_OUT),
        row(4, ended=10),
    )

    service = statistics.service
    assert (service.ok.count, service.failed.count, service.timed_out.count) == (2, 1, 1)
    assert service.ok.max == 10 * MS
    assert service.failed.max == 20 * MS
    assert service.timed_out.max == 30 * MS
    assert statistics.start_lag.count == 4


def test_dropped_arrivals_only_count():
    statistics = statistics_of(
        row(1, started=5, ended=10),
        row(2, outcome=Outcome.DROPPED_LATE),
        row(3, outcome=Outcome.DROPPED_LATE),
        row(4, outcome=Outcome.DROPPED_CAPACITY),
    )

    assert statistics.count("dropped") == 3
    assert statistics.drops == {"capacity": 1, "late": 2}
    assert statistics.ran == 1
    assert statistics.start_lag.count == 1
    assert statistics.first_start == 5 * MS


def test_a_block_of_dropped_arrivals_alone_has_no_times():
    statistics = statistics_of(row(1, outcome=Outcome.DROPPED_LATE))

    assert statistics.count("dropped") == 1
    assert statistics.service.ok.count == 0
    assert statistics.first_start is None


def test_nested_actions_are_named_by_their_path():
    actions = [("boot", -1, 0, 50, 0), ("wait", 0, 10, 40, 0), ("boot", 1, 20, 30, 0)]

    statistics = statistics_of(
        row(1, ended=50, actions=actions), row(2, ended=9, actions=[("delete", -1, 0, 9, 0)])
    )

    longest = {path: timings.ok.max / MS for path, timings in statistics.actions.items()}
    assert longest == {"boot": 50, "boot > wait": 30, "boot > wait > boot": 10, "delete": 9}


def test_an_action_called_twice_is_two_values():
    actions = [("boot", -1, 0, 5, 0), ("boot", -1, 5, 20, 0)]

    statistics = statistics_of(row(1, ended=20, actions=actions))

    assert statistics.actions["boot"].ok.count == 2
    assert statistics.actions["boot"].ok.max == 15 * MS


def test_a_failed_action_does_not_count_among_the_good_ones():
    statistics = statistics_of(
        row(1, ended=5, actions=[("boot", -1, 0, 5, 0)]),
        row(2, ended=9, outcome=Outcome.FAILED, actions=[("boot", -1, 0, 9, 1)]),
    )

    assert statistics.actions["boot"].ok.max == 5 * MS
    assert statistics.actions["boot"].failed.max == 9 * MS


def test_an_action_that_the_timeout_cut_short_lasts_until_then():
    unfinished = [("boot", -1, 100, 0, 0), ("wait", 0, 120, 140, 0)]

    statistics = statistics_of(
        row(1, started=100, ended=400, outcome=Outcome.TIMED_OUT, actions=unfinished)
    )

    assert statistics.actions["boot"].timed_out.max == 300 * MS
    assert statistics.actions["boot > wait"].ok.max == 20 * MS


def test_many_actions_in_a_block_keep_their_values_apart():
    names = [f"action {number}" for number in range(30)]
    flat = []
    for number in range(30):
        flat += [number, -1, 0, number * MS, 0]
    rows = [row_of(1, Outcome.OK, 0, 0, 0, 0, 0, flat, None)]

    statistics = WorkloadStatistics()
    statistics.add(decode_rows(encode_rows(rows, names, 0)), worker="w1")

    assert [statistics.actions[name].ok.max / MS for name in names] == list(range(30))


def test_made_up_action_names_do_not_fill_the_memory():
    statistics = WorkloadStatistics()
    for number in range(ACTIONS + 50):
        rows = [row_of(number, Outcome.OK, 0, 0, 0, 0, 0, [0, -1, 0, 1, 0], None)]
        statistics.add(decode_rows(encode_rows(rows, [f"boot {number}"], 0)), worker="w1")

    assert len(statistics.actions) == ACTIONS + 1
    assert statistics.actions[OTHER_ACTIONS].ok.count == 50


def test_equal_errors_of_several_workers_are_one_group():
    statistics = WorkloadStatistics()
    statistics.add_failures("w1", [error(1, "no route"), error(2, "refused")])
    statistics.add_failures("w2", [error(1, "refused")])
    failed = {"outcome": Outcome.FAILED}
    statistics.add(block(row(7, failure=1, **failed), row(9, failure=2, **failed)), worker="w1")
    statistics.add(block(row(3, failure=1, **failed), row(8)), worker="w2")

    found = [(group.message, group.count, group.iteration) for group in statistics.errors.groups()]
    assert found == [("refused", 2, 3), ("no route", 1, 7)]
    assert statistics.errors.other == 0


def refusing(iteration, step, status):
    """A failed iteration, and its block: two actions of which the last failed."""
    name = NAMES.index(step)
    exchanges = b"".join(
        pack_exchange(place, OWN, *[1.0] * 5, 10, 10, code)
        for place, code in enumerate((200, status))
    )
    return result_rows.row(
        iteration,
        outcome=Outcome.FAILED,
        failure=1,
        ended=9,
        names=NAMES,
        actions=(("boot", -1, 0, 1, 0), (NAMES[name], -1, 1, 2, 1)),
        exchanges=exchanges,
    )


@pytest.mark.parametrize("described", ["before", "between", "after"])
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_place_of_an_error_is_that_of_its_lowest_iteration(order, described):
    statistics = WorkloadStatistics()
    blocks = [
        block(refusing(3, "delete", 404)),
        block(refusing(2, "wait", 503), refusing(1, "delete", 500)),
        block(row(9), refusing(4, "wait", 503)),
    ]
    texts = [error(1, "no")]
    if described == "before":
        statistics.add_failures("w1", texts)
    for number, at in enumerate(order):
        statistics.add(blocks[at], worker="w1")
        if number == 0 and described == "between":
            statistics.add_failures("w1", texts)
    statistics.add_failures("w1", texts)

    (group,) = statistics.errors.groups()

    assert (group.count, group.iteration, group.place) == (4, 1, ("delete", 500))
    assert statistics.errors.other == 0


def test_an_error_outside_of_actions_and_requests_has_no_place():
    statistics = statistics_of(
        row(1, outcome=Outcome.FAILED, failure=1), failures=[error(1, "early")]
    )

    (group,) = statistics.errors.groups()

    assert group.place == ("", 0)


def test_errors_beyond_the_limit_are_counted_together():
    statistics = WorkloadStatistics()
    kinds = ["".join(parts) for parts in itertools.product("abcdefghij", repeat=3)]
    for worker in ("one", "two"):
        failures = [error(n, f"{worker} {kind}") for n, kind in enumerate(kinds, start=1)]
        statistics.add_failures(worker, failures)
        rows = [row(n, outcome=Outcome.FAILED, failure=n) for n in range(1, LIMIT + 1)]
        statistics.add(block(*rows), worker=worker)

    assert len(kinds) == LIMIT
    assert len(statistics.errors.groups()) == LIMIT
    assert statistics.errors.other == LIMIT


def test_a_failure_that_no_worker_described_is_counted():
    statistics = statistics_of(
        row(1, outcome=Outcome.FAILED, failure=5), row(2, outcome=Outcome.FAILED)
    )

    assert statistics.errors.groups() == []
    assert statistics.errors.other == 2


def test_the_slowest_traced_iterations_of_each_state_are_exemplars():
    statistics = statistics_of(
        row(1, ended=10, trace=b"a" * 16),
        row(2, ended=900),
        row(3, ended=30, trace=b"c" * 16),
        row(4, ended=70, outcome=Outcome.FAILED, trace=b"d" * 16),
    )

    slow = [(kept.iteration, kept.trace) for kept in statistics.exemplars["ok"].slowest()]
    assert slow == [(3, b"c" * 16), (1, b"a" * 16)]
    assert [kept.iteration for kept in statistics.exemplars["failed"].slowest()] == [4]
    assert statistics.traced == 3


def test_rates_and_instants():
    statistics = statistics_of(
        row(1, started=0, ended=100), row(2, started=500, ended=600), row(3, started=1000, ended=1)
    )

    assert (statistics.first_start, statistics.last_start) == (0, SECOND)
    assert statistics.last_end == 600 * MS
    assert statistics.rate_started == pytest.approx(2.0)


def test_running_time_is_exact_in_every_bin():
    random = np.random.default_rng(3)
    started = random.integers(0, 20 * SECOND, 500)
    ended = started + random.integers(0, 5 * SECOND, 500)
    statistics = WorkloadStatistics()
    rows = [row_of(n, 1, 0, int(started[n]), int(ended[n]), 0, 0, (), None) for n in range(500)]
    statistics.add(decode_rows(encode_rows(rows, (), 0)), worker="w1")

    series = statistics.profile.series(40)

    edges = np.arange(len(series.running) + 1) * series.bin_s * 1e9
    for at, running in enumerate(series.running):
        overlap = np.minimum(ended, edges[at + 1]) - np.maximum(started, edges[at])
        assert running * series.bin_s * 1e9 == pytest.approx(overlap.clip(0).sum())
    assert sum(series.starts) == sum(series.ends) == 500
    assert statistics.busy_s == pytest.approx((ended - started).sum() / 1e9)


def test_the_load_profile_of_a_long_run_keeps_its_size():
    day = 24 * 3600 * 1000
    short = statistics_of(row(1, started=0, ended=1000))
    long = statistics_of(
        row(1, started=0, ended=1000), row(2, started=day, ended=day + 500, outcome=Outcome.FAILED)
    )

    series = long.profile.series(4096)
    assert 2048 <= len(series.running) <= 4096
    assert sum(series.running) * series.bin_s == pytest.approx(1.5)
    assert (series.failures[-1], sum(series.failures)) == (1, 1)
    assert short.profile.series(4096).bin_s < 0.02


def test_selected_rows_keep_their_actions_and_traces():
    columns = block(
        row(1, ended=10, actions=[("boot", -1, 0, 5, 0)], trace=b"a" * 16),
        row(2, ended=20, actions=[("wait", -1, 0, 7, 0)], trace=b"b" * 16),
        row(3, ended=30, actions=[("delete", -1, 0, 9, 0), ("wait", 0, 0, 2, 0)]),
    )

    statistics = WorkloadStatistics()
    statistics.add(select(columns, np.array([False, True, True])), worker="w1")

    assert sorted(statistics.actions) == ["delete", "delete > wait", "wait"]
    assert statistics.service.ok.min == 20 * MS
    assert [kept.trace for kept in statistics.exemplars["ok"].slowest()] == [b"b" * 16]
