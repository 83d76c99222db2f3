"""Iterations by zone, for workloads with shares of zones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from helpers.result_rows import block, row
from osbench.common.task import Named, Workload
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.results.accounting.worker_figures import WorkerFigures
from osbench.edges.breakdowns.zone_rows import OTHERS, ZoneRows

PLAIN = Workload(place="", position=0, scenario="A.b", args={}, runner=Named(name="constant"))
WORKERS = [
    WorkerFigures(incarnation="w1", label="eu/rack-1"),
    WorkerFigures(incarnation="w2", label="us"),
    WorkerFigures(incarnation="w3", label=""),
]


def zones(shares: dict[str, int], *, is_open: bool = False) -> ZoneRows:
    found = ZoneRows.of(replace(PLAIN, zones=shares), is_open=is_open)
    assert found is not None
    return found


def test_a_workload_without_shares_has_no_rows() -> None:
    assert ZoneRows.of(PLAIN, is_open=True) is None


@pytest.mark.parametrize(("is_open", "p50"), [(False, 0.010), (True, 0.030)])
def test_each_zone_has_share_counts_and_times(is_open: bool, p50: float) -> None:
    found = zones({"eu": 250_000, "us": 750_000}, is_open=is_open)
    found.add(block(row(1, started=20, ended=30)), "w1")
    found.add(
        block(
            row(2, started=5, ended=9),
            row(3, started=5, ended=9, outcome=Outcome.FAILED),
            row(4, started=5, ended=9, outcome=Outcome.TIMED_OUT),
            row(5, outcome=Outcome.DROPPED_LATE),
        ),
        "w2",
    )

    eu, us = found.figures(WORKERS).rows

    assert (eu.name, eu.share, eu.asked, eu.ok, eu.failed) == ("eu", 0.25, 0.25, 1, 0)
    assert (us.name, us.share, us.asked, us.ok, us.failed) == ("us", 0.75, 0.75, 1, 2)
    assert eu.p50 == pytest.approx(p50, rel=0.002)


def test_workers_without_a_share_have_a_row_together() -> None:
    found = zones({"eu": 300_000})
    found.add(block(row(1, ended=1)), "w3")
    found.add(block(row(2, ended=1)), "w2")

    eu, others = found.figures(WORKERS).rows

    assert (eu.ok, eu.share, eu.p95) == (0, 0.0, None)
    assert (others.name, others.ok, others.asked) == (OTHERS, 2, 0.7)


def test_a_worker_that_is_not_known_belongs_to_the_others() -> None:
    found = zones({"eu": 1_000_000})
    found.add(block(row(1, ended=1)), "w9")

    assert [(one.name, one.asked) for one in found.figures(WORKERS).rows] == [
        ("eu", 1.0),
        (OTHERS, 0.0),
    ]
