"""Reads and writes `failure.json`: the reason why a run has no report, or ended too early."""

from __future__ import annotations

import contextlib
from typing import Any

from osbench.common.errors import INTERRUPTED, OsbenchError, StorageError
from osbench.common.ports import clock as time
from osbench.common.secrets.masking import error_text
from osbench.coordinator.formatting import plain
from osbench.coordinator.results.storage.progress import done_words
from osbench.coordinator.results.storage.run_directory import RunDirectory

#: File of the run directory: why the run ended without a summary.
FAILURE = "failure.json"

KILLED = "its coordinator was killed, or its host failed"


def keep(directory: RunDirectory, error: BaseException, *, resumable: bool = False) -> None:
    """Write to `failure.json` that `error` ended the run: message, exit code and time.

    The exit code is null for an unforeseen exception. `resumable`: the run ended before its time
    and can be resumed; it may have a report. If the file cannot be written, that is ignored.
    """
    document: dict[str, Any] = {
        "ended_at": time.time(),
        "exit_code": None,
        "resumable": resumable,
    }
    if isinstance(error, OsbenchError):
        document |= {"message": str(error), "exit_code": error.exit_code}
    elif isinstance(error, KeyboardInterrupt):
        document |= {"message": "interrupted", "exit_code": INTERRUPTED}
    else:
        document["message"] = error_text(error)
    # where even the reserve does not suffice
    with contextlib.suppress(StorageError):
        directory.write(FAILURE, document)


def add(directory: RunDirectory, why: str) -> None:
    """Append `why` to the reason, in `failure.json`, why a run has no report.

    Without a note, to the reason that `reason` returns. The run is noted as not resumable. Raises
    OsbenchError if a file cannot be read or written.
    """
    kept = directory.read(FAILURE) or {"ended_at": time.time(), "exit_code": None}
    message = f"{reason(directory)}; {why}"
    directory.write(FAILURE, {**kept, "message": message, "resumable": False})


def leaves_resumable(directory: RunDirectory) -> bool:
    """Return whether the run noted in `failure.json` that it can be resumed, even with a report.

    False without a note. Raises OsbenchError if the file cannot be read.
    """
    kept = directory.read(FAILURE)
    return kept is not None and bool(kept.get("resumable"))


def exit_code(directory: RunDirectory) -> int | None:
    """Return the exit code noted in `failure.json`; None if there is none. Raises OsbenchError."""
    kept = directory.read(FAILURE)
    code = kept.get("exit_code") if kept else None
    return code if isinstance(code, int) else None


def reason(directory: RunDirectory) -> str:
    """Return the reason why a run ended without a report, as a message.

    The noted reason; without a note, its coordinator was killed after the progress that
    `status.json` shows. Raises OsbenchError if a file cannot be read.
    """
    kept = directory.read(FAILURE)
    if kept:
        return str(kept.get("message", KILLED))
    seen = directory.read("status.json")
    if seen is None:
        return f"{KILLED}, before there was load"
    try:
        name = plain(seen["name"])
        done = f"{name} had been {plain(seen['phase'])} for {seen['elapsed_s']:.0f} s"
        if seen.get("workload", 0) < 0:
            return f"{KILLED}; {done}"
        return f"{KILLED}; {done}, iterations: {done_words(seen)}"
    except (AttributeError, KeyError, TypeError, ValueError):
        return f"{KILLED}; its status.json is damaged"
