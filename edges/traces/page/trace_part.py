"""The part of a run's page on traces: why slow iterations were slow, waterfalls, the ranking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from osbench.coordinator.report.page_part import PagePart, SlowReason
from osbench.coordinator.report.run_facts import RunFacts
from osbench.edges.traces.output.report_traces import WorkloadTraces, report_traces
from osbench.edges.traces.page.trace_views import TraceGroup, TraceSection, trace_section


class TracePart(PagePart):
    """Traces of a finished run; a live page has none."""

    SECTION: ClassVar[str] = "osbench.edges.traces.page:traces.j2"
    ANCHOR: ClassVar[str] = "traces"
    TITLE: ClassVar[str] = "Traces"

    def __init__(self, traces: Sequence[WorkloadTraces], section: TraceSection) -> None:
        self._traces = {one.workload: one for one in traces}
        self._groups: Mapping[int, TraceGroup] = {one.number: one for one in section.groups}
        self.section = section

    @classmethod
    def of(cls, facts: RunFacts, *, live: bool) -> Self | None:
        """Read and draw traces of a run; None if `live` or without workloads. Raises DamagedRun."""
        workloads = facts.report.workloads
        if live or not workloads:
            return None
        traces = report_traces(facts.directory, facts.summary)
        # "" if there is no trace store of OSProfiler
        store = str(facts.manifest.get("trace_store") or "")
        return cls(traces, trace_section(traces, workloads, store))

    @property
    def waterfalls(self) -> int:
        """Waterfalls of the page."""
        return len(self.anchors())

    def payload(self, workload: int) -> Mapping[str, Any]:
        """Return the marks of the heat map: iterations whose traces are drawn."""
        group = self._groups.get(workload)
        return {"examples": group.examples()} if group else {}

    def iterations(self, workload: int) -> Sequence[int]:
        """Return iterations with kept traces: examples, then all in ascending order.

        Examples occur twice.
        """
        found = self._traces.get(workload)
        if found is None:
            return ()
        return [*(pick.iteration for pick in found.picks), *sorted(found.kept.values())]

    def explanation(self, workload: int) -> SlowReason | None:
        """Return why a workload was slow; its example is the waterfall near p99, else the first.

        The text is "" if the reason is unknown. None if the section does not have the workload.
        """
        group = self._groups.get(workload)
        if group is None:
            return None
        shown = next((fall for fall in group.waterfalls if fall.kind == "p99"), None)
        shown = shown or next(iter(group.waterfalls), None)
        return SlowReason(
            text=group.sentence,
            is_clear=group.has_cause,
            details=f"traces-w{workload + 1}",
            example=shown.id if shown else "",
        )

    def anchors(self) -> Mapping[str, str]:
        """Return the ids of the waterfalls by trace id."""
        groups = self.section.groups
        return {fall.trace_id: fall.id for group in groups for fall in group.waterfalls}
