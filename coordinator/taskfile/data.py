"""Data files of workloads: located relative to the task file, checked against the workload."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from osbench.common.errors import Problem, TaskError
from osbench.common.named_files import expanded
from osbench.common.plugin.iteration_rows import IterationRows
from osbench.common.plugin.runner import Runner
from osbench.common.task import Task, Workload
from osbench.coordinator.data_file import MAX_PROBLEMS, DataFile, read
from osbench.coordinator.taskfile.places import inside


def data_file(task: Task, workload: Workload) -> tuple[DataFile | None, list[Problem]]:
    """A workload's data file and its problems; neither if the workload names no file.

    Its path is relative to the folder of the task file.
    """
    return named_file(task, workload.args_from, _place(workload))


def named_file(task: Task, name: str, place: str) -> tuple[DataFile | None, list[Problem]]:
    """A file that the task names at a place, and its problems; neither where `name` is empty."""
    if not name:
        return None, []
    file, faults = read(located(task, name))
    return file, [Problem(place, fault) for fault in faults]


def located(task: Task, name: str) -> Path:
    """The path of a file that a task names, relative to the folder of the task file."""
    folder = Path() if task.source == "-" else expanded(task.source).parent
    return folder / expanded(name)


def data_files(task: Task) -> dict[int, DataFile]:
    """The data file of each workload that has one, by workload number. Raises TaskError."""
    return files_of_workloads(task, data_file)


def files_of_workloads(
    task: Task, find: Callable[[Task, Workload], tuple[DataFile | None, list[Problem]]]
) -> dict[int, DataFile]:
    """Return the files that `find` returns, by workload number.

    Raises TaskError with the problems of all workloads.
    """
    found, problems = {}, []
    for number, workload in enumerate(task.workloads):
        file, faults = find(task, workload)
        problems += faults
        if file is not None:
            found[number] = file
    if problems:
        raise TaskError(task.source, problems)
    return found


def given_twice(file: IterationRows, workload: Workload) -> Iterator[Problem]:
    """Arguments that are set both in the file and in the task."""
    for name in file.arguments:
        if name in workload.args:
            yield Problem(_place(workload), f"{name} is a column and among the arguments, too")


def misfits(
    file: IterationRows, workload: Workload, check: Callable[[Mapping[str, Any]], list[str]]
) -> Iterator[Problem]:
    """Yield the problems that `check` finds with each row's arguments; of many the first."""
    told = 0
    for number, row in enumerate(file.rows(), 1):
        for message in check(row):
            yield Problem(_place(workload), f"{file.name}, row {number}: {message}")
            told += 1
        if told >= MAX_PROBLEMS:
            return


def too_few(file: IterationRows, workload: Workload, runner: Runner) -> Iterator[Problem]:
    """A problem if the plan has more iterations than there are rows."""
    if runner.planned is not None and runner.planned > len(file):
        yield Problem(
            _place(workload),
            f"{file.name} has {len(file)} rows and the runner plans {runner.planned} iterations:"
            " give more rows, or plan fewer",
        )


def _place(workload: Workload) -> str:
    return inside(workload.place, "args_from")
