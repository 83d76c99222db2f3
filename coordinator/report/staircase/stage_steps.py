"""The staircase of one load: its stages, and what the summary has of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from osbench.coordinator.report.staircase.staircase import StaircaseStep, staircase_of
from osbench.coordinator.results.outcome import WorkloadOutcome


def staircase_json(outcome: WorkloadOutcome) -> dict[str, Any] | None:
    """The staircase of a workload as the summary has it; None where its load has no steps."""
    found = staircase_of(_steps(outcome), is_open=outcome.offered.concurrency is None)
    return None if found is None else dataclasses.asdict(found)


def _steps(outcome: WorkloadOutcome) -> Iterator[StaircaseStep]:
    """The stages that held a load. Those of the warm-up have lost some of their iterations."""
    is_open = outcome.offered.concurrency is None
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
            )
