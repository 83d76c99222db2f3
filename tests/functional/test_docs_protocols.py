"""The scenario of the page on protocols loads a WebSocket server."""

from __future__ import annotations

import pytest

from helpers.machine import Machine
from helpers.readme import blocks
from servers import folder

pytest.importorskip("websocket", reason="websocket-client is not installed")
pytestmark = pytest.mark.functional


def test_the_page_on_protocols() -> None:
    server, run = blocks("protocols", "docs/protocols.md")

    with folder() as home:
        machine = Machine(home)
        with machine.running(server) as echo:
            machine.wait_for_port("8080", echo)
            printed = machine.run(run)

    assert "200 planned = 200 ok" in printed
    rows = {line.split()[0]: line.split()[1] for line in printed.splitlines() if line.split()}
    assert (rows["connect"], rows["echo"], rows["close"]) == ("200", "1,000", "200")
