"""Selects a part of a task: subtasks, workloads, or one iteration of each workload."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from osbench.common.errors import UsageError
from osbench.common.plugin.signature import near
from osbench.common.task import Named, Subtask, Task, Workload


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The part of a task that a user selects; an empty field selects everything."""

    #: Titles, or positions from 0.
    subtasks: tuple[str, ...] = ()
    #: Names, scenarios, or positions from 0 within each subtask.
    workloads: tuple[str, ...] = ()

    def of(self, task: Task) -> Task:
        """Return a copy of the task with only the selected subtasks and, within them, workloads.

        Subtasks without a selected workload are left out. The order is the task's. Raises
        UsageError if an entry matches nothing.
        """
        kept = list(task.subtasks)
        if self.subtasks:
            titles = [subtask.title for subtask in kept]
            numbers = _numbers("--subtask", self.subtasks, titles)
            kept = [kept[number] for number in sorted(numbers)]
        if self.workloads:
            kept = self._narrowed(kept)
        return replace(task, subtasks=tuple(subtask for subtask in kept if subtask.workloads))

    def _narrowed(self, subtasks: Sequence[Subtask]) -> list[Subtask]:
        all_of = [workload for subtask in subtasks for workload in subtask.workloads]
        positions = {str(workload.position) for workload in all_of}
        called = {name for workload in all_of for name in (workload.name, workload.scenario)}
        for wanted in self.workloads:
            if wanted not in positions | called:
                raise UsageError(_nothing("--workload", wanted, sorted(called), len(positions)))
        # a name goes before a position
        taken = {position for position in self.workloads if position not in called}

        def takes(workload: Workload) -> bool:
            own = {workload.name, workload.scenario}
            return not own.isdisjoint(self.workloads) or str(workload.position) in taken

        return [
            replace(subtask, workloads=tuple(one for one in subtask.workloads if takes(one)))
            for subtask in subtasks
        ]


def _numbers(option: str, wanted: Iterable[str], names: Sequence[str]) -> set[int]:
    """Return the indexes of the `wanted` entries in `names`.

    An entry is a name, which stands for all elements with it, or else an index. Raises UsageError
    if an entry matches none; `option` is named in the message.
    """
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


#: What a failed iteration does to the exit code, whatever the SLA of the task.
_SLA = (Named(name="failure_rate", config={"max": 0}),)


def once(task: Task) -> Task:
    """Return a copy of the task with one iteration per workload, one workload at a time.

    Hooks, phases and warm-up are dropped; the timeout remains. The SLA becomes "no failed
    iteration", because criteria for a load say nothing about one iteration.
    """
    return replace(task, subtasks=tuple(map(_subtask, task.subtasks)))


def _subtask(subtask: Subtask) -> Subtask:
    workloads = tuple(map(_workload, subtask.workloads))
    return replace(subtask, workloads=workloads, run_in_parallel=False)


def _workload(workload: Workload) -> Workload:
    asked = workload.runner.config
    bound = (
        {"timeout": asked["timeout"]} if isinstance(asked, Mapping) and "timeout" in asked else {}
    )
    runner = Named(name="constant", config={"times": 1, "concurrency": 1, **bound})
    return replace(workload, runner=runner, sla=_SLA, hooks=(), phases={}, warmup_s=0.0)
