"""Names of servers by header and by address, and their numbers."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any

import pytest

from osbench.common.plugin.atomic import Names
from osbench.common.protocol.exchanges import OTHER_SERVERS
from osbench.worker.http import server_names
from osbench.worker.http.server_names import ADDRESS, ServerNames, peer_of


def response(**fields: list[str]) -> Any:
    """A response with these values of headers."""
    return SimpleNamespace(values=lambda name: fields.get(name, []))


def named(by: str) -> ServerNames:
    found = ServerNames(by)
    found.names = Names()
    found.names.number("an action")
    return found


def name_of(servers: ServerNames, number: int) -> str:
    assert servers.names is not None
    return servers.names.names[number - 1]


def test_a_server_has_the_number_of_its_header_or_its_address() -> None:
    by_header, by_address = named("Server"), named(ADDRESS)

    first = by_header.number("10.0.0.1:80", response(server=["b1"]))

    assert (first, name_of(by_header, first)) == (2, "b1")
    assert by_header.number("10.0.0.2:80", response(server=["b1"])) == first
    lacking = by_header.number("10.0.0.2:80", response())
    assert name_of(by_header, lacking) == "(no server)"
    reserved = by_header.number("10.0.0.2:80", response(server=["(no response)"]))
    assert name_of(by_header, reserved) == "'(no response)'"
    found = by_address.number("10.0.0.2:80", response(server=["b1"]))
    assert name_of(by_address, found) == "10.0.0.2:80"


def test_a_server_has_no_number_before_names_are_known() -> None:
    assert ServerNames(ADDRESS).number("10.0.0.1:80", response()) == 0


def test_a_header_that_differs_each_time_leaves_room_for_actions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server_names, "MOST", 2)
    servers = named("x-id")

    found = [servers.number("", response(**{"x-id": [str(one)]})) for one in range(5)]

    assert [name_of(servers, one) for one in found] == ["0", "1", *[OTHER_SERVERS] * 3]


def test_the_address_of_a_connection_that_has_ended_is_not_known() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        with socket.create_connection(listener.getsockname()) as sock:
            assert peer_of(sock) == f"127.0.0.1:{listener.getsockname()[1]}"
    with socket.socket() as sock:
        assert peer_of(sock) == "(unknown)"
