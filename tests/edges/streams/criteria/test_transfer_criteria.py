"""Criteria on transfers, judged from rows as workers send them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from osbench.common.plugin.atomic import Names
from osbench.common.protocol.columns import Columns, decode_rows, encode_rows, row
from osbench.common.values.outcomes import Outcome
from osbench.edges.streams.criteria.first_byte import FirstByte
from osbench.edges.streams.criteria.transfer_rate import TransferRate
from osbench.worker.http.wire.exchange_phases import ExchangePhases

#: Nanoseconds.
MS = 1_000_000


def exchange(
    wait_ms: int, received: int, sent: int = 0, action: int = 0, ended: bool = True
) -> bytes:
    phases = ExchangePhases(1)
    phases.first_byte_ns = 1 + wait_ms * MS
    phases.ended_ns = phases.first_byte_ns + MS if ended else 0
    phases.sent_bytes, phases.received_bytes, phases.status = sent, received, 200
    return phases.packed(action)


def columns(*rows: tuple[int, str, bytes], names: tuple[str, ...] = ("get", "page")) -> Columns:
    """Rows of 1 s each: outcome, nested action or "", requests."""
    numbered = Names()
    for name in names:
        numbered.number(name)
    found = []
    for number, (outcome, nested, exchanges) in enumerate(rows, 1):
        actions = [0, -1, 0, 5, 0]
        if nested:
            actions += [numbered.number(nested), 0, 1, 4, 0]
        found.append(
            row(
                iteration=number,
                outcome=outcome,
                due=0,
                started=0,
                ended=1000 * MS,
                actions=actions,
                extra=(b"", None, exchanges),
            )
        )
    return decode_rows(encode_rows(found, numbered.names, 0))


def statistics(first: int | None = 0, last: int | None = 2000 * MS) -> Any:
    return SimpleNamespace(first_start=first, last_end=last)


def test_first_bytes_of_all_requests_and_of_an_action() -> None:
    rows = columns(
        (Outcome.OK, "", exchange(10, 5)),
        (Outcome.OK, "page", exchange(100, 5, action=1)),
        (Outcome.FAILED, "", exchange(9000, 5)),
        (Outcome.OK, "", exchange(9000, 5, ended=False)),
    )
    limits = [
        {"p": 100, "max_s": 0.05},
        {"p": 100, "max_s": 0.05, "action": "get"},
        {"max_s": 0.05, "action": "get > page"},
    ]
    sla = FirstByte(limits)

    sla.add(rows)
    verdict = sla.check(statistics())

    assert not verdict.success
    parts = verdict.detail.split("; ")
    assert parts[0].startswith("p100 of first bytes 100")
    assert parts[1].startswith("p100 of first bytes of get 10")
    assert parts[2].startswith("p95 of first bytes of get > page 100")
    assert FirstByte.judged_actions(limits) == ["get", "get > page"]


@pytest.mark.parametrize(("limit_s", "success"), [(0.02, True), (0.005, False)])
def test_a_limit_of_first_bytes(limit_s: float, success: bool) -> None:
    sla = FirstByte({"max_s": limit_s})

    sla.add(columns((Outcome.OK, "", exchange(10, 5))))

    assert sla.check(statistics()).success is success


def test_without_requests_it_fails() -> None:
    for sla in (FirstByte({"max_s": 9}), TransferRate({"min_mb_s": 0.001})):
        sla.add(columns((Outcome.OK, "", b"")))

        assert not sla.check(statistics()).success


@pytest.mark.parametrize(
    ("limit", "detail"),
    [
        ({"min_mb_s": 5}, "5.00 MB/s sent and received, at least 5 MB/s required"),
        ({"min_mb_s": 5, "of": "received"}, "4.00 MB/s received, at least 5 MB/s required"),
        (
            {"min_mb_s": 1, "of": "sent", "action": "get"},
            "1.00 MB/s sent by get, at least 1 MB/s required",
        ),
        (
            {"min_mb_s": 1, "action": "get > page"},
            "no bytes were sent and received by get > page in successful iterations",
        ),
    ],
)
def test_bytes_per_second_of_the_load(limit: dict[str, Any], detail: str) -> None:
    sla = TransferRate(limit)

    for _ in range(2):
        sla.add(
            columns(
                (Outcome.OK, "", exchange(1, 4_000_000, 1_000_000)),
                (Outcome.FAILED, "", exchange(1, 90_000_000)),
            )
        )
    verdict = sla.check(statistics())

    assert verdict.detail == detail
    assert verdict.success is (detail[:4] in ("5.00", "1.00"))


def test_before_an_iteration_has_ended_it_fails() -> None:
    sla = TransferRate({"min_mb_s": 1})

    assert not sla.check(statistics(None, None)).success
    assert not sla.check(statistics(5, 5)).success
