"""The part of a run's page on counters of the system under test: charts over time, and a table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from osbench.coordinator.report.html.page_numbers import NARROW
from osbench.coordinator.report.page_part import PagePart
from osbench.coordinator.report.run_facts import RunFacts
from osbench.coordinator.results.accounting.counter_figures import (
    SHARE_UNIT,
    CounterFigures,
    CounterKind,
    value_text,
)
from osbench.edges.traces.counters.counter_file import read_counters
from osbench.edges.traces.counters.counter_series import (
    CounterSeries,
    WorkloadCounters,
    figures_of,
)

#: Resources in the first chart, charts of queues, and rows of the table.
_SHARES, _QUEUES, _ROWS = 5, 3, 60
#: Least value of a share that waits for a chart of it.
_WAITING = 0.1


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


@dataclass(frozen=True, kw_only=True)
class CounterLine:
    """A counter of the system under test as a line of a chart, with evenly spaced values."""

    label: str
    #: "" of a number, "%" of a share.
    unit: str
    #: Evenly spaced; None in gaps.
    values: list[float | None]


@dataclass(frozen=True, kw_only=True)
class CounterRow:
    """A counter as a row of the table; mean, p95 and greatest value as text with unit."""

    figures: CounterFigures
    mean: str
    p95: str
    most: str


@dataclass(frozen=True, kw_only=True)
class CounterCharts:
    """The counters of a workload on the page: lines of two charts, and rows of a table."""

    step_s: float = 1.0
    #: Used parts of resources, the fullest first; and queues, the most variable first.
    shares: list[CounterLine] = field(default_factory=list)
    queues: list[CounterLine] = field(default_factory=list)
    rows: list[CounterRow] = field(default_factory=list)
    #: Counters that are not in the table.
    more: int = 0

    @property
    def caption(self) -> str:
        """Caption of the chart of resources: the number and label of each line."""
        named = (f" · {number}{NARROW}{one.label}" for number, one in enumerate(self.shares, 1))
        return "used part of its resources, each with its number" + "".join(named)

    def payload(self) -> dict[str, Any]:
        """Return the lines as JSON values under the key `counters`; {} if there are no lines."""
        if not self.shares and not self.queues:
            return {}
        lines = {
            "step": self.step_s,
            "caption": self.caption,
            "shares": [{"label": one.label, "values": one.values} for one in self.shares],
            "queues": [
                {"label": one.label, "unit": one.unit, "values": one.values} for one in self.queues
            ],
        }
        return {"counters": lines}


def counter_charts(counters: WorkloadCounters) -> CounterCharts:
    """Return charts of the fullest resources and most variable queues, and a table.

    The charts leave out queues near 0; charts and table leave out counters without known values.
    """
    figures = figures_of(counters)
    by_label = {(one.name, one.host): one for one in counters.series}
    ordered = [by_label[one.name, one.host] for one in figures]
    shares = [one for one in ordered if one.kind is CounterKind.SHARE]
    queues = sorted((one for one in ordered if _moves(one)), key=lambda one: -_movement(one))
    return CounterCharts(
        step_s=counters.step_s,
        shares=[_line(one) for one in shares[:_SHARES]],
        queues=[_line(one) for one in queues[:_QUEUES]],
        rows=[
            CounterRow(
                figures=one,
                mean=value_text(one.mean, one.unit),
                p95=value_text(one.p95, one.unit),
                most=value_text(one.max, one.unit),
            )
            for one in figures[:_ROWS]
        ],
        more=max(0, len(figures) - _ROWS),
    )


def _moves(series: CounterSeries) -> bool:
    if series.kind is not CounterKind.QUEUE:
        return False
    most = float(np.nanmax(series.values))
    return most >= (_WAITING if series.unit == SHARE_UNIT else 1e-9)


def _movement(series: CounterSeries) -> float:
    """Return the standard deviation of a counter divided by its mean; 0 without a positive mean."""
    mean = float(np.nanmean(series.values))
    return float(np.nanstd(series.values)) / mean if mean > 0 else 0.0


def _line(series: CounterSeries) -> CounterLine:
    values = [round(one, 5) if math.isfinite(one) else None for one in series.values.tolist()]
    unit = "%" if series.unit == SHARE_UNIT else series.unit
    return CounterLine(label=series.label, unit=unit, values=values)
