"""Figures of counters and their words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from helpers.planted_counters import counters_of, queue, share
from osbench.coordinator.report.model.model import WorkloadReport
from osbench.coordinator.report.statements.counter_statements import counter_statements
from osbench.coordinator.report.statements.statement import Look
from osbench.coordinator.results.accounting.counter_figures import CounterFigures, value_text
from osbench.edges.traces.counters.counter_series import figures_of

FULL = CounterFigures(
    name="CPU", host="db1", kind="share", unit="share", mean=0.62, p95=0.97, max=1.0
)
IDLE = replace(FULL, name="disk", p95=0.3, mean=0.1)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.974, "share", "97 %"),
        (1_200_000, "bytes/s", "1.20 MB/s"),
        (512, "bytes", "512 B"),
        (12.34, "/s", "12.3/s"),
        (5, "", "5.00"),
        (5200, "messages", "5,200 messages"),
        (0, "/s", "0/s"),
    ],
)
def test_values_have_their_units(value: float, unit: str, text: str) -> None:
    assert value_text(value, unit) == text


def test_resources_stand_first_and_gaps_do_not_count() -> None:
    found = figures_of(
        counters_of(
            queue("jobs", "mq1", [1, 2, 3, 4]),
            share("CPU", "db1", [0.1, np.nan, 0.3, 0.2]),
            share("CPU", "db2", [0.5, 0.5, 0.5, 0.5]),
        )
    )

    assert [one.label for one in found] == ["CPU of db2", "CPU of db1", "jobs of mq1"]
    assert (found[1].mean, found[1].max) == (pytest.approx(0.2), pytest.approx(0.3))


def test_the_mean_of_stretches_is_none_where_nothing_is_known() -> None:
    counters = counters_of(share("CPU", "db1", [0.1, np.nan, 0.3, 0.5]))

    assert counters.mean(counters.series[0], [(0, 0.5), (1.8, 2.2)]) == pytest.approx(0.2)
    assert counters.mean(counters.series[0], [(1, 1.5), (90, 99)]) is None


def said(*counters: CounterFigures) -> list[tuple[str, Look]]:
    workload = WorkloadReport(name="w", counters=counters)
    return [(one.text, one.phrases[0].look) for one in counter_statements(workload)]


def test_each_resource_that_was_nearly_full_has_a_line() -> None:
    words = "CPU of db1 97 % at the 95th percentile of time, 62 % on average: nearly full"

    assert said(FULL, IDLE) == [(words, Look.WARNING)]
    many = said(*[FULL] * 9)
    assert len(many) == 6
    assert many[-1][0] == "and 4 more resources nearly full"


def test_if_none_was_full_the_fullest_is_told() -> None:
    ((text, look),) = said(IDLE, replace(IDLE, name="memory", p95=0.2))

    assert look is Look.PLAIN
    assert text == (
        "none of 2 watched reaches 90 % for a twentieth of the time; the fullest: disk of db1 30 %"
        " at the 95th percentile of time, 10 % on average"
    )


def test_queues_alone_are_no_resources() -> None:
    assert said(replace(FULL, kind="queue")) == []
    assert said() == []
