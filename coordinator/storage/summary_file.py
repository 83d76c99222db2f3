"""The file `summary.json` of a run directory; what is in it says docs/results.schema.json."""

from __future__ import annotations

from typing import Any

from osbench.common.errors import DamagedRun, UsageError
from osbench.coordinator.storage.run_directory import RunDirectory

SUMMARY = "summary.json"

#: Version of its format; grows when a reader of the older one would be misled.
FORMAT = 1

_RUN = frozenset(
    ("run_id", "task", "tags", "started_at", "finished_at", "exit_code", "notes", "workloads")
)
_WORKLOAD = frozenset(
    (
        *("name", "subtask", "position", "runner", "accounting", "offered", "latency", "actions"),
        *("start_lag", "throughput", "tracing", "errors", "sla", "hooks", "contexts", "workers"),
    )
)


def summary_of(directory: RunDirectory) -> dict[str, Any] | None:
    """The numbers of a finished run; None where there are none.

    Raises UsageError where another version of osbench wrote them, DamagedRun if a file of the run
    has another size than it had, or these are damaged. Those of a run whose damage was accepted
    note it.
    """
    directory.files.check_sizes()
    found = directory.read(SUMMARY)
    if found is None:
        return None
    path = directory.path / SUMMARY
    version = found.get("format") if isinstance(found, dict) else None
    if version != FORMAT:
        raise UsageError(f"{path} has format {version}; this version of osbench reads {FORMAT}")
    if not is_summary(found):
        raise DamagedRun(f"{path} is damaged")
    return {**found, "notes": [directory.damage, *found["notes"]]} if directory.damage else found


def write_summary(directory: RunDirectory, summary: dict[str, Any]) -> None:
    """Write the numbers of a run that has ended: nothing else of it changes after that.

    Raises StorageError.
    """
    directory.finish(SUMMARY, summary)


def is_summary(document: object) -> bool:
    """A document has the parts of a summary; of these it is not checked what is in them."""
    if not isinstance(document, dict) or not document.keys() >= _RUN:
        return False
    workloads = document["workloads"]
    return isinstance(workloads, list) and all(
        isinstance(one, dict) and one.keys() >= _WORKLOAD for one in workloads
    )
