"""Writes task files that commands make; they never replace a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from osbench.common.errors import UsageError
from osbench.common.secrets.masking import mask
from osbench.coordinator.front.cli.base import echo


def write_task(target: str, document: Mapping[str, Any]) -> None:
    """Write a task document as YAML to a new file, or to standard output if `target` is "-".

    For a file, prints its path to stderr; only its owner may read a task with secrets. Raises
    UsageError if the file exists or cannot be written.
    """
    # tasks are written by few commands
    from osbench.coordinator.task.taskfile.task_yaml import task_yaml  # noqa: PLC0415 - see above

    text = task_yaml(document)
    if target == "-":
        echo(text.removesuffix("\n"))
        return
    write_new(Path(target), text, private=mask(document) != document)
    echo(f"wrote {target}; run it with: osbench-coord run {target}", err=True)


def write_new(target: Path, text: str, *, private: bool = False) -> None:
    """Write a new file in UTF-8; if `private`, only its owner may read it.

    Raises UsageError if it exists or cannot be written.
    """
    refuse_existing(target)
    mode = 0o600 if private else 0o666
    try:
        with open(target, "x", encoding="utf-8", opener=partial(os.open, mode=mode)) as file:
            file.write(text)
    except OSError as error:
        raise UsageError(
            f"cannot write {target}: {error.strerror or error}; give a path in a writable folder"
        ) from None


def refuse_existing(target: Path) -> None:
    """Raise UsageError if the file exists already."""
    if target.exists():
        raise UsageError(f"{target} exists; give another name")
