"""The runs that a web server shows: all of a data directory and an archive, or one."""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from osbench.common.errors import OsbenchError
from osbench.coordinator.front.web.run_list import MOST, ListChoice, shown_row
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_index import rows_of
from osbench.coordinator.results.storage.run_listing import FINISHED, RUNNING
from osbench.coordinator.results.storage.run_store import RunStore, SharedRun

#: Rows of the list that follows what happens.
ROWS = 100
#: Between two looks at the index of an archive, seconds.
REREAD_S = 30.0

#: File systems refuse longer names.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


class RunsShown:
    """The runs that the server shows: finds them by id, and returns them as rows of the list."""

    def __init__(
        self,
        data_dir: str,
        only: str = "",
        *,
        stays: bool = True,
        archive: RunStore | None = None,
    ) -> None:
        """`only`: id of the only run that is shown, which need not exist yet; "" for all runs.

        `stays`: runs are shown after their end, too. `archive`: its runs are shown as well; None
        for no archive.
        """
        self.only = only
        self.stays = stays
        self.data_dir = data_dir
        #: Why the archive could not be read the last time; "" if it could be.
        self.trouble = ""
        self._archive = archive
        self._archived: dict[str, SharedRun] = {}
        self._read_at = -math.inf
        self._reading = threading.Lock()

    def shared_runs(self) -> list[SharedRun]:
        """Return the runs that only the archive has; empty without an archive.

        The index is read again after `REREAD_S` seconds. If that fails, `trouble` gets the reason,
        and the runs known so far are returned; also while another thread is reading.
        """
        # who comes while another one reads gets what was known before
        if self._archive is not None and self._reading.acquire(blocking=False):
            try:
                if time.monotonic() - self._read_at > REREAD_S:
                    self._read_again(self._archive)
            finally:
                self._reading.release()
        here = {one.path.name for one in RunDirectory.all(self.data_dir)} if self._archived else ()
        return [one for name, one in self._archived.items() if name not in here]

    def _read_again(self, archive: RunStore) -> None:
        try:
            self._archived = {one.run_id: one for one in archive.runs()}
            self.trouble = ""
        except OsbenchError as error:
            self.trouble = str(error)
        self._read_at = time.monotonic()

    def find(self, name: str) -> RunDirectory | None:
        """Return the directory of the run `name`; None if there is no such run, or it is not shown.

        A run that is only in the archive is fetched, which takes a while. Raises ArchiveError if
        that fails.
        """
        found = self.here(name)
        if found is None and self._archive is not None:
            there = {one.run_id: one for one in self.shared_runs()}
            return there[name].fetch() if name in there else None
        return found

    def here(self, name: str) -> RunDirectory | None:
        """Return the directory of the run `name` in the data directory; None if it is not shown.

        None also if it is missing. If only one run is shown, its directory is returned even before
        it exists.
        """
        if _NAME.fullmatch(name) is None or (self.only and name != self.only):
            return None
        path = Path(self.data_dir) / "runs" / name
        return RunDirectory(path) if self.only or path.is_dir() else None

    def newest(self) -> tuple[list[dict[str, Any]], int]:
        """Return the rows of the newest runs, at most `ROWS`, newest first, and the count of all.

        Rows have texts, as of `run_list.shown_row`.
        """
        every = self._every()
        return self._in_words(self._rows(every[:ROWS])), len(every)

    def chosen(self, choice: ListChoice) -> tuple[list[dict[str, Any]], int, int]:
        """Return the first `MOST` rows of a choice, the count of all its rows, and of all runs.

        Rows have texts, as of `run_list.shown_row`.
        """
        rows = self._rows(self._every())
        found = choice.of_rows(rows)
        return self._in_words(found[:MOST]), len(found), len(rows)

    def before(self, name: str) -> tuple[str, str]:
        """Return the title of the run's task, and the id of the task's last finished run before it.

        "" for each if there is none.
        """
        rows = self._rows(self._every())[::-1]
        task = next((str(row["task"]) for row in rows if row["run"] == name), "")
        earlier = [
            str(row["run"])
            for row in rows
            if row["run"] < name and row["task"] == task and row["state"] == FINISHED
        ]
        return task, earlier[-1] if earlier else ""

    def alike(self, name: str) -> tuple[list[RunDirectory], list[SharedRun]]:
        """Return the runs that have ended and have the same task as the run `name`, oldest first.

        If that run has ended, it is included. The first list has the runs in the data directory,
        the second others in the archive.
        """
        archived = self.shared_runs()
        rows = rows_of(self.data_dir, RunDirectory.all(self.data_dir))
        rows += [one.row() for one in archived]
        task = next((row["task"] for row in rows if row["run"] == name), None)
        alike = {row["run"] for row in rows if row["task"] == task and row["state"] != RUNNING}
        here = [one for one in RunDirectory.all(self.data_dir) if one.path.name in alike]
        return here, [one for one in archived if one.run_id in alike]

    def _every(self) -> list[RunDirectory | SharedRun]:
        found: dict[str, RunDirectory | SharedRun] = {one.run_id: one for one in self.shared_runs()}
        found |= {one.path.name: one for one in RunDirectory.all(self.data_dir)}
        return [found[name] for name in sorted(found, reverse=True)]

    def _rows(self, runs: Sequence[RunDirectory | SharedRun]) -> list[dict[str, Any]]:
        here = [one for one in runs if isinstance(one, RunDirectory)]
        rows = {row["run"]: row for row in rows_of(self.data_dir, here)}
        for one in runs:
            if not isinstance(one, RunDirectory):
                rows[one.run_id] = {**one.row(), "archived": True}
        names = (one.path.name if isinstance(one, RunDirectory) else one.run_id for one in runs)
        return [rows[name] for name in names]

    def _in_words(self, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        runs = Path(self.data_dir) / "runs"
        return [
            shown_row(row, partial(RunDirectory(runs / str(row["run"])).read, "status.json"))
            for row in rows
        ]
