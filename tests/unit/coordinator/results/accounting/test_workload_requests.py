"""HTTP requests of real blocks: by action, exact whatever blocks and workers they came in."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.result_rows import MS, block, row
from osbench.common.protocol.columns import Columns, select
from osbench.common.protocol.exchanges import (
    FALSE_BODY,
    OWN,
    OWN_TWICE,
    pack_exchange,
    pack_kept,
    pack_other,
)
from osbench.coordinator.results.accounting.workload_requests import (
    NO_ACTION,
    OTHER_CLIENTS,
    requests_summary,
)
from osbench.coordinator.results.accounting.workload_statistics import WorkloadStatistics

NAMES = ("shop", "pay", "libcurl: option proxies", "requests: option auth")
#: An action within another.
ACTIONS = (("shop", -1, 0, 9, 0), ("pay", 0, 2, 5, 0))


def kept(action: int = -1, wait_ms: int = 4) -> bytes:
    return pack_kept(action, OWN, wait_ms * MS, MS, 100, 2000, 200)


def opened(action: int = -1, tls_ms: int = 0) -> bytes:
    return pack_exchange(action, OWN, 2 * MS, 3 * MS, tls_ms * MS, 4 * MS, MS, 100, 2000, 404)


def refused(action: int = -1) -> bytes:
    return pack_exchange(action, OWN, 2 * MS, 0, 0, 0, 0, 0, 0, 0)


def twice(action: int = -1) -> bytes:
    return pack_exchange(action, OWN_TWICE, 2 * MS, 3 * MS, 0, 4 * MS, MS, 100, 2000, 200)


def made(*requests: bytes, first: int = 1) -> Columns:
    """Iterations with such requests, a request each."""
    rows = [
        row(number, ended=10, actions=ACTIONS, names=NAMES, exchanges=one)
        for number, one in enumerate(requests, first)
    ]
    return block(*rows, names=NAMES)


def statistics_of(*blocks: Columns) -> WorkloadStatistics:
    statistics = WorkloadStatistics()
    for number, one in enumerate(blocks):
        statistics.add(one, worker=f"w{number % 2}")
    return statistics


def test_requests_that_were_sent_twice_are_counted_by_action():
    statistics = statistics_of(made(twice(0), kept(0), twice(1), twice(1)))

    found = requests_summary(statistics.requests)

    assert {path: one["sent_twice"] for path, one in found["actions"].items()} == {
        "shop": 1,
        "shop > pay": 2,
    }
    assert (found["total"]["sent_twice"], found["total"]["requests"]) == (3, 4)


def test_answers_with_a_false_body_are_counted_whoever_made_the_request():
    ours = pack_kept(0, OWN, 4 * MS, MS, 100, 2000, 200 | FALSE_BODY)
    others = pack_other(1, 2, false_body=True)
    statistics = statistics_of(made(ours, kept(0), others))

    found = requests_summary(statistics.requests)

    assert {path: one["false_bodies"] for path, one in found["actions"].items()} == {
        "shop": 1,
        "shop > pay": 1,
    }
    assert found["actions"]["shop"]["statuses"] == {"200": 2}
    assert found["total"]["false_bodies"] == 2


def test_requests_belong_to_their_innermost_action():
    plain = row(9, ended=10, exchanges=kept())
    statistics = statistics_of(made(kept(0), kept(1) + kept(1), kept()), block(plain))

    found = requests_summary(statistics.requests)

    assert {path: one["requests"] for path, one in found["actions"].items()} == {
        NO_ACTION: 2,
        "shop": 1,
        "shop > pay": 2,
    }
    assert found["total"]["requests"] == 5
    assert found["clients"] == []


def test_a_phase_has_the_requests_in_which_it_took_place():
    requests = [kept(0), kept(0), opened(0), opened(0, tls_ms=7), refused(0)]

    found = requests_summary(statistics_of(made(*requests)).requests)["actions"]["shop"]

    counts = {name: times["count"] for name, times in found["phases"].items()}
    assert counts == {"lookup": 3, "connect": 2, "tls": 1, "wait": 4, "rest": 4}
    means = {name: times["mean"] for name, times in found["phases"].items()}
    assert means == {"lookup": 0.002, "connect": 0.003, "tls": 0.007, "wait": 0.004, "rest": 0.001}
    assert (found["new_connections"], found["reused_connections"], found["unanswered"]) == (2, 2, 1)
    assert (found["sent_bytes"], found["received_bytes"]) == (400, 8000)


def test_percentiles_of_too_few_requests_are_not_told():
    few = requests_summary(statistics_of(made(*[kept(0)] * 50)).requests)["total"]["phases"]
    many = requests_summary(statistics_of(made(*[kept(0)] * 600)).requests)["total"]["phases"]

    assert few["wait"]["p50"] == pytest.approx(0.004, rel=0.001)
    assert (few["wait"]["p95"], few["wait"]["p99"]) == (None, None)
    assert many["wait"]["p95"] == many["wait"]["p99"] == pytest.approx(0.004, rel=0.001)
    assert many["tls"] == {"count": 0, **dict.fromkeys(("mean", "p50", "p95", "p99", "max"))}


def test_rows_that_do_not_count_bring_no_requests():
    columns = made(kept(0, 1), opened(1), kept(0, 3) + kept(0, 5), kept(0, 100))

    left = select(columns, np.array([False, True, True, False]))
    found = requests_summary(statistics_of(left).requests)

    assert found["actions"]["shop"]["phases"]["wait"]["mean"] == pytest.approx(0.004)
    assert found["actions"]["shop"]["requests"] == 2
    assert found["actions"]["shop > pay"]["new_connections"] == 1


def test_the_workers_and_blocks_that_brought_them_change_nothing():
    requests = [kept(0, n) + opened(1) if n % 3 else refused(1) for n in range(1, 60)]
    parts = [made(one, first=number) for number, one in enumerate(requests, 1)]

    together = requests_summary(statistics_of(made(*requests)).requests)
    apart = requests_summary(statistics_of(*reversed(parts)).requests)

    assert together == apart


def test_what_other_clients_made_is_told_with_the_reason():
    statistics = statistics_of(
        made(*[kept(0)] * 900, *[pack_other(0, 2)] * 300), made(pack_other(1, 3), first=2000)
    )

    found = requests_summary(statistics.requests)

    assert found["clients"] == [
        {"client": "libcurl", "why": "option proxies", "requests": 300},
        {"client": "requests", "why": "option auth", "requests": 1},
    ]
    assert found["actions"]["shop"]["by_other_clients"] == 300
    assert found["actions"]["shop"]["phases"]["wait"]["count"] == 900


def test_made_up_reasons_do_not_fill_the_memory():
    names = tuple(f"libcurl: option {number}" for number in range(200))
    rows = [row(n + 1, ended=10, exchanges=pack_other(-1, n)) for n in range(200)]

    statistics = statistics_of(block(*rows, names=names))

    assert len(statistics.requests.clients) == 51
    assert statistics.requests.clients[OTHER_CLIENTS] == 150


def test_without_requests_there_is_nothing_to_tell():
    requests = statistics_of(block(row(1, ended=5))).requests

    assert requests_summary(requests) is None
