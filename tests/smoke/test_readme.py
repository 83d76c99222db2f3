"""The commands of README.md do what it says, word by word."""

from __future__ import annotations

import pytest

from helpers.machine import Machine
from helpers.readme import REPOSITORY, Block, blocks, files
from servers import folder

pytestmark = pytest.mark.functional


def test_every_block_of_commands_is_run_by_a_test() -> None:
    stories = [block.story for block in blocks()]

    assert set(stories) == {"address"}


def test_an_address_under_load() -> None:
    server, run = blocks("address")

    with folder() as home:
        machine = Machine(home)
        with machine.running(server) as shop:
            machine.wait_for_port("8080", shop)
            printed = machine.run(run)

    assert "GET /items" in printed
    assert "200 planned = 200 ok" in printed
    assert "met  failure_rate" in printed


def test_an_iteration_of_the_task_file() -> None:
    server, _ = blocks("address")
    once = Block(story="", server=False, text="osbench-coord run shop.yaml --once")
    (task,) = files("README.md").values()

    with folder() as home:
        machine = Machine(home)
        machine.folder = home
        (home / "samples").symlink_to(REPOSITORY / "samples")
        (home / "shop.yaml").write_text(machine.text(task), "utf-8")
        with machine.running(server) as shop:
            machine.wait_for_port("8080", shop)
            printed = machine.run(once)

    assert "/items -> 200 OK" in printed
    assert "/report -> 200 OK" in printed
    assert "iteration 1: ok after" in printed
