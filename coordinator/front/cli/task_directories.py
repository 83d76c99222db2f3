"""`run DIR`: the task files of a directory, one after the other."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.padding import Padding
from rich.text import Text

from osbench.common.errors import INTERRUPTED, OsbenchError, UsageError
from osbench.common.text.escaping import escaped, one_line
from osbench.coordinator.formatting import count, plain
from osbench.coordinator.front.cli.base import CommandSettings, console, echo
from osbench.coordinator.front.cli.one_run import Interrupts, Wanted
from osbench.coordinator.front.cli.options.task_options import read_task
from osbench.coordinator.front.cli.progress_display import Progress
from osbench.coordinator.front.cli.repeated_runs import run_tagged
from osbench.coordinator.load.run.plan import new_run_id
from osbench.coordinator.report.exit_code import AROUND, MEANINGS, worst
from osbench.coordinator.report.model.model import Report
from osbench.coordinator.report.text import render
from osbench.coordinator.results.storage.frames import reason_of
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.text_table import TextTable, figures, names, texts

#: Version of the JSON object that `run DIR` prints.
FORMAT = 1

_SUFFIXES = frozenset((".yaml", ".yml", ".json"))


@dataclass(frozen=True, kw_only=True)
class TaskRun:
    """The outcome of one task file of `run DIR`: run, failed to begin, or not run."""

    path: Path
    #: None if it was not run.
    exit_code: int | None
    #: None if it could not begin.
    report: Report | None = None
    #: Why it could not begin, or was not run.
    error: str = ""


def run_directory(
    settings: CommandSettings,
    wanted: Wanted,
    progress: Progress,
    *,
    keep_going: bool,
    page: str | None,
    as_json: bool,
) -> int:
    """Run the task files of the directory `wanted.source`; return the worst exit code of all.

    All are checked before the first is run. An interrupt ends the series, and unless `keep_going`
    an exit code other than 0 does. Prints each report and a table, or JSON; all runs get one tag in
    common. `page`: path of an HTML page of all runs. Raises UsageError if there is no task file,
    for an unfit `page`, and if a file is faulty unless `keep_going`.
    """
    folder = Path(str(wanted.source))
    paths = task_files(folder)
    if page is not None:
        check_page(Path(page))
    wrong = _wrong(settings, wanted, paths)
    if wrong and not keep_going:
        listed = "\n".join(f"{path.name}: {said}" for path, said in wrong.items())
        raise UsageError(f"{listed}\ncorrect these tasks, or run only the others with --keep-going")
    tag = f"directory-{new_run_id()}"
    found = _run_all(settings, wanted, progress, tag, paths, wrong, keep_going, as_json=as_json)
    code = worst([one.exit_code for one in found if one.exit_code is not None])
    if page is not None and not _write_page(settings, found, folder, Path(page), code):
        code = worst((code, AROUND))
    if as_json:
        tasks = [
            {"file": one.path.name, "exit_code": one.exit_code, "error": one.error}
            | {"run": one.report.to_json() if one.report else None}
            for one in found
        ]
        echo(json.dumps({"format": FORMAT, "tag": tag, "exit_code": code, "tasks": tasks}))
    else:
        _print(found, tag, code)
    return code


def check_page(path: Path) -> None:
    """Raise UsageError if the path ends with neither .html nor .htm, or its folder is missing."""
    if path.suffix not in (".html", ".htm"):
        raise UsageError(
            f"--report {path}: the page of a directory needs a name that ends with .html; the"
            " reports of its runs go to the folder of that name and -runs"
        )
    if not path.parent.is_dir():
        raise UsageError(f"--report {path}: there is no folder {path.parent}: create it")


def _write_page(
    settings: CommandSettings, tasks: Sequence[TaskRun], folder: Path, page: Path, code: int
) -> bool:
    """Write the page of all tasks; return whether that succeeded.

    If not, prints the error. A run whose report cannot be made has the reason on the page. `code`:
    the exit code on the page.
    """
    from osbench.coordinator.report.html import (  # noqa: PLC0415 - templates take a while
        RunOnPage,
        write_runs_page,
    )
    from osbench.coordinator.report.page_facts import gather  # noqa: PLC0415 - as above
    from osbench.coordinator.report.run_facts import read_facts  # noqa: PLC0415 - as above

    def on_page(task: TaskRun) -> RunOnPage:
        facts, error = None, task.error
        if task.report is not None:
            try:
                name = task.report.run_id
                facts = gather(read_facts(RunDirectory.find(settings.conf.data_dir, name)))
            except OsbenchError as problem:
                error = f"its report cannot be made: {problem}"
            except OSError as problem:
                error = f"its files cannot be read: {reason_of(problem)}"
        return RunOnPage(file=task.path.name, exit_code=task.exit_code, facts=facts, error=error)

    title = folder.resolve().name or str(folder)
    try:
        write_runs_page(page, title, map(on_page, tasks), code)
    except OSError as error:
        echo(one_line(f"Error: --report {page}: cannot write it: {reason_of(error)}"), err=True)
        return False
    echo(f"wrote {page}", err=True)
    return True


def task_files(folder: Path) -> list[Path]:
    """Return the task files of a directory, sorted by name. Raises UsageError if there are none.

    Hidden files, and files that do not end with .yaml, .yml or .json, are left out.
    """
    found = sorted(
        path
        for path in folder.iterdir()
        if path.suffix in _SUFFIXES and not path.name.startswith(".") and path.is_file()
    )
    if not found:
        raise UsageError(
            f"{folder} has no file *.yaml, *.yml or *.json to run; name a folder of tasks"
        )
    return found


def _wrong(settings: CommandSettings, wanted: Wanted, paths: Sequence[Path]) -> dict[Path, str]:
    wrong: dict[Path, str] = {}
    for path in paths:
        try:
            read_task(str(path), settings.conf, wanted.options)
        except OsbenchError as error:
            wrong[path] = str(error)
    return wrong


def _run_all(
    settings: CommandSettings,
    wanted: Wanted,
    progress: Progress,
    tag: str,
    paths: Sequence[Path],
    wrong: dict[Path, str],
    keep_going: bool,
    *,
    as_json: bool,
) -> list[TaskRun]:
    found: list[TaskRun] = []
    interrupts = Interrupts()
    why = ""
    with interrupts.noted():
        for number, path in enumerate(paths, 1):
            if why:
                code = INTERRUPTED if interrupts.count else None
                found.append(TaskRun(path=path, exit_code=code, error=why))
                continue
            progress.say(f"task {number} of {len(paths)}: {path.name}")
            one = _run_one(settings, wanted, progress, interrupts, tag, path, wrong.get(path, ""))
            found.append(one)
            if one.error:
                echo(escaped(f"Error: {path.name}: {one.error}", breaks=True), err=True)
            elif one.report is not None and not as_json:
                render(one.report, console())
                echo("")
            if interrupts.count:
                why = "not run: interrupted"
            elif one.exit_code and not keep_going:
                why = f"not run: {path.name} ended with exit code {one.exit_code}"
    return found


def _run_one(
    settings: CommandSettings,
    wanted: Wanted,
    progress: Progress,
    interrupts: Interrupts,
    tag: str,
    path: Path,
    wrong: str,
) -> TaskRun:
    if wrong:
        return TaskRun(path=path, exit_code=UsageError.exit_code, error=wrong)
    try:
        report = run_tagged(settings, replace(wanted, source=str(path)), progress, interrupts, tag)
    except OsbenchError as error:
        return TaskRun(path=path, exit_code=error.exit_code, error=str(error))
    return TaskRun(path=path, exit_code=report.exit_code, report=report)


def _print(found: Sequence[TaskRun], tag: str, code: int) -> None:
    terminal = console()
    table = TextTable(texts("task"), names("run"), figures("exit code"), texts(""))
    for one in found:
        said = one.error.partition("\n")[0] or MEANINGS.get(one.exit_code or 0, "unknown")
        if one.report is not None and not one.error:
            said = one.report.exit_meaning or said
        table.add_row(
            plain(one.path.name, 100),
            plain(one.report.run_id) if one.report else "",
            "" if one.exit_code is None else str(one.exit_code),
            plain(said, 200),
        )
    terminal.print(Text(f"{count(len(found), 'task')}, exit code {code}", style="bold"))
    terminal.print(Padding(table, (0, 0, 0, 3)))
    echo(f"Tag of these runs: {tag}")
