"""Writes a run in the JSON form of Rally's `task report --json` (format_version 1.2).

Written iteration by iteration, so that a long run needs little memory. Rally has no place for
dropped, lost and not started iterations: they are left out and counted in the task's description.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TextIO
from uuid import NAMESPACE_URL, uuid5

from osbench import __version__
from osbench.common.secrets.masking import mask
from osbench.coordinator.plugins.contexts.history import Fault
from osbench.coordinator.plugins.hooks.executor import Error
from osbench.coordinator.report.iterations import starts
from osbench.coordinator.report.model import json_codec
from osbench.coordinator.report.model.model import Report, WorkloadReport
from osbench.coordinator.report.model.workload_parts import (
    ContextReport,
    ContextStepReport,
    HookResult,
    HookRun,
)
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.rally.results import rally_charts
from osbench.edges.rally.results.rally_rows import iterations
from osbench.edges.rally.results.rally_statistics import Durations

#: Rally's own criteria of a load that was not finished, by why it was cut short.
_CUT_SHORT = {
    "sla": ("aborted_on_sla", "Task was aborted due to SLA failure(s)."),
    "interrupted": ("aborted_manually", "Task was aborted due to abort signal."),
}

#: Exit codes of runs whose workloads all ran to their ends.
_FINISHED = (0, 1, 4, 5)


def write(directory: RunDirectory, report: Report, file: TextIO) -> None:
    """Write a finished run to `file` as a JSON object in Rally's form.

    Figures are from `report`; arguments and iterations are read from the run directory.
    """
    asked = directory.read("run.json") or {}
    begun = starts(directory, len(report.workloads))
    head = {
        "info": {
            "rally_version": f"osbench {__version__}",
            "generated_at": _timestamp(datetime.now(UTC).timestamp()),
            "format_version": "1.2",
        }
    }
    task = _task(report, asked)
    file.write(json.dumps(head)[:-1] + ', "tasks": [' + json.dumps(task)[:-1] + ', "subtasks": [')
    for number, workload in enumerate(report.workloads):
        # one subtask per workload: positions and titles stay, parallel ones are distinguished
        file.write(", " if number else "")
        subtask = _subtask(report, workload, number)
        file.write(json.dumps(subtask)[:-1] + ', "workloads": [{"data": [')
        durations = _write_rows(directory, number, begun[number], file)
        described = _workload(report, asked, workload, number, durations)
        file.write("], " + json.dumps(described, allow_nan=False)[1:] + "]}")
    file.write("]}]}\n")


def task_results(directory: RunDirectory, report: Report) -> list[dict[str, Any]]:
    """Return a finished run in the form in which Rally passes task results to its exporters.

    A list with one task. It has all iterations in memory.
    """
    text = io.StringIO()
    write(directory, report, text)
    tasks: list[dict[str, Any]] = json.loads(text.getvalue())["tasks"]
    for task in tasks:
        for subtask in task["subtasks"]:
            for workload in subtask["workloads"]:
                _as_stored(workload)
    return tasks


def _as_stored(workload: dict[str, Any]) -> None:
    """Change a workload in place from the form of Rally's report to the form of its database."""
    ((workload["runner_type"], workload["runner"]),) = workload["runner"].items()
    ((workload["name"], workload["args"]),) = workload.pop("scenario").items()
    for hook in workload["hooks"]:
        config = hook["config"]
        for key in ("action", "trigger"):
            ((name, given),) = config[key].items()
            config[key] = [name, given]


def _write_rows(directory: RunDirectory, workload: int, t0_at: float, file: TextIO) -> Durations:
    durations = Durations()
    for record, trace in iterations(directory, workload, t0_at):
        record["output"] = rally_charts.of_iteration(record["output"], trace)
        file.write((", " if durations.count else "") + json.dumps(record, allow_nan=False))
        durations.add(record)
    return durations


def _task(report: Report, asked: Mapping[str, Any]) -> dict[str, Any]:
    left_out = sum(
        workload.accounting.state(state)
        for workload in report.workloads
        for state in ("dropped", "lost", "not_started")
    )
    note = f" ({left_out} iterations dropped, lost or not started are left out)" if left_out else ""
    said = f"{report.description}; " if report.description else ""
    return {
        "uuid": _uuid(report.run_id),
        "title": report.task,
        "description": f"{said}osbench run {report.run_id}{note}",
        "status": "finished" if report.exit_code in _FINISHED else "aborted",
        "tags": report.tags,
        "env_uuid": _uuid(f"deployment {asked.get('deployment')}"),
        "env_name": asked.get("deployment") or "",
        "created_at": _second(report.started_at),
        "updated_at": _second(report.finished_at),
        "pass_sla": _all_passed(report, asked),
    }


def _subtask(report: Report, workload: WorkloadReport, number: int) -> Any:
    return {
        "uuid": _uuid(f"{report.run_id}/subtask/{number}"),
        "title": workload.subtask,
        "description": workload.subtask_description,
        "status": "aborted" if _is_aborted(workload) else "finished",
        "created_at": _second(report.started_at),
        "updated_at": _second(report.finished_at),
        "sla": {},
    }


