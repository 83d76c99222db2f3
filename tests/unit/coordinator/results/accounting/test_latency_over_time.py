"""Latency over time of a workload: by worker and action, failures with their examples."""

from __future__ import annotations

from uuid import UUID

import numpy as np
import pytest

from helpers.result_rows import block, row
from osbench.common.protocol.columns import Failure
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.results.accounting.examples import POINTS, FailedIterations
from osbench.coordinator.results.accounting.latency_over_time import ACTIONS, OTHERS
from osbench.coordinator.results.accounting.workload_statistics import WorkloadStatistics

TRACE = bytes(range(16))


def test_an_iteration_counts_when_it_was_due_however_late_it_started() -> None:
    statistics = WorkloadStatistics()
    statistics.add(block(row(1, due=100, started=5000, ended=5100)), worker="a")
    over_time = statistics.over_time
    assert over_time.service.by_time().tolist() == [1]
    assert over_time.service.percentile(50) == pytest.approx(100e6, rel=0.016)
    assert over_time.response.percentile(50) == pytest.approx(5000e6, rel=0.016)
    assert over_time.start_lag.percentile(50) == pytest.approx(4900e6, rel=0.016)


def test_workers_and_outcomes_are_told_apart() -> None:
    statistics = WorkloadStatistics()
    statistics.add(
        block(
            row(1, ended=10),
            row(2, ended=20, outcome=Outcome.FAILED),
            row(3, ended=30, outcome=Outcome.TIMED_OUT),
            row(4, outcome=Outcome.DROPPED_LATE),
        ),
        worker="a",
    )
    statistics.add(block(row(5, ended=40)), worker="b")
    parts = statistics.over_time.workers
    counts = {name: (part.ok, part.failed, part.timed_out) for name, part in parts.items()}
    assert counts == {"a": (1, 1, 1), "b": (1, 0, 0)}
    assert statistics.over_time.service.total == 2
    assert statistics.over_time.start_lag.total == 4
    assert parts["b"].service.percentile(50) == pytest.approx(40e6, rel=0.016)


def test_many_actions_share_a_matrix() -> None:
    statistics = WorkloadStatistics()
    names = tuple(f"call {number}" for number in range(ACTIONS + 5))
    rows = [
        row(number, ended=10, actions=((name, -1, 0, 10, 0),), names=names)
        for number, name in enumerate(names)
    ]
    statistics.add(block(*rows, names=names), worker="a")
    matrices = statistics.over_time.actions
    assert len(matrices) == ACTIONS + 1
    assert matrices[OTHERS].total == 5
    assert sum(matrix.total for matrix in matrices.values()) == len(names)


def test_the_example_of_an_error_is_the_first_traced_iteration() -> None:
    statistics = WorkloadStatistics()
    statistics.add_failures("a", [Failure(number=1, etype="Boom", message="x", traceback="")])
    failed = {"outcome": Outcome.FAILED, "failure": 1, "ended": 50}
    statistics.add(block(row(7, due=3000, **failed)), worker="a")
    assert statistics.over_time.failures.examples["Boom"].iteration == 7
    statistics.add(block(row(9, due=1000, trace=TRACE, **failed), row(8, **failed)), worker="a")
    example = statistics.over_time.failures.examples["Boom"].to_dict()
    assert example["iteration"] == 9
    assert example["trace_id"] == str(UUID(bytes=TRACE))
    assert (example["first_s"], example["last_s"]) == (0.0, 3.0)
    assert sum(example["counts"]) == 3


def test_kept_points_do_not_depend_on_the_order() -> None:
    forth, back = FailedIterations(), FailedIterations()
    numbers = np.arange(3 * POINTS)
    forth.add(numbers, numbers * 1000, numbers)
    for begin in range(0, len(numbers), 500):
        part = numbers[::-1][begin : begin + 500]
        back.add(part, part * 1000, part)
    assert forth.points() == back.points()
    assert len(forth.points()) == POINTS
    thirds = np.bincount([number // POINTS for _, _, number in forth.points()])
    assert thirds.min() > POINTS / 5
