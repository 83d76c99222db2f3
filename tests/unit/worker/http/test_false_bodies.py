"""A body that is cut short or not coded as its head says: counted, and fatal where it is read."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from osbench.common.network.response_bound import UNBOUNDED, ResponseBound
from osbench.common.plugin.scenario import Scenario
from osbench.common.protocol.exchanges import EXCHANGE, FALSE_BODY
from osbench.worker.http.http_clients import HttpClients
from osbench.worker.http.user.expectations import UnexpectedStatus
from osbench.worker.http.user.http_session import HttpSession, LoopHttpSession
from osbench.worker.http.user.request_base import Base
from osbench.worker.http.wire.content_codings import UnkeptBody, decoded_body
from osbench.worker.http.wire.wire_errors import BadResponse, TooLongResponse
from servers.hostile_http import ANSWERS, BODY, HostileServer, hostile_server

FALSE = ["gzip-cut", "gzip-cut-chunks", "gzip-broken", "deflate-cut", "zstd-cut"]
TRUE = ["gzip", "gzip-twice", "gzip-empty", "gzip-part", "deflate", "deflate-raw", "zstd", "plain"]

#: Arguments that another client than our own has to take.
CLIENTS: dict[str, dict[str, Any]] = {
    "own": {},
    "requests": {"auth": ["me", "pw"]},
    "libcurl": {},
}


@pytest.fixture(scope="module")
def server() -> Iterator[HostileServer]:
    with hostile_server() as running:
        yield running


class User:
    """A virtual user who makes requests in an iteration."""

    def __init__(self, *, in_loop: bool) -> None:
        scenario = Scenario({"iteration": 1, "timeout_s": 0.0})
        self.recorder = scenario._recorder
        self.clients = HttpClients([])
        self.in_a_loop = in_loop
        session: Any = (LoopHttpSession if in_loop else HttpSession)(self.clients, Base())
        self.session = session.serve(scenario)

    def get(self, url: str, **wishes: Any) -> Any:
        if not self.in_a_loop:
            return self.session.get(url, **wishes)

        async def got() -> Any:
            return await self.session.get(url, **wishes)

        return asyncio.run(got())

    def status(self, url: str, options: dict[str, Any]) -> int:
        if not self.in_a_loop:
            return self.clients.blocking_status("GET", url, [], options, self.recorder)
        return asyncio.run(self.clients.status("GET", url, [], options, self.recorder))

    def false_bodies(self) -> list[bool]:
        """Of each request, whether its body is noted to be false."""
        found = np.frombuffer(bytes(self.recorder.exchanges), EXCHANGE)
        return [bool(status & FALSE_BODY) for status in found["status"]]


@pytest.fixture(params=[False, True], ids=["thread", "loop"])
def user(request: pytest.FixtureRequest) -> User:
    return User(in_loop=request.param)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_body_that_is_not_read_is_counted(server, user, client, monkeypatch):
    url = server.url
    if client == "libcurl":
        monkeypatch.setenv("http_proxy", server.url)
        url = "http://shop.invalid"

    for name in (*FALSE, *TRUE):
        user.status(f"{url}/{name}", CLIENTS[client])

    assert user.false_bodies() == [True] * len(FALSE) + [False] * len(TRUE)


@pytest.mark.parametrize("client", ["own", "requests"])
@pytest.mark.parametrize("stream", [False, True], ids=["kept", "stream"])
def test_a_user_who_does_not_read_it_has_it_counted(server, user, client, stream):
    for name in (*FALSE, *TRUE):
        answer = user.get(f"{server.url}/{name}", stream=stream, **CLIENTS[client])
        assert answer.status in (200, 206)

    assert user.false_bodies() == [True] * len(FALSE) + [False] * len(TRUE)


@pytest.mark.parametrize("client", ["own", "requests"])
@pytest.mark.parametrize("name", FALSE)
def test_who_reads_it_fails(server, user, client, name):
    url = f"{server.url}/{name}"
    answer = user.get(url, **CLIENTS[client])

    for read in (lambda: answer.text, answer.json, lambda: answer.body):
        with pytest.raises(ConnectionError, match=f"{url}: the (coded )?body") as failure:
            read()
        assert isinstance(failure.value, BadResponse)
    with pytest.raises(BadResponse, match="body"):
        user.get(url, check={"text": "x"}, **CLIENTS[client])
    with pytest.raises(BadResponse, match="body"):
        user.get(url, check={"$.a": 1}, **CLIENTS[client])


def test_a_wrong_status_is_not_hidden_by_a_false_body(server, user):
    with pytest.raises(UnexpectedStatus, match="answered 200, expected 201"):
        user.get(f"{server.url}/gzip-cut", expect=201)


@pytest.mark.parametrize("name", ["gzip", "gzip-twice", "deflate", "deflate-raw", "zstd"])
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_a_body_is_looked_at_in_whatever_pieces_it_comes(name, size):
    head, _, body = ANSWERS[name][0].partition(b"\r\n\r\n")
    codings = head.partition(b"Content-Encoding: ")[2].partition(b"\r\n")[0].decode()
    whole, cut = UnkeptBody(codings), UnkeptBody(codings)

    for at in range(0, len(body), size):
        whole.append(body[at : at + size])
    for at in range(0, len(body) - 5, size):
        cut.append(body[: len(body) - 5][at : at + size])

    assert not whole.is_false()
    assert cut.is_false()
    assert decoded_body(body, codings, UNBOUNDED) == BODY


def test_a_body_that_is_too_long_to_be_looked_at_is_not_called_false():
    coded = gzip.compress(bytes(300_000))
    with pytest.raises(
        TooLongResponse, match=r"of [0-9]+ bytes decodes to more than the 200,000 bytes"
    ):
        decoded_body(coded, "gzip", ResponseBound(200_000))
