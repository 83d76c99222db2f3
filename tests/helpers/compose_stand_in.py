"""`docker compose` over deploy/compose.yaml, with processes in place of containers."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from helpers.composefile import read, seconds
from helpers.stand_in import Container, Network, Root


class Compose:
    """A compose project; its containers' roots lie in a folder."""

    def __init__(self, folder: Path, file: Path, variables: Mapping[str, str]) -> None:
        self._folder = folder
        self._file = file
        self._project = read(file, variables)
        self._network = Network()
        self._made = 0
        self.running: dict[str, list[Container]] = {}
        self.stopped: list[int] = []

    def up(self, scale: Mapping[str, int]) -> None:
        """`up --detach --scale`: services without a profile; those that are there stay."""
        for name, service in self._project["services"].items():
            if "profiles" in service:
                continue
            there = self.running.setdefault(name, [])
            wanted = scale.get(name, 1)
            while len(there) > wanted:
                self.stopped.append(there.pop().stop())
            started = [self._start(service) for _ in range(wanted - len(there))]
            for container in started:
                there.append(container)
                self._await_healthy(container, service)

    def run(self, name: str, arguments: list[str]) -> subprocess.CompletedProcess[str]:
        """`run --rm`."""
        service = self._project["services"][name]
        for needed in service["depends_on"]:
            assert self.running[needed]
        return self._root(service).run([*service["entrypoint"], *arguments])

    def down(self) -> None:
        """`down`: each has the time to stop that the file gives."""
        for name in reversed(self.running):
            for container in self.running[name]:
                self.stopped.append(container.stop())
        self.running.clear()

    def remove(self) -> None:
        """End all that is left."""
        for containers in self.running.values():
            for container in containers:
                container.remove()

    def _start(self, service: Mapping[str, Any]) -> Container:
        grace_s = seconds(service.get("stop_grace_period", "10s"))
        return Container(self._root(service), service["command"], grace_s)

    def _await_healthy(self, container: Container, service: Mapping[str, Any]) -> None:
        kind, *probe = service["healthcheck"]["test"]
        if kind == "CMD-SHELL":
            (line,) = probe
            # the port that a client takes where none is named
            probe = ["sh", "-c", line.replace("redis-cli", f"redis-cli -p {self.port}")]
            if shutil.which("redis-cli") is None:
                # bash's own: no other shell has to know /dev/tcp
                probe = ["bash", "-c", f"echo > /dev/tcp/127.0.0.1/{self.port}"]
        container.await_ready(probe)

    @property
    def port(self) -> int:
        """Where this project's Redis is on this machine."""
        return self._network.redis_port

    def _root(self, service: Mapping[str, Any]) -> Root:
        self._made += 1
        root = Root(self._folder / f"container-{self._made}", self._network)
        for secret in service.get("secrets", []):
            source = self._resolved(self._project["secrets"][secret["source"]]["file"])
            mounted = root.path / "secrets" / secret["source"]
            # compose shows the file's own mode
            root.write(mounted, source.read_bytes(), source.stat().st_mode & 0o777)
            root.mount(secret["target"], mounted)
        for volume in service.get("volumes", []):
            if isinstance(volume, str):
                # one without a name, empty
                source = root.path / "volumes" / volume.strip("/").replace("/", "-")
                source.mkdir(parents=True)
                root.mount(volume, source)
                continue
            source = self._resolved(volume["source"])
            assert source.is_dir(), f"compose does not make {source}"
            root.mount(volume["target"], source)
        return root

    def _resolved(self, path: str) -> Path:
        return (self._file.parent / path).resolve()
