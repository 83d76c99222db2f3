"""Loads a task file: from its path to a task checked against its plug-ins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from osbench.common.errors import Problem, TaskError
from osbench.common.files.named_files import expanded, read_stdin, read_text
from osbench.common.network.origins import is_http
from osbench.common.plugin.plugins import Plugins
from osbench.common.secrets.url_masking import mask_url
from osbench.common.task import Task
from osbench.coordinator.task.taskfile import document, semantics
from osbench.coordinator.task.taskfile.overrides import override
from osbench.coordinator.task.taskfile.parsing import parse, sound_part
from osbench.coordinator.task.taskfile.selection import Selection

#: All of a task.
ALL = Selection()


def load(
    source: str,
    *,
    args: Mapping[str, Any],
    plugins: Plugins,
    overrides: Sequence[str] = (),
    selection: Selection = ALL,
) -> Task:
    """Read, render, override, parse, select and check a task file; return the task.

    `source`: path, or "-" for standard input. `args`: for its template. `overrides`: as of `--set`.
    Durations in the task are seconds. Raises TaskError with all problems of the file or the
    overrides, PluginError if plug-ins cannot be read, UsageError if the selection matches nothing.
    """
    return checked_task(read_document(source, args), source, plugins, overrides, selection)


def checked_task(
    value: Any,
    source: str,
    plugins: Plugins,
    overrides: Sequence[str] = (),
    selection: Selection = ALL,
) -> Task:
    """Apply overrides and selection to a document that has been read; return the checked task.

    `value`: the document; it is not modified. `source`: its path, for messages. Raises TaskError,
    PluginError and UsageError as `load` does.
    """
    if overrides:
        # so that problems of the file are not reported as an override's
        _parsed_task(value, source, plugins)
        value, problems = override(value, overrides)
        if problems:
            raise TaskError(source, problems)
    parsed = selection.of(_parsed_task(value, source, plugins))
    task = semantics.in_seconds(parsed, plugins)
    if problems := _problems(parsed, task, plugins):
        raise TaskError(source, problems)
    return semantics.describe(task, plugins)


def _parsed_task(value: Any, source: str, plugins: Plugins) -> Task:
    """Return the task of a document, checked against the format but not its plug-ins.

    If the format has faults, raises TaskError with all of them and with the problems that plug-ins
    find in the remaining parts.
    """
    try:
        return parse(value, source)
    except TaskError as error:
        rest = sound_part(value, source)
        if rest is None:
            raise
        task = semantics.in_seconds(rest, plugins)
        more = _problems(rest, task, plugins)
        raise TaskError(source, [*error.problems, *more]) from None


def _problems(parsed: Task, task: Task, plugins: Plugins) -> list[Problem]:
    """Return the problems that plug-ins find in a task; log faults of plug-in files.

    `parsed`: the task before `in_seconds`, in which the default SLA can be recognized.
    """
    problems = semantics.check(task, plugins) + semantics.without_criteria(parsed, plugins)
    plugins.warn(said="".join(problem.message for problem in problems))
    return list(_said_once(problems, plugins.reasons()))


def _said_once(problems: Sequence[Problem], reasons: Sequence[str]) -> Iterator[Problem]:
    """Yield the problems, each reason of a refused plug-in file only in the first message with it.

    `reasons`: all such reasons. In later messages "as said above" stands for it.
    """
    said: set[str] = set()
    for problem in problems:
        message = problem.message
        for reason in map(mask_url, reasons):
            if reason in said:
                message = message.replace(reason, "as said above")
            elif reason in message:
                said.add(reason)
        yield Problem(problem.place, message)


def read_document(source: str, args: Mapping[str, Any]) -> Any:
    """Return the parsed YAML value of the task file `source`, rendered with `args`.

    "-" is standard input. Raises TaskError if it cannot be read, rendered or parsed.
    """
    return TaskTemplate(source).filled(args)


class TaskTemplate:
    """The text of a task file, read once because standard input cannot be read again."""

    def __init__(self, source: str) -> None:
        """Read the file at the path `source`, or standard input for `-`.

        Raises TaskError if that fails, or the source is a URL or a Python file.
        """
        self.source = source
        self._text = _text(source)
        #: Nothing in it is for Jinja2, which takes a while to import, and 2 MB.
        self._is_plain = not any(mark in self._text for mark in ("{{", "{%", "{#"))
        self._folder = "." if source == "-" else str(expanded(source).parent)

    def names(self) -> frozenset[str] | None:
        """Return the argument names of the template and its included files; None if unknown."""
        if self._is_plain:
            return frozenset()
        # a task of options has no file
        from osbench.coordinator.task.taskfile.template import names  # noqa: PLC0415 - see above

        return names(self._text, self._folder)

    def filled(self, args: Mapping[str, Any]) -> Any:
        """Render the template with `args` and return the parsed YAML value.

        Raises TaskError if rendering or parsing fails.
        """
        # Jinja2 takes the last line's end off, too
        problems: list[Problem] = []
        rendered = self._text.removesuffix("\n")
        if not self._is_plain:
            from osbench.coordinator.task.taskfile.template import render  # noqa: PLC0415 - as in names

            rendered, problems = render(self._text, self._folder, args)
        if problems:
            raise TaskError(self.source, problems)
        value, problems = document.parse_document(rendered)
        if problems:
            raise TaskError(self.source, problems)
        return value


def _text(source: str) -> str:
    if wrong := _no_task(source):
        raise TaskError(source, [Problem("", wrong)])
    try:
        if source == "-":
            return read_stdin()
        return read_text(expanded(source))
    except OSError as error:
        raise TaskError(source, [Problem("", f"cannot be read: {error.strerror}")]) from None
    except UnicodeDecodeError:
        raise TaskError(source, [Problem("", "is not text in UTF-8")]) from None


def _no_task(source: str) -> str:
    """Return a message if `source` is a URL or a Python file, with a remedy; else ""."""
    if is_http(source):
        return (
            "is an address, not a task file: run it with `osbench-coord run --url"
            f" {mask_url(source)} --rps 20 --duration 30`"
        )
    if source.endswith(".py"):
        return (
            "is Python, not a task file: run a scenario in it with `osbench-coord run --scenario"
            f" NAME --plugin-path {source}`; `osbench-coord plugin list scenario --plugin-path"
            f" {source}` lists them"
        )
    return ""
