"""`plan` calibrates on a real service, and a run of the same task says how right it was."""

from __future__ import annotations

import json

import pytest

from helpers.runs import site
from osbench.edges.history.sizing.calibration_task import MOST_RATE, MOST_USERS
from servers import CountingServer

pytestmark = pytest.mark.functional


def test_a_task_is_calibrated_planned_and_compared_with_its_run(counting: CountingServer) -> None:
    counting.delay_s = 0.03
    request = {
        "HttpRequests.check_request": {"url": counting.url, "method": "GET", "status_code": 200}
    }
    with site() as here:
        task = here.task(
            {"scenario": request, "runner": {"rps": {"rps": 60, "times": 240}}},
            {"scenario": request, "runner": {"constant": {"concurrency": 2, "times": 60}}},
        )
        planned = here.coord("plan", "--json", "--calibrate-s", "2", task)
        calls = counting.anonymous + sum(counting.counts.values())
        done = here.run(task)
        text = " ".join(here.coord("results", "last", "--details").out.split())
        runs = json.loads(here.coord("runs", "list", "--json").out)
        here.await_nothing_left()

    assert planned.code == 0, planned.err
    assert "calibration: 2 s of real load on the service" in planned.err
    document = json.loads(planned.out)
    opened, closed = document["workloads"]
    for one in (opened, closed):
        assert one["cost"]["service_s"] >= 0.03
        assert 0 <= one["cost"]["cpu_s"] < one["cost"]["service_s"]
        assert one["cost"]["failed"] == 0
        assert one["cost"]["memory_bytes"] > 20_000_000
        assert one["cost"]["result_bytes"] > 0
        # iterations hold a user for longer where a machine is busy
        assert one["processes"] >= 1
    # Little's law, with what iterations took
    assert opened["users"] == pytest.approx(60 * opened["cost"]["held_s"])
    assert closed["users_peak"] == 2
    assert document["needs"]["host_ports"] is not None
    # low load, on two workloads for 2 s each
    assert 0 < calls <= 2 * 2 * MOST_RATE
    assert calls <= 2 * 3 * MOST_USERS / 0.03
    # a run of the same task finds it again
    first, second = (one["plan"] for one in done.result["workloads"])
    assert first["service_s"]["planned"] == opened["cost"]["service_s"]
    assert first["service_s"]["measured"] >= 0.03
    assert first["cost_s"]["measured"] >= 0
    assert second["workers"]["planned"] == closed["processes"]
    assert "service time" in text and "(plan " in text
    assert [one["tags"] for one in runs if one["run"] == document["calibration"]] == [
        ["calibration"]
    ]


def test_a_service_that_fails_gives_no_plan(counting: CountingServer) -> None:
    request = {
        "HttpRequests.check_request": {"url": counting.url, "method": "GET", "status_code": 404}
    }
    with site() as here:
        task = here.task({"scenario": request, "runner": {"rps": {"rps": 60, "times": 240}}})
        refused = here.coord("plan", "--calibrate-s", "1", "--quiet", task)
        plans = list((here.data / "plans").glob("*")) if (here.data / "plans").exists() else []

    assert (refused.code, refused.out) == (1, "")
    assert "iterations did not end well, most with " in refused.err
    assert "osbench-coord run --once" in refused.err
    assert "Traceback" not in refused.err
    assert not plans


def test_few_slow_iterations_are_planned_with_and_told() -> None:
    with site() as here:
        slow = {"scenario": {"Dummy.dummy": {"sleep": 3}}, "runner": {"serial": {"times": 3}}}
        done = here.coord("plan", "--calibrate-s", "1", "--quiet", "--json", here.task(slow))

    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["workloads"][0]["cost"]["service_s"] >= 3
    # what is said of its CPU time depends on the machine
    assert any("only 1 iteration of the calibration ended" in note for note in found["notes"])
