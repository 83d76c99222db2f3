"""The growth of each request of a task: measures by population, their laws, and who is worst."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from osbench.coordinator.formatting import plain
from osbench.edges.growth.laws import (
    LEAST_SPREAD,
    RUN_SPREAD,
    GrowthFit,
    Law,
    Point,
    fit_growth,
)
from osbench.edges.growth.request_figures import MeasuredRun, MedianFigure, RequestFigures
from osbench.edges.growth.traced_counts import RequestKey

#: Measures of a request in the order of outputs. `time` is seconds of a call; `spans` and `sql` are
#: numbers in a call; `calls` are in an iteration; `bytes` of responses of a call.
TIME, SPANS, SQL, CALLS, BYTES = MEASURES = ("time", "spans", "sql", "calls", "bytes")
#: Statements or spans for each member of the population from which a linear growth is N+1.
LEAST_EACH = 0.5
#: Fewest degrees of freedom of a measured spread between runs.
_FREEDOM = 3
#: Relative deviation of the mean bytes of responses: ids and times in them have other lengths.
_BYTES_SPREAD = 0.02
#: Kinds of spans that are listed of a request, and characters of the name of a member.
_LISTED, _ITEM = 3, 40

_RANKS = {
    Law.UNKNOWN: 0.0,
    Law.CONSTANT: 0.0,
    Law.FALLS: 0.0,
    Law.VARIES: 0.0,
    Law.LOGARITHMIC: 1.0,
    Law.GROWS: 2.0,
    Law.LINEAR: 3.0,
    Law.LINEARITHMIC: 4.0,
    Law.QUADRATIC: 6.0,
}


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A measure of a request at each population, and its law."""

    points: tuple[Point, ...]
    fit: GrowthFit

    @property
    def law(self) -> Law:
        """Law of its growth."""
        return self.fit.law

    @property
    def predicted(self) -> float | None:
        """Value at the predicted population; None if it is not known."""
        return None if self.fit.predicted is None else self.fit.predicted.value


@dataclass(frozen=True, kw_only=True)
class GrowingKind:
    """A kind of spans whose number in a call grows: service, name and detail as text."""

    name: str
    fit: GrowthFit
    #: Number in a call for each member of the population if it grows linearly; else 0.
    each: float

    @property
    def law(self) -> Law:
        """Law of its growth."""
        return self.fit.law


@dataclass(frozen=True, kw_only=True)
class RequestGrowth:
    """The growth of a request."""

    key: RequestKey
    workload: str
    #: Its measures by name, as far as they are known at any population.
    measures: Mapping[str, Measure]
    #: The kinds of spans that grow most.
    kinds: tuple[GrowingKind, ...] = ()
    #: The only kind of call to a service that its action makes; "" if it makes several or none.
    only_call: str = ""

    @property
    def name(self) -> str:
        """Name of the request in outputs: its call if it is known, else its action."""
        return self.key.call or self.only_call or self.key.action or self.workload

    def law(self, measure: str) -> Law:
        """Return the law of a measure; UNKNOWN if it was not measured."""
        found = self.measures.get(measure)
        return found.fit.law if found else Law.UNKNOWN

    def each(self, measure: str) -> float:
        """Return the number for each member of the population if it grows linearly; else 0."""
        found = self.measures.get(measure)
        if found is None or found.fit.law is not Law.LINEAR:
            return 0.0
        return found.fit.slope or 0.0

    @property
    def is_n_plus_one(self) -> bool:
        """Whether it makes a statement or a traced call for each member of the population."""
        return any(self.each(name) >= LEAST_EACH for name in (SQL, SPANS, CALLS))

    @property
    def returns_more(self) -> bool:
        """Whether its responses grow as the population or faster, as lists do."""
        return self.law(BYTES) in (Law.LINEAR, Law.LINEARITHMIC, Law.QUADRATIC, Law.POWER)

    @property
    def badness(self) -> tuple[float, float]:
        """Order of requests: the fastest growth of work or time, then the predicted time."""
        ranks = [
            rank(self.measures[name].fit)
            for name in (TIME, SPANS, SQL, CALLS)
            if name in self.measures
        ]
        worst = max(ranks, default=0.0)
        if self.is_n_plus_one:
            worst = max(worst, 5.0)
        elif self.returns_more and worst == _RANKS[Law.LINEAR]:
            # a list of n things takes n times as long by nature
            worst -= 0.5
        time = self.measures.get(TIME)
        return worst, (time.predicted if time else None) or 0.0


def rank(fit: GrowthFit) -> float:
    """Return the order of a law by growth: 0 for none, 3 for linear, 6 for quadratic."""
    if fit.law is Law.POWER:
        return 3 * max(fit.exponent.value, 0.1) if fit.exponent else 0.1
    return _RANKS[fit.law]


@dataclass(frozen=True, kw_only=True)
class GrowthResult:
    """The growth of all requests of a task, worst first."""

    task: str
    runs: tuple[MeasuredRun, ...]
    #: Population of the predictions.
    predict: int
    #: Name of one member of the population, such as port.
    item: str
    requests: tuple[RequestGrowth, ...]
    #: Populations without times, because the load generator was the limit in all of their runs.
    limited: tuple[int, ...] = ()
    #: Relative standard deviation of medians between equal runs, and whether runs measured it.
    spread: float = RUN_SPREAD
    spread_measured: bool = False

    @property
    def populations(self) -> tuple[int, ...]:
        """The measured populations, ascending."""
        return tuple(sorted({run.population for run in self.runs}))

    @property
    def has_spans(self) -> bool:
        """Whether services sent spans in any run."""
        return any(run.has_spans for run in self.runs)

    @property
    def has_workloads(self) -> bool:
        """Whether the requests are of several workloads."""
        return len({one.key.workload for one in self.requests}) > 1

    @property
    def times_judged(self) -> bool:
        """Whether times have a verdict: the generator left at least two populations, and most."""
        return len(self.populations) - len(self.limited) >= 2

    @property
    def item_phrase(self) -> str:
        """Words for each member of the population: "for each port"."""
        return f"for each {self.item}"


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
    return RequestGrowth(
        key=one.key,
        workload=one.workload,
        measures=one.measures,
        kinds=one.kinds,
        only_call=calls[0],
    )


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
