"""What `cleanup` does about workers that go on after their coordinator."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

import pytest

from osbench.common.errors import ContextError

# the package has the command under the module's name
cleanup = importlib.import_module("osbench.coordinator.cli.commands.cleanup")


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(cleanup, "LOOK_S", 0.001)
    monkeypatch.setattr(cleanup, "WAIT_S", 0.05)
    monkeypatch.setattr(cleanup, "connect", lambda *_: None)
    monkeypatch.setattr(cleanup, "Sealer", lambda _: None)
    messaging = SimpleNamespace(redis_url="redis://h", redis_timeout_s=1.0)
    return SimpleNamespace(conf=SimpleNamespace(messaging=messaging), keyring=lambda: None)


def workers(monkeypatch: pytest.MonkeyPatch, *looks: list[tuple[str, int, int]]) -> None:
    """Let each look find these workers: run, busy users, queued iterations."""
    found = iter(looks)
    last: list[Any] = []

    def present() -> list[Any]:
        last[:] = next(found, last)
        return [SimpleNamespace(run=r, busy=b, queued=q) for r, b, q in last]

    monkeypatch.setattr(cleanup, "HeartbeatReader", lambda *_: SimpleNamespace(present=present))


def test_workers_that_finish_are_waited_for(settings, monkeypatch, capsys):
    workers(monkeypatch, [("r", 4, 9), ("r", 1, 0)], [("r", 0, 2)], [("r", 0, 0), ("other", 4, 4)])

    cleanup._await_workers(settings, "r")

    assert capsys.readouterr().err == "waiting for 2 worker processes still serving run r\n"


def test_nothing_is_removed_under_workers_that_do_not_finish(settings, monkeypatch):
    workers(monkeypatch, [("r", 1, 0)])

    with pytest.raises(ContextError, match=r"1 worker process still serving .* 0\.05 s: nothing"):
        cleanup._await_workers(settings, "r")
