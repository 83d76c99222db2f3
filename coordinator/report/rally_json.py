"""A run in the JSON form of Rally's `task report --json` (format_version 1.2).

Written iteration by iteration, so that a long run needs no memory. What Rally has no place for
(dropped, lost and not started iterations) is left out and counted in the task's description.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TextIO
from uuid import NAMESPACE_URL, UUID, uuid5

import msgpack
import numpy as np

from osbench import __version__
from osbench.common.blocks import Columns, decode_rows
from osbench.common.intervals import Intervals
from osbench.common.outcomes import RAN, Outcome
from osbench.coordinator.rundir import RunDirectory
from osbench.coordinator.selection import select

_RAN = frozenset(int(outcome) for outcome in RAN)


def write(directory: RunDirectory, summary: Mapping[str, Any], file: TextIO) -> None:
    """Write a finished run. `summary` is its JSON object, `run.json` and the blocks the rest."""
    asked = directory.read("run.json") or {}
    starts = {
        one["workload"]: float(one["t0_at"])
        for one in directory.decisions()
        if one.get("do") == "start"
    }
    head = {
        "info": {
            "rally_version": f"osbench {__version__}",
            "generated_at": _instant(datetime.now(UTC).timestamp()),
            "format_version": "1.2",
        }
    }
    task = _task(summary, asked)
    file.write(json.dumps(head)[:-1] + ', "tasks": [' + json.dumps(task)[:-1] + ', "subtasks": [')
    workloads = summary["workloads"]
    for number, workload in enumerate(workloads):
        # a subtask a workload: positions and titles stay, parallel ones are told apart
        file.write(", " if number else "")
        subtask = _subtask(summary, workload, number)
        file.write(json.dumps(subtask)[:-1] + ', "workloads": [')
        described = _workload(summary, asked, workload, number, starts.get(number, 0.0))
        file.write(json.dumps(described)[:-1] + ', "data": [')
        _write_rows(directory, number, starts.get(number, 0.0), file)
        file.write("]}]}")
    file.write("]}]}\n")


def _task(summary: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    left_out = sum(
        workload["accounting"][state]
        for workload in summary["workloads"]
        for state in ("dropped", "lost", "not_started")
    )
    note = f" ({left_out} iterations dropped, lost or not started are left out)" if left_out else ""
    return {
        "uuid": _uuid(summary["run_id"]),
        "title": summary["task"],
        "description": f"osbench run {summary['run_id']}{note}",
        "status": "finished" if summary["exit_code"] in (0, 1, 4) else "aborted",
        "tags": summary["tags"],
        "env_uuid": _uuid(f"deployment {asked.get('deployment')}"),
        "env_name": asked.get("deployment") or "",
        "created_at": summary["started_at"][:19],
        "updated_at": summary["finished_at"][:19],
        "pass_sla": all(_passed(workload) for workload in summary["workloads"]),
    }


def _subtask(summary: Mapping[str, Any], workload: Mapping[str, Any], number: int) -> Any:
    return {
        "uuid": _uuid(f"{summary['run_id']}/subtask/{number}"),
        "title": workload["subtask"],
        "description": "",
        "status": "finished",
        "created_at": summary["started_at"][:19],
        "updated_at": summary["finished_at"][:19],
        "sla": {},
    }


def _workload(
    summary: Mapping[str, Any],
    asked: Mapping[str, Any],
    workload: Mapping[str, Any],
    number: int,
    t0_at: float,
) -> dict[str, Any]:
    given = asked["workloads"][number]
    sums = workload["accounting"]
    service = workload["latency"]["service"]
    lengths = [service[state] for state in ("ok", "failed", "timed_out") if service[state]["count"]]
    return {
        "uuid": _uuid(f"{summary['run_id']}/{number}"),
        "description": workload["description"],
        "runner": {workload["runner"]["type"]: workload["runner"]["config"]},
        "hooks": [],
        "scenario": {workload["name"]: given["args"]},
        "min_duration": min((one["min"] for one in lengths), default=None),
        "max_duration": max((one["max"] for one in lengths), default=None),
        "start_time": t0_at or None,
        "load_duration": workload["offered"]["duration_s"],
        "full_duration": workload["offered"]["duration_s"],
        "statistics": {"durations": _statistics(workload)},
        "failed_iteration_count": sums["failed"] + sums["timed_out"],
        "total_iteration_count": sums["ok"] + sums["failed"] + sums["timed_out"],
        "created_at": summary["started_at"][:19],
        "updated_at": summary["finished_at"][:19],
        "contexts": {},
        "contexts_results": [],
        "position": workload["position"],
        "pass_sla": _passed(workload),
        "sla_results": {"sla": workload["sla"]},
        "sla": given["sla"],
    }


def _passed(workload: Mapping[str, Any]) -> bool:
    return all(verdict["success"] for verdict in workload["sla"])


def _statistics(workload: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "total": _row("total", workload["latency"]["service"]),
        "atomics": [_row(path, times) for path, times in workload["actions"].items()],
    }


def _row(name: str, times: Mapping[str, Any]) -> dict[str, Any]:
    ok = times["ok"]
    count = sum(times[state]["count"] for state in ("ok", "failed", "timed_out"))

    def shown(value: float | None) -> Any:
        return "n/a" if value is None else round(value, 3)

    return {
        "name": name,
        "display_name": name,
        "count_per_iteration": 1,
        "data": {
            "iteration_count": count,
            "min": shown(ok["min"]),
            "median": shown(ok["p50"]),
            "90%ile": shown(ok["p90"]),
            "95%ile": shown(ok["p95"]),
            "max": shown(ok["max"]),
            "avg": shown(ok["mean"]),
            "success": f"{100 * ok['count'] / count:.1f}%" if count else "n/a",
        },
        "children": [],
    }


def _write_rows(directory: RunDirectory, number: int, t0_at: float, file: TextIO) -> None:
    first = True
    for iteration in _iterations(directory, number, t0_at):
        file.write(("" if first else ", ") + json.dumps(iteration))
        first = False


def _iterations(directory: RunDirectory, number: int, t0_at: float) -> Iterator[dict[str, Any]]:
    """Each iteration that ran, once, in the order they were taken."""
    written = Intervals()
    errors: dict[tuple[str, int], list[str]] = {}
    for body in directory.blocks():
        if body["workload"] != number:
            continue
        worker = body["incarnation"]
        for known, etype, message, text in body["failures"]:
            errors[worker, known] = [etype, message, text]
        if not body["columns"]:
            continue
        columns = decode_rows(body["columns"])
        numbers = Intervals.of(columns.iteration)
        repeated = written.intersection(numbers).members()
        if len(repeated):
            columns = select(columns, ~np.isin(columns.iteration, repeated))
        written.update(numbers)
        yield from _rows(columns, worker, errors, t0_at)


def _rows(
    columns: Columns, worker: str, errors: Mapping[tuple[str, int], list[str]], t0_at: float
) -> Iterator[dict[str, Any]]:
    traces = {
        number: str(UUID(bytes=trace.tobytes()))
        for number, trace in zip(columns.traced.tolist(), columns.traces, strict=True)
    }
    outputs = dict(columns.outputs)
    actions = _actions_by_row(columns, t0_at)
    names = ("iteration", "outcome", "started", "ended", "idle", "failure")
    rows = zip(*(getattr(columns, name).tolist() for name in names), strict=True)
    for at, (iteration, outcome, started, ended, idle, failure) in enumerate(rows):
        if outcome not in _RAN:
            continue
        yield {
            "timestamp": t0_at + started / 1e9,
            "duration": (ended - started - idle) / 1e9,
            "idle_duration": idle / 1e9,
            "error": [] if outcome == Outcome.OK else errors.get((worker, failure), ["", "", ""]),
            "output": _output(outputs.get(iteration, ()), traces.get(iteration)),
            "atomic_actions": actions.get(at, []),
        }


def _output(packed: Iterable[bytes], trace: str | None) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {"additive": [], "complete": []}
    if trace:
        found["complete"].append(
            {"title": "OSProfiler Trace-ID", "chart_plugin": "TextArea", "data": [trace]}
        )
    for one in packed:
        output = msgpack.unpackb(one)
        found[output["kind"]].append(output["item"])
    return found


def _actions_by_row(columns: Columns, t0_at: float) -> dict[int, list[dict[str, Any]]]:
    """Nested atomic actions by row: lines name their enclosing action by its position."""
    found: dict[int, list[dict[str, Any]]] = {}
    of_row: dict[int, list[dict[str, Any]]] = {}
    for line in columns.actions.tolist():
        row, action = _action(line, columns.names, t0_at)
        siblings = of_row.setdefault(row, [])
        parent = line[2]
        inside = siblings[parent]["children"] if parent >= 0 else found.setdefault(row, [])
        inside.append(action)
        siblings.append(action)
    return found


def _action(line: Sequence[int], names: Sequence[str], t0_at: float) -> tuple[int, dict[str, Any]]:
    row, name, _, started, ended, failed = line
    action: dict[str, Any] = {
        "name": names[name],
        "children": [],
        "started_at": t0_at + started / 1e9,
        "finished_at": t0_at + max(started, ended) / 1e9,
    }
    if failed:
        action["failed"] = True
    return row, action


def _uuid(text: str) -> str:
    return str(uuid5(NAMESPACE_URL, f"osbench:{text}"))


def _instant(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
