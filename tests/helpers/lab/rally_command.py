"""Rally itself, as a user runs it: its command with a separate configuration and database."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from helpers.commands import BIN, environment

#: Rally waits a second or two before it looks whether a server, a volume or an image is ready, and
#: as long between its looks.
_SOON_S = {
    "glance_image_create_prepoll_delay": 0.1,
    "glance_image_create_poll_interval": 0.2,
    "nova_server_boot_prepoll_delay": 0.1,
    "nova_server_boot_poll_interval": 0.2,
    "nova_server_delete_prepoll_delay": 0.1,
    "nova_server_delete_poll_interval": 0.2,
    "cinder_volume_create_prepoll_delay": 0.1,
    "cinder_volume_create_poll_interval": 0.2,
    "cinder_volume_delete_poll_interval": 0.2,
}


class Rally:
    """A home for Rally. Skips the test where the extra osbench[rally] is not installed."""

    def __init__(self, home: Path) -> None:
        pytest.importorskip("rally", reason="the extra osbench[rally] is not installed")
        self.home = home
        self._config = home / "rally.conf"
        waits = "".join(f"{name} = {value}\n" for name, value in _SOON_S.items())
        self._config.write_text(
            f"[database]\nconnection = sqlite:///{home}/rally.db\n[openstack]\n{waits}", "utf-8"
        )

    def run(self, *arguments: str, codes: tuple[int, ...] = (0,)) -> str:
        """Run a command to its end, with one of these exit codes; returns what it printed."""
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

    def use(self, openstack: Mapping[str, Any]) -> None:
        """Make a cloud its environment, from the `openstack` part of a deployment record.

        Without the profiler's key: services take their time when they are traced.
        """
        pytest.importorskip("rally_openstack", reason="the extra osbench[rally] is not installed")
        spec = {key: value for key, value in openstack.items() if not key.startswith("profiler_")}
        file = self.home / "spec.json"
        file.write_text(json.dumps({"existing@openstack": spec}), "utf-8")
        self.run("db", "create")
        self.run("env", "create", "--name", "cloud", "--spec", str(file))

    def task(self, file: Path) -> dict[str, Any]:
        """Run a task to its end, whatever its SLAs say; returns its JSON report."""
        self.run("task", "start", str(file), codes=(0, 2))
        return self.report("report.json")

    def report(self, name: str, *what: str) -> dict[str, Any]:
        """Rally's JSON report of a file or a task, the last one unless named: its only task."""
        self.run("task", "report", "--json", "--out", name, *what)
        (task,) = json.loads((self.home / name).read_text("utf-8"))["tasks"]
        found: dict[str, Any] = task
        return found


def workloads(task: dict[str, Any]) -> list[dict[str, Any]]:
    """All workloads of a task in Rally's JSON."""
    return [workload for subtask in task["subtasks"] for workload in subtask["workloads"]]
