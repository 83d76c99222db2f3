"""Rally itself, as a user runs it: its command with a configuration and a database of its own."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from commands import BIN, environment


class Rally:
    """A home for Rally. Skips the test where the extra osbench[rally] is not installed."""

    def __init__(self, home: Path) -> None:
        pytest.importorskip("rally", reason="the extra osbench[rally] is not installed")
        self.home = home
        self._config = home / "rally.conf"
        self._config.write_text(f"[database]\nconnection = sqlite:///{home}/rally.db\n", "utf-8")

    def run(self, *arguments: str, codes: tuple[int, ...] = (0,)) -> str:
        """Run a command to its end, with one of these codes; answers what it printed."""
        done = subprocess.run(
            [str(BIN / "rally"), "--config-file", str(self._config), *arguments],
            cwd=self.home,
            env=environment(self.home),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in codes, done.stdout + done.stderr
        return done.stdout

    def report(self, name: str, *what: str) -> dict[str, Any]:
        """Rally's JSON report of a file or a task: its only task."""
        self.run("task", "report", "--json", "--out", name, *what)
        (task,) = json.loads((self.home / name).read_text("utf-8"))["tasks"]
        found: dict[str, Any] = task
        return found


def workloads(task: dict[str, Any]) -> list[dict[str, Any]]:
    """All workloads of a task in Rally's JSON."""
    return [workload for subtask in task["subtasks"] for workload in subtask["workloads"]]
