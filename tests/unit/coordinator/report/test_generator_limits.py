"""What a report says of a load that was not what was asked for."""

from __future__ import annotations

import numpy as np
import pytest

from osbench.coordinator.report.generator_limits import generator_limits
from osbench.coordinator.results.totals import Accounting, Offered
from osbench.coordinator.results.workload_statistics import WorkloadStatistics

OFFERED = Offered(duration_s=10.0)


def accounting(**drops: int) -> Accounting:
    dropped = sum(drops.values())
    return Accounting(
        planned=1000,
        ok=1000 - dropped,
        failed=0,
        timed_out=0,
        dropped=dropped,
        lost=0,
        not_started=0,
        drops=drops,
        reruns=0,
        late=0,
        stale=0,
        duplicates=0,
        refused=0,
    )


def statistics(lag_s: float) -> WorkloadStatistics:
    found = WorkloadStatistics()
    found.start_lag.add(np.full(100, int(lag_s * 1e9)))
    return found


def test_a_load_as_it_was_asked_for_has_no_limits():
    assert generator_limits(accounting(), OFFERED, statistics(0.001), 0.1) == []


def test_lag_is_the_tasks_own_wish_where_its_max_concurrency_dropped_more_than_the_workers():
    (said,) = generator_limits(
        accounting(max_concurrency=300, late=5), OFFERED, statistics(0.5), 0.1
    )

    assert said == (
        "the task's own max_concurrency was the limit: 300 of 1000 arrivals were dropped for it; "
        "raise it, or lower the rate"
    )


@pytest.mark.parametrize("drops", [{}, {"max_concurrency": 5, "late": 5}])
def test_otherwise_lag_is_the_workers(drops):
    (said,) = generator_limits(accounting(**drops), OFFERED, statistics(0.5), 0.1)

    assert said == (
        "p99 start lag is 0.500 s, above lag_limit_s (0.1 s): the workers could not keep up"
    )


def test_drops_for_max_concurrency_alone_are_no_limit_of_the_generator():
    found = generator_limits(accounting(max_concurrency=900), OFFERED, statistics(0.01), 0.1)

    assert found == []


def test_arrivals_that_the_workers_dropped_are_told_with_what_to_do():
    (said,) = generator_limits(
        accounting(capacity=8, late=7, max_concurrency=1), OFFERED, statistics(0.01), 0.1
    )

    assert said == (
        "15 of 1000 arrivals could not be started in time: add workers, or virtual users"
    )


def test_users_that_waited_for_work_are_told():
    offered = Offered(duration_s=10.0, concurrency=4, concurrency_held=0.95, waited_s=0.5)

    (said,) = generator_limits(accounting(), offered, statistics(0.0), 0.1)

    assert said == (
        "concurrency held is 95.0%: a virtual user waited 0.50 s for work, or had no worker"
    )


def late_loop(lag_s: float, beats: int = 2000, **blocked_s: float) -> WorkloadStatistics:
    found = statistics(0.001)
    lags = np.full(beats, int(lag_s * 1e9))
    found.add_loop(lags, {place: int(lasted * 1e9) for place, lasted in blocked_s.items()})
    return found


def test_a_scenario_that_blocks_the_event_loop_is_told_with_its_place():
    (said,) = generator_limits(accounting(), OFFERED, late_loop(0.2, shop=0.4, store=1.5), 0.1)

    assert said.startswith(
        "the scenario blocked the event loop of its workers for 1.90 s, of that 1.50 s at store: "
    )
    assert "run_blocking" in said


def test_an_event_loop_that_is_late_by_itself_had_too_much_to_do():
    (said,) = generator_limits(accounting(), OFFERED, late_loop(0.2), 0.1)

    assert said == (
        "the event loops of the workers were late by 0.200 s at p99, above lag_limit_s (0.1 s): "
        "add workers, or take fewer virtual users"
    )


def test_an_event_loop_that_was_blocked_once_is_no_limit():
    assert generator_limits(accounting(), OFFERED, late_loop(0.001, shop=0.06), 0.1) == []


def test_what_a_short_load_imports_first_is_no_limit():
    # 1 % of a short load is less than an import takes
    short = late_loop(0.001, beats=10, shop=0.09)

    assert generator_limits(accounting(), OFFERED, short, 0.1) == []
    assert generator_limits(accounting(), OFFERED, short, 0.05) != []
