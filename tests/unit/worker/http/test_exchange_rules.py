"""Second attempts, redirects and what is noted of them, step by step and without sockets."""

from __future__ import annotations

import asyncio
from time import monotonic_ns
from typing import Any

import numpy as np
import pytest

from helpers.played_steps import FakeConnection, FakePool, FakeSocket, Played, answered
from osbench.common.network.response_bound import ResponseBound
from osbench.common.plugin.atomic import Names, Recorder
from osbench.common.protocol.exchanges import EXCHANGE, OWN, OWN_TWICE, sent_twice, servers_of
from osbench.worker.http.exchange_rules import ExchangeRules
from osbench.worker.http.exchange_steps import Ask, LookAt, Sending
from osbench.worker.http.opening import Opener
from osbench.worker.http.ready_requests import ReadyRequests
from osbench.worker.http.server_names import ADDRESS, ServerNames
from osbench.worker.http.wire.cookies import Cookies
from osbench.worker.http.wire.exchange_phases import ExchangePhases
from osbench.worker.http.wire.raw_response import RawResponse
from osbench.worker.http.wire.wire_errors import BadResponse, EarlyEnd, ReceiveTimedOut

URL = "http://127.0.0.1:9/orders?key=secret"
PLACE = "http://127.0.0.1:9/orders"
FINE = answered(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine")
OPENED = ["Connect", "Wrap"]


def moved(status: int, location: str, more: str = "") -> Any:
    head = f"HTTP/1.1 {status} Moved\r\nContent-Length: 0\r\nLocation: {location}\r\n{more}\r\n"
    return answered(head.encode())


def lost(kind: type[Exception] = EarlyEnd) -> Exception:
    return kind("the connection ended without a response")


class Asked:
    """A request of a client, played to its end."""

    def __init__(
        self,
        method: str,
        *outcomes: Any,
        pool: FakePool | None = None,
        kept: FakeConnection | None = None,
        options: dict[str, Any] | None = None,
        cookies: Cookies | None = None,
        begun_ns: int = 0,
        **rules: Any,
    ) -> None:
        self.pool = pool or FakePool()
        self.new = FakeConnection()
        self.rules = ExchangeRules(Opener(), **rules)
        ready = ReadyRequests([], ResponseBound(10_000)).get(method, URL, options or {})
        assert ready is not None
        self.phases = ExchangePhases(begun_ns or monotonic_ns())
        self.recorder = Recorder(Names())
        self.recorder.ask(self.phases)
        steps = self.rules.request(
            self.pool,
            ready,
            ["X-Own: 7"],
            self.phases,
            keep_body=True,
            recorder=self.recorder,
            cookies=cookies,
            kept=kept,
        )
        made = (FakeSocket(), self.new)
        self.played = Played(
            steps,
            *(one for outcome in outcomes for one in (made if outcome == "new" else [outcome])),
        )

    @property
    def sent(self) -> list[Sending]:
        """What was sent, attempt by attempt."""
        return [step.sending for step in self.played.steps if isinstance(step, Ask)]

    @property
    def records(self) -> Any:
        return np.frombuffer(self.recorder.exchanges, EXCHANGE)

    @property
    def said(self) -> str:
        return str(self.played.error)


def test_without_a_kept_connection_one_is_opened_and_kept() -> None:
    asked = Asked("GET", "new", FINE)

    assert asked.played.kinds == [*OPENED, "Ask"]
    assert asked.played.result.content() == b"fine"
    assert asked.pool.kept == [asked.new]
    assert asked.records["client"].tolist() == [OWN]


def test_a_kept_connection_is_asked_and_nothing_is_opened() -> None:
    kept = FakeConnection()

    asked = Asked("GET", FINE, pool=FakePool(kept))

    assert [step.connection for step in asked.played.steps if isinstance(step, Ask)] == [kept]
    assert asked.pool.kept == [kept]
    assert not kept.closed


def test_the_connection_that_a_client_asked_over_is_the_first_step() -> None:
    kept, other = FakeConnection(), FakeConnection()

    asked = Asked("GET", FINE, pool=FakePool(other), kept=kept)

    (step,) = asked.played.steps
    assert isinstance(step, Ask)
    assert step.connection is kept
    assert asked.pool.kept == [other, kept]


@pytest.mark.parametrize(
    ("method", "bytes_went_out"),
    [("GET", True), ("HEAD", True), ("PUT", True), ("DELETE", True), ("POST", False)],
)
def test_what_a_kept_connection_lost_is_sent_again_over_a_new_one(
    method: str, bytes_went_out: bool
) -> None:
    kept = FakeConnection(sent=bytes_went_out)

    asked = Asked(method, lost(), "new", FINE, kept=kept)

    assert asked.played.kinds == ["Ask", *OPENED, "Ask"]
    assert asked.played.result.status == 200
    assert (kept.closed, asked.pool.kept, asked.rules.retried) == (True, [asked.new], 1)
    assert asked.records["client"].tolist() == [OWN_TWICE]


@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_what_the_server_may_have_done_is_not_sent_again(method: str) -> None:
    kept = FakeConnection()

    asked = Asked(method, lost(), kept=kept)

    assert isinstance(asked.played.error, EarlyEnd)
    assert asked.said == (
        f"{method} {PLACE}: the kept connection ended without a response, "
        f"and a {method} is not sent twice"
    )
    assert (kept.closed, asked.pool.kept, asked.rules.retried) == (True, [], 0)


@pytest.mark.parametrize(
    ("error", "untouched", "resends"),
    [
        (lost(), False, True),
        (lost(), True, False),
        (lost(BadResponse), True, True),
        (lost(ReceiveTimedOut), True, True),
    ],
)
def test_other_failures_of_a_kept_connection_are_those_of_the_request(
    error: Exception, untouched: bool, resends: bool
) -> None:
    kept = FakeConnection(untouched=untouched)

    asked = Asked("GET", error, kept=kept, resends=resends)

    assert asked.played.kinds == ["Ask"]
    assert type(asked.played.error) is type(error)
    assert asked.said == f"GET {PLACE}: {error}{getattr(error, 'remedy', '')}"
    assert asked.played.error is not None
    assert asked.played.error.__cause__ is error
    assert error.in_body is not untouched  # type: ignore[attr-defined]
    assert kept.closed
    assert len(asked.records) == 1


def test_nothing_is_sent_a_third_time() -> None:
    asked = Asked("GET", lost(), "new", lost(), kept=FakeConnection())

    assert asked.played.kinds == ["Ask", *OPENED, "Ask"]
    assert isinstance(asked.played.error, EarlyEnd)
    assert asked.new.closed
    assert asked.records["client"].tolist() == [OWN_TWICE]


def test_connections_of_requests_that_are_sent_once_are_looked_at_in_any_case() -> None:
    found = [Asked(method, FINE, pool=FakePool(FakeConnection())) for method in ("GET", "POST")]
    found.append(Asked("GET", FINE, pool=FakePool(FakeConnection()), resends=False))

    assert [asked.pool.certainly for asked in found] == [[False], [True], [True]]


def test_after_connection_close_nothing_is_kept() -> None:
    asked = Asked("GET", "new", FINE, options={"headers": {"Connection": "close"}})

    assert (asked.new.closed, asked.pool.kept) == (True, [])


@pytest.mark.parametrize(
    ("status", "verb", "body"),
    [
        *((301, "GET", False), (302, "GET", False), (303, "GET", False)),
        *((307, "POST", True), (308, "POST", True)),
    ],
)
def test_a_redirect_is_followed_with_what_it_keeps(status: int, verb: str, body: bool) -> None:
    kept = FakeConnection()

    asked = Asked(
        "POST", moved(status, "/there"), FINE, kept=kept, options={"data": b"lamp", "timeout": 60}
    )

    first, second = asked.sent
    assert (second.request.verb, second.request.url) == (verb, "http://127.0.0.1:9/there")
    assert second.request.data(second.own).endswith(b"lamp") == body
    assert (list(first.own), list(second.own)) == (["X-Own: 7"], [])
    assert second.limits.whole_s < first.limits.whole_s == 60
    assert asked.records["status"].tolist() == [status, 200]
    assert asked.played.result.url == "http://127.0.0.1:9/there"
    assert asked.pool.kept == [kept]


def test_a_redirect_to_another_host_goes_over_another_connection() -> None:
    class Empty(FakePool):
        def put(self, origin: object, connection: Any) -> None:
            super().put(origin, connection)
            self.kept.clear()

    asked = Asked(
        "GET", moved(302, "http://127.0.0.2:9/x"), "new", FINE, kept=FakeConnection(), pool=Empty()
    )

    assert asked.played.kinds == ["Ask", *OPENED, "Ask"]
    assert b"X-Own" not in asked.sent[1].request.data(asked.sent[1].own)
    assert asked.rules.retried == 0


def test_a_redirect_whose_connection_is_lost_is_sent_again_and_not_its_first_request() -> None:
    kept = FakeConnection()

    asked = Asked("POST", moved(303, "/there"), lost(), "new", FINE, kept=kept)

    assert [one.request.verb for one in asked.sent] == ["POST", "GET", "GET"]
    assert asked.records["client"].tolist() == [OWN, OWN_TWICE]


def test_redirects_end_somewhere() -> None:
    asked = Asked("GET", *[moved(302, "/orders")] * 31, kept=FakeConnection())

    assert asked.said.startswith(f"GET {PLACE}: more than 30 redirects; ")
    assert len(asked.records) == 31


@pytest.mark.parametrize("options", [{"allow_redirects": False}, {}])
def test_a_redirect_that_is_not_followed_is_the_answer(options: dict[str, Any]) -> None:
    where = "" if not options else "/there"

    asked = Asked("GET", moved(302, where), kept=FakeConnection(), options=options)

    assert asked.played.result.status == 302


def test_a_limit_that_redirects_have_used_up_ends_the_request() -> None:
    asked = Asked(
        "GET", moved(302, "/there"), kept=FakeConnection(), options={"timeout": 1.0}, begun_ns=1
    )

    assert isinstance(asked.played.error, ReceiveTimedOut)
    assert asked.said == "GET http://127.0.0.1:9/there: timed out"


def test_cookies_are_taken_from_each_answer() -> None:
    cookies = Cookies()
    last = answered(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nSet-Cookie: last=2\r\n\r\n")

    asked = Asked(
        "GET",
        moved(302, "/there", "Set-Cookie: first=1\r\n"),
        last,
        kept=FakeConnection(),
        cookies=cookies,
    )

    assert b"Cookie: first=1" in asked.sent[1].request.data(asked.sent[1].own)
    assert cookies.header(URL) == "first=1; last=2"


def test_a_body_in_a_coding_is_looked_at() -> None:
    coded = answered(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nbad!")

    asked = Asked("GET", "new", coded, None)

    assert isinstance(asked.played.steps[-1], LookAt)
    assert asked.pool.kept == [asked.new]


@pytest.mark.parametrize("error", [asyncio.CancelledError(), KeyboardInterrupt()])
def test_a_request_that_is_given_up_costs_its_connection(error: BaseException) -> None:
    kept = FakeConnection()

    asked = Asked("GET", error, kept=kept)

    assert asked.played.error is error
    assert kept.closed
    assert len(asked.records) == 1


def test_an_observer_sees_each_answer_and_each_failure_with_bodies() -> None:
    seen: list[tuple[str, Any, bool]] = []

    def observe(request: Any, own: Any, outcome: RawResponse | Exception, took_s: float) -> None:
        said = outcome.status if isinstance(outcome, RawResponse) else str(outcome)
        seen.append(
            (f"{request.verb} {request.url}", said, took_s > 0 and list(own) == ["X-Own: 7"])
        )

    asked = Asked(
        "POST", moved(303, "/x"), lost(), "new", lost(), kept=FakeConnection(), observer=observe
    )

    assert seen == [
        (f"POST {URL}", 303, True),
        ("GET http://127.0.0.1:9/x", "the connection ended without a response", False),
    ]
    assert all(one.keep_body for one in asked.sent)


def test_a_server_that_has_ended_the_connection_is_known_by_its_address() -> None:
    kept = FakeConnection()

    def respond(step: Any) -> Any:
        # as the address of a socket that the server has closed
        kept.peer = "(unknown)"
        return FINE(step)

    asked = Asked("GET", respond, kept=kept, servers=ServerNames(ADDRESS))

    (record,) = asked.records
    (number,) = servers_of(asked.records["client"]).tolist()
    assert asked.recorder.names.names[number] == "10.0.0.1:80"
    assert not sent_twice(record["client"])
