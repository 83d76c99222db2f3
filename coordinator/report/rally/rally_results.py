"""A run as Rally gives task results to its exporters: its JSON, read again."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

from osbench.coordinator.report.rally import rally_json
from osbench.coordinator.storage.run_directory import RunDirectory


def of(directory: RunDirectory, summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The list of task results; there is one."""
    text = io.StringIO()
    rally_json.write(directory, summary, text)
    tasks: list[dict[str, Any]] = json.loads(text.getvalue())["tasks"]
    for task in tasks:
        for subtask in task["subtasks"]:
            for workload in subtask["workloads"]:
                _as_stored(workload)
    return tasks


def _as_stored(workload: dict[str, Any]) -> None:
    """Plug-ins as Rally's database has them: the name apart from the configuration."""
    ((workload["runner_type"], workload["runner"]),) = workload["runner"].items()
    ((workload["name"], workload["args"]),) = workload.pop("scenario").items()
    for hook in workload["hooks"]:
        config = hook["config"]
        for key in ("action", "trigger"):
            ((name, given),) = config[key].items()
            config[key] = [name, given]
