"""The figures of each request are read from a finished run: times, spans, and who was the limit."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.result_rows import row
from helpers.stored_runs import stored_run
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.results.accounting.totals import Bound
from osbench.edges.growth.request_figures import read_run
from osbench.edges.growth.traced_counts import RequestKey
from osbench.edges.traces.collection.archive import Archive
from osbench.edges.traces.model.spans import Span, Trace

ITERATION = RequestKey(0, "")
#: Iterations of 21 to 51 ms; each has a trace, and each tenth one failed.
ROWS = [
    row(
        number,
        due=100 * number,
        started=100 * number,
        ended=100 * number + 20 + number,
        outcome=Outcome.FAILED if number % 10 == 0 else Outcome.OK,
        failure=1 if number % 10 == 0 else 0,
        trace=number.to_bytes(16, "big"),
    )
    for number in range(1, 32)
]


def trace(number: int, statements: int) -> Trace:
    """The trace of an iteration, with a request that makes statements."""
    spans = [
        Span("a", "", "osbench.iteration", "osbench/worker", "h", 0, 9),
        Span("b", "a", "wsgi", "shop/web", "h", 1, 5, "GET /items"),
    ]
    for at in range(statements):
        spans.append(Span(f"s{at}", "b", "db", "shop/web", "h", 2, 1, "SELECT id FROM items"))
    return Trace(trace_id=f"{number:032x}", spans=tuple(spans))


def test_times_and_counts_are_of_iterations_that_succeeded(tmp_path: Path) -> None:
    run = stored_run(tmp_path, ROWS)
    archive = Archive(run.directory.path)
    for number in range(1, 32):
        archive.keep(trace(number, 500 if number % 10 == 0 else 4))
    archive.release()

    found = read_run(run.report, run.directory, 70)

    figures = found.requests[ITERATION]
    assert figures.time is not None
    # 28 values from 21 to 51 ms; the report of such a short load has no intervals
    assert figures.time.value == pytest.approx(0.036, rel=0.02)
    assert 0.021 < figures.time.low < 0.036 < figures.time.high < 0.051
    assert figures.sql is not None
    assert (figures.sql.value, figures.sql.low, figures.sql.high) == (4, 4, 4)
    assert figures.spans is not None
    assert figures.spans.value == 5
    assert figures.kinds == {"shop/web wsgi GET /items": 1, "shop/web db SELECT id FROM items": 4}
    assert (found.population, found.counted, found.traced, found.incomplete) == (70, 28, 28, 0)
    assert (found.ok, found.bad, found.has_spans, found.limited) == (28, 3, True, False)
    assert RequestKey(0, "", "GET /items") in found.requests


def test_a_cold_cache_of_the_first_iteration_leaves_counts_exact(tmp_path: Path) -> None:
    # the first makes 95 more statements
    run = stored_run(tmp_path, [one for one in ROWS if one[0] in range(1, 9)])
    archive = Archive(run.directory.path)
    for number in range(1, 9):
        archive.keep(trace(number, 109 if number == 1 else 14))
    archive.release()

    figures = read_run(run.report, run.directory, 1000).requests[ITERATION]

    assert figures.sql is not None
    assert figures.spans is not None
    assert (figures.sql.value, figures.sql.low, figures.sql.high) == (14, 14, 14)
    assert (figures.spans.value, figures.spans.low, figures.spans.high) == (15, 15, 15)


def test_a_run_without_traces_has_times_alone(tmp_path: Path) -> None:
    run = stored_run(tmp_path, ROWS)

    found = read_run(run.report, run.directory, 70)

    figures = found.requests[ITERATION]
    assert figures.time is not None
    assert (figures.spans, figures.sql, figures.bytes) == (None, None, None)
    assert not found.has_spans


def test_spans_of_osbench_alone_are_no_spans_of_a_service(tmp_path: Path) -> None:
    run = stored_run(tmp_path, ROWS)
    archive = Archive(run.directory.path)
    only = trace(1, 0)
    archive.keep(Trace(trace_id=only.trace_id, spans=only.spans[:1]))
    archive.release()

    found = read_run(run.report, run.directory, 70)

    assert (found.has_spans, found.requests[ITERATION].spans) == (False, None)


def test_a_bound_of_the_generator_limits_a_run_with_exit_code_0(tmp_path: Path) -> None:
    bound = Bound(cause="late", fault="generator", sentence="threads woke late")
    run = stored_run(tmp_path, ROWS, bounds=(bound,))

    assert read_run(run.report, run.directory, 70).limited
