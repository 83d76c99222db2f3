"""Stands in for a container engine: containers as processes, each below its own root folder.

Nothing is isolated. Paths of a container (in its arguments and in the files that are mounted
into it) are led below its root, the address of Redis to a port of this machine; the rest is
run as the manifests say.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from helpers import forked_commands
from helpers.commands import environment
from servers import Child, free_port, redis_executable
from servers.child import PATIENCE_S

#: Paths that files speak of and containers see below their root.
PATHS = re.compile(r"(?<![\w.-])/(?:etc/osbench|var/lib/osbench|run/osbench|tasks?\b)")

#: Files that become osbench.conf.
CONFIGURATIONS = ("osbench.conf", "coordinator.conf", "worker.conf")
#: Machines that run tests are slow and shared: how late they are is not what is tested.
LENIENT = "\n[benchmark]\nlag_limit_s = 60\nmax_lag_s = 60\n"


class Network:
    """Leads addresses of containers to this machine."""

    def __init__(self) -> None:
        self.redis_port = free_port()

    def led(self, text: str) -> str:
        """A text with addresses that hold here."""
        text = text.replace("osbench-redis:6379", f"127.0.0.1:{self.redis_port}")
        text = text.replace("tls-port 6379", f"tls-port {self.redis_port}")
        return text.replace("bind * -::*", "bind 127.0.0.1")


class Root:
    """The file system of a container, or of the containers of a pod."""

    def __init__(self, path: Path, network: Network) -> None:
        self.path = path
        self.network = network
        self.home = path / "home"
        (self.home / ".osbench").mkdir(parents=True)
        # /etc/osbench is where an image has it; a process here looks into its home only
        (self.home / ".osbench" / "osbench.conf").symlink_to(path / "etc/osbench/osbench.conf")
        self._tools = path / "tools"
        self._tools.mkdir()
        (self._tools / "redis-server").symlink_to(redis_executable())
        #: Variables and descriptors with which commands of osbench are forked.
        self._forking = forked_commands.put_commands(self._tools, environment(self.home))

    def inside(self, text: str) -> str:
        """A text with the paths and addresses that hold here."""
        return self.network.led(PATHS.sub(lambda match: f"{self.path}{match[0]}", text))

    def mount(self, at: str, source: Path) -> None:
        """Show a file or a folder at a place; what was there is hidden."""
        place = self.path / at.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        place.unlink(missing_ok=True)
        place.symlink_to(source)

    def write(self, path: Path, content: bytes, mode: int) -> None:
        """A file that is mounted into a container, for its paths and addresses."""
        path.parent.mkdir(parents=True, exist_ok=True)
        text = self.inside(content.decode())
        path.write_text(text + LENIENT if path.name in CONFIGURATIONS else text, "utf-8")
        path.chmod(mode)

    @property
    def _environment(self) -> Mapping[str, str]:
        found = environment(self.home)
        return {**found, "PATH": f"{self._tools}{os.pathsep}{found['PATH']}"}

    def run(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Run a command to its end: an init container, a probe, a single run."""
        program, *arguments = [self.inside(word) for word in command]
        if program in (forked_commands.COORD, forked_commands.WORKER):
            return forked_commands.run(
                arguments,
                folder=self.path,
                env=self._environment,
                within_s=PATIENCE_S,
                program=program,
            )
        return subprocess.run(
            [program, *arguments],
            cwd=self.path,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def count_costs(self) -> None:
        """Count the CPU of what it has started."""
        forked_commands.count_costs(self._tools)

    def start(self, command: Sequence[str]) -> Child:
        """Start what a container runs."""
        variables, inherited = self._forking
        return Child(
            [self.inside(word) for word in command],
            folder=self.path,
            log=self.path / "log",
            env={**self._environment, **variables},
            inherited=inherited,
        )


class Container:
    """A container that runs until it is stopped."""

    def __init__(self, root: Root, command: Sequence[str], grace_s: float) -> None:
        self.root = root
        self._grace_s = grace_s
        self._child = root.start(command)

    def log(self) -> str:
        """All it has written."""
        return self._child.log.read_text("utf-8", errors="replace")

    def await_ready(self, probe: Sequence[str]) -> None:
        """Wait until its probe exits with 0."""
        ready: Callable[[], bool] = lambda: self.root.run(probe).returncode == 0  # noqa: E731
        assert self._child.wait_until(ready), self._child.tail()

    def wait(self, within_s: float) -> int:
        """Wait until it ends by itself; returns its exit code."""
        return self._child.process.wait(within_s)

    def exit_code(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._child.process.poll()

    def send(self, number: signal.Signals) -> None:
        """Send its first process a signal."""
        self._child.process.send_signal(number)

    def stop(self) -> int:
        """SIGTERM, and the time that its manifest gives it; returns its exit code."""
        self._child.process.send_signal(signal.SIGTERM)
        try:
            return self._child.process.wait(self._grace_s)
        finally:
            self._child.end()
            self.root.count_costs()

    def remove(self) -> None:
        """End it, in whatever state it is."""
        self._child.end(signal.SIGKILL)
        self.root.count_costs()
