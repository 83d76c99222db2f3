"""Rally, in a database of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bench.stage import MARGIN_S, BenchError, Stage

_CONFIG = """[DEFAULT]
log_file = {folder}/rally.log
[database]
connection = sqlite:///{folder}/rally.sqlite
"""


class Rally:
    """Rally's commands with a configuration of their own."""

    def __init__(self, stage: Stage, within_s: float | None = None) -> None:
        """`within_s` bounds a command that does not last as long as a block."""
        self._stage = stage
        self._within_s = within_s or stage.block_s * 4 + MARGIN_S
        self._folder = stage.subfolder("rally")
        self._config = self._folder / "rally.conf"
        self._config.write_text(_CONFIG.format(folder=self._folder))
        self._call("db", "create")
        self._call("env", "create", "--name", "bench")

    def create(self, name: str, spec: Mapping[str, Any]) -> None:
        """Make an environment of a platform."""
        path = self._folder / f"{name}.json"
        path.write_text(json.dumps(spec))
        self._call("env", "create", "--name", name, "--spec", str(path))

    def noop_rate(self, concurrency: int, seconds: float) -> float:
        """Iterations a second of Dummy.dummy."""
        return self.rate("Dummy.dummy", concurrency, seconds)

    def rate(
        self, scenario: str, concurrency: int, seconds: float, environment: str = "bench"
    ) -> float:
        """Iterations a second, over the load's duration as Rally says it."""
        runner = {"constant_for_duration": {"duration": seconds, "concurrency": concurrency}}
        workload = self.workload(scenario, runner, environment)
        return float(workload["total_iteration_count"] / workload["load_duration"])

    def workload(
        self, scenario: str, runner: Mapping[str, Any], environment: str = "bench"
    ) -> dict[str, Any]:
        """Run a workload; what Rally reports of it. Raises BenchError where an iteration failed."""
        task = self._folder / "task.json"
        subtask = {"title": "bench", "scenario": {scenario: {}}, "runner": runner}
        task.write_text(json.dumps({"version": 2, "title": "bench", "subtasks": [subtask]}))
        report = self._folder / "report.json"
        self._call("task", "start", "--env", environment, str(task))
        self._call("task", "report", "--json", "--out", str(report))
        (one,) = json.loads(report.read_text())["tasks"]
        workload: dict[str, Any] = one["subtasks"][0]["workloads"][0]
        if workload["failed_iteration_count"] or not workload["total_iteration_count"]:
            raise BenchError("Rally's iterations failed")
        return workload

    def _call(self, *arguments: str) -> None:
        rally = self._stage.peers.parent / "rally"
        self._stage.finish(
            [rally, "--config-file", self._config, *arguments],
            within_s=self._within_s,
        )
