"""Makes the JSON object of one iteration: times, actions, requests, outputs and log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from osbench.common.plugin.exporter import IterationRow, json_values
from osbench.common.protocol.columns import Columns
from osbench.common.protocol.exchanges import FALSE_BODY, PHASES, sent_twice
from osbench.common.protocol.iteration_outputs import outputs
from osbench.coordinator.report.iterations import one_iteration, worker_names
from osbench.coordinator.report.model.model import Report
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.worker_log import WorkerLog


def iteration_records(
    directory: RunDirectory, number: int, report: Report | None
) -> list[dict[str, Any]]:
    """Return JSON objects of the iterations with `number`, by workload: at most one for each.

    Works while the run goes on; iterations that have not ended are left out. `report` gives workers
    their names; for None they are incarnations. Raises OsbenchError if the run cannot be read.
    """
    asked = (directory.read("run.json") or {}).get("workloads", ())
    names = worker_names(report)
    begun = _load_begun(directory)
    log = [one for one in WorkerLog(directory).fresh() if one.iteration == number]
    found = [
        {
            "workload": row.workload,
            "name": _name(asked[row.workload]) if row.workload < len(asked) else "",
            **_values(row, names.get(row.worker, row.worker), begun.get(row.workload)),
            **(_details(settled.columns, settled.errors) if settled is not None else _NONE),
            "log": [
                {"at": one.at, "source": one.source, "text": one.text}
                for one in log
                if (one.workload, one.worker) == (row.workload, row.worker)
            ],
        }
        for row, settled in one_iteration(directory, number)
    ]
    return sorted(found, key=lambda one: int(one["workload"]))


def _name(asked: Mapping[str, Any]) -> str:
    # runs of older releases have no names
    return str(asked.get("name", asked["scenario"]))


def _load_begun(directory: RunDirectory) -> dict[int, float]:
    """Return t0 by workload, seconds since 1970-01-01 UTC, of the loads that began."""
    return {
        record["workload"]: record["t0_at"]
        for record in directory.decisions()
        if record["do"] == "start"
    }


def _values(row: IterationRow, worker: str, t0_at: float | None) -> dict[str, Any]:
    found = json_values(row._replace(worker=worker), t0_at)
    # the error stands among the details, with its traceback
    del found["state"], found["error_type"], found["error"]
    return {**found, "incarnation": row.worker}


#: The details of an iteration that has no row.
_NONE: dict[str, Any] = {
    "error": None,
    "actions": [],
    "requests": [],
    "outputs": {"additive": [], "complete": []},
}


def _details(columns: Columns, errors: Mapping[int, tuple[str, str, str]]) -> dict[str, Any]:
    """Return error, actions, requests and outputs of the single row of `columns`, as JSON values.

    `errors`: type, message and traceback by failure number. `error` is None if the iteration did
    not fail, or its number is not in `errors`.
    """
    failure = int(columns.failure[0])
    error = dict(zip(("type", "message", "traceback"), errors.get(failure, ()), strict=False))
    made = dict(columns.outputs).get(int(columns.iteration[0]), ())
    return {
        "error": error if failure and error else None,
        "actions": list(_actions(columns)),
        "requests": list(_requests(columns)),
        "outputs": outputs(made),
    }


def _actions(columns: Columns) -> Iterator[dict[str, Any]]:
    """Yield atomic actions in order of their begin; `parent` is an index in that order, or None.

    Times are seconds; `begins_s` is after the start of the iteration.
    """
    started, ended = int(columns.started[0]), int(columns.ended[0])
    for _, name, parent, begun, over, failed in columns.actions.tolist():
        unfinished = over < begun
        yield {
            "name": columns.names[name],
            "parent": parent if parent >= 0 else None,
            "begins_s": (begun - started) / 1e9,
            "lasts_s": ((ended if unfinished else over) - begun) / 1e9,
            "state": "unfinished" if unfinished else "failed" if failed else "ok",
        }


def _requests(columns: Columns) -> Iterator[dict[str, Any]]:
    for one in columns.exchanges:
        action, client = int(one["action"]), int(one["client"])
        measured = client < 0
        yield {
            "action": action if action >= 0 else None,
            "client": None if measured else columns.names[client],
            "phases_s": {name: float(one[name]) / 1e9 for name in PHASES} if measured else None,
            "sent_twice": bool(sent_twice(one["client"])),
            "false_body": bool(one["status"] & FALSE_BODY),
            "sent_bytes": int(one["sent"]),
            "received_bytes": int(one["received"]),
        }
