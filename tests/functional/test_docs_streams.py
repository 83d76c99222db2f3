"""The commands of the page on streams load a chat whose replies stream."""

from __future__ import annotations

import pytest

from helpers.machine import Machine
from helpers.readme import blocks
from servers import folder

pytestmark = pytest.mark.functional


def test_the_page_on_streams() -> None:
    server, run, results = blocks("streams", "docs/streams.md")

    with folder() as home:
        machine = Machine(home)
        with machine.running(server) as chat:
            machine.wait_for_port("8080", chat)
            printed = machine.run(run)
            details = machine.run(results)

    assert "40 planned = 40 ok" in printed
    lines = [line.strip() for line in printed.splitlines()]
    # a reply has 30 tokens, and an event that says that it is done
    assert any(line.startswith("chat > between events    1,200") for line in lines)
    assert any(line.startswith("chat > first event          40") for line in lines)
    assert any(line.startswith("met  stream: p95 of first bytes of chat") for line in lines)
    rates = details.partition("Rate of events in a stream, per second")[2]
    assert {"chat", "notices", "rows"} <= {
        line.split()[0] for line in rates.splitlines() if line.split()
    }
