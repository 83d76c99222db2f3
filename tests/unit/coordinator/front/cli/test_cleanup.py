"""What `cleanup` does about workers that go on after their coordinator."""

from __future__ import annotations

import _thread
import importlib
import itertools
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from helpers.heartbeats import heartbeat
from osbench.common.errors import ContextError
from osbench.common.protocol import timers
from osbench.common.protocol.messages import Heartbeat

# the package has the command under the module's name
cleanup = importlib.import_module("osbench.coordinator.front.cli.commands.cleanup")


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(cleanup, "LOOK_S", 0.001)
    monkeypatch.setattr(cleanup, "WAIT_S", 0.05)
    monkeypatch.setattr(cleanup, "connect", lambda *_: SimpleNamespace(close=lambda: None))
    monkeypatch.setattr(cleanup, "Signer", lambda _: None)
    messaging = SimpleNamespace(redis_url="redis://h", redis_timeout_s=1.0)
    return SimpleNamespace(conf=SimpleNamespace(messaging=messaging), keyring=lambda: None)


def workers(monkeypatch: pytest.MonkeyPatch, *looks: list[tuple[str, int, int]]) -> None:
    """Let each look find new heartbeats of these workers: run, busy users, queued iterations."""
    beats = itertools.count(1)

    def present() -> list[Heartbeat]:
        number = next(beats)
        return [
            heartbeat(f"w{at}", beat=number, run=run, busy=busy, queued=queued)
            for at, (run, busy, queued) in enumerate(looks[min(number, len(looks)) - 1])
        ]

    monkeypatch.setattr(cleanup, "HeartbeatReader", lambda *_: SimpleNamespace(present=present))


def test_workers_that_finish_are_waited_for(settings, monkeypatch, capsys):
    # what is queued does not begin: no coordinator renews the lease
    monkeypatch.setattr(timers, "LEASE_S", 0.0)
    workers(
        monkeypatch,
        [("r", 4, 9), ("r", 1, 0), ("other", 4, 4)],
        [("r", 1, 9), ("r", 0, 0), ("other", 4, 4)],
        [("r", 0, 9), ("r", 0, 0), ("other", 4, 4)],
    )

    cleanup._await_workers(settings, "r")

    assert capsys.readouterr().err == "waiting for 2 worker processes still serving run r\n"


@pytest.mark.parametrize("lease_s", [0.0, 60.0])
def test_nothing_is_removed_under_workers_that_do_not_finish(settings, monkeypatch, lease_s):
    monkeypatch.setattr(timers, "LEASE_S", lease_s)
    workers(monkeypatch, [("r", 0 if lease_s else 1, 0)])

    with pytest.raises(ContextError, match=r"1 worker process still .* 0\.05 s: no resource"):
        cleanup._await_workers(settings, "r")


def test_ctrl_c_ends_a_clean_up_that_goes_on_for_ever(monkeypatch):
    ended = threading.Event()

    def for_ever(*_: Any, **__: Any) -> list[str]:
        _thread.interrupt_main()
        ended.wait()
        return []

    monkeypatch.setattr(cleanup, "undo", for_ever)
    try:
        with pytest.raises(KeyboardInterrupt):
            cleanup._undo(SimpleNamespace(), SimpleNamespace(), crashed=False)
    finally:
        ended.set()
