"""From a path to a checked task."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from osbench.common.errors import Problem, TaskError
from osbench.common.plugins import Plugins
from osbench.common.task import Task
from osbench.coordinator.taskfile import document, semantics
from osbench.coordinator.taskfile.overrides import override
from osbench.coordinator.taskfile.parsing import parse
from osbench.coordinator.taskfile.template import render


def load(
    source: str, *, args: Mapping[str, Any], plugins: Plugins, overrides: Sequence[str] = ()
) -> Task:
    """Read, render, override, parse and check a task file; `-` is standard input.

    Raises TaskError with all problems of the first of these steps that finds any, and
    PluginError where the plug-ins themselves cannot be read.
    """
    return checked(read(source, args), source, plugins, overrides)


def checked(value: Any, source: str, plugins: Plugins, overrides: Sequence[str] = ()) -> Task:
    """The task of a document that has been read. Raises TaskError, PluginError."""
    if overrides:
        parse(value, source)  # what is wrong before is told first, and not as an override's fault
        value, problems = override(value, overrides)
        if problems:
            raise TaskError(source, problems)
    task = parse(value, source)
    problems = semantics.check(task, plugins)
    if problems:
        raise TaskError(source, problems)
    return semantics.describe(task, plugins)


def read(source: str, args: Mapping[str, Any]) -> Any:
    """The document in a task file, its template filled in with `args`. Raises TaskError."""
    text = _text(source)
    folder = "." if source == "-" else str(Path(source).expanduser().parent)
    rendered, problems = render(text, folder, args)
    if problems:
        raise TaskError(source, problems)
    value, problems = document.read(rendered)
    if problems:
        raise TaskError(source, problems)
    return value


def _text(source: str) -> str:
    try:
        if source == "-":
            return sys.stdin.read()
        return Path(source).expanduser().read_text("utf-8")
    except OSError as error:
        raise TaskError(source, [Problem("", f"cannot be read: {error.strerror}")]) from None
    except UnicodeDecodeError:
        raise TaskError(source, [Problem("", "is not text in UTF-8")]) from None
