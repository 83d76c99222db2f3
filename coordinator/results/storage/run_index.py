"""Cache of the rows of finished runs in one SQLite file: lists of thousands take under a second.

The file is made again if it is lost or cannot be read, and its rows if a run has changed. Nothing
depends on it.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_listing import FINISHED, run_row

#: In the data directory.
INDEX = "runs.sqlite"
#: Version of the rows; rows of another version are left out.
_FORMAT = 1
#: For how long a list waits for another one that writes, seconds.
_BUSY_S = 0.5
#: Names per query; old releases of SQLite allow 999.
_NAMES = 500
_TABLE = (
    "CREATE TABLE IF NOT EXISTS runs"
    " (name TEXT PRIMARY KEY, format INTEGER, stamp TEXT, row TEXT) WITHOUT ROWID"
)

#: By run: the state of its files, and its row as JSON.
Entries = dict[str, tuple[str, str]]


def rows_of(data_dir: str, runs: Sequence[RunDirectory]) -> list[dict[str, Any]]:
    """Return a row for each of `runs`, in their order: `run_row`, and `size_bytes` of its files.

    Rows of finished runs are cached in the file `runs.sqlite` until a file of the run changes.
    Damage stands in the row and is not raised.
    """
    path = Path(data_dir) / INDEX
    known, fresh = _read_entries(path, [one.path.name for one in runs]), Entries()
    found = []
    for run in runs:
        name = run.path.name
        stamp, size = _state(run.path)
        entry = known.get(name)
        if entry is not None and entry[0] == stamp:
            found.append(json.loads(entry[1]))
            continue
        row = {**run_row(run), "size_bytes": size}
        if row["state"] == FINISHED:
            fresh[name] = (stamp, json.dumps(row))
        found.append(row)
    if fresh:
        _write(path, fresh)
    return found


def _state(folder: Path) -> tuple[str, int]:
    """Return a stamp that changes with any file of a run, and the bytes of all its files."""
    files: list[tuple[str, int, int]] = []
    waiting = [str(folder)]
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    found = entry.stat(follow_symlinks=False)
                    files.append((entry.path, found.st_size, found.st_mtime_ns))
    own = len(str(folder)) + 1
    listed = [(path[own:], size, at) for path, size, at in sorted(files)]
    return json.dumps(listed), sum(size for _, size, _ in files)


def _read_entries(path: Path, names: Sequence[str]) -> Entries:
    if not path.exists():
        return {}
    entries: Entries = {}
    try:
        with closing(_open_index(path)) as index:
            for at in range(0, len(names), _NAMES):
                part = names[at : at + _NAMES]
                marks = ",".join("?" * len(part))
                asked = f"SELECT name, stamp, row FROM runs WHERE format = ? AND name IN ({marks})"  # noqa: S608 - marks only
                entries |= {
                    name: (stamp, row)
                    for name, stamp, row in index.execute(asked, (_FORMAT, *part))
                }
    except (OSError, sqlite3.OperationalError):
        # busy, or no rights: without it
        return {}
    except sqlite3.Error:
        with suppress(OSError):
            path.unlink()
        return {}
    return entries


def _write(path: Path, fresh: Mapping[str, tuple[str, str]]) -> None:
    with suppress(OSError, sqlite3.Error), closing(_open_index(path)) as index, index:
        index.execute(_TABLE)
        gone = [
            (name,)
            for (name,) in index.execute("SELECT name FROM runs")
            if not (path.parent / "runs" / name).exists()
        ]
        index.executemany("DELETE FROM runs WHERE name = ?", gone)
        index.executemany(
            "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?)",
            [(name, _FORMAT, stamp, row) for name, (stamp, row) in fresh.items()],
        )


def _open_index(path: Path) -> sqlite3.Connection:
    # only the owner may read titles of tasks
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    return sqlite3.connect(path, timeout=_BUSY_S)
