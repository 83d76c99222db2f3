"""Stores and receivers that drip, hang, flood or lie: each exchange ends with a known error."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helpers.result_rows import row
from helpers.stored_runs import stored_run
from osbench.common.errors import ArchiveError, ExportError
from osbench.common.plugin.plugins import Plugins
from osbench.edges.history.archives import fsspec_store
from osbench.edges.history.archives.archive_store import store_of
from osbench.edges.history.exporters import posting
from osbench.edges.history.exporters.alert import post_alert
from osbench.edges.openstack.common import thread_sessions
from servers.child import PATIENCE_S
from servers.hostile_peer import MODES, hostile_peer

#: For an exchange; the waits for a byte are ample.
BRIEF_S = 0.4


def _bound_exchanges(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posting, "TIMEOUT_S", seconds)
    monkeypatch.setattr(posting, "TOTAL_S", seconds)
    monkeypatch.setattr(thread_sessions, "EXCHANGE_S", seconds)
    monkeypatch.setattr(fsspec_store, "TOTAL_S", seconds)


@pytest.fixture(autouse=True)
def _brief(monkeypatch: pytest.MonkeyPatch) -> None:
    _bound_exchanges(BRIEF_S, monkeypatch)
    for name in [one for one in os.environ if one.startswith(("OS_", "AWS_"))]:
        monkeypatch.delenv(name)


def _export(name: str, url: str, folder: Path) -> None:
    exporter: Any = Plugins().get("exporter", name)({"pause_s": 0.1})
    rows = [row(1, due=1, started=1, ended=2)]
    exporter.send(stored_run(folder, rows, rows), url)


def _swift(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"AUTH_URL": f"{url}/v3", "USERNAME": "u", "PASSWORD": "p", "PROJECT_NAME": "p"}
    for name, value in {**given, "USER_DOMAIN_NAME": "d", "PROJECT_DOMAIN_NAME": "d"}.items():
        monkeypatch.setenv(f"OS_{name}", value)
    store_of("swift://team/shop").listed("index")


#: By name: what talks to a server, and the error that its callers expect.
EXCHANGES: dict[str, tuple[Callable[..., Any], type[Exception]]] = {
    "alert": (lambda url, *_: post_alert(url, {"a": 1}, 0.1), ExportError),
    "opensearch": (lambda url, tmp, _: _export("opensearch", url, tmp), ExportError),
    "otlp": (lambda url, tmp, _: _export("otlp", url, tmp), ExportError),
    "swift": (lambda url, _, patch: _swift(url, patch), ArchiveError),
}
#: Exchanges that only need a good status, or any bytes.
_CONTENT = {("alert", "objects"), ("alert", "lie"), ("otlp", "objects"), ("otlp", "lie")}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", EXCHANGES)
def test_an_exchange_with_a_hostile_receiver_ends_with_an_error_that_callers_know(
    name: str, mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange, error = EXCHANGES[name]

    with hostile_peer(mode) as url:
        if (name, mode) in _CONTENT:
            # it succeeds, however busy the machine is
            _bound_exchanges(PATIENCE_S, monkeypatch)
            exchange(url, tmp_path, monkeypatch)
        else:
            with pytest.raises(error):
                exchange(url, tmp_path, monkeypatch)


@pytest.mark.parametrize("step", ["exists", "ls", "info", "cat", "get_file", "put_file"])
def test_no_step_of_an_archive_in_another_store_takes_longer_than_its_total(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    never = threading.Event()
    path = tmp_path / "packed"
    path.write_bytes(b"x")
    store: Any = store_of(f"memory://{tmp_path.name}/{step}")
    store.put(path, "runs/one")
    monkeypatch.setattr(fsspec_store, "LEAST_BYTES_S", 1 << 30)
    monkeypatch.setattr(type(store._files), step, lambda *_, **__: never.wait())

    with pytest.raises(ArchiveError, match=r"not over within"):
        match step:
            case "exists":
                store.is_missing()
            case "ls":
                store.listed("runs")
            case "info":
                store.size("runs/one")
            case "cat":
                store.read(["runs/one"])
            case "get_file":
                store.get("runs/one", tmp_path / "got")
            case _:
                store.put(path, "runs/two")
    never.set()
