"""`http: {service}`: a token that the service refuses is renewed, and no iteration fails by it."""

from __future__ import annotations

import pytest

from helpers.fake_cloud import FakeCloud
from helpers.json_server import serving
from helpers.runs import site

pytestmark = pytest.mark.functional

TIMES = 40


def test_a_refused_token_is_renewed_and_counted() -> None:
    with site() as here, serving(FakeCloud()) as cloud:
        here.deployment(cloud.deployment())
        task = here.task(
            {
                "scenario": {"HttpFlow.run": {"steps": [{"name": "list", "path": "/users"}]}},
                "http": {"service": "keystone"},
                "runner": {"constant": {"times": TIMES, "concurrency": 4}},
            }
        )
        # the first of them is refused
        cloud.faults.append(["GET /v3/users", 401, 1])
        done = here.run(task, "--deployment", "lab")

    (workload,) = done.result["workloads"]
    assert workload["accounting"]["ok"] == TIMES
    made = {name: one["ok"]["count"] for name, one in workload["actions"].items()}
    asked = sum(path == "/v3/users" for _, path, _ in cloud.seen)
    # the request is made once more, and both are told apart; other users may wait for the token
    assert (made["list"], made["list > retry"]) == (TIMES, 1)
    assert made["list > re-authentication"] >= 1
    assert asked == TIMES + 1
