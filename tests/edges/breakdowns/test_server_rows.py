"""Requests by the server that responded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from helpers.result_rows import MS, block, row
from osbench.common.protocol.exchanges import (
    FALSE_BODY,
    OTHER_SERVERS,
    OWN,
    OWN_TWICE,
    PER_SERVER,
    pack_exchange,
    pack_other,
)
from osbench.common.task import Named, Workload
from osbench.edges.breakdowns import server_rows
from osbench.edges.breakdowns.server_rows import UNANSWERED, UNKNOWN, ServerRows

PLAIN = Workload(place="", position=0, scenario="A.b", args={}, runner=Named(name="constant"))
NAMES = ("b1", "b2", "libcurl: a proxy")


def request(server: int, status: int = 200, *, twice: bool = False, rest_ms: int = 6) -> bytes:
    """A request that took 4 ms and its rest; `server` is an index in NAMES, -1 without response."""
    client = (OWN_TWICE if twice else OWN) - PER_SERVER * (server + 1)
    return pack_exchange(-1, client, 0, 0, 0, 4 * MS, rest_ms * MS, 1, 1, status)


def servers(*exchanges: bytes, by: str = "x-backend") -> ServerRows:
    found = ServerRows.of(replace(PLAIN, http={"by": by}), is_open=False)
    assert found is not None
    for number, packed in enumerate(exchanges, 1):
        found.add(block(row(number, exchanges=packed), names=NAMES), "w")
    return found


def test_a_workload_that_does_not_ask_has_no_rows() -> None:
    assert ServerRows.of(PLAIN, is_open=False) is None


def test_requests_count_for_their_server_the_most_requested_first() -> None:
    found = servers(
        request(1) + request(0) + request(1, twice=True),
        request(0, 500) + request(1, 200 | FALSE_BODY),
        request(1, 404) + request(-1, 0, rest_ms=0) + request(-1) + pack_other(-1, 2),
    )

    figures = found.figures(())

    assert (figures.by, figures.of) == ("x-backend", "requests")
    assert [(one.name, one.ok, one.failed) for one in figures.rows] == [
        ("b2", 2, 2),
        (UNKNOWN, 1, 1),
        ("b1", 1, 1),
        (UNANSWERED, 0, 1),
    ]
    assert figures.rows[0].p50 == pytest.approx(0.010, rel=0.002)
    assert sum(one.share for one in figures.rows) == pytest.approx(1.0)
    assert all(one.asked is None for one in figures.rows)


def test_servers_beyond_the_limit_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_rows, "SERVERS", 1)
    found = servers(request(0), request(1), request(1))

    assert [(one.name, one.ok) for one in found.figures(()).rows] == [(OTHER_SERVERS, 2), ("b1", 1)]


def test_rows_without_requests_change_nothing() -> None:
    found = servers()
    found.add(block(row(1, ended=1)), "w")

    assert found.figures(()).rows == ()
