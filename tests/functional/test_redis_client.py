"""Our Redis client where single replies are lost: it raises an error, and never sends twice."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.certificates import self_signed
from helpers.import_path import TESTS, import_path
from helpers.slow_names import NAME
from osbench.common.errors import StoreError, StoreUnreachable
from osbench.common.protocol.redis_client import check, connect, translating_errors
from osbench.common.protocol.store import Store
from servers import RedisServer, free_port, redis_server

pytestmark = pytest.mark.functional

SECRET = "s3cret-word"


class Line:
    """Passes on what client and server say; can lose the reply to a command it sees.

    `lose(word, how)` arms it for the next request that holds `word`: the request is passed on,
    its reply is not. "cut" then ends the connection, "stall" keeps it open and silent.
    """

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._word: bytes | None = None
        self._how = ""
        #: Requests that went through, by the word the line was armed with last.
        self.seen = 0
        self._watched = b"\0"
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def lose(self, word: bytes, how: str) -> None:
        self._word, self._how, self._watched, self.seen = word, how, word, 0

    def close(self) -> None:
        for end in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
                self._open += [client, server]
                deaf = threading.Event()
                threading.Thread(target=self._up, args=(client, server, deaf), daemon=True).start()
                threading.Thread(
                    target=self._down, args=(client, server, deaf), daemon=True
                ).start()

    def _up(self, client: socket.socket, server: socket.socket, deaf: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                if self._watched in data:
                    self.seen += 1
                if self._word is not None and self._word in data:
                    self._word = None
                    deaf.set()
                server.sendall(data)
            server.shutdown(socket.SHUT_WR)

    def _down(self, client: socket.socket, server: socket.socket, deaf: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                if not deaf.is_set():
                    client.sendall(data)
                elif self._how == "cut":
                    break
            client.shutdown(socket.SHUT_RDWR)


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with redis_server(password="functional") as found:
        yield found


@pytest.fixture
def redis(server: RedisServer) -> RedisServer:
    """A Redis that is empty and as it was at its start."""
    with contextlib.closing(server.client()) as admin:
        admin.replicaof("NO", "ONE")
        admin.config_set("min-replicas-to-write", 0)
        admin.config_set("maxmemory", 0)
        admin.acl_deluser("narrow")
        admin.flushall()
        admin.config_resetstat()
    return server


@pytest.fixture
def line(redis) -> Iterator[Line]:
    found = Line(redis.port)
    yield found
    found.close()


@pytest.fixture
def client(redis, line):
    """Ours, over the line; it waits as long for a reply as a busy machine may take."""
    found = connect(f"redis://:{redis.password}@127.0.0.1:{line.port}/0", timeout_s=3.0)
    with translating_errors(client):
        found.ping()
    yield found
    found.close()


@pytest.fixture
def direct(redis):
    """Somebody else's, straight to the server."""
    found = redis.client()
    yield found
    found.close()


def calls(direct, command: str) -> int:
    """How often the server has executed a command."""
    found = direct.info("commandstats").get(f"cmdstat_{command}")
    return 0 if found is None else int(found["calls"])


@pytest.fixture(params=["cut", "stall"])
def how(request) -> str:
    return request.param


def test_a_set_nx_whose_reply_is_lost_is_executed_once_and_reported(client, line, direct, how):
    line.lose(b"mark", how)

    with pytest.raises(StoreUnreachable), translating_errors(client):
        client.set("mark", "ours", nx=True)

    assert direct.get("mark") == b"ours"
    assert line.seen == 1
    assert calls(direct, "set") == 1


def test_an_xadd_whose_reply_is_lost_is_stored_once(client, line, direct, how):
    store = Store(client, "r1")
    store.tend()
    line.lose(b"block-1", how)

    with pytest.raises(StoreUnreachable):
        store.append(b"block-1")

    assert line.seen == 1
    assert direct.xlen("osbench:run:r1:results") == 1


def test_the_client_works_again_after_a_lost_reply(client, line, direct, how):
    line.lose(b"counter", how)
    with pytest.raises(StoreUnreachable), translating_errors(client):
        client.incr("counter")

    with translating_errors(client):
        again = client.incr("counter")

    assert again == 2
    with translating_errors(client):
        assert client.get("counter") == direct.get("counter") == b"2"


def test_a_server_that_is_frozen_is_away_and_back_afterwards(redis, client, direct):
    with translating_errors(client):
        client.set("key", "value")

    redis.pause()
    try:
        with pytest.raises(StoreUnreachable, match="does not respond"), translating_errors(client):
            client.get("key")
    finally:
        redis.resume()

    with translating_errors(client):
        assert client.get("key") == b"value"


def test_a_right_server_passes_the_check(redis, client):
    check(client, redis.url)


def test_a_wrong_password_is_refused_without_showing_it(redis):
    url = f"redis://:{SECRET}@127.0.0.1:{redis.port}/0"

    with pytest.raises(StoreError, match="refuses access") as caught:
        check(connect(url, timeout_s=5.0), url)

    assert SECRET not in str(caught.value)
    assert f"127.0.0.1:{redis.port}" in str(caught.value)


