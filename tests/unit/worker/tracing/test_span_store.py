"""The connection to a trace store: replies, and the time that they may take."""

from __future__ import annotations

import itertools
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest

from osbench.worker.tracing import span_store


def test_replies_may_take_the_whole_timeout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = itertools.count()
    clock = SimpleNamespace(monotonic=lambda: 0.4 * next(ticks))
    monkeypatch.setattr(span_store, "time", clock)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        server.listen()
        # a deadline, a wait to send, and one to receive; another one would be too late
        store = span_store.SpanStore(f"unix://{tmp_path}/s", 0.9)
        store.connect()
        answers, _ = server.accept()
        with answers:
            answers.sendall(b"+OK\r\n-OOM too full\r\n")
            assert store.send(b"written", 2) == [None, "OOM"]

            answers.sendall(b"+OK\r\n")
            with pytest.raises(TimeoutError):
                store.send(b"written", 2)
