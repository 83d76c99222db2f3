"""Task arguments: the values for a task file's template."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from osbench.common.errors import Problem, UsageError
from osbench.coordinator.taskfile import document

_NAME = re.compile(r"[A-Za-z_]\w*")


def read_args(texts: Sequence[str] = (), files: Sequence[str] = ()) -> dict[str, Any]:
    """Merge arguments from files and then from texts; later ones override earlier ones.

    A file contains a YAML or JSON object; a text is such an object or `k=v,k2=v2`. Raises
    UsageError.
    """
    merged: dict[str, Any] = {}
    for path in files:
        merged |= _from_file(path)
    for text in texts:
        merged |= _from_text(text)
    return merged


def _from_file(path: str) -> dict[str, Any]:
    origin = f"--task-args-file {path}"
    try:
        text = Path(path).expanduser().read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not text in UTF-8"
        raise UsageError(f"{origin}: {reason}") from None
    value, problems = document.read(text)
    return _object(origin, value, problems)


def _from_text(text: str) -> dict[str, Any]:
    value, problems = document.read(text)
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
    """Arguments of `k=v,k2=v2`, values read as YAML; None if the text has another form."""
    pairs: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, written = part.partition("=")
        if not equals or not _NAME.fullmatch(name.strip()):
            return None
        value, problems = document.read(written)
        pairs[name.strip()] = written if problems or value is None else value
    return pairs
