"""The numbers of a run, counted again from nothing but journal and blocks of its directory."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from helpers.sample_reports import constant_workload, run_report
from helpers.summaries import to_json
from osbench.common.plugin.plugins import Plugins
from osbench.common.task import Named
from osbench.coordinator.plugins.sla.evaluator import SlaEvaluator
from osbench.coordinator.report.timeline import to_timeline
from osbench.coordinator.results.accounting.accounts import Accounts
from osbench.coordinator.results.accounting.totals import Warmup
from osbench.coordinator.results.accounting.workload_results import WorkloadResults
from osbench.coordinator.results.accounting.workload_statistics import WorkloadStatistics
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_documents import read_timeline

#: What of a workload's summary and timeline follows from journal and blocks alone.
_SUMMARY = (
    *("warmup", "latency", "actions", "start_lag", "throughput", "exemplars", "errors"),
    *("other_errors", "sla", "outputs", "load_profile", "requests", "loops"),
)
_TIMELINE = ("t0_at", "service", "response", "start_lag", "actions", "workers", "load")
_TIMELINE += ("failed", "error_examples")
#: Counts of what nothing is kept of.
_UNKEPT = ("duplicates", "refused")


def refolded(directory: RunDirectory, workloads: Sequence[Mapping[str, Any]]) -> list[Any]:
    """By workload, as a coordinator that saw every block would report it.

    `workloads` are those of the task: their SLA criteria, runners and warm-up.
    """
    plugins, accounts = Plugins(), Accounts()
    for number, one in enumerate(workloads):
        sla = [Named(name=name, config=config) for name, config in one.get("sla", {}).items()]
        ((runner, config),) = one.get("runner", {"constant": {"times": 1}}).items()
        plan = plugins.get("runner", runner)(config)
        results = WorkloadResults(
            idempotent=one.get("idempotent", False),
            statistics=WorkloadStatistics(is_open=plan.OPEN, planned_s=plan.planned_s),
            sla=SlaEvaluator(sla, plugins),
            warmup_s=one.get("warmup", 0.0),
        )
        accounts.register(number, results)
    accounts.fold(directory)
    report = run_report(*(_outcome(one) for one in accounts.results.values()))
    summary = to_json(report)
    return _comparable(summary, to_timeline(report, summary, 0.0))


def reported(directory: RunDirectory) -> list[Any]:
    """The same numbers as the coordinators of the run have reported them."""
    summary, timeline = directory.read("summary.json"), read_timeline(directory)
    assert summary is not None
    assert timeline is not None
    return _comparable(summary, timeline)


def _outcome(results: WorkloadResults) -> Any:
    statistics = results.statistics
    return replace(
        constant_workload(),
        accounting=results.ledger.accounting(),
        warmup=Warmup(seconds=results.warmup_ns / 1e9, left_out=results.warmup_rows),
        statistics=statistics,
        verdicts=results.sla.judge(statistics),
        charts=results.charts,
        too_large=results.cut,
        t0_at=results.t0_at,
    )


def _comparable(summary: Mapping[str, Any], timeline: Mapping[str, Any]) -> list[Any]:
    found = []
    for told, drawn in zip(summary["workloads"], timeline["workloads"], strict=True):
        counts = {key: told["accounting"][key] for key in told["accounting"] if key not in _UNKEPT}
        parts = {key: told[key] for key in _SUMMARY}
        matrices = {key: drawn[key] for key in _TIMELINE}
        found.append({"accounting": counts, **parts, "timeline": matrices})
    # numbers as they are written: exact, and lists for tuples
    return [json.loads(json.dumps(one, default=_text)) for one in found]


def _text(value: object) -> str:
    assert isinstance(value, bytes)
    return value.hex()
