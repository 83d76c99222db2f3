"""Peers that drip, hang, flood or lie: each exchange ends, with an error that its caller knows."""

from __future__ import annotations

import contextlib
import io
import json
import os
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest
import requests

from osbench.common.deployment.credential import Credential
from osbench.common.errors import StoreError
from osbench.common.network import download
from osbench.edges.openstack.common import thread_sessions
from osbench.edges.openstack.common.account import Account
from osbench.edges.openstack.common.request_errors import AuthenticationFailed
from osbench.edges.openstack.common.thread_sessions import ThreadSessions
from osbench.edges.traces.counters import prometheus
from osbench.edges.traces.counters.prometheus import (
    Prometheus,
    PrometheusAwayError,
    QueryRefusedError,
)
from osbench.edges.traces.sources import redis_store, trace_backend
from osbench.edges.traces.sources.redis_store import RedisTraces
from osbench.edges.traces.sources.trace_backend import BackendState, TraceBackend
from servers.child import PATIENCE_S
from servers.hostile_peer import MODES, hostile_peer

#: For an exchange; the waits for a byte are ample.
BRIEF_S = 0.4
TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.fixture(autouse=True)
def _brief(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "_RESPONSE_S", BRIEF_S)
    monkeypatch.setattr(trace_backend, "_RESPONSE_S", BRIEF_S)
    monkeypatch.setattr(thread_sessions, "EXCHANGE_S", BRIEF_S)
    for name in [one for one in os.environ if one.startswith(("OS_", "AWS_"))]:
        monkeypatch.delenv(name)


def _trace(kind: str, url: str) -> None:
    found = TraceBackend(f"{kind}+{url}").ask(TRACE)
    assert found.state not in (BackendState.FOUND, BackendState.PARTIAL)
    # a later round may ask again: the caller knows these states
    raise LookupError(found.state)


def _login(url: str) -> None:
    credential = Credential(auth_url=f"{url}/v3", username="u", password="p", project_name="p")
    account = Account(credential)
    account.token(ThreadSessions(credential, 60.0)())


def _download(url: str, total_s: float = BRIEF_S) -> None:
    download.download(url, io.BytesIO(), 1 << 20, total_s)


#: By name: what talks to a server, and the errors that its callers expect.
EXCHANGES: dict[str, tuple[Callable[[str], Any], tuple[type[Exception], ...]]] = {
    "prometheus clock": (lambda url: Prometheus(url).now_s(), (PrometheusAwayError,)),
    "prometheus query": (
        lambda url: Prometheus(url).over("up", 0, 60, 15),
        (PrometheusAwayError, QueryRefusedError),
    ),
    "tempo": (lambda url: _trace("tempo", url), (LookupError,)),
    "jaeger": (lambda url: _trace("jaeger", url), (LookupError,)),
    "download": (
        _download,
        (requests.RequestException,),
    ),
    "keystone": (
        _login,
        (AuthenticationFailed, ConnectionError, TimeoutError),
    ),
}
#: Exchanges that only need any bytes: downloads.
_CONTENT = {("download", "lie")}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", EXCHANGES)
def test_an_exchange_with_a_hostile_peer_ends_with_an_error_that_callers_know(
    name: str, mode: str
) -> None:
    exchange, errors = EXCHANGES[name]

    with hostile_peer(mode) as url:
        if (name, mode) in _CONTENT:
            # it succeeds, however busy the machine is
            _download(url, PATIENCE_S)
        else:
            with pytest.raises(errors):
                exchange(url)


@pytest.mark.parametrize("name", ["prometheus query", "tempo"])
def test_no_objects_are_made_of_a_response_that_has_too_many(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange, errors = EXCHANGES[name]
    monkeypatch.setattr(json, "loads", lambda *_, **__: pytest.fail("it is parsed"))
    monkeypatch.setattr(json.JSONDecoder, "raw_decode", lambda *_: pytest.fail("it is parsed"))

    with hostile_peer("objects") as url, pytest.raises(errors):
        exchange(url)


def test_a_trace_store_that_drips_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_store, "TOTAL_S", BRIEF_S)
    over = threading.Event()

    def drip() -> None:
        with contextlib.suppress(OSError), server.accept()[0] as connection:
            connection.recv(1 << 16)
            connection.sendall(b"$1000000\r\n")
            while not over.wait(0.02):
                connection.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=drip, daemon=True).start()
        store = RedisTraces(f"redis://127.0.0.1:{server.getsockname()[1]}", timeout_s=PATIENCE_S)

        with pytest.raises(StoreError, match="not over within"):
            list(store.read([TRACE]))

    over.set()
