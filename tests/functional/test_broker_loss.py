"""Redis, or a separate broker, that dies in the middle of a run and does not come back."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from helpers.runs import Cluster, Finished, Site, Started, site
from servers import RedisServer, redis_server

pytestmark = pytest.mark.functional

PATIENCE = {"messaging": {"patience_s": 2}}
ENDLESS = {
    "scenario": {"Dummy.dummy": {"sleep": 0.02}},
    "runner": {"constant_for_duration": {"duration": 600, "concurrency": 4}},
}


@pytest.fixture
def here() -> Iterator[Site]:
    with site() as found:
        yield found


def start(cluster: Cluster) -> Started:
    """A run that has results of its one worker."""
    cluster.start_worker()
    cluster.await_idle(1)
    run = cluster.site.start("osbench-coord", "run", "--json", cluster.site.task(ENDLESS))
    run.wait_for(lambda: re.search("running: [1-9]", run.said()))
    return run


def is_reported(here: Site, done: Finished, says: str) -> None:
    """The run has ended for it, and its report says so and holds what was done."""
    assert done.code == 3, done.err
    assert "Traceback" not in done.err
    (note,) = [note for note in done.result["notes"] if "could not go on" in note]
    assert says in note
    assert "for 2 s ([messaging] patience_s)" in note
    assert done.sums["ok"] > 0
    again = here.coord("runs", "show")
    assert "the run could not go on" in again.out


def test_a_broker_that_stays_unreachable_ends_the_run(here: Site, redis: RedisServer) -> None:
    with redis_server(password="broken") as broker:
        cluster = Cluster(here, redis, broker_url=broker.url)
        here.configure(cluster.messaging, PATIENCE)
        run = start(cluster)

        broker.kill()

        is_reported(
            here,
            run.finish(),
            f"the broker at redis://***@127.0.0.1:{broker.port}/0 does not take messages: ",
        )


def test_a_redis_that_stays_unreachable_ends_the_run(here: Site) -> None:
    with redis_server(password="broken") as redis:
        cluster = Cluster(here, redis)
        here.configure(cluster.messaging, PATIENCE)
        run = start(cluster)

        redis.kill()

        is_reported(here, run.finish(), f": Redis at redis://127.0.0.1:{redis.port}/0 ")
