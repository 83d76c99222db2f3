"""README.md's commands do what README.md says, word by word."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from helpers.machine import Machine
from helpers.readme import blocks
from servers import RabbitmqServer, folder

pytestmark = pytest.mark.functional


@pytest.fixture
def home() -> Iterator[Path]:
    with folder() as path:
        yield path


def test_every_block_of_commands_is_run_by_a_test() -> None:
    stories = [block.story for block in blocks()]

    assert set(stories) == {
        *("address", "first-run", "own-scenario", "openstack", "scale-out", "rabbitmq")
    }


def test_an_address_under_load(home: Path) -> None:
    machine = Machine(home)
    server, run = blocks("address")

    with machine.running(server) as shop:
        machine.wait_for_port("8080", shop)
        printed = machine.run(run)

    assert "GET /items" in printed
    assert "200 = 200" in printed
    assert "passed  failure_rate" in printed


def test_a_first_run_in_local_mode(home: Path) -> None:
    machine = Machine(home)
    (block,) = blocks("first-run")

    printed = machine.run(block)

    assert "Dummy.dummy" in printed
    assert not list(home.glob("*.sock"))


def test_a_scenario_of_ones_own_in_local_mode_and_on_two_workers(home: Path) -> None:
    desk = home / "desk"
    desk.mkdir()
    machine = Machine(home, folder=desk)
    (block,) = blocks("own-scenario")
    server, configure, *workers, _ = blocks("scale-out")

    alone = machine.run(block)
    with machine.running(server):
        machine.run(configure)
        one, two = (
            replace(worker, text=f"{worker.text.rstrip()} --plugin-path scenarios\n")
            for worker in workers
        )
        with machine.running(one), machine.running(two) as second:
            machine.wait_for_workers(second, 2)
            spread = machine.run(block)

    for printed in (alone, spread):
        assert "200 = 200" in printed
        assert "hash" in printed
    assert "2 processes on" in spread


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
