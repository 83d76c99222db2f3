"""The commands of README.md do what it says, word by word."""

from __future__ import annotations

import pytest

from helpers.machine import Machine
from helpers.readme import blocks
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
