"""The same with RabbitMQ as broker: batches through it, all else in Redis."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from helpers.runs import Cluster, site
from servers import CountingServer, RabbitmqServer, free_port, redis_server

pytestmark = pytest.mark.functional

TIMES = 400


@pytest.fixture(scope="module")
def cluster(rabbitmq: RabbitmqServer) -> Iterator[Cluster]:
    with redis_server(password="functional") as redis, site() as here:
        found = Cluster(here, redis, broker_url=rabbitmq.url)
        here.configure(found.messaging, {"coordinator": {"worker_lost_after_s": 3}})
        for _ in range(2):
            found.start_worker()
        found.await_idle(2)
        yield found


def task(cluster: Cluster, counting: CountingServer, *, idempotent: bool = False) -> str:
    request = {"url": counting.url, "method": "GET", "status_code": 200}
    counting.delay_s = 0.02
    return cluster.site.task(
        {
            "scenario": {"HttpRequests.check_request": request},
            "runner": {"constant": {"times": TIMES, "concurrency": 8}},
            "idempotent": idempotent,
        }
    )


def test_a_run_does_all_once_and_leaves_nothing(cluster: Cluster, counting: CountingServer) -> None:
    done = cluster.site.run(task(cluster, counting))

    assert done.code == 0, done.err
    assert done.sums["ok"] == TIMES
    assert set(counting.counts) == set(range(1, TIMES + 1))
    assert set(counting.counts.values()) == {1}
    # not even Celery's queues are there
    cluster.await_idle(2)
    assert cluster.run_keys() == set()


@pytest.mark.parametrize("wrong", ["nobody there", "password"])
def test_a_wrong_broker_is_reported_before_the_load(cluster: Cluster, wrong: str) -> None:
    here = cluster.site
    url = cluster.messaging["messaging"]["broker_url"].replace("guest:guest", "guest:planted")
    if wrong == "nobody there":
        url = f"amqp://guest:planted@127.0.0.1:{free_port()}//"
    messaging = {**cluster.messaging["messaging"], "broker_url": url}
    file = here.configure({"messaging": messaging}, name="other.conf")
    dummy = here.task(
        {"scenario": {"Dummy.dummy": {}}, "runner": {"constant": {"times": 4, "concurrency": 2}}}
    )

    run = here.run(dummy, "--config-file", str(file), "--wait-for-workers", "0")
    started = here.start("osbench-worker", "--config-file", str(file))
    if wrong == "nobody there":
        # perhaps it comes
        started.await_said("Waiting for it")
        started.process.send_signal(signal.SIGTERM)
    worker = started.finish()

    assert run.code == 2
    if wrong == "password":
        assert worker.code == 2
    for text in (run.result["error"]["message"], worker.err):
        assert "broker" in text
        assert "planted" not in text
        assert "Traceback" not in text
    cluster.await_idle(2)


def test_a_killed_worker(cluster: Cluster, counting: CountingServer) -> None:
    path = task(cluster, counting, idempotent=True)
    run = cluster.site.start("osbench-coord", "run", "--json", path)
    run.wait_for(lambda: counting.counts.total() > 40)

    os.kill(cluster.child_of(cluster.workers[0]), signal.SIGKILL)

    done = run.finish()
    assert done.code == 0, done.err
    assert done.sums["ok"] == TIMES
    assert set(counting.counts.values()) <= {1, 2}
    assert "Traceback" not in done.err
