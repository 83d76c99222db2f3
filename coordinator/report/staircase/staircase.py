"""Throughput and latency by load: the steps of a load that was raised, and their knee.

An optional package computes staircases, by the entry point `staircase` of `osbench.report_section`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from osbench.common.plugin import entry_points


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
class FittedTerm:
    """A coefficient of the law, or a figure derived from it, with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class ScalabilityFit:
    """The Universal Scalability Law as fitted to the steps of a load, with peak or ceiling."""

    #: Throughput of one iteration in flight, per second.
    rate: FittedTerm
    #: sigma and kappa, 0 at least.
    contention: FittedTerm
    coherency: FittedTerm
    #: N* and the throughput there, per second; None if kappa cannot be distinguished from 0, or if
    #: throughput falls from one iteration in flight on.
    peak_concurrency: FittedTerm | None
    peak_throughput: FittedTerm | None
    #: lambda / sigma, which throughput would approach if kappa were 0, per second; None if there is
    #: a peak, or sigma cannot be distinguished from 0.
    ceiling: FittedTerm | None
    #: Root mean square of (measured - fitted) / fitted, by degrees of freedom.
    error: float
    #: Steps that were fitted, and the least and greatest concurrency of them.
    steps: int
    least: float
    most: float


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

    `is_open`: loads are arrivals per second, else virtual users. Raises PluginError if the package
    that computes staircases is missing.
    """
    ordered = tuple(sorted(steps, key=lambda step: step.load))
    if len({step.load for step in ordered}) < 2:
        return None
    found: Staircase = entry_points.load_object("report_section", "staircase")(ordered, is_open)
    return found
