"""Locates the data files of workloads and checks their rows against the workloads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from osbench.common.errors import Problem, TaskError
from osbench.common.files.named_files import expanded
from osbench.common.plugin.iteration_rows import IterationRows
from osbench.common.plugin.runner import Runner
from osbench.common.task import Task, Workload
from osbench.coordinator.task.data_file import MAX_PROBLEMS, DataFile, read_data_file
from osbench.coordinator.task.taskfile.places import inside


def data_file(task: Task, workload: Workload) -> tuple[DataFile | None, list[Problem]]:
    """Return the CSV file that a workload's `args_from` names, and its problems.

    Row N has the arguments of iteration N. (None, []) if the workload names no file; None with
    problems if the file cannot be used.
    """
    return named_file(task, workload.args_from, _place(workload))


def named_file(task: Task, name: str, place: str) -> tuple[DataFile | None, list[Problem]]:
    """Return the CSV file `name` and its problems; (None, []) if `name` is "".

    `name` is relative to the folder of the task file; `place` is its place in the task, for
    problems. The file is None if it cannot be used.
    """
    if not name:
        return None, []
    file, faults = read_data_file(data_path(task, name))
    return file, [Problem(place, fault) for fault in faults]


def data_path(task: Task, name: str) -> Path:
    """Return the path of a file that a task names, relative to the folder of the task file.

    If the task is from standard input, it is relative to the current folder. The file need not
    exist.
    """
    folder = Path() if task.source == "-" else expanded(task.source).parent
    return folder / expanded(name)


def data_files(task: Task) -> dict[int, DataFile]:
    """Return the `args_from` files of a task by workload number, from 0.

    Workloads without one are left out. Raises TaskError with the problems of all files.
    """
    return files_of_workloads(task, data_file)


def files_of_workloads(
    task: Task, find: Callable[[Task, Workload], tuple[DataFile | None, list[Problem]]]
) -> dict[int, DataFile]:
    """Call `find` for each workload; return its files by workload number, from 0.

    Workloads for which it returns no file are left out. Raises TaskError with all problems that it
    returns.
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
    """Yield a problem for each argument that is both a column of the file and set in the task."""
    for name in file.arguments:
        if name in workload.args:
            yield Problem(_place(workload), f"{name} is both a column and an argument")


def misfits(
    file: IterationRows, workload: Workload, check: Callable[[Mapping[str, Any]], list[str]]
) -> Iterator[Problem]:
    """Yield the messages of `check` on the arguments of each row, as problems with its number.

    Rows are counted from 1. Ends after the row that reaches `MAX_PROBLEMS` problems.
    """
    told = 0
    for number, row in enumerate(file.rows(), 1):
        for message in check(row):
            yield Problem(_place(workload), f"{file.name}, row {number}: {message}")
            told += 1
        if told >= MAX_PROBLEMS:
            return


def too_few(file: IterationRows, workload: Workload, runner: Runner) -> Iterator[Problem]:
    """Yield a problem if the runner plans more iterations than the file has rows.

    Nothing if the number of iterations is not known.
    """
    if runner.planned is not None and runner.planned > len(file):
        yield Problem(
            _place(workload),
            f"{file.name} has {len(file)} rows and the runner plans {runner.planned} iterations:"
            " give more rows, or plan fewer",
        )


def _place(workload: Workload) -> str:
    return inside(workload.place, "args_from")
