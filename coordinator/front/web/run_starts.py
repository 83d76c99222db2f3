"""Starts runs from the page: each in a separate process, one at a time.

Runs are started from earlier runs, and from the task files of one folder, by name.
"""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osbench.common.errors import OsbenchError, UsageError
from osbench.common.secrets.masking import mask_text
from osbench.coordinator.formatting import plain
from osbench.coordinator.results.storage.detached_run import DetachedRun, own_command
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_index import rows_of
from osbench.coordinator.results.storage.run_listing import RUNNING

#: Folder of the data directory.
FOLDER = "tasks"
#: Names of files that are offered, and how many of them.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,150}\.(?:yaml|yml|json)")
MOST = 200
#: Longest check of a file, seconds.
CHECK_S = 30.0
#: Problems of a file that are shown, and letters of one.
_PROBLEMS = 50
_LETTERS = 500
#: Starts that are remembered; the oldest are forgotten.
REMEMBERED = 20
_FORM = 'write {"task": FILE}, or {"again": RUN}'


@dataclass(frozen=True, kw_only=True)
class TaskCheck:
    """The result of checking a task file with the command `validate`: problems and notes."""

    ok: bool
    #: Each a place in the file ("" for none) and a message.
    problems: Sequence[tuple[str, str]]
    #: Settings without an effect, in the same form.
    notes: Sequence[tuple[str, str]] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the result as a dict with `ok`, `problems` and `notes`, for scripts.

        Each problem and note is a dict with `place` and `message`.
        """
        return {
            "ok": self.ok,
            **{
                name: [{"place": place, "message": message} for place, message in found]
                for name, found in (("problems", self.problems), ("notes", self.notes))
            },
        }


class TaskFolder:
    """The folder `tasks` in the data directory, whose task files may be started from the page.

    The folder may be a symbolic link; linked files in it do not count.
    """

    def __init__(self, data_dir: str, options: Sequence[str] = ()) -> None:
        """Use the folder of the data directory `data_dir`; it need not exist.

        `options`: options of all commands, such as `--config-file FILE`.
        """
        self.path = Path(data_dir).absolute() / FOLDER
        self._options = tuple(options)

    def names(self) -> list[str]:
        """Return the names of the task files in the folder, sorted; at most `MOST`.

        Empty if the folder cannot be read.
        """
        try:
            with os.scandir(self.path) as entries:
                found = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
        except OSError:
            return []
        return sorted(name for name in found if _NAME.fullmatch(name))[:MOST]

    def find(self, name: str) -> Path:
        """Return the path of the task file `name`. Raises UsageError if the folder lacks it."""
        path = self.path / name
        if _NAME.fullmatch(name) is None or not _is_file(path):
            raise UsageError(
                f"there is no task file {plain(name, 80)!r} in {self.path}; put it there, or "
                "choose another"
            )
        return path

    def check(self, name: str) -> TaskCheck:
        """Check a task file as `validate --offline` does, in a separate process; return the result.

        If the command gives no result within `CHECK_S` seconds, that is the problem in the result.
        Raises UsageError if the folder has no such file.
        """
        path = self.find(name)
        # plug-ins of the task are code: this process does not import them
        command = own_command(*self._options, "validate", "--offline", "--json", "--", str(path))
        try:
            done = subprocess.run(  # noqa: S603 - our own command
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=CHECK_S,
                check=False,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired:
            return _failed_check(f"the check has not ended within {CHECK_S:g} s")
        try:
            found = json.loads(done.stdout)
            problems, notes = _problem_pairs(found["problems"]), _problem_pairs(found["notes"])
        except (ValueError, KeyError, TypeError):
            lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
            return _failed_check(lines[-1] if lines else f"the check ended with {done.returncode}")
        return TaskCheck(ok=not problems and done.returncode == 0, problems=problems, notes=notes)


def _failed_check(message: str) -> TaskCheck:
    return TaskCheck(ok=False, problems=[("", plain(mask_text(message), _LETTERS))])


def _problem_pairs(problems: Sequence[Any]) -> list[tuple[str, str]]:
    """Return (place, message) of problems, cut and masked. Raises KeyError or TypeError."""
    return [
        (
            plain(str(problem["place"]), _LETTERS),
            plain(mask_text(str(problem["message"])), _LETTERS),
        )
        for problem in problems[:_PROBLEMS]
    ]


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


@dataclass(frozen=True, kw_only=True)
class StartRequest:
    """A request to start a run from the page: of a task file, or an earlier run's task again."""

    #: Name of a task file.
    task: str = ""
    #: Id of a run whose task is run again.
    again: str = ""

    @classmethod
    def read(cls, body: bytes) -> StartRequest:
        """Parse the JSON body of a request: an object with `task` or `again`.

        Raises UsageError for any other form.
        """
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            raise UsageError(f"the request is not JSON: {_FORM}") from None
        if not isinstance(found, dict) or len(found) != 1:
            raise UsageError(f"the request must ask for exactly one start: {_FORM}")
        ((name, value),) = found.items()
        if name not in ("task", "again") or not isinstance(value, str) or not value:
            raise UsageError(f"the request must ask for exactly one start: {_FORM}")
        return cls(**{name: value})


