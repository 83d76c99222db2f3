"""Whether a run that is over can be resumed, as its files show."""

from __future__ import annotations

from osbench.coordinator.storage import failure
from osbench.coordinator.storage.run_directory import RunDirectory

#: File of the run directory, encrypted: what a coordinator needs to go on. It is there from the
#: beginning of the run, before anything is done, to its report.
PLAN = "plan"
#: All that is kept for another coordinator; the plan goes first: without it nothing else counts.
_KEPT = (PLAN, "prepared", "notes")


def refusal(directory: RunDirectory) -> str:
    """Why a run cannot be resumed; "" where it can."""
    name = directory.path.name
    if directory.coordinator():
        return f"run {name} has a coordinator already"
    if (directory.path / "summary.json").exists() and not failure.leaves_resumable(directory):
        return f"run {name} is finished: `osbench-coord runs show {name}` prints its report"
    if not (directory.path / PLAN).exists():
        return f"run {name} cannot be resumed: {failure.reason(directory)}"
    return ""


def is_ended(directory: RunDirectory) -> bool:
    """A run has its report, and nobody can go on with it."""
    return not (directory.path / PLAN).exists() and (directory.path / "summary.json").exists()


def begin_again(directory: RunDirectory) -> None:
    """A coordinator has taken the run up: how it had ended is of the past."""
    for name in ("summary.json", failure.FAILURE):
        (directory.path / name).unlink(missing_ok=True)


def forget(directory: RunDirectory) -> None:
    """The run is over for good: nobody needs its plan any more."""
    for name in _KEPT:
        (directory.path / name).unlink(missing_ok=True)


def end(directory: RunDirectory, why: str) -> None:
    """Have a run that ended without a report never resumed again, and note why."""
    if (directory.path / PLAN).exists():
        failure.add(directory, why)
        forget(directory)
