"""How a new connection comes about, step by step and without sockets."""

from __future__ import annotations

import socket
import ssl
from concurrent.futures import Future
from time import monotonic_ns
from typing import Any

import pytest

from helpers.played_steps import FakeConnection, FakeSocket, Played
from osbench.common.network.response_bound import USUAL
from osbench.worker.http.exchange_steps import Connect, LookUp, Read, Receive, Send, Wrap
from osbench.worker.http.name_lookups import Address, NameLookups
from osbench.worker.http.opening import NEXT_ADDRESS_S, Opener
from osbench.worker.http.ready_requests import ReadyRequests
from osbench.worker.http.wire.exchange_phases import ExchangePhases
from osbench.worker.http.wire.wire_errors import CannotConnect, CannotSecure, ConnectTimedOut

ADDRESSES: list[Address] = [(socket.AF_INET, (f"127.0.0.{last}", 9)) for last in (1, 2)]
REFUSED = ConnectionRefusedError(111, "Connection refused")
SECURE = "https://127.0.0.1:9/"
#: What a plain HTTP server says to a TLS handshake.
NO_TLS = b"HTTP/1.1 400 Bad Request\r\n\r\n"


@pytest.fixture(autouse=True)
def no_resolver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks a name up, and addresses are tried as they come."""

    def look_up(*_: Any) -> Future[list[Address]]:
        return Future()

    monkeypatch.setattr(NameLookups, "look_up", look_up)
    monkeypatch.setattr(NameLookups, "in_turn", lambda *found: found[-1])


class Opened:
    """A connection of a request, opened from a script."""

    def __init__(self, url: str, *outcomes: Any, **options: Any) -> None:
        ready = ReadyRequests([], USUAL).get("GET", url, options)
        assert ready is not None
        self.phases = ExchangePhases(monotonic_ns())
        steps = Opener().open(ready.request, ready.limits, self.phases)
        self.played = Played(steps, *outcomes)

    @property
    def error(self) -> BaseException | None:
        return self.played.error

    def step(self, kind: type, which: int = 0) -> Any:
        """One of the steps of a kind."""
        return [step for step in self.played.steps if isinstance(step, kind)][which]


def read(step: Any) -> Any:
    """The outcome of reading files."""
    return step.function()


def test_an_address_is_connected_to_and_wrapped() -> None:
    sock, connection = FakeSocket(), FakeConnection()

    opened = Opened("http://127.0.0.1:9/", sock, connection)

    assert opened.played.kinds == ["Connect", "Wrap"]
    assert opened.step(Connect).address == ADDRESSES[0]
    assert opened.step(Wrap) == (sock, None)
    assert opened.played.result is connection
    phases = opened.phases
    assert phases.begun_ns <= phases.looked_up_ns <= phases.connected_ns
    assert phases.secured_ns == 0


def test_a_name_is_looked_up_within_the_limit() -> None:
    opened = Opened("http://shop.invalid/", TimeoutError(), timeout=2.0)

    assert 0 < opened.step(LookUp).limit_s <= 2.0
    assert isinstance(opened.error, ConnectTimedOut)
    assert str(opened.error) == (
        "name lookup of shop.invalid timed out; check the name, and the name servers of the "
        "worker's host"
    )


def test_a_name_without_an_address_is_an_error_of_its_own() -> None:
    error = CannotConnect("cannot look up shop.invalid: Name or service not known")

    assert Opened("http://shop.invalid/", error).error is error
    assert "shop.invalid has no address; " in str(Opened("http://shop.invalid/", []).error)


@pytest.mark.parametrize(
    ("options", "first_s", "last_s"),
    [
        ({}, NEXT_ADDRESS_S, None),
        ({"timeout": 60}, NEXT_ADDRESS_S, 60),
        ({"timeout": 1.0}, 0.5, 1.0),
        ({"timeout": (4.0, 60)}, 2.0, 4.0),
    ],
)
def test_the_next_address_is_tried_and_some_time_is_left_for_it(
    options: dict[str, Any], first_s: float, last_s: float | None
) -> None:
    opened = Opened(
        "http://shop.invalid/", ADDRESSES, REFUSED, FakeSocket(), FakeConnection(), **options
    )

    first, last = opened.step(Connect, 0), opened.step(Connect, 1)
    assert [first.address, last.address] == ADDRESSES
    assert first.limit_s <= first_s
    assert last.limit_s == last_s if last_s is None else last.limit_s <= last_s
    assert opened.played.kinds[-1] == "Wrap"


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (REFUSED, CannotConnect, "cannot connect to shop.invalid:80: Connection refused"),
        (TimeoutError(), ConnectTimedOut, "connecting to shop.invalid:80 timed out"),
        (TimeoutError(110, "x"), ConnectTimedOut, "connecting to shop.invalid:80 timed out"),
    ],
)
def test_the_failure_of_the_last_address_is_that_of_the_request(
    error: OSError, kind: type[Exception], said: str
) -> None:
    opened = Opened("http://shop.invalid/", ADDRESSES, REFUSED, error)

    assert isinstance(opened.error, kind)
    assert str(opened.error) == said
    assert opened.error.__cause__ is error


def test_an_address_that_takes_no_connection_is_remembered_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[tuple[Any, ...]] = []
    monkeypatch.setattr(NameLookups, "refused", lambda _, *told: said.append(told))

    Opened("http://shop.invalid/", ADDRESSES, TimeoutError(), FakeSocket(), FakeConnection())

    assert said == [("shop.invalid", 80, ADDRESSES[0], "timed out")]


@pytest.mark.parametrize(
    ("options", "unlimited"), [({}, True), ({"timeout": 3}, False), ({"timeout": (3, None)}, True)]
)
def test_the_kernel_looks_after_a_peer_if_no_limit_does(
    options: dict[str, Any], unlimited: bool
) -> None:
    opened = Opened("http://127.0.0.1:9/", FakeSocket(), FakeConnection(), **options)

    assert opened.step(Connect).unlimited is unlimited


@pytest.mark.parametrize(
    ("outcomes", "kind", "said"),
    [
        ([b""], CannotSecure, "the connection ended in the TLS handshake"),
        ([TimeoutError()], ConnectTimedOut, "the TLS handshake timed out"),
        (
            [ConnectionResetError(104, "Connection reset by peer")],
            CannotSecure,
            "the TLS handshake failed: Connection reset by peer",
        ),
        ([NO_TLS, None], CannotSecure, "TLS: "),
        ([NO_TLS, BrokenPipeError(32, "Broken pipe")], CannotSecure, "TLS: "),
    ],
)
def test_a_handshake_that_fails_closes_its_socket(
    outcomes: list[Any], kind: type[Exception], said: str
) -> None:
    sock = FakeSocket()

    opened = Opened(SECURE, sock, read, None, *outcomes, verify=False, timeout=20)

    assert opened.played.kinds[:4] == ["Connect", "Read", "Send", "Receive"]
    assert isinstance(opened.error, kind)
    assert str(opened.error).startswith(said)
    assert sock.closed
    if isinstance(opened.error, ConnectTimedOut):
        assert opened.error.connected
    for step in opened.played.steps:
        assert isinstance(step, Connect | Read | Send | Receive)
        assert step.limit_s is not None


def test_the_context_of_tls_is_read_once() -> None:
    opener = Opener()
    ready = ReadyRequests([], USUAL).get("GET", SECURE, {"verify": False})
    assert ready is not None
    contexts = []

    def noted(step: Any) -> ssl.SSLContext:
        contexts.append(read(step))
        return opener._contexts.context(ready.request.trust)  # type: ignore[arg-type]

    for outcomes in ([FakeSocket(), noted, None, b""], [FakeSocket(), None, b""]):
        Played(opener.open(ready.request, ready.limits, ExchangePhases(monotonic_ns())), *outcomes)

    assert len(contexts) == 1


def test_one_who_gives_up_while_tls_is_missing_leaves_no_socket() -> None:
    sock, error = FakeSocket(), KeyboardInterrupt()

    opened = Opened(SECURE, sock, read, error, verify=False)

    assert opened.error is error
    assert sock.closed
