"""Commands of a document are typed with ports of the test's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers import machine
from helpers.machine import Machine


def test_a_port_that_has_a_documented_one_in_it_is_put_in_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "redis_executable", lambda: "/nonexistent/redis-server")
    monkeypatch.setattr(machine, "free_port", iter([26379, 28080, 24318]).__next__)
    typed = Machine(tmp_path, broker_port=15672)

    once = typed.text("curl http://127.0.0.1:8080/ redis://127.0.0.1:6379/0 amqp://:5672 18080")

    assert once == "curl http://127.0.0.1:28080/ redis://127.0.0.1:26379/0 amqp://:15672 18080"
    assert typed.text(once) == once
