"""Throughput and latency by load: the steps of a load that was raised, and their knee.

The knee is the step with the greatest power, which is throughput / p95 (Kleinrock, Power and
deterministic rules of thumb for probabilistic problems in computer communications, ICC 1979, with
p95 instead of the mean). Up to it throughput grows faster than p95, from it on p95 does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from osbench.coordinator.formatting import duration, three_digits
from osbench.coordinator.statistics.scalability import (
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


@dataclass(frozen=True, kw_only=True)
class StaircaseStep:
    """Throughput and latency at a load that was held for some time."""

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

    @property
    def tells(self) -> bool:
        """Return whether it has enough iterations, few of them failed, to be evaluated.

        Errors are quick and would look like throughput.
        """
        return self.count >= FEWEST_ITERATIONS and self.failed <= MOST_FAILED * (
            self.count + self.failed
        )


@dataclass(frozen=True, kw_only=True)
class Knee:
    """The load from which on p95 grows faster than throughput."""

    load: float
    #: The neighbouring loads: it is somewhere between them.
    below: float
    above: float
    throughput: float
    p95_s: float


@dataclass(frozen=True, kw_only=True)
class Staircase:
    """Steps of different loads."""

    #: Loads are arrivals per second; otherwise virtual users.
    is_open: bool
    #: By load.
    steps: tuple[StaircaseStep, ...]
    knee: Knee | None
    fit: ScalabilityFit | None
    #: Message on the knee and the law, or on why there is no knee.
    knee_sentence: str
    fit_sentence: str


def staircase_of(steps: Iterable[StaircaseStep], *, is_open: bool) -> Staircase | None:
    """Return the staircase of steps in any order; None for fewer than two loads."""
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
    )


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
            most += f"; with kappa 0 it approaches {_bounded(fit.ceiling)} ok/s"
    else:
        beyond = ", more than was tried" if peak.value > fit.most else ""
        most = f"Throughput is greatest with {_bounded(peak)} in flight{beyond}: "
        most += f"{_bounded(greatest)} ok/s"
    return (
        f"Universal Scalability Law: lambda {_bounded(fit.rate)} per second, sigma"
        f" {_bounded(fit.contention)}, kappa {_bounded(fit.coherency)}. {most}."
    )


def _bounded(term: FittedTerm) -> str:
    return f"{three_digits(term.value)} ({three_digits(term.low)} to {three_digits(term.high)})"
