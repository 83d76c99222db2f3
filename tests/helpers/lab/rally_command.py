"""Rally itself, as a user runs it: its command with a separate configuration and database."""

from __future__ import annotations

import atexit
import functools
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from helpers import forked_commands
from helpers.commands import environment

FORKED = Path(__file__).with_name("forked_rally.py")

#: Rally waits a second or two before it looks whether a server, a volume, an image or a share is
#: ready, and as long between its looks.
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
    "manila_share_create_prepoll_delay": 0.1,
    "manila_share_create_poll_interval": 0.2,
    "manila_share_delete_poll_interval": 0.2,
    "manila_access_create_poll_interval": 0.2,
    "manila_access_delete_poll_interval": 0.2,
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
        out, err = self.home / "rally-out", self.home / "rally-err"
        code = forked(
            arguments=["--config-file", str(self._config), *arguments],
            folder=str(self.home),
            env=environment(self.home),
            out=str(out),
            err=str(err),
        )
        assert code in codes, out.read_text("utf-8") + err.read_text("utf-8")
        return out.read_text("utf-8")

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


@functools.cache
def _template() -> subprocess.Popen[str]:
    """The process that has imported Rally; it ends with this one."""
    process = subprocess.Popen(
        [sys.executable, "-P", str(FORKED)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(process.communicate)
    return process


def forked(**request: Any) -> int:
    """Run a command of Rally to its end; returns its exit code."""
    template = _template()
    assert template.stdin
    assert template.stdout
    template.stdin.write(json.dumps(request) + "\n")
    template.stdin.flush()
    code, spent_s = template.stdout.readline().split()
    forked_commands.cpu_s.append(float(spent_s))
    return int(code)


def workloads(task: dict[str, Any]) -> list[dict[str, Any]]:
    """All workloads of a task in Rally's JSON."""
    return [workload for subtask in task["subtasks"] for workload in subtask["workloads"]]
