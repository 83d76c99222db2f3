"""A run in the JSON form of Rally's `task report --json` (format_version 1.2).

Written iteration by iteration, so that a long run needs little memory. What Rally has no place for
(dropped, lost and not started iterations) is left out and counted in the task's description.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TextIO
from uuid import NAMESPACE_URL, uuid5

from osbench import __version__
from osbench.common.secrets.masking import mask
from osbench.coordinator.report.rally import rally_charts
from osbench.coordinator.report.rally.rally_rows import iterations
from osbench.coordinator.report.rally.rally_statistics import Durations
from osbench.coordinator.report.stored_run import starts
from osbench.coordinator.storage.run_directory import RunDirectory

#: Rally's own criteria of a load that was not finished, by why it was cut short.
_CUT_SHORT = {
    "sla": ("aborted_on_sla", "Task was aborted due to SLA failure(s)."),
    "interrupted": ("aborted_manually", "Task was aborted due to abort signal."),
}

#: Exit codes of runs whose workloads all ran to their ends.
_FINISHED = (0, 1, 4, 5)


def write(directory: RunDirectory, summary: Mapping[str, Any], file: TextIO) -> None:
    """Write a finished run. `summary` is its JSON object, `run.json` and the blocks the rest."""
    asked = directory.read("run.json") or {}
    begun = starts(directory, len(summary["workloads"]))
    head = {
        "info": {
            "rally_version": f"osbench {__version__}",
            "generated_at": _instant(datetime.now(UTC).timestamp()),
            "format_version": "1.2",
        }
    }
    task = _task(summary, asked)
    file.write(json.dumps(head)[:-1] + ', "tasks": [' + json.dumps(task)[:-1] + ', "subtasks": [')
    for number, workload in enumerate(summary["workloads"]):
        # one subtask per workload: positions and titles stay, parallel ones are distinguished
        file.write(", " if number else "")
        subtask = _subtask(summary, workload, number)
        file.write(json.dumps(subtask)[:-1] + ', "workloads": [{"data": [')
        durations = _write_rows(directory, number, begun[number], file)
        described = _workload(summary, asked, workload, number, durations)
        file.write("], " + json.dumps(described, allow_nan=False)[1:] + "]}")
    file.write("]}]}\n")


def _write_rows(directory: RunDirectory, workload: int, t0_at: float, file: TextIO) -> Durations:
    durations = Durations()
    for record, trace in iterations(directory, workload, t0_at):
        record["output"] = rally_charts.of_iteration(record["output"], trace)
        file.write((", " if durations.count else "") + json.dumps(record, allow_nan=False))
        durations.add(record)
    return durations


def _task(summary: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    left_out = sum(
        workload["accounting"][state]
        for workload in summary["workloads"]
        for state in ("dropped", "lost", "not_started")
    )
    note = f" ({left_out} iterations dropped, lost or not started are left out)" if left_out else ""
    # runs of older releases have none
    said = f"{summary['description']}; " if summary.get("description") else ""
    return {
        "uuid": _uuid(summary["run_id"]),
        "title": summary["task"],
        "description": f"{said}osbench run {summary['run_id']}{note}",
        "status": "finished" if summary["exit_code"] in _FINISHED else "aborted",
        "tags": summary["tags"],
        "env_uuid": _uuid(f"deployment {asked.get('deployment')}"),
        "env_name": asked.get("deployment") or "",
        "created_at": summary["started_at"][:19],
        "updated_at": summary["finished_at"][:19],
        "pass_sla": _all_passed(summary, asked),
    }


def _subtask(summary: Mapping[str, Any], workload: Mapping[str, Any], number: int) -> Any:
    return {
        "uuid": _uuid(f"{summary['run_id']}/subtask/{number}"),
        "title": workload["subtask"],
        "description": workload.get("subtask_description", ""),
        "status": "aborted" if _aborted(workload) else "finished",
        "created_at": summary["started_at"][:19],
        "updated_at": summary["finished_at"][:19],
        "sla": {},
    }


def _workload(
    summary: Mapping[str, Any],
    asked: Mapping[str, Any],
    workload: Mapping[str, Any],
    number: int,
    durations: Durations,
) -> dict[str, Any]:
    given = asked["workloads"][number]
    contexts = workload.get("contexts", ())
    return {
        "uuid": _uuid(f"{summary['run_id']}/{number}"),
        "description": workload["description"],
        "runner": {workload["runner"]["type"]: workload["runner"]["config"]},
        "hooks": [_hook(hook, summary["finished_at"]) for hook in workload["hooks"]],
        "scenario": {workload.get("scenario", workload["name"]): mask(given["args"])},
        "min_duration": durations.least,
        "max_duration": durations.most,
        "start_time": durations.begun,
        "load_duration": durations.load_s,
        "full_duration": _full_s(contexts, durations),
        "statistics": {"durations": durations.shown()},
        "failed_iteration_count": durations.failed,
        "total_iteration_count": durations.count,
        "created_at": summary["started_at"][:19],
        "updated_at": summary["finished_at"][:19],
        "contexts": {context["name"]: context["config"] for context in contexts},
        "contexts_results": [_context(context) for context in contexts],
        "position": workload["position"],
        "pass_sla": _passed(workload),
        "sla_results": {"sla": _verdicts(workload)},
        "sla": given["sla"],
    }


def _verdicts(workload: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Those of the criteria and, where the load was cut short, Rally's for that."""
    found = list(workload["sla"])
    if cause := _CUT_SHORT.get(workload["offered"]["cut_short"]):
        found.append({"criterion": cause[0], "success": False, "detail": cause[1]})
    return found


