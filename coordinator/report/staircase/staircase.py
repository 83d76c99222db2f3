"""Throughput and latency by load: the steps of a load that was raised, and their knee.

The knee is the step with the greatest power, which is throughput / p95 (Kleinrock, Power and
deterministic rules of thumb for probabilistic problems in computer communications, ICC 1979, with
p95 instead of the mean). Up to it throughput grows faster than p95, from it on p95 does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from osbench.coordinator.formatting import duration, plain, three_digits
from osbench.coordinator.results.accounting.counter_figures import NEAR_LIMIT
from osbench.coordinator.results.statistics.scalability import (
    FittedTerm,
    NoFit,
    ScalabilityFit,
    fit_scalability,
)

#: Loads below which no knee is looked for.
_FEWEST_LOADS = 3
#: Iterations of a step below which it is not used for knee and law, and the share of failed ones
#: from which on it is not.
FEWEST_ITERATIONS, MOST_FAILED = 20, 0.05
#: Resources that are named because they were nearly full all the time.
_NAMED = 3


@dataclass(frozen=True, kw_only=True)
class StaircaseStep:
    """Throughput and latency at one level of load, which was requested for some time.

    Times are seconds; None if no iteration succeeded.
    """

    #: Arrivals per second (open loads) or virtual users (closed ones) that were requested.
    load: float
    #: Iterations that ended well while it was held, per second.
    throughput: float
    #: Response times of open loads, service times of closed ones; of successful iterations.
    p50_s: float | None
    p95_s: float | None
    p99_s: float | None
    #: Iterations in flight on average.
    concurrency: float
    #: Iterations that ended well, and that failed or timed out.
    count: int
    failed: int = 0
    #: The id of a run, if the load does not name the step, or "".
    name: str = ""
    #: Mean used part of resources of the system under test while it was held, by name and host.
    resources: Mapping[str, float] = field(default_factory=dict)

    @property
    def tells(self) -> bool:
        """Return whether knee and law use the step: it has enough iterations, and few failed.

        Errors are quick and would look like throughput.
        """
        return self.count >= FEWEST_ITERATIONS and self.failed <= MOST_FAILED * (
            self.count + self.failed
        )

    @property
    def fullest(self) -> tuple[str, float] | None:
        """The most used resource and its used fraction (0 to 1); None if no resource is known."""
        return max(self.resources.items(), key=lambda one: one[1], default=None)


@dataclass(frozen=True, kw_only=True)
class Knee:
    """The load beyond which p95 grows faster than throughput, with its neighbours."""

    load: float
    #: The neighbouring loads: it is somewhere between them.
    below: float
    above: float
    throughput: float
    p95_s: float


@dataclass(frozen=True, kw_only=True)
class Staircase:
    """Steps of at least two loads, their knee, and the fit of the Universal Scalability Law."""

    #: Loads are arrivals per second; otherwise virtual users.
    is_open: bool
    #: By load.
    steps: tuple[StaircaseStep, ...]
    knee: Knee | None
    fit: ScalabilityFit | None
    #: Message on the knee and the law, or on why there is no knee.
    knee_sentence: str
    fit_sentence: str
    #: Which resource is the first to be nearly full; "" if none is watched.
    resources_sentence: str = ""


def staircase_of(steps: Iterable[StaircaseStep], *, is_open: bool) -> Staircase | None:
    """Return the staircase of steps, which may be in any order; None for fewer than two loads.

    `is_open`: loads are arrivals per second, else virtual users.
    """
    ordered = tuple(sorted(steps, key=lambda step: step.load))
    if len({step.load for step in ordered}) < 2:
        return None
    telling = [step for step in ordered if step.tells]
    knee, knee_sentence = _knee(telling, "/s" if is_open else " users")
    fit = fit_scalability(
        [step.concurrency for step in telling], [step.throughput for step in telling]
    )
    return Staircase(
        is_open=is_open,
        steps=ordered,
        knee=knee,
        fit=None if isinstance(fit, NoFit) else fit,
        knee_sentence=knee_sentence,
        fit_sentence=fit.reason if isinstance(fit, NoFit) else _fit_sentence(fit),
        resources_sentence=first_full(ordered, "/s" if is_open else " users"),
    )


def first_full(steps: Sequence[StaircaseStep], unit: str) -> str:
    """Return a message on the first resource that is nearly full as load grows.

    `steps` are in any order; used fractions at equal loads are averaged. "" without resources; if
    none is nearly full, the fullest is named. A resource that is nearly full at the least load
    already is only mentioned: the load does not fill it. `unit` is written after loads.
    """
    by_load: dict[float, dict[str, list[float]]] = {}
    for step in steps:
        for name, used in step.resources.items():
            by_load.setdefault(step.load, {}).setdefault(name, []).append(used)
    means = [
        (load, {name: _mean(used) for name, used in found.items()})
        for load, found in sorted(by_load.items())
    ]
    if not means:
        return ""
    names = {name for _, found in means for name in found}
    least, at_least = means[0]
    always = sorted(name for name, used in at_least.items() if used >= NEAR_LIMIT)
    limit = f"{100 * NEAR_LIMIT:.0f} %"
    said = ""
    if always:
        listed = ", ".join(plain(name) for name in always[:_NAMED])
        listed += ", ..." if len(always) > _NAMED else ""
        said = f" Already above {limit} at the least load, {least:.4g}{unit}: {listed}."
    before: dict[str, tuple[float, float]] = {}
    for load, found in means:
        full = sorted(
            (
                (used, name)
                for name, used in found.items()
                if used >= NEAR_LIMIT and name not in always
            ),
            reverse=True,
        )
        if full:
            used, name = full[0]
            beside = f", with {plain(full[1][1])}" if len(full) > 1 else ""
            earlier = before.get(name)
            rose = f"; at {earlier[0]:.4g}{unit} {_percent(earlier[1])}" if earlier else ""
            return (
                f"{plain(name)} is the first resource above {limit}{beside}: {_percent(used)} on"
                f" average at {load:.4g}{unit}{rose}.{said}"
            )
        before |= {name: (load, used) for name, used in found.items()}
    other = "other " if always else ""
    others = [
        (used, name, load)
        for load, found in means
        for name, used in found.items()
        if name not in always
    ]
    if not others:
        return f"No {other}resource is watched.{said}"
    used, name, load = max(others)
    return (
        f"None of {len(names) - len(always)} {other}resources that are watched reaches {limit}:"
        f" the fullest is {plain(name)}, {_percent(used)} on average at {load:.4g}{unit}.{said}"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _knee(steps: Sequence[StaircaseStep], unit: str) -> tuple[Knee | None, str]:
    by_load: dict[float, list[StaircaseStep]] = {}
    for step in steps:
        if step.p95_s:
            by_load.setdefault(step.load, []).append(step)
    loads = list(by_load)
    if len(loads) < _FEWEST_LOADS:
        return None, (
            f"A knee takes {_FEWEST_LOADS} loads or more with at least {FEWEST_ITERATIONS}"
            " iterations each, few of them failed."
        )
    means = [
        (_mean(step.throughput for step in found), _mean(step.p95_s or 0.0 for step in found))
        for found in by_load.values()
    ]
    powers = [throughput / p95_s for throughput, p95_s in means]
    at = powers.index(max(powers))
    if at == 0:
        return None, (
            f"No knee: p95 grew faster than throughput from the least load,"
            f" {loads[0]:.4g}{unit}, on."
        )
    if at == len(loads) - 1:
        return None, (
            f"No knee: throughput grew faster than p95 up to the greatest load,"
            f" {loads[at]:.4g}{unit}."
        )
    knee = Knee(
        load=loads[at],
        below=loads[at - 1],
        above=loads[at + 1],
        throughput=means[at][0],
        p95_s=means[at][1],
    )
    return knee, (
        f"The knee is near {knee.load:.4g}{unit}, between {knee.below:.4g} and"
        f" {knee.above:.4g}{unit}: {three_digits(knee.throughput)} ok/s with p95"
        f" {duration(knee.p95_s)}. Beyond it p95 grows faster than throughput."
    )


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return sum(known) / len(known)


def _fit_sentence(fit: ScalabilityFit) -> str:
    peak, greatest = fit.peak_concurrency, fit.peak_throughput
    if peak is None or greatest is None:
        most = "Within its error throughput has no peak"
        if fit.ceiling is not None:
            most += f"; with kappa 0 it approaches {_term_text(fit.ceiling)} ok/s"
    else:
        beyond = ", more than was tried" if peak.value > fit.most else ""
        most = f"Throughput is greatest with {_term_text(peak)} in flight{beyond}: "
        most += f"{_term_text(greatest)} ok/s"
    return (
        f"Universal Scalability Law: lambda {_term_text(fit.rate)} per second, sigma"
        f" {_term_text(fit.contention)}, kappa {_term_text(fit.coherency)}. {most}."
    )


def _term_text(term: FittedTerm) -> str:
    return f"{three_digits(term.value)} ({three_digits(term.low)} to {three_digits(term.high)})"
