"""The growth of each request of a task: measures by population, their laws, and who is worst."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from osbench.edges.growth.laws import (
    RUN_SPREAD,
    GrowthFit,
    Law,
    Point,
)
from osbench.edges.growth.request_figures import MeasuredRun
from osbench.edges.growth.traced_counts import RequestKey

#: Measures of a request in the order of outputs. `time` is seconds of a call; `spans` and `sql` are
#: numbers in a call; `calls` are in an iteration; `bytes` of responses of a call.
TIME, SPANS, SQL, CALLS, BYTES = MEASURES = ("time", "spans", "sql", "calls", "bytes")
#: Statements or spans for each member of the population from which a linear growth is N+1.
LEAST_EACH = 0.5

_RANKS = {
    Law.UNKNOWN: 0.0,
    Law.CONSTANT: 0.0,
    Law.FALLS: 0.0,
    Law.VARIES: 0.0,
    Law.UNCLEAR: 0.0,
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
    def unclear(self) -> tuple[str, ...]:
        """The measures that may grow or not: their iterations differ as much as populations."""
        return tuple(name for name in MEASURES if self.law(name) is Law.UNCLEAR)

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
