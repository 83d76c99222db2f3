"""The criterion `spans` in whole runs: with traces, and without any."""

from __future__ import annotations

from typing import Any

import pytest

from helpers.runs import site
from servers import redis_server
from servers.traced_shop import KEY, traced_shop

pytestmark = pytest.mark.functional


def workload(scenario: dict[str, Any], limits: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "scenario": scenario,
        "runner": {"constant": {"times": 20, "concurrency": 2}},
        "sla": {"spans": limits, "failure_rate": {"max": 0}},
    }


def test_calls_of_each_request_are_limited() -> None:
    with (
        site() as here,
        redis_server(password="traces") as store,
        traced_shop(here.home, store.url) as address,
    ):
        shop = {"services": {"shop": address}, "profiler_hmac_key": KEY}
        here.deployment({"osbench": {**shop, "profiler_conn_str": store.url}})
        url = f"{address}/buy"
        request = {"HttpRequests.check_request": {"url": url, "method": "GET", "status_code": 200}}
        query = {"service": "shop/stock", "name": "db SELECT*"}
        met = here.run(
            here.task(
                workload(
                    request,
                    [
                        {**query, "calls_per_iteration": {"min": 1, "max": 1}, "p95": 60},
                        {"service": "osbench", "name": "requests.*", "p99": 60},
                    ],
                )
            )
        )
        broken = here.run(
            here.task(workload(request, [{**query, "calls_per_iteration": {"max": 0}}]))
        )

    assert met.code == 0, met.err
    assert broken.code == 1, broken.err
    # judged last, as the traces are read after the run
    rate, spans = broken.printed["workloads"][0]["sla"]
    assert (rate["criterion"], rate["success"]) == ("failure_rate", True)
    assert (spans["criterion"], spans["success"]) == ("spans", False)
    assert spans["detail"].startswith(
        "shop/stock db SELECT*: more than 0 calls in 20 of 20 traced iterations, 1 in iteration"
    )


def test_a_run_without_traces_does_not_pass() -> None:
    limit = {"name": "db*", "calls_per_iteration": {"max": 1}}
    with site() as here:
        done = here.run(here.task(workload({"Dummy.dummy": {}}, [limit])))

    assert done.code == 1, done.err
    _, spans = done.printed["workloads"][0]["sla"]
    assert not spans["success"]
    assert spans["detail"] == (
        "no iteration is traced: the deployment record needs profiler_hmac_key"
    )
