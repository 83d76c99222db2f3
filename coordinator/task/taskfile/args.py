"""Reads task arguments: the values for a task file's template, from options of the command line."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from osbench.common.errors import Problem, UsageError
from osbench.common.files.named_files import expanded, read_text
from osbench.common.plugin.signature import near
from osbench.coordinator.task.taskfile import document

_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, kw_only=True)
class TaskArguments:
    """Task arguments merged from the command line and files: values for a template by name."""

    values: Mapping[str, Any] = field(default_factory=dict)
    #: Names that the command line gives.
    given: frozenset[str] = frozenset()
    #: The file of each name that only a file gives.
    files: Mapping[str, str] = field(default_factory=dict)

    def refuse_unused(self, templates: Sequence[frozenset[str] | None]) -> list[str]:
        """Check that each argument's name is used by some template.

        Returns warnings for unused names that only files give; raises UsageError for an unused name
        of the command line. Each element of `templates` has the names that one template uses; if an
        element is None (names unknown), nothing is checked.
        """
        known: set[str] = set()
        for names in templates:
            if names is None:
                return []
            known |= names
        for name in sorted(self.given - known):
            raise UsageError(
                f"--task-args: {_unused_argument(name, known)}; leave it out, or use it in the task"
            )
        return [
            f"--task-args-file {path}: {_unused_argument(name, known)}"
            for name, path in self.files.items()
            if name not in known
        ]


def _unused_argument(name: str, known: Collection[str]) -> str:
    listed = f"; its arguments are {', '.join(sorted(known))}" if known else "; it has none"
    return f"the task has no argument {name!r}{near(name, known) or listed}"


def read_args(texts: Sequence[str] = (), files: Sequence[str] = ()) -> TaskArguments:
    """Merge arguments from `files` and then `texts`; later ones override earlier ones.

    `files`: paths of files with a YAML or JSON object. `texts`: such objects, or `k=v,k2=v2`.
    Raises UsageError if a file cannot be read, or a file or text has another form.
    """
    of_files: dict[str, Any] = {}
    places: dict[str, str] = {}
    for path in files:
        found = _from_file(path)
        of_files |= found
        places |= dict.fromkeys(found, path)
    of_texts: dict[str, Any] = {}
    for text in texts:
        of_texts |= _from_text(text)
    return TaskArguments(
        values=of_files | of_texts,
        given=frozenset(of_texts),
        files={name: path for name, path in places.items() if name not in of_texts},
    )


def _from_file(path: str) -> dict[str, Any]:
    origin = f"--task-args-file {path}"
    try:
        text = read_text(expanded(path))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not text in UTF-8"
        raise UsageError(
            f"{origin}: cannot read it: {reason}; give a readable file in UTF-8"
        ) from None
    value, problems = document.parse_document(text)
    return _object(origin, value, problems)


def _from_text(text: str) -> dict[str, Any]:
    value, problems = document.parse_document(text)
    if "=" in text and not isinstance(value, dict):
        pairs = _pairs(text)
        if pairs is not None:
            return pairs
    return _object("--task-args", value, problems)


def _object(origin: str, value: Any, problems: list[Problem]) -> dict[str, Any]:
    if problems:
        raise UsageError(f"{origin}: " + "; ".join(map(str, problems)))
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise UsageError(f"{origin}: must be an object or k=v,k2=v2, got {type(value).__name__}")
    return value


def _pairs(text: str) -> dict[str, Any] | None:
    """Return the arguments in a text `k=v,k2=v2`; None if it has another form.

    A value is read as YAML; if that fails or yields null, it is the string as written.
    """
    pairs: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, written = part.partition("=")
        if not equals or not _NAME.fullmatch(name.strip()):
            return None
        value, problems = document.parse_document(written)
        pairs[name.strip()] = written if problems or value is None else value
    return pairs
