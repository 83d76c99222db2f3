"""Rows of the list of runs: task, tags, state, and the figures of finished runs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from osbench.common.errors import DamagedRun, OsbenchError
from osbench.coordinator.results.storage import failure, resumable
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_documents import SUMMARY, summary_of

RUNNING = "running"
FINISHED = "finished"
BROKEN_OFF = "broken off"
#: Broken off, and `resume` goes on with it.
RESUMABLE = "resumable"
#: Finished, and its files were cut or changed since.
DAMAGED = "damaged"

#: What a summary says of a run in a list; rate (ok/s) and p95 are the largest of its workloads.
FIGURES = ("verdict", "planned", "ok", "failed", "rate", "p95_s", "duration_s")
_VERDICTS = {
    0: "met",
    1: "not met",
    2: "not judged",
    3: "incomplete",
    4: "generator limited",
    5: "met, clean-up failed",
    130: "interrupted",
}


def run_row(directory: RunDirectory) -> dict[str, Any]:
    """Return the row of a run for lists, as `row_of` makes it, from the files of the run.

    The values of `FIGURES` are None without a summary. Damage is not raised: `why` of the row has
    it, also a file `lock` that cannot be opened.
    """
    asked, figures, damage = _documents(directory)
    try:
        state = _state(directory, bool(figures))
        ended = _ending(directory) if state in (BROKEN_OFF, RESUMABLE) else {}
    except DamagedRun as error:
        state, ended, damage = BROKEN_OFF, {}, damage or error.problem
    except (OsbenchError, OSError) as error:
        state, ended, damage = BROKEN_OFF, {}, damage or str(error)
    if damage and state == BROKEN_OFF:
        state = DAMAGED
    if damage:
        ended = {"why": damage}
    return row_of(directory.path.name, asked, figures, state, ended)


def row_of(
    run: str,
    asked: Mapping[str, Any],
    figures: Mapping[str, Any] | None,
    state: str,
    ended: Mapping[str, Any],
) -> dict[str, Any]:
    """Return a row of the list of runs from `asked` (its run.json) and `figures` of its summary.

    `ended`: `exit` and `why` of a run that broke off; they replace the values of figures.
    """
    return {
        "run": run,
        "task": str(asked.get("task", "")),
        "tags": _texts(asked.get("tags")),
        "deployment": str(asked["deployment"]) if asked.get("deployment") else None,
        "started_at": asked.get("started_at"),
        "state": state,
        "exit": None,
        "why": None,
        **dict.fromkeys(FIGURES),
        **(figures or {}),
        **ended,
    }


def _documents(directory: RunDirectory) -> tuple[dict[str, Any], dict[str, Any] | None, str]:
    """Return (run.json, figures of the summary or None, damage or ""). Damage raises nothing."""
    asked: dict[str, Any] = {}
    try:
        asked = directory.read("run.json") or {}
        summary = summary_of(directory)
        return asked, figures_of(summary) if summary else None, ""
    except DamagedRun as error:
        return asked, None, error.problem
    except OsbenchError as error:
        return asked, None, str(error)
    except (AttributeError, KeyError, TypeError, ValueError):
        return asked, None, f"{directory.path / SUMMARY} is damaged"


def figures_of(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return `exit` and the values of `FIGURES`; None for a value that an old release lacks.

    Counts are sums over the workloads, rate and p95 their greatest. Raises AttributeError,
    KeyError, TypeError or ValueError for a summary that is damaged.
    """
    workloads = summary["workloads"]
    sums = [one["accounting"] for one in workloads]
    begun, ended = _timestamp(summary.get("started_at")), _timestamp(summary.get("finished_at"))
    rates = [(one.get("throughput") or {}).get("ok_per_s") for one in workloads]
    slow = [_p95(one) for one in workloads]
    return {
        "exit": summary["exit_code"],
        "verdict": _verdict(summary),
        "planned": sum(int(one["planned"]) for one in sums),
        "ok": sum(int(one["ok"]) for one in sums),
        "failed": sum(int(one["failed"]) + int(one["timed_out"]) for one in sums),
        "rate": max((float(rate) for rate in rates if rate is not None), default=None),
        "p95_s": max((float(one) for one in slow if one is not None), default=None),
        "duration_s": None if begun is None or ended is None else ended - begun,
    }


def _verdict(summary: Mapping[str, Any]) -> str:
    """Return "done" for exit code 0 without criteria, else the word in `_VERDICTS` or "unknown"."""
    code = summary["exit_code"]
    if code == 0 and not any(one.get("sla") for one in summary["workloads"]):
        return "done"
    return _VERDICTS.get(code, "unknown")


def _p95(workload: Mapping[str, Any]) -> float | None:
    """Response time if the load is open, else of service time; seconds."""
    # an open load has no number of virtual users
    kind = "response" if (workload.get("offered") or {}).get("concurrency") is None else "service"
    times = ((workload.get("latency") or {}).get(kind) or {}).get("ok") or {}
    found: float | None = times.get("p95")
    return found


def _timestamp(text: Any) -> float | None:
    """Return seconds since 1970 of a time in ISO 8601; None if it is not such a time."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (TypeError, ValueError):
        return None


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
