"""Rally reads our results: its own report of a run counts and times what ours does."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from commands import coord
from environment import environment

pytestmark = [pytest.mark.lab, pytest.mark.alone, pytest.mark.timeout(900)]

HERE = Path(__file__).parent

TASK = """
version: 2
title: For Rally
tags: [nightly]
subtasks:
  - title: with actions and failures
    scenario:
      Dummy.failure: {sleep: 0.01, from_iteration: 5, to_iteration: 15, each: 2}
    runner: {constant: {times: 30, concurrency: 3}}
    sla: {failure_rate: {max: 50}}
  - title: nested
    scenario: {Dummy.dummy: {sleep: 0.01}}
    runner: {rps: {times: 20, rps: 50}}
"""


def rally(folder: Path, *arguments: str) -> None:
    """A command of Rally's, with a database of its own."""
    command = environment("rally", HERE / "requirements-rally.txt") / "bin" / "rally"
    config = folder / "rally.conf"
    config.write_text(f"[database]\nconnection = sqlite:///{folder}/rally.db\n", "utf-8")
    done = subprocess.run(
        [str(command), "--config-file", str(config), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_rally_reports_what_osbench_ran(tmp_path: Path) -> None:
    (tmp_path / "task.yaml").write_text(TASK, "utf-8")
    ran = coord(tmp_path, "run", "task.yaml", "--json")
    ours = json.loads(ran.stdout)
    (tmp_path / "ours.json").write_text(
        coord(tmp_path, "results", "last", "--rally-json").stdout, "utf-8"
    )

    rally(tmp_path, "db", "create")
    rally(tmp_path, "task", "report", "--json", "--out", "theirs.json", "ours.json")
    rally(tmp_path, "task", "report", "--html", "--out", "theirs.html", "ours.json")

    (task,) = json.loads((tmp_path / "theirs.json").read_text("utf-8"))["tasks"]
    found = [workload for subtask in task["subtasks"] for workload in subtask["workloads"]]
    assert len(found) == len(ours["workloads"]) == 2
    for theirs, one in zip(found, ours["workloads"], strict=True):
        sums, service = one["accounting"], one["latency"]["service"]["ok"]
        total = theirs["statistics"]["durations"]["total"]["data"]
        assert theirs["total_iteration_count"] == sums["planned"] == len(theirs["data"])
        assert theirs["failed_iteration_count"] == sums["failed"]
        assert total["max"] >= service["max"] - 0.001
        assert theirs["pass_sla"] is True
        assert all(row["timestamp"] > 1.7e9 for row in theirs["data"])
    median = found[1]["statistics"]["durations"]["total"]["data"]["median"]
    assert median == pytest.approx(
        ours["workloads"][1]["latency"]["service"]["ok"]["p50"], abs=2e-3
    )
    nested = found[1]["data"][0]["atomic_actions"]
    assert [nested[0]["name"], nested[0]["children"][0]["name"]] == ["foo", "bar"]
    assert "Dummy.failure" in (tmp_path / "theirs.html").read_text("utf-8")