def test_a_missing_password_is_refused(redis):
    url = f"redis://127.0.0.1:{redis.port}/0"

    with pytest.raises(StoreError, match="it wants a password, before the host in"):
        check(connect(url, timeout_s=5.0), url)


def test_tls_to_a_server_without_is_told(redis):
    url = f"rediss://:{SECRET}@127.0.0.1:{redis.port}/0"

    with pytest.raises(StoreError, match=r"if it has no TLS at this port, .* redis://") as caught:
        check(connect(url, timeout_s=5.0), url)

    assert SECRET not in str(caught.value)


@pytest.fixture
def with_tls(tmp_path: Path) -> Iterator[int]:
    """The port of a server that expects TLS, with a certificate that nobody knows."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(self_signed(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection, contextlib.suppress(OSError):
                    context.wrap_socket(connection, server_side=True).close()

        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1]
        # wakes the thread
        listening.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    ("scheme", "remedy"),
    [
        ("redis", r"if it expects TLS, .* rediss://"),
        ("rediss", r"\[messaging\] tls_ca_file"),
    ],
)
def test_what_a_server_with_tls_wants_is_told(with_tls: int, scheme: str, remedy: str):
    url = f"{scheme}://127.0.0.1:{with_tls}/0"

    with pytest.raises(StoreError, match=remedy):
        check(connect(url, timeout_s=5.0), url)


def test_a_user_without_the_permission_is_refused(redis, direct):
    direct.acl_setuser("narrow", enabled=True, passwords=[f"+{SECRET}"], commands=["+ping"])
    url = f"redis://narrow:{SECRET}@127.0.0.1:{redis.port}/0"

    with pytest.raises(
        StoreError, match=r"'info'.*give its user the permissions of docs"
    ) as caught:
        check(connect(url, timeout_s=5.0), url)

    assert SECRET not in str(caught.value)


def test_a_closed_port_is_reported_without_showing_the_password():
    url = f"redis://:{SECRET}@127.0.0.1:{free_port()}/0"

    with pytest.raises(StoreError, match="does not respond") as caught:
        check(connect(url, timeout_s=5.0), url)

    assert SECRET not in str(caught.value)


def test_a_server_that_could_drop_results_is_refused():
    with (
        redis_server(password=SECRET, maxmemory_policy="allkeys-lru") as server,
        pytest.raises(StoreError, match="allkeys-lru and could drop results") as caught,
    ):
        check(connect(server.url, timeout_s=5.0), server.url)

    assert SECRET not in str(caught.value)
    assert "config set maxmemory-policy noeviction" in str(caught.value)


def test_a_full_server_is_away_not_wrong(direct, client):
    direct.config_set("maxmemory", 1)

    with pytest.raises(StoreUnreachable, match="cannot serve now"), translating_errors(client):
        client.set("key", "value")

    direct.config_set("maxmemory", 0)
    with translating_errors(client):
        client.set("key", "value")


def test_a_server_that_cannot_write_is_away(redis, direct, client):
    direct.config_set("min-replicas-to-write", 1)

    with pytest.raises(StoreUnreachable, match="cannot serve now"), translating_errors(client):
        client.set("key", "value")


def test_a_replica_is_away_not_wrong(direct, client):
    direct.replicaof("127.0.0.1", free_port())

    with pytest.raises(StoreUnreachable, match="cannot serve now"), translating_errors(client):
        client.set("key", "value")


def test_a_command_that_the_server_does_not_know_is_an_error(client):
    with pytest.raises(StoreError, match="unknown command"), translating_errors(client):
        client.execute_command("NOT-A-COMMAND")


def test_a_key_of_another_type_is_waited_for(client):
    with translating_errors(client):
        client.set("key", "text")

    with pytest.raises(StoreUnreachable, match="WRONGTYPE"), translating_errors(client):
        client.hget("key", "field")


def test_an_old_server_is_refused(client, monkeypatch):
    answers = {"server": {"redis_version": "6.0.16"}, "memory": {}}
    monkeypatch.setattr(client, "info", answers.get)

    with pytest.raises(StoreError, match=r"version 6\.0\.16; install Redis 6\.2 or newer"):
        check(client, "redis://h:1")


@pytest.mark.parametrize(
    "url", [f"http://u:{SECRET}@h", f"redis://:{SECRET}/x@h:6379", f"redis://:{SECRET}@h:port"]
)
def test_a_malformed_address_is_refused_without_showing_the_password(url):
    with pytest.raises(StoreError, match="is not an address of Redis") as caught:
        connect(url, timeout_s=1.0)

    assert SECRET not in str(caught.value)
    assert caught.value.__suppress_context__


def test_a_name_server_that_takes_long_delays_the_first_connection_only(redis):
    url = f"redis://:{redis.password}@{NAME}:{redis.port}/0"
    done = subprocess.run(
        [sys.executable, "-m", "helpers.slow_names", url, "11", "40"],
        env=os.environ | import_path(TESTS),
        capture_output=True,
        text=True,
        check=True,
    )

    longest_s, lookups = done.stdout.split()
    # as long as a connection that waits for a lookup takes
    assert float(longest_s) < 11
    assert int(lookups) >= 2
