"""Runs as lists show them: what each was, how far it is, or how it ended."""

from __future__ import annotations

from typing import Any

from osbench.common.errors import DamagedRun, OsbenchError
from osbench.coordinator.storage import failure, resumable
from osbench.coordinator.storage.run_directory import RunDirectory
from osbench.coordinator.storage.summary_file import SUMMARY, summary_of

RUNNING = "running"
FINISHED = "finished"
BROKEN_OFF = "broken off"
#: Broken off, and `resume` goes on with it.
RESUMABLE = "resumable"
#: Finished, and its files were cut or changed since.
DAMAGED = "damaged"


def described(directory: RunDirectory) -> dict[str, Any]:
    """One run as `runs list` shows it."""
    asked: dict[str, Any] = {}
    damage = ""
    sums: list[Any] = []
    try:
        asked = directory.read("run.json") or {}
        summary = summary_of(directory)
        if summary:
            accounts = [workload["accounting"] for workload in summary["workloads"]]
            sums = [sum(int(one[state]) for one in accounts) for state in ("planned", "ok")]
    except DamagedRun as error:
        summary, damage = None, error.problem
    except OsbenchError as error:
        summary, damage = None, str(error)
    except (KeyError, TypeError, ValueError):
        summary, damage = None, f"{directory.path / SUMMARY} is damaged"
    try:
        state = _state(directory, bool(summary))
        ended = _ending(directory) if state in (BROKEN_OFF, RESUMABLE) else {}
    except DamagedRun as error:
        state, ended, damage = BROKEN_OFF, {}, damage or error.problem
    except OsbenchError as error:
        state, ended, damage = BROKEN_OFF, {}, damage or str(error)
    if damage and state == BROKEN_OFF:
        state = DAMAGED
    found: dict[str, Any] = {
        "run": directory.path.name,
        "task": str(asked.get("task", "")),
        "tags": _texts(asked.get("tags")),
        "state": state,
        "exit": summary["exit_code"] if summary else None,
        "planned": None,
        "ok": None,
        "why": None,
    }
    found |= {"why": damage} if damage else ended
    if summary:
        found["planned"], found["ok"] = sums
    return found


def _ending(directory: RunDirectory) -> dict[str, Any]:
    return {"exit": failure.exit_code(directory), "why": failure.reason(directory)}


def _state(directory: RunDirectory, finished: bool) -> str:
    if directory.has_coordinator():
        return FINISHED if finished else RUNNING
    if not resumable.refusal(directory):
        return RESUMABLE
    return FINISHED if finished else BROKEN_OFF


def _texts(value: Any) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else []