def _passed(workload: Mapping[str, Any]) -> bool:
    return all(verdict["success"] for verdict in _verdicts(workload))


def _all_passed(summary: Mapping[str, Any], asked: Mapping[str, Any]) -> bool:
    """Every workload of the task ran, and met its criteria."""
    ran = summary["workloads"]
    return len(ran) == len(asked.get("workloads", ran)) and all(map(_passed, ran))


def _aborted(workload: Mapping[str, Any]) -> bool:
    # runs of older releases have no error
    return bool(workload["offered"]["cut_short"] or workload.get("error"))


def _full_s(contexts: Any, durations: Durations) -> float:
    """From the first setup, or the first start, to the last cleanup, or the last end."""
    steps = [context[key] for context in contexts for key in ("setup", "cleanup")]
    begun = [_seconds(step["started_at"]) for step in steps if step]
    ended = [_seconds(step["finished_at"]) for step in steps if step]
    if durations.begun is not None and durations.ended is not None:
        begun.append(durations.begun)
        ended.append(durations.ended)
    return max(ended) - min(begun) if begun else 0.0


def _context(context: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "plugin_name": context["name"],
        "plugin_cfg": context["config"],
        "setup": _context_step(context["setup"]),
        "cleanup": _context_step(context["cleanup"]),
    }


def _context_step(step: Mapping[str, Any] | None) -> dict[str, Any]:
    if step is None:
        return dict.fromkeys(("started_at", "finished_at", "atomic_actions", "error"))
    return {
        "started_at": _seconds(step["started_at"]),
        "finished_at": _seconds(step["finished_at"]),
        "atomic_actions": [],
        "error": _error(step["error"]) if step["error"] else None,
    }


def _hook(hook: Mapping[str, Any], finished_at: str) -> dict[str, Any]:
    return {
        "config": {
            "description": hook["description"],
            "action": hook["action"],
            "trigger": hook["trigger"],
        },
        "results": [_firing(result, finished_at) for result in hook["results"]],
        "summary": hook["summary"],
    }


def _firing(result: Mapping[str, Any], finished_at: str) -> dict[str, Any]:
    """One that was not run, or has not ended, ends with the run: Rally wants an instant."""
    ended = _seconds(result["finished_at"] or finished_at)
    found: dict[str, Any] = {
        "status": result["status"],
        "started_at": _seconds(result["started_at"]) if result["started_at"] else ended,
        "finished_at": ended,
        "triggered_by": result["triggered_by"],
    }
    if "error" in result:
        found["error"] = _error(result["error"])
    if "output" in result:
        found["output"] = rally_charts.of_hook(result["output"])
    return found


def _error(error: Mapping[str, str]) -> list[str]:
    return [error["etype"], error["msg"], error["details"]]


def _uuid(text: str) -> str:
    return str(uuid5(NAMESPACE_URL, f"osbench:{text}"))


def _instant(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _seconds(instant: str) -> float:
    return datetime.fromisoformat(instant).timestamp()