def _workload(
    report: Report,
    asked: Mapping[str, Any],
    workload: WorkloadReport,
    number: int,
    durations: Durations,
) -> dict[str, Any]:
    given = asked["workloads"][number]
    contexts = workload.contexts
    return {
        "uuid": _uuid(f"{report.run_id}/{number}"),
        "description": workload.description,
        "runner": {workload.runner.type: workload.runner.config},
        "hooks": [_hook(hook, str(report.finished_at)) for hook in workload.hooks],
        "scenario": {workload.scenario: mask(given["args"])},
        "min_duration": durations.least,
        "max_duration": durations.most,
        "start_time": durations.begun,
        "load_duration": durations.load_s,
        "full_duration": _full_s(contexts, durations),
        "statistics": {"durations": durations.shown()},
        "failed_iteration_count": durations.failed,
        "total_iteration_count": durations.count,
        "created_at": _second(report.started_at),
        "updated_at": _second(report.finished_at),
        "contexts": {context.name: context.config for context in contexts},
        "contexts_results": [_context(context) for context in contexts],
        "position": workload.position,
        "pass_sla": _has_passed(workload),
        "sla_results": {"sla": _verdicts(workload)},
        "sla": given["sla"],
    }


def _verdicts(workload: WorkloadReport) -> list[dict[str, Any]]:
    """Return the verdicts of criteria, and Rally's own if SLA or user cut the load short."""
    found: list[dict[str, Any]] = json_codec.to_json(workload.sla)
    if cause := _CUT_SHORT.get(workload.offered.cut_short or ""):
        found.append({"criterion": cause[0], "success": False, "detail": cause[1]})
    return found


def _has_passed(workload: WorkloadReport) -> bool:
    return all(verdict["success"] for verdict in _verdicts(workload))


def _all_passed(report: Report, asked: Mapping[str, Any]) -> bool:
    """Return whether all workloads were run, met their criteria and were not cut short."""
    ran = report.workloads
    return len(ran) == len(asked.get("workloads", ran)) and all(map(_has_passed, ran))


def _is_aborted(workload: WorkloadReport) -> bool:
    return bool(workload.offered.cut_short or workload.error)


def _full_s(contexts: Sequence[ContextReport], durations: Durations) -> float:
    """Return the seconds from the first setup or start to the last cleanup or end; or 0."""
    steps = [step for context in contexts for step in (context.setup, context.cleanup)]
    begun = [_seconds(step.started_at) for step in steps if step]
    ended = [_seconds(step.finished_at) for step in steps if step]
    if durations.begun is not None and durations.ended is not None:
        begun.append(durations.begun)
        ended.append(durations.ended)
    return max(ended) - min(begun) if begun else 0.0


def _context(context: ContextReport) -> dict[str, Any]:
    return {
        "plugin_name": context.name,
        "plugin_cfg": context.config,
        "setup": _context_step(context.setup),
        "cleanup": _context_step(context.cleanup),
    }


def _context_step(step: ContextStepReport | None) -> dict[str, Any]:
    if step is None:
        return dict.fromkeys(("started_at", "finished_at", "atomic_actions", "error"))
    return {
        "started_at": _seconds(step.started_at),
        "finished_at": _seconds(step.finished_at),
        "atomic_actions": [],
        "error": _error(step.error) if step.error else None,
    }


def _hook(hook: HookRun, finished_at: str) -> dict[str, Any]:
    return {
        "config": {
            "description": hook.description,
            "action": hook.action,
            "trigger": hook.trigger,
        },
        "results": [_firing(result, finished_at) for result in hook.results],
        "summary": hook.summary,
    }


def _firing(result: HookResult, finished_at: str) -> dict[str, Any]:
    """Convert one firing of a hook to Rally's form.

    If it has no end, the run's end `finished_at`, ISO 8601, stands for it, because Rally requires a
    time. The end stands for a missing start.
    """
    ended = _seconds(result.finished_at or finished_at)
    found: dict[str, Any] = {
        "status": result.status,
        "started_at": _seconds(result.started_at) if result.started_at else ended,
        "finished_at": ended,
        "triggered_by": json_codec.to_json(result.triggered_by),
    }
    if result.error is not None:
        found["error"] = _error(result.error)
    if result.output is not None:
        found["output"] = rally_charts.of_hook(result.output)
    return found


def _error(error: Error | Fault) -> list[str]:
    return [error.etype, error.msg, error.details]


def _uuid(text: str) -> str:
    return str(uuid5(NAMESPACE_URL, f"osbench:{text}"))


def _second(instant: str | None) -> str:
    """Return an ISO timestamp cut to the second, without time zone; "" for None."""
    return (instant or "")[:19]


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _seconds(instant: str) -> float:
    return datetime.fromisoformat(instant).timestamp()
