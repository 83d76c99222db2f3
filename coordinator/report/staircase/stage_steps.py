"""Makes the staircase of one load from its stages, or from the trials of a search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from osbench.common.plugin import entry_points
from osbench.coordinator.report.staircase.staircase import Staircase, StaircaseStep, staircase_of
from osbench.coordinator.results.accounting.counter_figures import Counters
from osbench.coordinator.results.accounting.outcome import WorkloadOutcome
from osbench.coordinator.results.accounting.search.trials import (
    DISTURBED,
    SearchOutcome,
    TrialFigures,
)


def staircase_of_load(outcome: WorkloadOutcome) -> Staircase | None:
    """Return the staircase of a workload; None if it has fewer than two constant levels of load.

    None also without the package that computes staircases.
    """
    if "staircase" not in entry_points.names("report_section"):
        return None
    counters = outcome.counters
    steps = _steps(outcome) if outcome.search is None else _trial_steps(outcome.search, counters)
    return staircase_of(steps, is_open=outcome.offered.is_open)


def _steps(outcome: WorkloadOutcome) -> Iterator[StaircaseStep]:
    """Yield a step for each stage with a constant load above 0.

    Stages that begin in the warm-up are left out.
    """
    is_open = outcome.offered.is_open
    for stage in outcome.stages:
        if stage.begin == stage.end > 0 and stage.from_s >= outcome.warmup.seconds:
            yield StaircaseStep(
                load=stage.end,
                throughput=stage.ended_per_s,
                p50_s=stage.p50_s,
                p95_s=stage.p95_s,
                p99_s=stage.p99_s,
                concurrency=stage.in_flight if is_open else stage.end,
                count=stage.ok,
                failed=stage.failed + stage.timed_out,
                resources=_resources(outcome.counters, [(stage.from_s, stage.to_s)]),
            )


def _trial_steps(search: SearchOutcome, counters: Counters | None) -> Iterator[StaircaseStep]:
    """Yield a step for each load that was tried, the lowest first; disturbed trials are left out.

    If a load had several trials, times and rates are means, counts are sums.
    """
    is_users = search.capacity.unit == "users"
    by_rate: dict[float, list[TrialFigures]] = {}
    for trial in search.trials:
        if trial.cause != DISTURBED:
            by_rate.setdefault(trial.rate, []).append(trial)
    for rate, trials in sorted(by_rate.items()):
        yield StaircaseStep(
            load=rate,
            throughput=fmean(trial.ok_per_s for trial in trials),
            p50_s=_mean([trial.p50_s for trial in trials]),
            p95_s=_mean([trial.p95_s for trial in trials]),
            p99_s=_mean([trial.p99_s for trial in trials]),
            concurrency=rate if is_users else fmean(trial.concurrency for trial in trials),
            count=sum(trial.ok for trial in trials),
            failed=sum(trial.failed + trial.timed_out for trial in trials),
            resources=_resources(counters, [(trial.from_s, trial.to_s) for trial in trials]),
        )


def _resources(
    counters: Counters | None, stretches: Sequence[tuple[float, float]]
) -> dict[str, float]:
    return {} if counters is None else counters.shares(stretches)


def _mean(times: Sequence[float | None]) -> float | None:
    known = [one for one in times if one is not None]
    return fmean(known) if known else None
