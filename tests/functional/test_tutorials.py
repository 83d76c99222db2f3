"""The commands of the first pages do what they say, word by word."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from helpers.machine import Machine
from helpers.readme import REPOSITORY, blocks, files
from servers import RabbitmqServer, folder

pytestmark = pytest.mark.functional

FIRST_RUN, FIRST_FLOW, MANY_HOSTS = (
    f"docs/{page}.md" for page in ("first-run", "first-flow", "many-hosts")
)


@pytest.fixture
def home() -> Iterator[Path]:
    with folder() as path:
        yield path


def test_the_first_run_from_an_address_to_a_task(home: Path) -> None:
    desk = home / "desk"
    desk.mkdir()
    (desk / "samples").symlink_to(REPOSITORY / "samples")
    machine = Machine(home, folder=desk)
    server, *steps = blocks("tutorial", FIRST_RUN)

    with machine.running(server) as shop:
        machine.wait_for_port("8080", shop)
        ran, _, again = map(machine.run, steps)

    assert "200 planned = 200 ok" in ran
    assert "percentile" in ran
    assert "<html" in (desk / "report.html").read_text("utf-8")
    assert "rps: 40" in (desk / "items.yaml").read_text("utf-8")
    assert "400 planned = 400 ok" in again
    assert not list(home.glob("*.sock"))


def test_the_first_flow_logs_in_looks_and_buys(home: Path) -> None:
    desk = home / "desk"
    desk.mkdir()
    (desk / "samples").symlink_to(REPOSITORY / "samples")
    machine = Machine(home, folder=desk)
    for name, text in files(FIRST_FLOW).items():
        (desk / name).write_text(machine.text(text), encoding="utf-8")
    server, once, many = blocks("flow", FIRST_FLOW)

    with machine.running(server) as shop:
        machine.wait_for_port("8080", shop)
        shown, ran = machine.run(once), machine.run(many)

    assert "/login" in shown
    assert "60 planned = 60 ok" in ran
    for action in ("look > list", "look > item", "buy > order"):
        assert action.partition(" > ")[2] in ran


def test_a_scenario_of_ones_own_in_local_mode_and_on_two_workers(home: Path) -> None:
    desk = home / "desk"
    desk.mkdir()
    machine = Machine(home, folder=desk)
    (block,) = blocks("own-scenario", FIRST_RUN)
    server, configure, *workers, _ = blocks("scale-out", MANY_HOSTS)

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
            details = machine.run(replace(block, text="osbench-coord results --details\n"))

    for printed in (alone, spread):
        assert "200 planned = 200 ok" in printed
        assert "hash" in printed
    assert "2 processes on" in details


def test_two_workers_and_a_coordinator_by_hand(home: Path) -> None:
    machine = Machine(home)
    server, configure, one, two, run = blocks("scale-out", MANY_HOSTS)

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
    server, configure, one, two, run = blocks("scale-out", MANY_HOSTS)
    (broker,) = blocks("rabbitmq", MANY_HOSTS)

    with machine.running(server):
        machine.run(configure)
        machine.run(broker)
        with machine.running(one), machine.running(two) as second:
            machine.wait_for_workers(second, 2)
            printed = machine.run(run)

    assert "Exit code 0" in printed
