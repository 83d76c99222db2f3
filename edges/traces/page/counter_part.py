"""The part of a run's page on counters of the system under test: charts over time, and a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from osbench.coordinator.report.page_part import PagePart
from osbench.coordinator.report.run_facts import RunFacts
from osbench.edges.traces.counters.counter_file import read_counters
from osbench.edges.traces.page.counter_charts import CounterCharts, counter_charts


class CounterPart(PagePart):
    """Counters of each workload; on a live page they may come later."""

    OVER_TIME: ClassVar[str] = "osbench.edges.traces.page:counters.j2"
    LIVE: ClassVar[Mapping[str, str]] = {
        "counters-part": "osbench.edges.traces.page:counter_table.j2"
    }
    SCRIPTS: ClassVar[Sequence[str]] = ("osbench.edges.traces.page:counters.js",)

    def __init__(self, charts: Mapping[int, CounterCharts]) -> None:
        self._charts = charts

    @classmethod
    def of(cls, facts: RunFacts, *, live: bool) -> Self:
        """Read the counters of a run from its directory. Raises DamagedRun."""
        found = read_counters(facts.directory)
        return cls({number: counter_charts(one) for number, one in found.items()})

    def charts(self, workload: int) -> CounterCharts:
        """Return charts and table of a workload; empty if it has no counters."""
        return self._charts.get(workload, CounterCharts())

    def payload(self, workload: int) -> Mapping[str, Any]:
        """Return the lines of the charts under the key `counters`."""
        return self.charts(workload).payload()
