"""Outcomes of workloads in which anything stands that their types allow, for property tests."""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import strategies as st

from helpers.result_rows import row_of
from osbench.common.protocol.columns import Failure, decode_rows, encode_rows
from osbench.common.task import HookConfig, Named
from osbench.common.values.outcomes import LifeEvent, Outcome
from osbench.coordinator.plugins.contexts.history import ContextRecord
from osbench.coordinator.plugins.hooks.executor import HookReport, Result
from osbench.coordinator.report.model.plan_figures import PlanComparison
from osbench.coordinator.report.run_outcome import RunOutcome
from osbench.coordinator.results.accounting.charts import Charts
from osbench.coordinator.results.accounting.core_use import CpuProfile
from osbench.coordinator.results.accounting.outcome import WorkloadOutcome
from osbench.coordinator.results.accounting.search.trials import SearchOutcome, TrialFigures
from osbench.coordinator.results.accounting.stage_statistics import StageFigures
from osbench.coordinator.results.accounting.totals import Bound
from osbench.coordinator.results.accounting.worker_figures import WorkerFigures
from osbench.coordinator.results.accounting.workload_statistics import WorkloadStatistics
from osbench.edges.traces.counters.counter_series import CounterSeries, WorkloadCounters

NUMBERS = st.floats(0, 1e6, allow_nan=False)
TEXTS = st.text(max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)
_PLAIN: Mapping[Any, st.SearchStrategy[Any]] = {
    int: st.integers(0, 10**9),
    float: NUMBERS,
    str: TEXTS,
    bool: st.booleans(),
    Any: JSON,
}


def any_of(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a type: plain ones, frozen dataclasses, tuples and mappings of them."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        return made(kind)
    if origin in {typing.Union, types.UnionType}:
        return st.one_of(st.none(), *(any_of(one) for one in inner if one is not type(None)))
    if origin is tuple and inner[-1] is ...:
        return st.lists(any_of(inner[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*map(any_of, inner))
    if origin in {Mapping, dict}:
        return st.dictionaries(TEXTS, any_of(inner[1]), max_size=3)
    is_enum = isinstance(kind, type) and issubclass(kind, enum.Enum)
    return st.sampled_from(list(kind)) if is_enum else _PLAIN[kind]


def made(kind: Any, **given: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Dataclasses with any value of the type of each field; `given` for fields of other types."""
    hints = typing.get_type_hints(kind)
    fields = [one.name for one in dataclasses.fields(kind)]
    found = {name: given[name] if name in given else any_of(hints[name]) for name in fields}
    return st.builds(kind, **found)


@st.composite
def statistics(draw: st.DrawFn) -> WorkloadStatistics:
    """Statistics of up to 3,000 iterations of some seconds, with actions, errors and users."""
    count = draw(st.sampled_from((0, 1, 7, 300, 3000)))
    chance = np.random.default_rng(draw(st.integers(0, 2**32)))
    found = WorkloadStatistics(is_open=draw(st.booleans()))
    found.add_failures("w", [Failure(number=1, etype="Refused", message="no", traceback="f()")])
    rows: list[tuple[Any, ...]] = []
    for number in range(1, count + 1):
        due = int(number * 1e7)
        started = due + int(chance.exponential(1e5))
        ended = started + int(chance.lognormal(16, 0.5))
        outcome = Outcome.FAILED if chance.random() < 0.05 else Outcome.OK
        failed = int(outcome == Outcome.FAILED)
        trace = number.to_bytes(16, "big") if number % 50 == 0 else b""
        actions = [0, -1, started, ended, failed, 1, 0, started, (started + ended) // 2, 0]
        rows.append(
            row_of(number, outcome, due, started, ended, 0, failed, actions, (trace, None, b""))
        )
    if rows:
        found.add(decode_rows(encode_rows(rows, ("a", "b"), 0)), worker="w")
    if draw(st.booleans()):
        found.lives.add(
            [(LifeEvent.BEGUN, 1, 5, 0), (LifeEvent.NOT_BEGUN, 2, 5, 1)], {1: ("E", "m", "")}
        )
        found.add_loop(np.arange(count + 1, dtype=np.int64), {"x.py:1": 5})
    return found


def _hooks() -> st.SearchStrategy[Any]:
    named = made(Named)
    config = st.builds(HookConfig, action=named, trigger=named, description=TEXTS)
    output = st.none() | st.dictionaries(TEXTS, JSON, max_size=2)
    result = made(Result, output=output)
    return made(HookReport, hook=config, results=st.lists(result, max_size=2).map(tuple))


@st.composite
def _counters(draw: st.DrawFn) -> WorkloadCounters:
    """Up to two counters of the system under test, with values at the same times."""
    points = draw(st.integers(0, 3))
    values = st.lists(NUMBERS, min_size=points, max_size=points).map(np.array)
    series = st.lists(made(CounterSeries, values=values), max_size=2).map(tuple)
    return draw(made(WorkloadCounters, series=series, step_s=st.floats(0.1, 60)))


def outcomes() -> st.SearchStrategy[Any]:
    """Outcomes of workloads."""
    return made(
        WorkloadOutcome,
        runner=made(Named),
        statistics=statistics(),
        verdicts=st.just(()),
        sla_sources=st.just(()),
        hooks=st.lists(_hooks(), max_size=2).map(tuple),
        contexts=st.lists(made(ContextRecord), max_size=2).map(tuple),
        charts=st.builds(Charts),
        cpu=st.builds(CpuProfile),
        workers=st.lists(made(WorkerFigures), max_size=2).map(tuple),
        stages=st.lists(made(StageFigures), max_size=3).map(tuple),
        search=st.none()
        | made(SearchOutcome, trials=st.lists(made(TrialFigures), max_size=3).map(tuple)),
        bounds=st.lists(made(Bound), max_size=2).map(tuple),
        counters=st.none() | _counters(),
    )


@st.composite
def reports(draw: st.DrawFn) -> RunOutcome:
    """Runs of up to two workloads."""
    workloads = draw(st.lists(outcomes(), max_size=2))
    plans = draw(st.sampled_from((0, len(workloads))))
    plan = st.none() | made(PlanComparison)
    return draw(
        made(
            RunOutcome,
            workloads=st.just(tuple(workloads)),
            plans=st.lists(plan, min_size=plans, max_size=plans).map(tuple),
        )
    )
