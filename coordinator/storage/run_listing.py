"""Runs as lists show them: what each was, how far it is, or how it ended."""

from __future__ import annotations

from typing import Any

from osbench.common.errors import OsbenchError
from osbench.coordinator.storage import failure, resumable
from osbench.coordinator.storage.run_directory import RunDirectory
from osbench.coordinator.storage.summary_file import summary_of

RUNNING = "running"
FINISHED = "finished"
BROKEN_OFF = "broken off"
#: Broken off, and `resume` goes on with it.
RESUMABLE = "resumable"


def described(directory: RunDirectory) -> dict[str, Any]:
    """One run as `runs list` shows it."""
    asked = directory.read("run.json") or {}
    damage = ""
    try:
        summary = summary_of(directory)
    except OsbenchError as error:
        summary, damage = None, str(error)
    state = _state(directory, summary is not None)
    found: dict[str, Any] = {
        "run": directory.path.name,
        "task": asked.get("task", ""),
        "tags": asked.get("tags", []),
        "state": state,
        "exit": summary["exit_code"] if summary else None,
        "planned": None,
        "ok": None,
        "why": None,
    }
    if damage:
        found["why"] = damage
    elif state in (BROKEN_OFF, RESUMABLE):
        found |= {"exit": failure.exit_code(directory), "why": failure.reason(directory)}
    if summary:
        sums = [workload["accounting"] for workload in summary["workloads"]]
        found["planned"] = sum(one["planned"] for one in sums)
        found["ok"] = sum(one["ok"] for one in sums)
    return found


def _state(directory: RunDirectory, finished: bool) -> str:
    if directory.coordinator():
        return FINISHED if finished else RUNNING
    if not resumable.refusal(directory):
        return RESUMABLE
    return FINISHED if finished else BROKEN_OFF
