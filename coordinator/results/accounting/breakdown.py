"""Breakdowns of results, such as by zone: rows of a report that optional packages count.

An entry point `osbench.breakdown` is a subclass of `Breakdown`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from osbench.common.plugin import entry_points
from osbench.common.protocol.columns import Columns
from osbench.common.task import Workload
from osbench.coordinator.results.accounting.worker_figures import WorkerFigures


@dataclass(frozen=True, kw_only=True)
class BreakdownRow:
    """Figures of one part of the results; times are seconds, None without successful ones."""

    name: str = ""
    #: Part of all that is counted, from 0 to 1, and the part that the task asks for.
    share: float = 0.0
    asked: float | None = None
    ok: int = 0
    failed: int = 0
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None


@dataclass(frozen=True, kw_only=True)
class BreakdownFigures:
    """Results of a workload in parts: `of` iterations or requests, `by` zone, for example."""

    by: str = ""
    of: str = "iterations"
    rows: tuple[BreakdownRow, ...] = ()


class Breakdown:
    """Counts the results of one workload in parts, in bounded memory."""

    @classmethod
    def of(cls, workload: Workload, *, is_open: bool) -> Self | None:
        """Return the breakdown of a workload; None if its task does not ask for it.

        `is_open`: iterations start at planned times.
        """
        raise NotImplementedError

    def add(self, columns: Columns, worker: str) -> None:
        """Count the result rows of a worker, one row or more; `worker` is its incarnation."""
        raise NotImplementedError

    def figures(self, workers: Sequence[WorkerFigures]) -> BreakdownFigures:
        """Return the figures so far; `workers` have the labels of all workers."""
        raise NotImplementedError


def breakdowns_of(workload: Workload, *, is_open: bool) -> tuple[Breakdown, ...]:
    """Return the breakdowns of a workload, without results. Raises PluginError."""
    names = sorted(entry_points.names("breakdown"))
    found = (
        entry_points.load_object("breakdown", name).of(workload, is_open=is_open) for name in names
    )
    return tuple(one for one in found if one is not None)
