"""Spans are counted for the workload that wrote them."""

from __future__ import annotations

import json

import pytest

from helpers.runs import site
from servers import RedisServer

pytestmark = pytest.mark.functional


def test_each_workload_of_a_run_counts_its_own_spans(redis: RedisServer) -> None:
    times = (8, 16, 4)
    record = {
        "openstack": {
            "auth_url": "http://127.0.0.1:9/v3",
            "admin": {"username": "admin", "password": "none", "project_name": "admin"},
            "profiler_hmac_key": "a-key",
            "profiler_conn_str": redis.url,
        }
    }
    with site() as here:
        made = here.coord(
            *("deployment", "create", "--name", "traced", "--file"),
            str(here.write("deployment.json", json.dumps(record))),
        )
        task = here.task(
            *(
                {
                    "scenario": {"Dummy.dummy": {}},
                    "runner": {"constant": {"times": count, "concurrency": 2}},
                }
                for count in times
            )
        )

        done = here.run(task, "--deployment", "traced", "--workers", "2")

    assert made.code == 0, made.err
    assert done.code == 0, done.err
    tracing = [workload["tracing"] for workload in done.result["workloads"]]
    assert [one["traced"] for one in tracing] == list(times)
    # a span for each iteration and each of its two actions, and none of the workloads before
    assert [one["spans_written"] for one in tracing] == [3 * count for count in times]
    assert [one["spans_dropped"] for one in tracing] == [0, 0, 0]
