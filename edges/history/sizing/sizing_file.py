"""Stores the result of `plan` for a task in the data directory, for later runs of the task."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from osbench.common.errors import OsbenchError
from osbench.common.files.regular_files import read_regular, write_private
from osbench.common.task import Task

#: Version of the document that `plan --json` prints and this file holds.
SIZING_FORMAT = 1
#: A larger file is none of ours.
_MOST_BYTES = 64 << 20


def task_digest(task: Task) -> str:
    """Return a digest of all that decides a task's load: 32 hexadecimal digits.

    Two tasks that differ only in path, names, description, tags, SLA, hooks, drills or `abort` have
    the same.
    """
    subtasks = [
        {
            "run_in_parallel": subtask.run_in_parallel,
            "workloads": [_load_of(dataclasses.asdict(one)) for one in subtask.workloads],
        }
        for subtask in task.subtasks
    ]
    text = json.dumps(subtasks, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _load_of(workload: dict[str, Any]) -> dict[str, Any]:
    # SLA and hooks do not decide what an iteration costs
    others = ("place", "named", "description", "sla", "hooks", "phases", "abort")
    return {key: value for key, value in workload.items() if key not in others}


def save_sizing(data_dir: str, digest: str, document: Mapping[str, Any]) -> None:
    """Write `document`, the result of `plan`, to the data directory, replacing an earlier one.

    `digest`: from `task_digest`; it names the file. Raises OsbenchError if it cannot be written.
    """
    path = _path(data_dir, digest)
    try:
        write_private(path, json.dumps(document).encode())
    except OSError as error:
        raise OsbenchError(
            f"cannot write {path}: {error.strerror}; free space, or make its folder writable"
        ) from None


def load_sizing(data_dir: str, digest: str) -> dict[str, Any] | None:
    """Return the result of `plan` saved for the task with this digest.

    None if there is no such file, or if it is unreadable, malformed or of another format version.
    """
    try:
        found = json.loads(read_regular(_path(data_dir, digest), _MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.get("format") != SIZING_FORMAT:
        return None
    return found if isinstance(found.get("workloads"), list) else None


def _path(data_dir: str, digest: str) -> Path:
    return Path(data_dir) / "plans" / f"{digest}.json"
