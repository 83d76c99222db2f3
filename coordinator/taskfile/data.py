"""Data files of workloads: located relative to the task file, checked against the workload."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from osbench.common.errors import Problem, TaskError
from osbench.common.plugin.runner import Runner
from osbench.common.task import Task, Workload
from osbench.coordinator.data_file import DataFile, read
from osbench.coordinator.taskfile.places import inside


def data_file(task: Task, workload: Workload) -> tuple[DataFile | None, list[Problem]]:
    """A workload's data file and its problems; neither if the workload names no file.

    Its path is relative to the folder of the task file.
    """
    if not workload.args_from:
        return None, []
    folder = Path() if task.source == "-" else Path(task.source).expanduser().parent
    file, faults = read(folder / Path(workload.args_from).expanduser())
    return file, [Problem(_place(workload), fault) for fault in faults]


def data_files(task: Task) -> dict[int, DataFile]:
    """The data file of each workload that has one, by workload number. Raises TaskError."""
    found, problems = {}, []
    for number, workload in enumerate(task.workloads):
        file, faults = data_file(task, workload)
        problems += faults
        if file is not None:
            found[number] = file
    if problems:
        raise TaskError(task.source, problems)
    return found


def given_twice(file: DataFile, workload: Workload) -> Iterator[Problem]:
    """Arguments that are set both in the file and in the task."""
    for name in file.arguments:
        if name in workload.args:
            yield Problem(_place(workload), f"{name} is a column and among the arguments, too")


def too_few(file: DataFile, workload: Workload, runner: Runner) -> Iterator[Problem]:
    """A problem if the plan has more iterations than there are rows."""
    if runner.planned is not None and runner.planned > len(file):
        yield Problem(
            _place(workload),
            f"{file.name} has {len(file)} rows and the runner plans {runner.planned} iterations:"
            " give more rows, or plan fewer",
        )


def _place(workload: Workload) -> str:
    return inside(workload.place, "args_from")