@dataclass(frozen=True, kw_only=True)
class StartState:
    """The progress of a run started from the page: state, exit code and output of its command."""

    #: starting, begun, ended; of a run that has begun its directory has the rest.
    state: str
    exit_code: int | None
    #: The last lines that it has printed.
    said: str

    def to_json(self) -> dict[str, Any]:
        """Return the state as a dict for pages and scripts: `state`, `exit_code` and `said`."""
        return {"state": self.state, "exit_code": self.exit_code, "said": self.said}


class RunStarts:
    """Starts runs of a data directory, one at a time; knows the last `REMEMBERED`. Thread-safe."""

    def __init__(
        self, data_dir: str, new_run_id: Callable[[], str], options: Sequence[str] = ()
    ) -> None:
        """`new_run_id` returns an unused run id.

        `options`: options of all commands, such as `--config-file FILE`.
        """
        self.tasks = TaskFolder(data_dir, options)
        self._data_dir = data_dir
        self._new_run_id = new_run_id
        self._options = tuple(options)
        #: By id of the run, the oldest first.
        self._started: dict[str, DetachedRun] = {}
        #: Output of runs that ended before they had begun.
        self._said: dict[str, str] = {}
        self._lock = threading.Lock()

    def start(self, wanted: StartRequest) -> str:
        """Start a run in a separate process and return its id, without waiting for it to begin.

        A thread waits for its end. Raises UsageError if a run of the data directory is running or
        the task file is unknown, OsbenchError if the process cannot be started.
        """
        run_id = self._new_run_id()
        if wanted.task:
            arguments = ["run", "--run-id", run_id, "--", str(self.tasks.find(wanted.task))]
        else:
            arguments = ["rerun", "--run-id", run_id, "--", wanted.again]
        with self._lock:
            other = self._going_on()
            if other:
                raise UsageError(
                    f"run {other} is running, and this page starts one run at a time; wait for its "
                    "end, or abort it"
                )
            try:
                started = DetachedRun(self._data_dir, run_id, [*self._options, *arguments])
            except OSError as error:
                raise OsbenchError(
                    f"the run cannot be started: {error}; check that this host can start "
                    "osbench-coord"
                ) from None
            self._started[run_id] = started
            self._forget()
        # its end is waited for, so that no zombie is left
        threading.Thread(target=self._await, args=(started,), name="start", daemon=True).start()
        return run_id

    def state(self, run_id: str) -> StartState | None:
        """Return the progress of a run that `start` started; None if it is unknown or forgotten."""
        started = self._started.get(run_id)
        if started is None:
            return None
        # before it is asked whether it has begun: it may do both meanwhile
        code = started.exit_code
        state = "begun" if started.begun else "starting" if code is None else "ended"
        said = self._said.get(run_id) or started.said()
        return StartState(state=state, exit_code=code, said=said)

    def stop(self, run_id: str) -> None:
        """Interrupt the command of a run that has not begun yet.

        Raises UsageError if it has begun or ended, or is unknown.
        """
        found = self.state(run_id)
        if found is None or found.state != "starting":
            raise UsageError(f"run {run_id} is not starting; abort it on its page if it is running")
        self._started[run_id].interrupt()

    def _going_on(self) -> str:
        """Return the id of a run that is starting, running or ending its workers, or ""."""
        for name, one in self._started.items():
            # it may be ending its workers, with its report written
            if one.exit_code is None:
                return name
        rows = rows_of(self._data_dir, RunDirectory.all(self._data_dir))
        return next((str(row["run"]) for row in rows[::-1] if row["state"] == RUNNING), "")

    def _await(self, started: DetachedRun) -> None:
        started.wait()
        if not started.begun:
            self._said[started.run_id] = started.said()
            started.forget()

    def _forget(self) -> None:
        for name in list(self._started)[:-REMEMBERED]:
            del self._started[name]
            self._said.pop(name, None)
