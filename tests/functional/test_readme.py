"""README.md's commands do what README.md says, word by word."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import coord, environment
from readme import REPOSITORY, Block, blocks

from servers import Child, RabbitmqServer, folder, free_port, redis_executable

pytestmark = pytest.mark.functional


class Machine:
    """A machine with nothing on it but osbench and a redis-server, and ports of its own."""

    def __init__(self, home: Path, broker_port: int = 0) -> None:
        self.home = home
        self._ports = {"6379": str(free_port()), "5672": str(broker_port)}
        self._environment = environment(home)
        tools = home / "tools"
        tools.mkdir()
        (tools / "redis-server").symlink_to(redis_executable())
        self._environment["PATH"] += f"{os.pathsep}{tools}"
        # How late iterations start on a busy test machine is not what is tested.
        self._environment["OS_BENCHMARK__LAG_LIMIT_S"] = "10"

    def run(self, block: Block) -> str:
        """Type a block and wait for its end; returns what it printed on stdout."""
        done = subprocess.run(
            ["bash", "-ec", self._text(block)],
            cwd=REPOSITORY,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, f"{block.text}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    @contextlib.contextmanager
    def running(self, block: Block) -> Iterator[Child]:
        """Type a block in a terminal of its own; Ctrl-C at the end."""
        number = len(list(self.home.glob("terminal-*")))
        terminal = Child(
            ["bash", "-ec", self._text(block)],
            folder=self.home,
            log=self.home / f"terminal-{number}",
            cwd=REPOSITORY,
            env=self._environment,
        )
        try:
            yield terminal
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(terminal.process.pid, signal.SIGINT)
            terminal.process.wait(60.0)
            terminal.end()

    def wait_for_workers(self, terminal: Child, count: int) -> None:
        """Wait until so many workers are there."""
        while True:
            shown = coord(self.home, "workers", "--json")
            if shown.returncode == 0 and len(json.loads(shown.stdout)) == count:
                return
            assert terminal.process.poll() is None, terminal.tail()
            time.sleep(0.1)

    def _text(self, block: Block) -> str:
        text = block.text
        for documented, ours in self._ports.items():
            text = text.replace(documented, ours)
        return text


@pytest.fixture
def home() -> Iterator[Path]:
    with folder() as path:
        yield path


def test_every_block_of_commands_is_run_by_a_test() -> None:
    stories = [block.story for block in blocks()]

    assert set(stories) == {"first-run", "openstack", "scale-out", "rabbitmq"}


def test_a_first_run_in_local_mode(home: Path) -> None:
    machine = Machine(home)
    (block,) = blocks("first-run")

    printed = machine.run(block)

    assert "Dummy.dummy" in printed
    assert not list(home.glob("*.sock"))


def test_two_workers_and_a_coordinator_by_hand(home: Path) -> None:
    machine = Machine(home)
    server, configure, one, two, run = blocks("scale-out")

    with machine.running(server) as redis:
        machine.run(configure)
        with machine.running(one), machine.running(two) as second:
            machine.wait_for_workers(second, 2)
            printed = machine.run(run)

            assert redis.process.poll() is None
    assert "one" in printed
    assert "two" in printed
    assert "Exit code 0" in printed


def test_two_workers_and_a_coordinator_with_rabbitmq(home: Path, rabbitmq: RabbitmqServer) -> None:
    machine = Machine(home, broker_port=rabbitmq.port)
    server, configure, one, two, run = blocks("scale-out")
    (broker,) = blocks("rabbitmq")

    with machine.running(server):
        machine.run(configure)
        machine.run(broker)
        with machine.running(one), machine.running(two) as second:
            machine.wait_for_workers(second, 2)
            printed = machine.run(run)

    assert "Exit code 0" in printed
