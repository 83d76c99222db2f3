"""Computes the growth of each request from the runs at several populations."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from osbench.coordinator.formatting import plain
from osbench.edges.growth.growth_result import (
    BYTES,
    CALLS,
    MEASURES,
    SPANS,
    SQL,
    TIME,
    GrowingKind,
    GrowthResult,
    Measure,
    RequestGrowth,
)
from osbench.edges.growth.laws import (
    LEAST_SPREAD,
    RUN_SPREAD,
    Law,
    Point,
    fit_growth,
)
from osbench.edges.growth.request_figures import MeasuredRun, MedianFigure, RequestFigures
from osbench.edges.growth.traced_counts import RequestKey

#: Fewest degrees of freedom of a measured spread between runs.
_FREEDOM = 3
#: Relative deviation of the mean bytes of responses: ids and times in them have other lengths.
_BYTES_SPREAD = 0.02
#: Kinds of spans that are listed of a request, and characters of the name of a member.
_LISTED, _ITEM = 3, 40


def growth_of(
    task: str, runs: Iterable[MeasuredRun], *, predict: int | None, item: str
) -> GrowthResult:
    """Return the growth of all requests in runs at one population or more.

    `predict`: population of the predictions; None for five times the greatest. `item`: name of one
    member of the population.
    """
    known = tuple(runs)
    populations = sorted({run.population for run in known})
    wanted = predict or 5 * populations[-1]
    usable = {run.population for run in known if not run.limited}
    spread, measured = _run_spread(known)
    keys = sorted({key for run in known for key in run.requests})
    found = [
        _request_growth(key, known, wanted, spread)
        for key in keys
        if not key.call or _has_siblings(key, keys)
    ]
    found = [_with_only_call(one, keys) for one in found]
    found.sort(key=lambda one: (-one.badness[0], -one.badness[1], one.key))
    return GrowthResult(
        task=task,
        runs=known,
        predict=wanted,
        item=plain(item, _ITEM),
        requests=tuple(found),
        limited=tuple(one for one in populations if one not in usable),
        spread=spread,
        spread_measured=measured,
    )


def _has_siblings(key: RequestKey, keys: Sequence[RequestKey]) -> bool:
    """Return whether an action makes several kinds of calls; then each has a row."""
    return sum(one.call != "" and one[:2] == key[:2] for one in keys) > 1


def _with_only_call(one: RequestGrowth, keys: Sequence[RequestKey]) -> RequestGrowth:
    calls = [key.call for key in keys if key.call and key[:2] == one.key[:2]]
    if one.key.call or len(calls) != 1:
        return one
    return replace(one, only_call=calls[0])


def _request_growth(
    key: RequestKey, runs: Sequence[MeasuredRun], predict: int, spread: float
) -> RequestGrowth:
    figures: dict[int, list[tuple[MeasuredRun, RequestFigures]]] = defaultdict(list)
    for run in runs:
        if key in run.requests:
            figures[run.population].append((run, run.requests[key]))
    measures: dict[str, Measure] = {}
    # time comes last: exact counts say which law is likely
    for name in sorted(MEASURES, key=TIME.__eq__):
        points = [
            point
            for population, rounds in sorted(figures.items())
            if (point := _point(name, population, rounds, spread)) is not None
        ]
        if points:
            counts = name in (SPANS, SQL, CALLS)
            likely = _law_of_work(measures) if name == TIME else None
            fit = fit_growth(points, counts=counts, predict=predict, likely=likely)
            measures[name] = Measure(points=tuple(points), fit=fit)
    return RequestGrowth(
        key=key,
        workload=runs[-1].workloads[key.workload],
        measures=measures,
        kinds=_growing_kinds(figures, predict),
    )


def _law_of_work(measures: Mapping[str, Measure]) -> Law | None:
    """Return the law of the statements or spans of a request if they grow; else None."""
    for name in (SQL, SPANS):
        if name in measures and measures[name].fit.grows:
            return measures[name].fit.law
    return None


def _point(
    name: str,
    population: int,
    rounds: Sequence[tuple[MeasuredRun, RequestFigures]],
    spread: float,
) -> Point | None:
    """Return a measure at a population from the runs there; None if no run has it.

    Times of runs that the load generator limited are left out.
    """
    found: list[MedianFigure] = [
        figure
        for run, figures in rounds
        if (figure := getattr(figures, name)) is not None and not (name == TIME and run.limited)
    ]
    if not found:
        return None
    size = len(found) ** 0.5
    value = statistics.median(one.value for one in found)
    if name == TIME:
        low, high = (
            value + (statistics.median(getattr(one, bound) - one.value for one in found)) / size
            for bound in ("low", "high")
        )
        return Point(population=population, value=value, low=low, high=high, spread=spread / size)
    return Point(
        population=population,
        value=value,
        low=min(one.low for one in found),
        high=max(one.high for one in found),
        spread=_BYTES_SPREAD if name == BYTES else 0.0,
    )


def _run_spread(runs: Sequence[MeasuredRun]) -> tuple[float, bool]:
    """Return the relative standard deviation of medians between equal runs; whether it is measured.

    It is the greatest of all requests: the median of a request that hardly takes time varies less.
    """
    by_request: dict[RequestKey, list[list[float]]] = defaultdict(list)
    by_population: dict[int, list[MeasuredRun]] = defaultdict(list)
    for run in runs:
        if not run.limited:
            by_population[run.population].append(run)
    for alike in by_population.values():
        for key in alike[0].requests:
            figures = [run.requests[key].time for run in alike if key in run.requests]
            values = [one.value for one in figures if one is not None and one.value > 0]
            if len(values) > 1:
                by_request[key].append(values)
    found = []
    for groups in by_request.values():
        freedom = sum(len(values) - 1 for values in groups)
        if freedom >= _FREEDOM:
            squares = sum(
                (value / statistics.fmean(values) - 1) ** 2 for values in groups for value in values
            )
            found.append((squares / freedom) ** 0.5)
    return (max(LEAST_SPREAD, *found), True) if found else (RUN_SPREAD, False)


def _growing_kinds(
    figures: Mapping[int, Sequence[tuple[MeasuredRun, RequestFigures]]], predict: int
) -> tuple[GrowingKind, ...]:
    """Return the kinds of spans of a request that grow, the greatest increase first."""
    traced = {
        population: [one.kinds for _, one in rounds if one.spans is not None]
        for population, rounds in sorted(figures.items())
    }
    traced = {population: some for population, some in traced.items() if some}
    names = {name for some in traced.values() for kinds in some for name in kinds}
    found = []
    for name in names:
        points = []
        for population, some in traced.items():
            values = [kinds.get(name, 0.0) for kinds in some]
            value = statistics.median(values)
            points.append(
                Point(population=population, value=value, low=min(values), high=max(values))
            )
        fit = fit_growth(points, counts=True, predict=predict)
        if fit.grows:
            each = fit.slope or 0.0 if fit.law is Law.LINEAR else 0.0
            increase = points[-1].value - points[0].value
            found.append((increase, GrowingKind(name=name, fit=fit, each=each)))
    found.sort(key=lambda one: (-one[0], one[1].name))
    return tuple(kind for _, kind in found[:_LISTED])
