from dataclasses import fields, replace

import numpy as np
import pytest

from osbench.common.values.outcomes import Outcome
from osbench.edges.traces.collection.traced_iterations import TracedIterations
from osbench.edges.traces.output.trace_picks import LIMIT, chosen_traces

MS = 10**6
#: Those of `TracedIterations` with one entry per iteration.
COLUMNS = [field.name for field in fields(TracedIterations) if field.name != "errors"]


def rows(service_ms, *, errors=(), workload=None, started=None, lag_ms=0, warming=()):
    """Iterations; `errors` gives the class of error, from 1, by position."""
    count = len(service_ms)
    service = np.array(service_ms) * MS
    error = np.zeros(count, int)
    for at, number in dict(errors).items():
        error[at] = number
    warm = np.zeros(count, bool)
    warm[list(warming)] = True
    begun = np.arange(count) * MS if started is None else np.array(started) * MS
    return TracedIterations(
        workload=np.zeros(count, int) if workload is None else np.array(workload),
        iteration=np.arange(1, count + 1),
        outcome=np.where(error > 0, int(Outcome.FAILED), int(Outcome.OK)),
        due=begun - np.broadcast_to(lag_ms, count) * MS,
        started=begun,
        service=service,
        response=service + np.broadcast_to(lag_ms, count) * MS,
        error=error,
        warming=warm,
        traces=np.zeros((count, 16), np.uint8),
        errors=("", "Common", "Rare"),
    )


def picked(found, kept=None, *, responses=None, named=None, **percentiles):
    if kept is not None:
        columns = {name: getattr(found, name)[np.array(kept, int)] for name in COLUMNS}
        found = replace(found, **columns)
    at = {"p50": None, "p95": None, "p99": None} | percentiles
    workloads = int(found.workload.max(initial=0)) + 1
    return [
        [(pick.label, pick.kind, int(found.iteration[pick.at]) - 1) for pick in picks]
        for picks in chosen_traces(
            found, responses or {}, [at] * workloads, [named or {}] * workloads
        )
    ]


def test_the_slowest_and_those_next_to_percentiles_come_first():
    found = rows([10, 90, 30, 50, 70], started=[0, 0, 0, 0, 0])

    (picks,) = picked(found, p50=0.049, p95=0.072, p99=0.029)

    assert picks == [
        ("slowest ok", "max", 1),
        ("near p99", "p99", 2),
        ("near p95", "p95", 4),
        ("near p50", "p50", 3),
    ]


def test_only_kept_traces_are_shown_and_none_of_the_warm_up():
    found = rows([10, 90, 30, 50, 70], warming=[4], started=[0, 0, 0, 0, 0])

    (picks,) = picked(found, [0, 2, 3, 4], p99=0.09)

    assert picks == [("slowest ok", "max", 3)]


def test_each_class_of_error_has_its_median_one_the_most_frequent_first():
    errors = {0: 2, 1: 1, 2: 1, 3: 1}
    found = rows([9, 5, 100, 7, 1], errors=errors)

    (picks,) = picked(found)

    assert picks == [("slowest ok", "max", 4), ("Common", "error", 3), ("Rare", "error", 0)]


def test_the_example_that_the_summary_names_is_shown_if_its_trace_is_kept():
    found = rows([9, 5, 100, 7, 1], errors={0: 2, 1: 1, 2: 1, 3: 1})
    named = {"Common": 3, "Rare": 77}

    (picks,) = picked(found, named=named)
    (without,) = picked(found, [0, 1, 3], named=named)

    assert picks[1:] == [("Common", "error", 2), ("Rare", "error", 0)]
    assert without == [("Common", "error", 3), ("Rare", "error", 0)]


def test_open_loads_are_judged_by_response_time():
    found = rows([10, 90, 30], lag_ms=[500, 0, 0], started=[500, 500, 500])

    (picks,) = picked(found, responses={0: True}, p50=0.09)

    assert picks == [("slowest ok", "max", 0), ("near p50", "p50", 1)]


def test_the_slowest_of_each_twelfth_of_the_load_is_shown():
    found = rows([1, 3, 2] * 12, started=range(36))

    (picks,) = picked(found)

    assert picks[0] == ("slowest ok", "max", 1)
    assert [at for _, kind, at in picks if kind == "slow"] == [4 + 3 * n for n in range(11)]


def test_of_many_workloads_all_have_their_first_ones():
    count = 40
    found = rows(
        [10, 90, 30, 50, 70] * count,
        workload=np.repeat(np.arange(count), 5),
        started=[0] * 5 * count,
    )

    picks = picked(found, p50=0.05, p95=0.07)

    assert sum(map(len, picks)) == LIMIT
    assert all(one[0][1] == "max" for one in picks)


@pytest.mark.parametrize("errors", [{}, {0: 1, 1: 1}])
def test_a_workload_without_successful_or_kept_iterations(errors):
    found = rows([5, 6], errors=errors)

    assert picked(found, []) == [[]]
    assert bool(errors) == (picked(found)[0][0][1] == "error")
