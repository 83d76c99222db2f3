"""Computes a staircase: the steps of a load that was raised, their knee, and the law they follow.

The knee is the step with the greatest power, which is throughput / p95 (Kleinrock, Power and
deterministic rules of thumb for probabilistic problems in computer communications, ICC 1979, with
p95 instead of the mean). Up to it throughput grows faster than p95, from it on p95 does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from osbench.coordinator.formatting import duration, three_digits
from osbench.coordinator.report.staircase.staircase import (
    FittedTerm,
    Knee,
    ScalabilityFit,
    Staircase,
    StaircaseStep,
)
from osbench.edges.staircase.full_resources import first_full
from osbench.edges.staircase.scalability import NoFit, fit_scalability

#: Loads below which no knee is looked for.
_FEWEST_LOADS = 3
#: Iterations of a step below which it is not used for knee and law, and the share of failed ones
#: from which on it is not.
FEWEST_ITERATIONS, MOST_FAILED = 20, 0.05


def load_staircase(steps: tuple[StaircaseStep, ...], is_open: bool) -> Staircase:
    """Return the staircase of steps at two loads or more, which are ordered by load.

    `is_open`: loads are arrivals per second, else virtual users.
    """
    telling = [step for step in steps if _tells(step)]
    unit = "/s" if is_open else " users"
    knee, knee_sentence = _knee(telling, unit)
    fit = fit_scalability(
        [step.concurrency for step in telling], [step.throughput for step in telling]
    )
    return Staircase(
        is_open=is_open,
        steps=steps,
        knee=knee,
        fit=None if isinstance(fit, NoFit) else fit,
        knee_sentence=knee_sentence,
        fit_sentence=fit.reason if isinstance(fit, NoFit) else _fit_sentence(fit),
        resources_sentence=first_full(steps, unit),
    )


def _tells(step: StaircaseStep) -> bool:
    """Return whether knee and law use the step: it has enough iterations, and few failed.

    Errors are quick and would look like throughput.
    """
    return step.count >= FEWEST_ITERATIONS and step.failed <= MOST_FAILED * (
        step.count + step.failed
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
