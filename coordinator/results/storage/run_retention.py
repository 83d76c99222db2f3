"""Age and size of stored runs, runs to delete, and whether new runs can be stored."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from osbench.common.errors import ConfigError, UsageError
from osbench.coordinator.results.storage.run_directory import RunDirectory

_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def age_s(text: str) -> float:
    """Return the seconds of an age: "30d", "12h", "2w", "90m", "45s". Raises UsageError."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", text.strip())
    if found is None:
        raise UsageError(f"{text!r} is not an age: write a number and s, m, h, d or w, such as 30d")
    return float(found[1]) * _UNITS_S[found[2]]


def size_bytes(directory: RunDirectory) -> int:
    """Return the bytes that the files of a run take on the disk (allocated, not their lengths)."""
    total = 0
    for path in directory.path.rglob("*"):
        try:
            total += path.lstat().st_blocks * 512
        except FileNotFoundError:
            # a file that the run has replaced, or deleted, meanwhile
            continue
    return total


def begun_at(directory: RunDirectory) -> float:
    """Return the start of a run, seconds since 1970; if unknown, its folder's modification time.

    Raises OsbenchError if run.json cannot be read.
    """
    asked = directory.read("run.json")
    if asked is not None and "started_at" in asked:
        return float(asked["started_at"])
    return directory.path.stat().st_mtime


def superfluous(
    runs: Sequence[RunDirectory], *, keep: int | None, older_than_s: float | None, now_at: float
) -> list[RunDirectory]:
    """Return the runs to delete: neither among the newest `keep` nor younger than `older_than_s`.

    `runs` and the result: oldest first. None sets no such limit. `now_at`: seconds since 1970.
    Raises OsbenchError if a run.json cannot be read.
    """
    found = list(runs[: max(0, len(runs) - keep)] if keep is not None else runs)
    if older_than_s is not None:
        found = [one for one in found if now_at - begun_at(one) > older_than_s]
    return found


def check_writable(data_dir: str) -> None:
    """Raise ConfigError if the data directory is another file, or this user may not write to it.

    Checks the nearest existing parent if the directory does not exist.
    """
    path = Path(data_dir)
    nearest = next(one for one in (path, *path.parents) if os.path.lexists(one))
    if not nearest.is_dir():
        why = f"{nearest} is not a directory"
    elif not os.access(nearest, os.W_OK | os.X_OK):
        why = f"this user may not write to {nearest}"
    else:
        return
    raise ConfigError(
        f"[DEFAULT] data_dir: no run can be kept in {path}: {why}. Name a directory that this user "
        "can write to"
    )
