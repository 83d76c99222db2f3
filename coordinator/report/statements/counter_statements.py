"""Statements on counters of the system under test: resources that were nearly full."""

from __future__ import annotations

from collections.abc import Iterator

from osbench.coordinator.formatting import count, plain
from osbench.coordinator.report.model.model import WorkloadReport
from osbench.coordinator.report.statements.statement import Look, Statement, statement_of
from osbench.coordinator.results.accounting.counter_figures import (
    NEAR_LIMIT,
    CounterFigures,
    CounterKind,
    value_text,
)

#: Resources that have a line each.
_LINES = 5


def counter_statements(workload: WorkloadReport) -> Iterator[Statement]:
    """Yield a statement for each nearly full resource, `_LINES` at most, and the number of others.

    If none was, only the fullest. Nothing if no resource was watched.
    """
    shares = [one for one in workload.counters if one.kind == CounterKind.SHARE]
    near = [one for one in shares if one.is_near_limit]
    for one in near[:_LINES]:
        yield statement_of("resources", f"{counter_words(one)}: nearly full", Look.WARNING)
    if len(near) > _LINES:
        yield statement_of(
            "resources", f"and {count(len(near) - _LINES, 'more resource')} nearly full"
        )
    if shares and not near:
        limit = f"{100 * NEAR_LIMIT:.0f} %"
        yield statement_of(
            "resources",
            f"none of {count(len(shares))} watched reaches {limit} for a twentieth of the time;"
            f" the fullest: {counter_words(shares[0])}",
        )


def counter_words(one: CounterFigures) -> str:
    """Return the name of a counter with its 95th percentile over time and its mean, with units."""
    p95, mean = value_text(one.p95, one.unit), value_text(one.mean, one.unit)
    return f"{plain(one.label)} {p95} at the 95th percentile of time, {mean} on average"
