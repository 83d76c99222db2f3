"""Selects the subtasks and workloads of a task that the command line names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from osbench.common.errors import UsageError
from osbench.common.plugin.signature import near
from osbench.common.task import Subtask, Task, Workload


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The selected part of a task; empty fields select everything."""

    #: Titles, or positions from 0.
    subtasks: tuple[str, ...] = ()
    #: Scenarios, or positions from 0 within each subtask.
    workloads: tuple[str, ...] = ()

    def of(self, task: Task) -> Task:
        """The task reduced to the selection. Raises UsageError if an entry matches nothing."""
        kept = list(task.subtasks)
        if self.subtasks:
            titles = [subtask.title for subtask in kept]
            numbers = _numbers("--subtask", self.subtasks, titles)
            kept = [kept[number] for number in sorted(numbers)]
        if self.workloads:
            self._refuse_unknown(kept)
            kept = [self._narrowed(subtask) for subtask in kept]
        return replace(task, subtasks=tuple(subtask for subtask in kept if subtask.workloads))

    def _refuse_unknown(self, subtasks: Sequence[Subtask]) -> None:
        all_of = [workload for subtask in subtasks for workload in subtask.workloads]
        positions = {str(workload.position) for workload in all_of}
        scenarios = {workload.scenario for workload in all_of}
        for wanted in self.workloads:
            if wanted not in positions | scenarios:
                known = sorted(scenarios)
                raise UsageError(_nothing("--workload", wanted, known, len(positions)))

    def _narrowed(self, subtask: Subtask) -> Subtask:
        kept = tuple(one for one in subtask.workloads if self._takes(one))
        return replace(subtask, workloads=kept)

    def _takes(self, workload: Workload) -> bool:
        return workload.scenario in self.workloads or str(workload.position) in self.workloads


def _numbers(option: str, wanted: Iterable[str], names: Sequence[str]) -> set[int]:
    """Positions of the wanted entries: all with the name, or the one at the position."""
    found: set[int] = set()
    for one in wanted:
        fitting = {number for number, name in enumerate(names) if name == one}
        if not fitting and one.isdecimal() and int(one) < len(names):
            fitting = {int(one)}
        if not fitting:
            raise UsageError(_nothing(option, one, names, len(names)))
        found |= fitting
    return found


def _nothing(option: str, wanted: str, names: Sequence[str], count: int) -> str:
    what = option.removeprefix("--")
    if wanted.isdecimal():
        return f"{option} {wanted}: there is no such {what}; they are 0 to {count - 1}"
    known = near(wanted, names) or "; there are " + ", ".join(map(repr, dict.fromkeys(names)))
    return f"{option} {wanted!r}: there is no such {what}{known}"
