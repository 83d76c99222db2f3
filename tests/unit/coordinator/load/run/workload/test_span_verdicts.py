"""Verdicts on spans that come after a run: of the workloads that have the criterion."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from helpers.sample_loads import stages_workload
from osbench.common.plugin.plugins import Plugins
from osbench.common.task import Named
from osbench.coordinator.load.run.workload.span_verdicts import with_span_verdicts
from osbench.coordinator.plugins.sla.evaluator import SlaEvaluator

SPANS = Named(name="spans", config=[{"name": "db*", "calls_per_iteration": {"max": 1}}])


def run_with(*criteria: Named) -> Any:
    return SimpleNamespace(
        results=SimpleNamespace(sla=SlaEvaluator(criteria, Plugins())),
        plan=SimpleNamespace(
            workload=SimpleNamespace(sla=criteria), sla_sources=["native"] * len(criteria)
        ),
    )


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("no key", "no iteration is traced: the deployment record needs profiler_hmac_key"),
        ("switched off", "tracing is switched off (enable_profiler)"),
        ("on", "no trace was collected: look at the notes on traces"),
    ],
)
def test_a_run_without_traces_does_not_pass(state: str, said: str) -> None:
    workload = stages_workload()
    untraced = replace(workload, tracing=replace(workload.tracing, state=state))

    judged, other = with_span_verdicts([run_with(SPANS), run_with()], [untraced, untraced], {})

    *before, verdict = judged.verdicts
    assert tuple(before) == workload.verdicts
    assert (verdict.criterion, verdict.success, verdict.detail) == ("spans", False, said)
    assert judged.sla_sources == (*workload.sla_sources, "native")
    assert other == untraced
