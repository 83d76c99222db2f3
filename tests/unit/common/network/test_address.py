"""Where the web server listens, and the names by which it may be called."""

from __future__ import annotations

import socket

import pytest

from osbench.common.errors import UsageError
from osbench.common.network.address import PORT, Address


def test_a_port_that_is_given_is_the_only_one() -> None:
    assert Address.parse("[::1]:9000") == Address(host="::1", port=9000, fixed=True)


def test_the_default_may_take_another_port() -> None:
    assert Address.parse("") == Address(host="127.0.0.1", port=PORT, fixed=False)


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.1", True), ("127.8.0.1", True), ("::1", True), ("localhost", True),
     ("0.0.0.0", False), ("::", False), ("192.0.2.7", False), ("load.example.org", False)],
)  # fmt: skip
def test_loopback_is_told(host: str, loopback: bool) -> None:
    assert Address(host=host).loopback is loopback


def test_a_port_that_is_taken_is_refused_if_it_was_asked_for_and_replaced_if_not() -> None:
    with Address.parse("0").bind() as taken:
        port = taken.getsockname()[1]

        with pytest.raises(UsageError, match=f"cannot listen on 127.0.0.1:{port}: "):
            Address(port=port, fixed=True).bind()
        with Address(port=port).bind() as other:
            assert other.getsockname()[1] != port


def test_a_host_that_is_not_ours_is_refused() -> None:
    with pytest.raises(UsageError, match=r"cannot listen on 192\.0\.2\.7:0"):
        Address.parse("192.0.2.7:0").bind()


@pytest.mark.parametrize("host", ["a" * 64, "a..b"])
def test_a_host_that_is_no_name_is_refused(host: str) -> None:
    with pytest.raises(UsageError, match=rf"cannot listen on {host}:0: not a host name"):
        Address.parse(f"{host}:0").bind()


def test_on_loopback_there_are_few_names() -> None:
    assert Address().names() == {"localhost", "127.0.0.1", "[::1]"}


def test_everywhere_has_the_names_of_this_host() -> None:
    names = Address(host="0.0.0.0").names()

    assert {"localhost", "127.0.0.1", socket.gethostname().lower()} <= names
    assert "evil.example" not in names


def test_another_address_is_a_name() -> None:
    assert "192.0.2.7" in Address(host="192.0.2.7").names()
    assert "[2001:db8::7]" in Address(host="2001:db8::7").names()
