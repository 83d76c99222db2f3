"""The generator's own lateness in percentiles."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from helpers.result_rows import block, row
from helpers.sample_reports import constant_workload, rps_workload, run_report
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.report.findings.own_lateness import lateness_note, own_lateness
from osbench.coordinator.report.model.measure import measured_report
from osbench.coordinator.results.accounting.outcome import WorkloadOutcome
from osbench.coordinator.results.accounting.totals import Offered
from osbench.coordinator.results.accounting.workload_statistics import WorkloadStatistics

MS = 1_000_000
#: Service times of 10 ms, one in twenty of 76 ms.
TIMES = np.array([10 * MS] * 950 + [76 * MS] * 50)


def outcome(*, loop=0.0, threads=0.0, start=0.0, is_open=True, full=False) -> WorkloadOutcome:
    """Lateness in milliseconds, of one beat or start in twenty; the late starts are slow ones."""
    statistics = WorkloadStatistics(is_open=is_open)
    rare = np.array([0] * 950 + [1] * 50)
    starts = (rare * start * MS).astype(np.int64)
    statistics.service.ok.add(TIMES)
    statistics.response.ok.add(TIMES + starts)
    statistics.loop_lag.add((rare * loop * MS).astype(np.int64))
    statistics.thread_lag.add((rare * threads * MS).astype(np.int64))
    statistics.start_lag.add(starts)
    if full:
        statistics.add(block(row(1, outcome=Outcome.DROPPED_CAPACITY)), worker="w")
    offered = rps_workload().offered if is_open else Offered(duration_s=1.0, concurrency=2)
    return replace(constant_workload(), statistics=statistics, offered=offered, bounds=())


@pytest.mark.parametrize("lag", ["loop", "threads", "start"])
def test_eighteen_milliseconds_of_the_slow_ones_are_told(lag):
    found = own_lateness(outcome(**{lag: 18.0}))

    assert found.p50 is None
    assert found.p99 == pytest.approx(0.018, rel=0.01)


@pytest.mark.parametrize(
    "late", [{"loop": 1.5}, {"loop": 7.0}, {"start": 18.0, "is_open": False}, {}]
)
def test_what_is_not_noticeable_or_in_no_service_time_is_not_told(late):
    assert own_lateness(outcome(**late)).p99 is None


def test_starts_that_waited_for_the_service_are_the_services():
    assert own_lateness(outcome(start=18.0, full=True)).p99 is None
    assert own_lateness(outcome(start=18.0)).p99 is not None


def test_the_number_in_the_table_says_so():
    workload = measured_report(run_report(outcome(loop=18.0))).workloads[0]

    assert lateness_note(workload).startswith(
        "of response time up to 18.0 ms of p99 (76.0 ms) may come from the load generator"
    )
    assert lateness_note(measured_report(run_report(outcome())).workloads[0]) == ""
