"""Real coordinators that are killed, and runs that go on with another one.

Every kind of moment is in `tests/world/test_scenes_resumed.py`.
"""

from __future__ import annotations

import json
import os
import signal
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.refolded import refolded, reported
from helpers.runs import Cluster, Finished, Site, Started, site
from osbench.coordinator.results.storage.run_directory import RunDirectory
from servers import CountingServer, redis_server

pytestmark = [pytest.mark.functional, pytest.mark.timeout(900)]

CONTEXT = """
import pathlib

from osbench.plugin import context

LOG = pathlib.Path(__file__).parent / "log"


def note(text):
    with LOG.open("a") as file:
        file.write(text + "\\n")


class Noted(context.Context):
    NAME = "noted"

    def setup(self):
        note("setup")
        self.made["noted"] = "it"
        self.keep()

    def cleanup(self):
        note("cleanup")
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with redis_server(password="functional") as redis, site() as here:
        found = Cluster(here, redis)
        for _ in range(2):
            found.start_worker()
        yield found


@pytest.fixture
def pair(cluster: Cluster) -> Cluster:
    """The cluster with two idle workers."""
    cluster.await_idle(2)
    return cluster


@pytest.fixture
def counting(counting: CountingServer) -> CountingServer:
    """A web server that counts iterations and takes 20 ms for each."""
    counting.delay_s = 0.02
    return counting


@pytest.fixture
def noted(cluster: Cluster) -> Path:
    """A folder with a context that notes what it does."""
    folder = cluster.site.home / "plugins"
    folder.mkdir(exist_ok=True)
    (folder / "noted.py").write_text(CONTEXT)
    return folder


def requests(counting: CountingServer, runner: dict[str, Any], **more: Any) -> dict[str, Any]:
    request = {"url": counting.url, "method": "GET", "status_code": 200}
    return {"scenario": {"HttpRequests.check_request": request}, "runner": runner, **more}


def kill(run: Started) -> str:
    """Kill a coordinator; returns the id of its run."""
    os.kill(run.process.pid, signal.SIGKILL)
    run.process.wait()
    (name,) = {one["run"] for one in listed(run) if one["state"] == "resumable"}
    return str(name)


def listed(run: Started) -> list[dict[str, Any]]:
    done = SITES[run].coord("runs", "list", "--json")
    found: list[dict[str, Any]] = json.loads(done.out)
    return found


SITES: dict[Started, Site] = {}


def start(here: Site, *arguments: str) -> Started:
    run = here.begin("osbench-coord", "run", "--json", *arguments)
    SITES[run] = here
    return run


def under_load(here: Site, counting: CountingServer, *arguments: str) -> Started:
    """Start a run and wait for its first request."""
    seen = len(counting.instants)
    run = start(here, *arguments)
    run.wait_for(lambda: len(counting.instants) > seen)
    return run


def resumed(here: Site, name: str) -> Finished:
    done = here.coord("resume", name, "--json")
    print(f"resumed: code {done.code}, {done.err}")
    assert "Traceback" not in done.err
    return done


def started_once(counting: CountingServer, name: str) -> int:
    """How many iterations the server saw, none of them twice."""
    counts = {number: n for (run, number), n in counting.by_run.items() if run == name}
    assert set(counts.values()) <= {1}
    return len(counts)


CONSTANT = {"constant": {"times": 600, "concurrency": 8}}


def test_a_closed_load_goes_on_and_all_of_it_is_done_once(
    pair: Cluster, counting: CountingServer
) -> None:
    counting.delay_s = 0.05
    run = under_load(pair.site, counting, pair.site.task(requests(counting, CONSTANT)))
    run.wait_for(lambda: len(counting.instants) > 80)

    name = kill(run)
    status = pair.site.coord("status", name).out
    done = resumed(pair.site, name)

    assert f"`osbench-coord resume {name}` continues it; its workers wait until" in status
    assert (done.code, done.sums["ok"], done.sums["planned"]) == (0, 600, 600)
    assert started_once(counting, name) == 600
    assert any("resumed once" in note for note in done.result["notes"])
    (workload,) = done.result["workloads"]
    assert sum(one["iterations"] for one in workload["workers"]) == 600
    requests_made = workload["requests"]["total"]
    assert (requests_made["requests"], requests_made["unanswered"]) == (600, 0)
    directory = RunDirectory(pair.site.data / "runs" / name)
    assert reported(directory) == refolded(directory, [{"sla": {"failure_rate": {"max": 0}}}])


def with_context(
    pair: Cluster, counting: CountingServer, noted: Path, *workloads: dict[str, Any]
) -> tuple[str, ...]:
    given = [{**one, "contexts": {"noted": {}}} for one in workloads]
    return (pair.site.task(*given), "--plugin-path", str(noted))


def log_of(noted: Path) -> list[str]:
    return (noted / "log").read_text().split()


def test_a_run_that_was_cleaned_up_is_not_resumed(
    pair: Cluster, counting: CountingServer, noted: Path
) -> None:
    work = requests(counting, CONSTANT)
    run = under_load(pair.site, counting, *with_context(pair, counting, noted, work))
    name = kill(run)

    cleaned = pair.site.coord("cleanup", name, "--plugin-path", str(noted))
    refused = pair.site.coord("resume", name)

    assert cleaned.code == 0, cleaned.err
    assert log_of(noted) == ["setup", "cleanup"]
    assert refused.code == 2
    assert "`cleanup` has ended it" in refused.err
    pair.await_idle(2)


def test_a_run_of_local_mode_goes_on_with_other_workers(counting: CountingServer) -> None:
    with site() as here:
        task = here.task(requests(counting, CONSTANT))
        name = kill(under_load(here, counting, task, "--workers", "1"))

        # at once: it waits for what the earlier workers still deliver
        done = resumed(here, name)

        sums = done.sums
        # workers that get no core may deliver nothing within their two seconds
        assert sums["ok"] + sums["lost"] == sums["planned"] == 600
        here.await_nothing_left()
        left = {path.name for path in (here.data / "runs" / name).iterdir()}
        assert not left & {"server.rdb", "server.lock", "plan"}
        assert sums["ok"] <= started_once(counting, name) <= 600
        # workers that had ended are not waited for, nor told as lost
        said = "the run was resumed once, after its coordinator had ended"
        assert said in done.result["notes"]
        if not sums["lost"]:
            assert (done.code, done.result["notes"]) == (0, [said])


@pytest.mark.parametrize("readable", [True, False])
def test_what_runs_for_long_is_lost_with_a_coordinator_of_local_mode(
    counting: CountingServer, *, readable: bool
) -> None:
    """Workers of local mode end two seconds after it: they do not wait for what takes longer.

    On a busy machine that may be too short to give back what was not begun, too. So is nothing of
    it known if what they had given back cannot be read.
    """
    counting.delay_s = 20
    with site() as here:
        runner = {"constant": {"times": 40, "concurrency": 4}}
        run = under_load(here, counting, here.task(requests(counting, runner)), "--workers", "1")
        run.wait_for(lambda: len(counting.by_run) == 4)
        name = kill(run)
        here.await_nothing_left()
        kept = here.data / "runs" / name / "server.rdb"
        mode = stat.S_IMODE(kept.stat().st_mode)
        if not readable:
            kept.write_bytes(b"REDIS9999 of a later version")
        counting.delay_s = 0.02

        done = resumed(here, name)

        assert mode == 0o600
        lost = int(done.sums["lost"])
        assert (done.code, lost + done.sums["ok"]) == (3, 40)
        assert 4 <= lost <= 40
        assert started_once(counting, name) == done.sums["ok"] + 4
        unread = "the last results of workers cannot be read"
        assert (unread in done.err) == (not readable)
