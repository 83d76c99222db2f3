"""Starts runs from the page: each in a separate process, one at a time."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from osbench.common.errors import OsbenchError, UsageError
from osbench.coordinator.front.web.task_folder import TaskFolder
from osbench.coordinator.results.storage.detached_run import DetachedRun
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_index import rows_of
from osbench.coordinator.results.storage.run_listing import RUNNING

#: Starts that are remembered; the oldest are forgotten.
REMEMBERED = 20
_FORM = 'write {"task": FILE}, or {"again": RUN}'


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
    """The progress of a run that was started from the page: state, exit code and output of its
    command.
    """

    #: starting, begun, ended; of a run that has begun its directory has the rest.
    state: str
    exit_code: int | None
    #: The last lines that it has printed.
    said: str

    def to_json(self) -> dict[str, Any]:
        """Return the state as a dict for pages and scripts: `state`, `exit_code` and `said`."""
        return {"state": self.state, "exit_code": self.exit_code, "said": self.said}


class RunStarts:
    """Starts runs of a data directory, one at a time, and knows the last `REMEMBERED` of them.

    Thread-safe.
    """

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
        """Return the progress of the run `run_id` that `start` started; None if unknown or
        forgotten.
        """
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
