"""Empty results of a workload, as its plan needs them."""

from __future__ import annotations

from functools import partial

from osbench.common.plugin import entry_points
from osbench.common.plugin.runner import SearchingRunner
from osbench.coordinator.load.run.plan import RunPlan, WorkloadPlan
from osbench.coordinator.plugins.sla.evaluator import SlaEvaluator
from osbench.coordinator.results.accounting.abort_rule import AbortRule
from osbench.coordinator.results.accounting.breakdown import breakdowns_of
from osbench.coordinator.results.accounting.drill_statistics import DrillStatistics
from osbench.coordinator.results.accounting.search.trials import Trials
from osbench.coordinator.results.accounting.stage_statistics import StageStatistics
from osbench.coordinator.results.accounting.workload_results import WorkloadResults
from osbench.coordinator.results.accounting.workload_statistics import WorkloadStatistics


def planned_results(one: WorkloadPlan, plan: RunPlan) -> WorkloadResults:
    """Return the results of a workload without any iteration, for its criteria and charts."""
    workload, runner = one.workload, one.runner
    asked = runner.asked() if runner.STAGED else runner.asked()[:1]
    trials = None
    if isinstance(runner, SearchingRunner):
        criteria = partial(SlaEvaluator, workload.sla, plan.plugins)
        trials = Trials(runner, criteria, plan.conf.benchmark.lag_limit_s)
    return WorkloadResults(
        idempotent=workload.idempotent,
        sla=SlaEvaluator(workload.sla, plan.plugins),
        warmup_s=workload.warmup_s,
        abort=AbortRule(workload.abort) if workload.abort else None,
        stages=StageStatistics(asked, is_open=runner.OPEN, lasts_s=runner.lasts_s),
        trials=trials,
        statistics=WorkloadStatistics(
            is_open=runner.OPEN,
            planned_s=runner.planned_s,
            drill=_drill(one),
            breakdowns=breakdowns_of(workload, is_open=runner.OPEN),
        ),
    )


def _drill(one: WorkloadPlan) -> DrillStatistics | None:
    """Return the statistics of a drill by a hook, or by the load of an edge's runner."""
    workload, name = one.workload, one.runner.NAME
    if name not in entry_points.names("drill"):
        return DrillStatistics(workload.phases, workload.warmup_s) if workload.phases else None
    made: DrillStatistics = entry_points.load_object("drill", name)(one.runner, workload)
    return made
