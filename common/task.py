"""The task model: the immutable content of a task file, normalised to Rally's version 2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: Shares of a load are integers, and all of the load is this.
WHOLE = 1_000_000
#: Length of the windows of `Workload.abort` if it has no `over_s`, seconds.
ABORT_OVER_S = 10.0


@dataclass(frozen=True, kw_only=True)
class Named:
    """Name and configuration of a plug-in as a task file has them: runner, criterion, context..."""

    #: As the file names it, `name` or `name@platform`.
    name: str
    #: The value under the name; a mapping for most plug-ins, any JSON value for some.
    config: Any = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class HookConfig:
    """A hook of a workload: the action, and the trigger that fires it under load."""

    action: Named
    trigger: Named
    description: str = ""

    @property
    def label(self) -> str:
        """Return the hook's name in reports and in `phases`: description, else action's name."""
        return self.description or self.action.name


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A workload of a task file: a scenario with arguments, contexts, runner, SLA, hooks."""

    #: Place of the workload in its file, for messages: `subtasks[0].workloads[1]`.
    place: str
    #: Position within its subtask, from 0.
    position: int
    #: Scenario name, `Class.method`.
    scenario: str
    #: What the file calls it, or "".
    named: str = ""
    #: Keyword arguments of the scenario; strings may hold {iteration} and {run}.
    args: Mapping[str, Any]
    runner: Named
    #: CSV file whose row N holds arguments of iteration N, as the task file names it, or "".
    args_from: str = ""
    contexts: tuple[Named, ...] = ()
    sla: tuple[Named, ...] = ()
    hooks: tuple[HookConfig, ...] = ()
    description: str = ""
    #: A suspect iteration of a lost worker may be run again.
    idempotent: bool = False
    #: Iterations that start in the first seconds of the load are left out of the statistics.
    warmup_s: float = 0.0
    #: How virtual users start, and the data file of which each has a row.
    users: Mapping[str, Any] = field(default_factory=dict)
    #: Time that virtual users wait between two iterations.
    think: Mapping[str, Any] = field(default_factory=dict)
    #: Where `self.http` of the scenario leads, and what its requests carry.
    http: Mapping[str, Any] = field(default_factory=dict)
    #: When the load ends before its time: failure_rate, percentile, over_s, after_s; {}: never.
    abort: Mapping[str, Any] = field(default_factory=dict)
    #: Labels of the hooks that begin phases of a drill, by phase: fault, after; {}: no drill.
    phases: Mapping[str, str] = field(default_factory=dict)
    #: Shares of the load by zone of its workers, of `WHOLE`; {}: workers of all zones are equal.
    zones: Mapping[str, int] = field(default_factory=dict)
    #: Workload-level switch over deployment and configuration file; None leaves it to them.
    enable_profiler: bool | None = None

    @property
    def name(self) -> str:
        """Return the workload's name in reports: as the file names it, else the scenario's."""
        return self.named or self.scenario


@dataclass(frozen=True, kw_only=True)
class Subtask:
    """Workloads under one title, which run one after another, or at once if `run_in_parallel`."""

    title: str
    workloads: tuple[Workload, ...]
    description: str = ""
    tags: tuple[str, ...] = ()
    group: str | None = None
    run_in_parallel: bool = False


@dataclass(frozen=True, kw_only=True)
class Task:
    """The content of a task file: its title, and subtasks with their workloads."""

    title: str
    subtasks: tuple[Subtask, ...]
    #: Version of the format that the file was written in, 1 or 2.
    version: int = 2
    description: str = ""
    tags: tuple[str, ...] = ()
    #: Path of the file, or "-".
    source: str = "-"

    @property
    def workloads(self) -> tuple[Workload, ...]:
        """Return all workloads in file order; an index is the number of the workload in a run."""
        return tuple(w for subtask in self.subtasks for w in subtask.workloads)
