"""`abort` in each phase of a run: the coordinator answers, and the run ends as after Ctrl-C."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from helpers.runs import Cluster, Started, site
from servers import redis_server

pytestmark = [pytest.mark.functional, pytest.mark.timeout(300)]

SLOW_CONTEXT = """
import pathlib
import time

from osbench.plugin import context

HERE = pathlib.Path(__file__).parent


class Slow(context.Context):
    NAME = "slow"

    def setup(self):
        (HERE / "begun").touch()
        while not (HERE / "go").exists():
            time.sleep(0.01)

    def cleanup(self):
        (HERE / "undone").touch()
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A worker, and a folder with a plug-in."""
    with redis_server(password="functional") as redis, site() as here:
        found = Cluster(here, redis)
        here.write("plugins/slow.py", SLOW_CONTEXT)
        found.start_worker()
        found.await_idle(1)
        yield found


def sleeping(sleep: float, **more: Any) -> dict[str, Any]:
    runner = {"constant_for_duration": {"duration": 120, "concurrency": 2}}
    return {"scenario": {"Dummy.dummy": {"sleep": sleep}}, "runner": runner, **more}


def start(cluster: Cluster, workload: dict[str, Any], *options: str) -> Started:
    here = cluster.site
    return here.begin("osbench-coord", "run", "--json", *options, here.task(workload))


def aborted(cluster: Cluster, *options: str) -> str:
    done = cluster.site.coord("abort", *options)
    assert done.code == 0, done.err
    return done.err.strip()


def test_while_it_waits_for_workers(cluster: Cluster) -> None:
    run = start(cluster, sleeping(0.01), "--workers", "2", "--wait-for-workers", "120")
    run.await_said("waiting up to")

    said = aborted(cluster)

    assert said.endswith("is ending: running iterations end, then it reports")
    assert run.finish().code == 130


def test_while_a_context_is_set_up(cluster: Cluster) -> None:
    folder = cluster.site.home / "plugins"
    cluster.await_idle(1)
    workload = sleeping(0.01, contexts={"slow": {}})
    run = start(cluster, workload, "--plugin-path", str(folder))
    run.wait_for((folder / "begun").exists)

    # the plug-in has the main thread, which looks at nothing now
    said = aborted(cluster)
    (folder / "go").touch()

    assert "is ending" in said
    assert run.finish().code == 130
    assert (folder / "undone").exists()


def test_while_the_last_iterations_run_it_is_stopped_at_once(cluster: Cluster) -> None:
    cluster.await_idle(1)
    run = start(cluster, sleeping(100))
    run.await_said("2 in flight")

    first = aborted(cluster)
    run.await_said("stopping: running iterations end")
    second = aborted(cluster, "--now")

    done = run.finish()
    again = cluster.site.coord("abort", "last")
    assert first.endswith("running iterations end, then it reports")
    assert second.endswith("running iterations are abandoned")
    assert done.code == 130
    assert again.code == 2
    assert "is not running on this machine" in again.err
