"""Whether a run without a coordinator can be resumed, judged by the files of its directory."""

from __future__ import annotations

from typing import Any

from osbench.coordinator.results.storage import failure
from osbench.coordinator.results.storage.digests import DIGESTS
from osbench.coordinator.results.storage.run_directory import RunDirectory

#: File of the run directory, encrypted: what a coordinator needs to go on. It is there from the
#: beginning of the run, before anything is done, to its report.
PLAN = "plan"
#: Dump of a local run's server, made after its coordinator ended: results that were not received.
SERVER = "server.rdb"
#: Locked by the process that writes that.
SERVER_LOCK = "server.lock"
#: Spools of spans, which only the collection of traces at the end of a run reads.
SPOOLS = ("traces/from_workers", "traces/received", "traces/received.json", "traces/queried")
#: All that is kept for another coordinator; the plan goes first: without it nothing else counts.
_KEPT = (PLAN, "prepared", "notes", SERVER, SERVER_LOCK, *SPOOLS)


def refusal(directory: RunDirectory) -> str:
    """Return the reason why a run cannot be resumed, as a message; "" if it can be resumed.

    Reasons are a coordinator, a final report, and a missing file `plan`. Raises OsbenchError if a
    file cannot be read.
    """
    name = directory.path.name
    if directory.has_coordinator():
        return f"run {name} has a coordinator already"
    if is_ended(directory):
        return f"run {name} is finished: `osbench-coord runs show {name}` prints its report"
    if not (directory.path / PLAN).exists():
        if directory.read(failure.FAILURE) is None:
            # who ends a run for good notes why
            return (
                f"run {name} cannot be resumed: its file {PLAN} is missing; put it back from a "
                f"copy, or undo its contexts with `osbench-coord cleanup {name}`"
            )
        return f"run {name} cannot be resumed: {failure.reason(directory)}"
    return ""


def report(directory: RunDirectory) -> dict[str, Any] | None:
    """Return the summary of a finished run; None if the run has a coordinator or is not finished.

    Raises OsbenchError if a file cannot be read.
    """
    if directory.has_coordinator() or not is_ended(directory):
        return None
    return directory.read("summary.json")


def is_ended(directory: RunDirectory) -> bool:
    """Return whether a run has its report and cannot be resumed. Raises OsbenchError.

    Its file `plan` may still be there: a coordinator may be killed before it removes that.
    """
    has_report = (directory.path / "summary.json").exists()
    return has_report and not failure.leaves_resumable(directory)


def begin_again(directory: RunDirectory) -> None:
    """Delete the summary, failure note and digests of a run that a coordinator has resumed."""
    for name in ("summary.json", failure.FAILURE, DIGESTS):
        (directory.path / name).unlink(missing_ok=True)


def forget(directory: RunDirectory) -> None:
    """Delete the files that only a resumption needs, as the run is over for good.

    They are the plan, the notes, the data `prepared`, the dump of a private server, and spools of
    spans.
    """
    for name in _KEPT:
        (directory.path / name).unlink(missing_ok=True)


def end(directory: RunDirectory, why: str) -> None:
    """Make a run impossible to resume: delete the files that only a resumption needs.

    If it has no final report, `why` is added to its failure note before. Raises OsbenchError if the
    note cannot be written.
    """
    if (directory.path / PLAN).exists() and not is_ended(directory):
        failure.add(directory, why)
    forget(directory)
