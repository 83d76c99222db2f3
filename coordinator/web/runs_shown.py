"""The runs that a web server shows: all of a data directory, or one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from osbench.common.errors import OsbenchError
from osbench.coordinator.formatting import count, plain
from osbench.coordinator.storage.progress import done_words
from osbench.coordinator.storage.run_directory import RunDirectory
from osbench.coordinator.storage.run_listing import RUNNING, described

#: Rows of the list, unless all are asked for.
ROWS = 100

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class RunsShown:
    """Finds runs and describes them; what is finished is read once."""

    def __init__(self, data_dir: str, only: str = "") -> None:
        """`only`: the id of the only run that is shown, be it there or to come."""
        self.only = only
        self.data_dir = data_dir
        #: By run id: what decides whether it was read already, and its row.
        self._rows: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {}

    def find(self, name: str) -> RunDirectory | None:
        """The run of an id; None where there is none, or none that is shown."""
        if _NAME.fullmatch(name) is None or (self.only and name != self.only):
            return None
        path = Path(self.data_dir) / "runs" / name
        return RunDirectory(path) if self.only or path.is_dir() else None

    def newest(self, limit: int | None = ROWS) -> tuple[list[dict[str, Any]], int]:
        """Rows of the newest runs, newest first, and how many runs there are."""
        every = RunDirectory.all(self.data_dir)
        every.reverse()
        rows = [self._row(one) for one in every[:limit]]
        self._rows = {
            row["run"]: self._rows[row["run"]] for row in rows if row["run"] in self._rows
        }
        return rows, len(every)

    def _row(self, directory: RunDirectory) -> dict[str, Any]:
        name = directory.path.name
        stamp = _stamp(directory.path)
        known = self._rows.get(name)
        if known is not None and known[0] == stamp:
            return known[1]
        try:
            row = described(directory)
        except OsbenchError as error:
            row = {"run": name, "task": "", "tags": [], "state": "damaged", "exit": None}
            row |= {"planned": None, "ok": None, "why": str(error)}
        row["about"] = plain(row["why"] or "", 120)
        for key in ("planned", "ok"):
            row[key] = "" if row[key] is None else count(row[key])
        if row["state"] == RUNNING:
            row["about"] = _progress(directory)
        else:
            self._rows[name] = (stamp, row)
        return row


def _stamp(path: Path) -> tuple[int, ...]:
    """Changes when a run begins, ends or fails."""
    found = []
    for name in ("run.json", "summary.json", "failure.json"):
        try:
            found.append((path / name).stat().st_mtime_ns)
        except FileNotFoundError:
            found.append(0)
    return tuple(found)


def _progress(directory: RunDirectory) -> str:
    status = directory.read("status.json")
    if status is None:
        return "begins"
    return (
        f"{plain(status['name'])} {status['phase']} for {status['elapsed_s']:.0f} s: "
        f"{done_words(status)}, {count(status['failed'])} failed"
    )
