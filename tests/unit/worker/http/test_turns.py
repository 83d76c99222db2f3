"""New connections take the addresses of a host in turn."""

from __future__ import annotations

import logging
import socket
from collections import Counter
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from typing import Any

import pytest

from helpers.driven import LOOP, SOCKETS, driven
from helpers.json_server import QuietHandler, serving
from helpers.recording_server import recording_server
from helpers.resolver import resolving
from osbench.worker.http.name_lookups import Address, NameLookups
from osbench.worker.http.other_clients import turned_adapter
from osbench.worker.http.other_clients.requests_client import RequestsClient

THREE = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
CLOSE = {"headers": {"Connection": "close"}}


class _Asked(QuietHandler):
    """Notes the address at which it was asked."""

    def do_GET(self) -> None:
        self.server.asked[self.connection.getsockname()[0]] += 1  # type: ignore[attr-defined]
        self.answer(200, {})


class Everywhere(ThreadingHTTPServer):
    """A server on a free port of all addresses."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("", 0), _Asked)
        self.asked: Counter[str] = Counter()


@pytest.fixture
def server() -> Iterator[Everywhere]:
    with serving(Everywhere()) as running:
        yield running


class _Afresh:
    """A session for each request: one does not see that a server closes its connection."""

    def status(self, *asked: Any) -> int:
        return RequestsClient([]).status(*asked)


def addresses(port: int, *hosts: str) -> list[Address]:
    return [(socket.AF_INET, (host, port)) for host in hosts]


@pytest.fixture(params=[SOCKETS, LOOP, "requests"])
def client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(turned_adapter, "_LOOKUPS", NameLookups())
    if request.param == "requests":
        yield _Afresh()
        return
    with driven(request.param) as made:
        yield made


def test_each_new_connection_has_the_next_address(server, client, monkeypatch):
    port = server.server_port
    asked = resolving(monkeypatch, *addresses(port, *THREE))

    for _ in range(12):
        assert client.status("GET", f"http://shop.invalid:{port}/", [], CLOSE) == 200

    assert server.asked == dict.fromkeys(THREE, 4)
    assert asked == ["shop.invalid"]


def test_addresses_that_refuse_are_passed_over_and_named_once(client, monkeypatch, caplog):
    with recording_server() as server, caplog.at_level(logging.WARNING):
        port = server.server_port
        resolving(monkeypatch, *addresses(port, *THREE))
        for _ in range(12):
            assert client.status("GET", f"http://shop.invalid:{port}/", [], CLOSE) == 200

        assert len(server.taken()) == 12

    assert len(caplog.messages) == 2
    assert all(
        f"127.0.0.{number} of shop.invalid takes no connection" in said
        for number, said in zip((2, 3), sorted(caplog.messages), strict=True)
    )


def test_those_that_take_connections_share_the_turns_of_one_that_does_not(monkeypatch):
    first, second, third = three = addresses(1, *THREE)
    resolving(monkeypatch, *three)
    lookups = NameLookups()
    lookups.addresses("h", 1, None)

    lookups.refused("h", 1, second, "Connection refused")
    found = [lookups.addresses("h", 1, None) for _ in range(6)]
    lookups.took("h", 1, second)
    later = [lookups.addresses("h", 1, None)[0] for _ in range(6)]

    assert Counter(one[0] for one in found) == {first: 3, third: 3}
    assert all(one[-1] == second and len(one) == 3 for one in found)
    assert Counter(later) == {first: 2, second: 2, third: 2}


def test_turns_are_those_of_the_family_that_comes_first_and_the_other_one_is_next(monkeypatch):
    six = [(socket.AF_INET6, (f"::{number}", 1, 0, 0)) for number in (1, 2, 3)]
    four = [(socket.AF_INET, ("127.0.0.1", 1))]
    resolving(monkeypatch, *six, *four)
    lookups = NameLookups()

    found = [lookups.addresses("h", 1, None) for _ in range(3)]

    assert sorted(one[0] for one in found) == six
    assert all(one[1] == four[0] for one in found)


def test_processes_begin_with_different_addresses(monkeypatch):
    resolving(monkeypatch, *addresses(1, *THREE))

    begun = {NameLookups().addresses("h", 1, None)[0] for _ in range(200)}

    assert begun == set(addresses(1, *THREE))
