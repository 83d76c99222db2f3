"""Writes task files that commands make; they never replace a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from osbench.common.errors import UsageError
from osbench.coordinator.cli.base import echo


def write_task(target: str, document: Mapping[str, Any]) -> None:
    """Write a task document as YAML to a new file, or to standard output if `target` is "-".

    For a file, prints its path to stderr. Raises UsageError if the file exists or cannot be
    written.
    """
    # tasks are written by few commands
    from osbench.coordinator.taskfile.task_yaml import task_yaml  # noqa: PLC0415 - see above

    text = task_yaml(document)
    if target == "-":
        echo(text.removesuffix("\n"))
        return
    write_new(Path(target), text)
    echo(f"wrote {target}; run it with: osbench-coord run {target}", err=True)


def write_new(target: Path, text: str) -> None:
    """Write a new file in UTF-8. Raises UsageError if it exists or cannot be written."""
    refuse_existing(target)
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(
            f"cannot write {target}: {error.strerror or error}; give a path in a writable folder"
        ) from None


def refuse_existing(target: Path) -> None:
    """Raise UsageError if the file exists already."""
    if target.exists():
        raise UsageError(f"{target} exists; give another name")
