"""Verdicts on spans, which are known once the traces of a run have been read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from osbench.common.plugin.sla import SpanFigures, SpanSelection
from osbench.coordinator.load.run.workload.workload_run import WorkloadRun
from osbench.coordinator.results.accounting.outcome import WorkloadOutcome

#: Reasons why there are no spans to judge, by state of tracing.
_STATES = {
    "on": "no trace was collected: look at the notes on traces",
    "switched off": "tracing is switched off (enable_profiler)",
    "sample rate 0": "no iteration is traced: [benchmark] profiler_sample_rate is 0",
    "no key": "no iteration is traced: the deployment record needs profiler_hmac_key",
    "no store in the record": "traces cannot be read: the record needs profiler_conn_str",
    "store not redis://": "traces cannot be read: profiler_conn_str must begin with redis://",
}


def selections_of(runs: Sequence[WorkloadRun]) -> dict[int, tuple[SpanSelection, ...]]:
    """Return the selections of spans that SLA criteria judge, by index of the workload in `runs`.

    Workloads without criteria on spans are left out.
    """
    found = {}
    for number, run in enumerate(runs):
        results = run.results
        if results.sla.on_spans:
            found[number] = results.sla.selections
    return found


def with_span_verdicts(
    runs: Sequence[WorkloadRun],
    outcomes: Sequence[WorkloadOutcome],
    figures: Mapping[int, Sequence[SpanFigures]],
) -> list[WorkloadOutcome]:
    """Return the outcomes with verdicts on spans added; a criterion without traces is not met.

    `outcomes` are in the order of `runs`. `figures`: durations of spans, by index of the workload
    in `runs`. Workloads that did not begin get no verdict.
    """
    return [
        _judged_outcome(run, outcome, figures.get(number))
        for number, (run, outcome) in enumerate(zip(runs, outcomes, strict=True))
    ]


def _judged_outcome(
    run: WorkloadRun, outcome: WorkloadOutcome, figures: Sequence[SpanFigures] | None
) -> WorkloadOutcome:
    results, plan = run.results, run.plan
    sla, workload = results.sla, plan.workload
    if not sla.on_spans or outcome.not_begun:
        return outcome
    state = outcome.tracing.state
    without = "" if figures is not None else _STATES.get(state, state)
    verdicts = sla.judge_spans(figures or (), without)
    by_name = {one.name: source for one, source in zip(workload.sla, plan.sla_sources, strict=True)}
    return replace(
        outcome,
        verdicts=(*outcome.verdicts, *verdicts),
        sla_sources=(*outcome.sla_sources, *(by_name[one.criterion] for one in verdicts)),
    )
