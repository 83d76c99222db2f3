"""RabbitMQ that is short of memory or disk, or stands still: it takes no messages for a while."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

import pytest

from helpers.runs import Cluster, Started, site
from servers import RabbitmqServer, redis_server

pytestmark = pytest.mark.functional

PATIENCE_S = 4
ENDLESS = {
    "scenario": {"Dummy.dummy": {"sleep": 0.02}},
    "runner": {"constant_for_duration": {"duration": 600, "concurrency": 4}},
}
FEW = {"scenario": {"Dummy.dummy": {}}, "runner": {"constant": {"times": 8, "concurrency": 2}}}


@pytest.fixture(scope="module")
def made(rabbitmq: RabbitmqServer) -> Iterator[Cluster]:
    with redis_server(password="functional") as redis, site() as here:
        found = Cluster(here, redis, broker_url=rabbitmq.url)
        found.start_worker()
        yield found


@pytest.fixture
def cluster(made: Cluster) -> Cluster:
    """A coordinator of little patience, and an idle worker."""
    made.site.configure(made.messaging, {"messaging": {"patience_s": PATIENCE_S}})
    made.await_idle(1)
    return made


@contextlib.contextmanager
def alarm(rabbitmq: RabbitmqServer, resource: str) -> Iterator[None]:
    rabbitmq.begin_alarm(resource)
    try:
        yield
    finally:
        rabbitmq.end_alarm(resource)


def start_patient(cluster: Cluster) -> Started:
    """A run that has results, and waits for the broker for as long as a busy machine may take."""
    cluster.site.configure(cluster.messaging, {"messaging": {"patience_s": 600}})
    return start(cluster)


def start(cluster: Cluster) -> Started:
    """A run that has results."""
    run = cluster.site.begin("osbench-coord", "run", "--json", cluster.site.task(ENDLESS))
    run.wait_for(lambda: re.search("running: [1-9]", run.said()))
    return run


def await_progress(run: Started) -> None:
    """Wait for two lines of progress, which a run prints now and then."""
    before = len(run.said())
    run.wait_for(lambda: run.said().count(" running: ", before) >= 2)


def test_an_alarm_that_stays_ends_the_run(cluster: Cluster, rabbitmq: RabbitmqServer) -> None:
    run = start(cluster)

    with alarm(rabbitmq, "memory"):
        done = run.finish()

    assert done.code == 3, done.err
    (note,) = [note for note in done.result["notes"] if "could not continue" in note]
    assert f"does not take messages: alarm: low on memory, for {PATIENCE_S} s" in note
    assert done.sums["ok"] > 0
    assert "Traceback" not in done.err


def test_a_run_goes_on_after_an_alarm_and_ends_while_the_broker_stands_still(
    cluster: Cluster, rabbitmq: RabbitmqServer
) -> None:
    run = start_patient(cluster)

    with alarm(rabbitmq, "memory"):
        run.await_said("alarm: low on memory")
        await_progress(run)
    await_progress(run)
    said = len(run.said())
    with rabbitmq.paused():
        run.wait_for(lambda: run.said().count("does not take messages", said))
        run.interrupt()
        done = run.finish()

    assert done.code == 130, done.err
    assert done.sums["lost"] == 0
    assert any("the coordinator could not send to" in note for note in done.result["notes"])
    # Redis is there: they need not wait for another coordinator
    assert "do not hear" not in done.err
    cluster.await_idle(1)


def test_a_run_that_is_interrupted_twice_ends_while_there_is_an_alarm(
    cluster: Cluster, rabbitmq: RabbitmqServer
) -> None:
    run = start_patient(cluster)

    with alarm(rabbitmq, "disk"):
        run.await_said("low on disk")
        run.interrupt()
        run.await_said("stopping")
        run.interrupt()
        done = run.finish()

    assert done.code == 130, done.err
    assert "do not hear" not in done.err
    cluster.await_idle(1)


def test_commands_name_the_alarm_before_a_load(cluster: Cluster, rabbitmq: RabbitmqServer) -> None:
    here = cluster.site
    with alarm(rabbitmq, "memory"):
        examined = here.coord("doctor")
        refused = here.run(here.task(FEW), "--wait-for-workers", "0")
        waiting = here.begin("osbench-coord", "run", "--json", here.task(FEW))
        waiting.await_said("takes no messages (alarm: low on memory)")
    waited = waiting.finish()

    assert examined.code == 1
    assert "low on memory" in examined.out
    assert refused.code == 2
    assert "takes no messages (alarm: low on memory)" in refused.result["error"]["message"]
    assert waited.code == 0, waited.err
