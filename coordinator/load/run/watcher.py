"""The interface of watchers, which observe a run and make no load: counters, traces of services.

A run knows them by the group `osbench.watcher` of entry points, and by name only if an option of
osbench asks for one (`watchers.py`). A watcher measures. It never journals, polls workers, or
changes counts and verdicts. The module of an entry point imports only this interface at its top,
since each run imports it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Self

from osbench.common.plugin.sla import SpanFigures, SpanSelection
from osbench.coordinator.load.run.plan import RunPlan
from osbench.coordinator.results.accounting.load_span import LoadSpan
from osbench.coordinator.results.accounting.outcome import WorkloadOutcome
from osbench.coordinator.results.storage.run_directory import RunDirectory


@dataclass(frozen=True, kw_only=True)
class WatchedRun:
    """A run as its watchers see it, from its first worker on."""

    plan: RunPlan
    directory: RunDirectory
    #: Redis time, seconds since 1970.
    now_s: Callable[[], float]
    #: False once nothing is to be waited for: after a second Ctrl-C.
    wanted: Callable[[], bool]


@dataclass(frozen=True, kw_only=True)
class Findings:
    """Findings of a watcher: outcomes with its facts in them, figures for criteria, notes."""

    #: In the order of the given ones.
    outcomes: Sequence[WorkloadOutcome]
    #: Figures of the spans that criteria select, by number of the workload.
    spans: Mapping[int, Sequence[SpanFigures]] = field(default_factory=dict)
    #: Sentences of the report, without the name of a workload.
    notes: Sequence[str] = ()


class Watcher:
    """Observes one run; its failure is a note of the report, and never ends the run.

    The calls come in the order of the methods, from the coordinator's main thread. After an
    exception only `end` is called.
    """

    #: Watchers that collect before this one, whose facts it uses.
    AFTER: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def of(cls, plan: RunPlan, *, resumed: bool) -> Self | None:
        """Return the watcher of a run; None if the run does not ask for it.

        Called before the run has a directory. Raises UsageError if its settings cannot be used.
        """
        raise NotImplementedError

    def begin(self, run: WatchedRun) -> str:
        """Begin to watch, before there is load; return a message for the user, or "".

        Raises UsageError, which ends the run.
        """
        return ""

    def look(self, loads: Mapping[int, LoadSpan]) -> str:
        """Take the loads so far, by number of the workload; return the present trouble, or "".

        Called at each checkpoint under load, a second apart or more, so it returns at once; none
        follows the end of the load.
        """
        return ""

    def load_over(self) -> None:
        """End the work that goes on during the load; called once, before workers are released."""

    def collect(
        self,
        outcomes: Sequence[WorkloadOutcome],
        selections: Mapping[int, Sequence[SpanSelection]],
    ) -> Findings:
        """Return the findings, after the load; end early once `WatchedRun.wanted` is False.

        `selections`: spans that criteria judge, by number of the workload.
        """
        return Findings(outcomes=outcomes)

    def end(self, *, resumable: bool) -> None:
        """Release everything; called exactly once, in any state.

        `resumable`: another coordinator may go on with the files in the run directory.
        """
