"""Result of collecting the traces of a run; imports nothing that collects them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from osbench.common.plugin.sla import SpanFigures
    from osbench.coordinator.results.accounting.totals import Cost
    from osbench.edges.traces.analysis.comparison import Comparison


@dataclass(frozen=True, kw_only=True)
class Collected:
    """Result of collecting the traces of a run, for its report.

    Tuples have an entry per workload, or none; mappings are by its number. Only `notes` are of the
    run.
    """

    #: By workload.
    costs: tuple[Cost | None, ...] = ()
    #: Two parts of the load compared, if that was requested.
    comparisons: Mapping[int, Comparison] = field(default_factory=dict)
    sentences: tuple[str, ...] = ()
    #: Figures of the selected spans, by workload.
    spans: Mapping[int, Sequence[SpanFigures]] = field(default_factory=dict)
    kept: tuple[int, ...] = ()
    #: Errors, and parts that are missing from the traces.
    notes: tuple[str, ...] = ()
