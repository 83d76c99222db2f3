"""Spans in a whole run: counted by workload, and limited by the criterion `spans`."""

from __future__ import annotations

from typing import Any

import pytest

from helpers.runs import site
from servers import redis_server
from servers.traced_shop import KEY, traced_shop

pytestmark = pytest.mark.functional

#: Iterations of workloads without requests.
TIMES = (8, 16, 4)


def workload(scenario: dict[str, Any], limits: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "scenario": scenario,
        "runner": {"constant": {"times": 20, "concurrency": 2}},
        "sla": {"spans": limits, "failure_rate": {"max": 0}},
    }


def test_spans_of_each_workload_are_counted_and_limited() -> None:
    with (
        site() as here,
        redis_server(password="traces") as store,
        traced_shop(here.home, store.url) as address,
    ):
        here.configure({"benchmark": {"profiler_sample_rate": "auto"}})
        shop = {"services": {"shop": address}, "profiler_hmac_key": KEY}
        here.deployment({"osbench": {**shop, "profiler_conn_str": store.url}})
        url = f"{address}/buy?token=s3cret"
        request = {"HttpRequests.check_request": {"url": url, "method": "GET", "status_code": 200}}
        query = {"service": "shop/stock", "name": "db SELECT*"}
        plain = [
            {
                "scenario": {"Dummy.dummy": {}},
                "runner": {"constant": {"times": count, "concurrency": 2}},
            }
            for count in TIMES
        ]
        met = workload(
            request,
            [
                {**query, "calls_per_iteration": {"min": 1, "max": 1}, "p95": 60},
                {"service": "osbench", "name": "requests.*", "p99": 60},
            ],
        )
        broken = workload(request, [{**query, "calls_per_iteration": {"max": 0}}])

        done = here.run(here.task(*plain, met, broken), "--workers", "2")
        shown = " ".join(here.coord("results", "last", "--details").out.split())
        exported = here.coord("trace", "export", "last", "--format", "otlp")

    assert done.code == 1, done.err
    tracing = [one["tracing"] for one in done.result["workloads"]]
    assert [one["traced"] for one in tracing] == [*TIMES, 20, 20]
    # a span for each iteration and each of its two actions, and none of the workloads before; of
    # the others a span for each iteration and its request
    written = [*(3 * count for count in TIMES), 40, 40]
    assert [one["spans_written"] for one in tracing] == written
    assert [one["spans_dropped"] for one in tracing] == [0] * 5
    # judged last, as the traces are read after the run
    *_, met_sla, broken_sla = (one["sla"] for one in done.result["workloads"])
    assert {(one["criterion"], one["success"]) for one in met_sla} == {
        ("failure_rate", True),
        ("spans", True),
    }
    rate, spans = broken_sla
    assert (rate["criterion"], rate["success"]) == ("failure_rate", True)
    assert (spans["criterion"], spans["success"]) == ("spans", False)
    assert spans["detail"].startswith(
        "shop/stock db SELECT*: more than 0 calls in 20 of 20 traced iterations, 1 in iteration"
    )
    # the rate was worked out
    assert "all of them: of 16 iterations only about 0 are above p99" in shown
    # what a user has sent is not kept
    assert "wsgi" in exported.out
    assert "s3cret" not in exported.out
