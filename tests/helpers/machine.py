"""A machine on which a test types the commands of a document."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from helpers import forked_commands
from helpers.commands import LENIENT, coord, environment
from helpers.readme import REPOSITORY, Block, blocks
from servers import Child, free_port, redis_executable
from servers.child import PATIENCE_S


class Machine:
    """A machine with nothing on it but osbench and a redis-server, and private ports.

    With `forked` osbench's commands are those of `helpers.forked_commands`, with `rally` those that
    have Rally's plug-ins.
    """

    def __init__(
        self,
        home: Path,
        broker_port: int = 0,
        folder: Path = REPOSITORY,
        *,
        forked: bool = False,
        rally: bool = False,
    ) -> None:
        self.home = home
        #: Where commands are typed.
        self.folder = folder
        self._ports = {
            "6379": str(free_port()),
            "5672": str(broker_port),
            "8080": str(free_port()),
            "4318": str(free_port()),
        }
        self._environment = environment(home) | LENIENT
        tools = home / "tools"
        tools.mkdir()
        (tools / "redis-server").symlink_to(redis_executable())
        self._environment["PATH"] += f"{os.pathsep}{tools}"
        #: Folder of the script of osbench-coord, its variables, and file descriptors it inherits.
        self._forking = home / "forking"
        self._variables: dict[str, str] = {}
        self._inherited: list[int] = []
        if forked:
            self._forking.mkdir()
            self._variables, self._inherited = forked_commands.put_commands(
                self._forking, self._environment, rally=rally
            )

    def run(self, block: Block) -> str:
        """Type a block and wait for its end; returns what it printed on stdout."""
        done = subprocess.run(
            ["bash", "-ec", self.text(block.text)],
            cwd=self.folder,
            env=self._forked_environment,
            pass_fds=self._inherited,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        forked_commands.count_costs(self._forking)
        assert done.returncode == 0, f"{block.text}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    @property
    def _forked_environment(self) -> dict[str, str]:
        path = f"{self._forking}{os.pathsep}{self._environment['PATH']}"
        return {**self._environment, **self._variables, "PATH": path}

    @contextlib.contextmanager
    def running(self, block: Block) -> Iterator[Child]:
        """Type a block in a separate terminal; Ctrl-C at the end."""
        number = len(list(self.home.glob("terminal-*")))
        terminal = Child(
            ["bash", "-ec", self.text(block.text)],
            folder=self.home,
            log=self.home / f"terminal-{number}",
            cwd=self.folder,
            env=self._forked_environment,
            inherited=self._inherited,
        )
        try:
            yield terminal
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(terminal.process.pid, signal.SIGINT)
            terminal.process.wait(PATIENCE_S)
            terminal.end()
            forked_commands.count_costs(self._forking)

    def wait_for_workers(self, terminal: Child, count: int) -> None:
        """Wait until this number of workers is present."""
        while True:
            shown = coord(self.home, "workers", "--json")
            if shown.returncode == 0 and len(json.loads(shown.stdout)) == count:
                return
            assert terminal.process.poll() is None, terminal.tail()
            time.sleep(0.1)

    def wait_for_port(self, documented: str, terminal: Child) -> None:
        """Wait until the server in a terminal listens at the port that a document names."""
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", int(self._ports[documented]))).close()
                return
            assert terminal.process.poll() is None, terminal.tail()
            time.sleep(0.05)

    def place(self, documented: str, port: int) -> None:
        """Have a server of the test at the port that a document names."""
        self._ports[documented] = str(port)

    def text(self, text: str) -> str:
        """What a document says, with ports that are free here and a limit for a busy machine.

        Text that was translated before stays as it is: integers are looked up, and a free
        port has five digits (28080 has 8080 in it).
        """
        text = text.replace("--limit p95=250ms", "--limit p95=60s")
        return re.sub(r"\b\d{4}\b", lambda found: self._ports.get(found[0], found[0]), text)


@contextlib.contextmanager
def with_worker(machine: Machine, worker: str = "") -> Iterator[None]:
    """Have runs of a machine use a Redis and a worker that start once, as docs/many-hosts.md says.

    `worker` starts another worker than that of the page.
    """
    redis, configure, first, *_ = blocks("scale-out", "docs/many-hosts.md")
    block = dataclasses.replace(first, text=worker or first.text)
    with machine.running(redis) as server:
        machine.wait_for_port("6379", server)
        machine.run(configure)
        with machine.running(block) as terminal:
            machine.wait_for_workers(terminal, 1)
            yield
