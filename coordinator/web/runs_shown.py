"""The runs that a web server shows: all of a data directory, or one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from osbench.coordinator.formatting import count, plain
from osbench.coordinator.storage.progress import done_words
from osbench.coordinator.storage.run_directory import RunDirectory
from osbench.coordinator.storage.run_index import rows_of
from osbench.coordinator.storage.run_listing import FINISHED, RUNNING
from osbench.coordinator.web.run_list import MOST, ListChoice, shown

#: Rows of the list that follows what happens.
ROWS = 100

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class RunsShown:
    """Finds runs and describes them."""

    def __init__(self, data_dir: str, only: str = "", *, stays: bool = True) -> None:
        """`only`: the id of the only run that is shown, be it there or to come.

        `stays`: runs are shown after their end, too.
        """
        self.only = only
        self.stays = stays
        self.data_dir = data_dir

    def find(self, name: str) -> RunDirectory | None:
        """The run of an id; None where there is none, or none that is shown."""
        if _NAME.fullmatch(name) is None or (self.only and name != self.only):
            return None
        path = Path(self.data_dir) / "runs" / name
        return RunDirectory(path) if self.only or path.is_dir() else None

    def newest(self) -> tuple[list[dict[str, Any]], int]:
        """Rows of the newest runs in words, newest first, and how many runs there are."""
        every = RunDirectory.all(self.data_dir)[::-1]
        return self._in_words(rows_of(self.data_dir, every[:ROWS])), len(every)

    def chosen(self, choice: ListChoice) -> tuple[list[dict[str, Any]], int, int]:
        """The first rows that are looked for; how many there are, and how many runs."""
        rows = rows_of(self.data_dir, RunDirectory.all(self.data_dir)[::-1])
        found = choice.of_rows(rows)
        return self._in_words(found[:MOST]), len(found), len(rows)

    def before(self, name: str) -> tuple[str, str]:
        """The task of a run, and the last finished run of it that began earlier; "" for none."""
        rows = rows_of(self.data_dir, RunDirectory.all(self.data_dir))
        task = next((str(row["task"]) for row in rows if row["run"] == name), "")
        earlier = [
            str(row["run"])
            for row in rows
            if row["run"] < name and row["task"] == task and row["state"] == FINISHED
        ]
        return task, earlier[-1] if earlier else ""

    def alike(self, name: str) -> list[RunDirectory]:
        """The runs of the task of a run that have ended, oldest first."""
        rows = rows_of(self.data_dir, RunDirectory.all(self.data_dir))
        task = next((row["task"] for row in rows if row["run"] == name), None)
        runs = Path(self.data_dir) / "runs"
        return [
            RunDirectory(runs / str(row["run"]))
            for row in rows
            if row["task"] == task and row["state"] != RUNNING
        ]

    def _in_words(self, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        runs = Path(self.data_dir) / "runs"
        return [
            shown(row, partial(_progress, RunDirectory(runs / str(row["run"])))) for row in rows
        ]


def _progress(directory: RunDirectory) -> str:
    status = directory.read("status.json")
    if status is None:
        return "begins"
    return (
        f"{plain(status['name'])} {status['phase']} for {status['elapsed_s']:.0f} s: "
        f"{done_words(status)}, {count(status['failed'])} failed"
    )
