"""Pages with one trace, from work with known times."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from helpers.report_facts import facts_of
from helpers.synthetic_traces import Work, spans_of
from osbench.coordinator.report.html import render_page
from osbench.coordinator.report.page_facts import gather
from osbench.edges.traces.analysis.digest import digest_of
from osbench.edges.traces.collection.trace_set import TraceSet
from osbench.edges.traces.model.spans import Trace
from osbench.edges.traces.output.report_traces import TracePick, WorkloadTraces
from osbench.edges.traces.output.waterfalls import waterfall
from osbench.edges.traces.page.trace_part import TracePart
from osbench.edges.traces.page.trace_views import trace_section


def set_of(*found: Trace) -> TraceSet:
    """A set of traces that is read from no run."""
    digest = digest_of(found)
    return TraceSet(
        name="a",
        features=digest.table.close(),
        clocks=digest.clocks,
        usual=digest.usual,
        coverage=digest.coverage,
        ranking=(),
        traces=lambda: iter(found),
        traced=len(found),
        skipped=0,
    )


def page_with_trace(data: Path, root: Work, store: str = "") -> str:
    """A page whose only waterfall is that of some work; its trace is in a `store`."""
    trace = spans_of(root)
    fall = waterfall(set_of(trace), trace)
    pick = TracePick(
        label="slowest ok", kind="max", iteration=7, trace_id=fall.trace_id, outcome="ok", error="",
        due_s=1.0, started_s=1.0, service_s=0.1, response_s=0.1, lag_s=0.0, waterfall=fall,
    )  # fmt: skip
    traces = (WorkloadTraces(name="w", workload=0, traced=1, picks=(pick,)),)
    facts = gather(facts_of(data))
    part = TracePart(traces, trace_section(traces, facts.report.workloads, store))
    return render_page(replace(facts, parts={**facts.parts, "traces": part}))
