"""A broker that dies in the middle of a run and does not come back."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from helpers.runs import Cluster, Site, Started, site
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
    run = cluster.site.begin("osbench-coord", "run", "--json", cluster.site.task(ENDLESS))
    run.wait_for(lambda: re.search("running: [1-9]", run.said()))
    return run


def test_a_broker_that_stays_unreachable_ends_the_run(here: Site, redis: RedisServer) -> None:
    with redis_server(password="broken") as broker:
        cluster = Cluster(here, redis, broker_url=broker.url)
        here.configure(cluster.messaging, PATIENCE)
        run = start(cluster)

        broker.kill()

        done = run.finish()
        assert done.code == 3, done.err
        assert "Traceback" not in done.err
        (note,) = [note for note in done.result["notes"] if "could not continue" in note]
        server = f"the broker at redis://***@127.0.0.1:{broker.port}/0"
        assert f"{server} does not take messages: " in note
        assert "for 2 s ([messaging] patience_s)" in note
        assert done.sums["ok"] > 0
        assert "the run could not continue" in here.coord("runs", "show").out
