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
from osbench.coordinator.storage.run_directory import RunDirectory
from servers import CountingServer, redis_server

pytestmark = [pytest.mark.functional, pytest.mark.timeout(900)]

CONTEXT = """
import pathlib
import time

from osbench.plugin import context

LOG = pathlib.Path(__file__).parent / "log"


def note(text):
    with LOG.open("a") as file:
        file.write(text + "\\n")


def pause():
    # for as long as the test has a file of that name
    while (LOG.parent / "hold-cleanup").exists():
        time.sleep(0.01)


class Noted(context.Context):
    NAME = "noted"

    def setup(self):
        note("setup")
        self.made["noted"] = "it"
        self.keep()

    def cleanup(self):
        note("cleanup")
        pause()
        note("cleaned")
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
def noted(cluster: Cluster) -> Iterator[Path]:
    """A folder with a context that notes what it does, and does not end where it is told so."""
    folder = cluster.site.home / "plugins"
    folder.mkdir(exist_ok=True)
    (folder / "noted.py").write_text(CONTEXT)
    yield folder
    for path in folder.glob("*hold*"):
        path.unlink()
    (folder / "log").unlink(missing_ok=True)


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
    run = here.start("osbench-coord", "run", "--json", *arguments)
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
#: Workers of local mode have so long after a kill of their coordinator.
TOO_BUSY = "this machine is too busy: workers could give nothing back within two seconds"


def test_a_closed_load_goes_on_and_all_of_it_is_done_once(
    pair: Cluster, counting: CountingServer
) -> None:
    counting.delay_s = 0.05
    run = under_load(pair.site, counting, pair.site.task(requests(counting, CONSTANT)))
    run.wait_for(lambda: len(counting.instants) > 80)

    name = kill(run)
    status = pair.site.coord("status", name).out
    done = resumed(pair.site, name)

    assert f"`osbench-coord resume {name}` goes on with it; its workers wait until" in status
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


def held(run: Started, noted: Path, what: str) -> None:
    """Wait until a context has begun to do something that it is not allowed to end."""
    run.wait_for(lambda: (noted / "log").exists() and log_of(noted)[-1] == what)


def test_killed_while_contexts_are_undone(
    pair: Cluster, counting: CountingServer, noted: Path
) -> None:
    (noted / "hold-cleanup").touch()
    small = requests(counting, {"serial": {"times": 5}})
    run = start(pair.site, *with_context(pair, counting, noted, small, small))
    held(run, noted, "cleanup")

    name = kill(run)
    (noted / "hold-cleanup").unlink()
    done = resumed(pair.site, name)

    assert done.code == 0
    first, second = done.result["workloads"]
    assert [one["accounting"]["ok"] for one in (first, second)] == [5, 5]
    # what was taken down in part is taken down, and not set up again
    assert log_of(noted) == [
        *("setup", "cleanup", "cleanup", "cleaned"),
        *("setup", "cleanup", "cleaned"),
    ]
    assert first["contexts"][0]["name"] == "noted"
    # each of both has iterations 1 to 5
    assert set(counting.by_run.values()) == {2}


def test_a_run_that_was_cleaned_up_is_not_resumed(
    pair: Cluster, counting: CountingServer, noted: Path
) -> None:
    work = requests(counting, CONSTANT)
    run = under_load(pair.site, counting, *with_context(pair, counting, noted, work))
    name = kill(run)

    cleaned = pair.site.coord("cleanup", name, "--plugin-path", str(noted))
    refused = pair.site.coord("resume", name)

    assert cleaned.code == 0, cleaned.err
    assert log_of(noted) == ["setup", "cleanup", "cleaned"]
    assert refused.code == 2
    assert "`cleanup` has ended it" in refused.err
    pair.await_idle(2)


def test_a_run_of_local_mode_goes_on_with_other_workers(counting: CountingServer) -> None:
    for _ in range(3):
        with site() as here:
            task = here.task(requests(counting, CONSTANT))
            name = kill(under_load(here, counting, task, "--workers", "1"))

            # at once: it waits for what the earlier workers still deliver
            done = resumed(here, name)

            sums = done.sums
            assert sums["ok"] + sums["lost"] == sums["planned"] == 600
            here.await_nothing_left()
            left = {path.name for path in (here.data / "runs" / name).iterdir()}
            assert not left & {"server.rdb", "server.lock", "plan"}
            if sums["lost"]:
                continue
            assert done.code == 0
            assert started_once(counting, name) == 600
            # workers that had ended are not waited for, nor told as lost
            said = "the run was resumed once, after its coordinator had ended"
            assert done.result["notes"] == [said]
            return
    pytest.fail("iterations were lost in each of three runs")


def test_what_runs_for_long_is_lost_with_a_coordinator_of_local_mode(
    counting: CountingServer,
) -> None:
    """Workers of local mode end two seconds after it: they do not wait for what takes longer.

    On a busy machine that may be too short to give back what was not begun, too.
    """
    for _ in range(3):
        lost = lost_in_local_mode(counting)
        assert lost in (4, 40)
        if lost == 4:
            return
    pytest.skip(TOO_BUSY)


def lost_in_local_mode(counting: CountingServer) -> int:
    """How many of 40 iterations are lost, of which four run for long when all is killed."""
    counting.delay_s = 20
    with site() as here:
        seen = len(counting.by_run)
        runner = {"constant": {"times": 40, "concurrency": 4}}
        run = under_load(here, counting, here.task(requests(counting, runner)), "--workers", "1")
        run.wait_for(lambda: len(counting.by_run) == seen + 4)
        name = kill(run)
        here.await_nothing_left()
        kept = here.data / "runs" / name / "server.rdb"
        mode = stat.S_IMODE(kept.stat().st_mode)
        counting.delay_s = 0.02

        done = resumed(here, name)

        assert mode == 0o600
        lost = int(done.sums["lost"])
        assert (done.code, lost + done.sums["ok"]) == (3, 40)
        assert started_once(counting, name) == done.sums["ok"] + 4
        return lost


def test_what_cannot_be_read_of_the_earlier_server_is_done_without(
    counting: CountingServer,
) -> None:
    with site() as here:
        run = under_load(here, counting, here.task(requests(counting, CONSTANT)), "--workers", "1")
        name = kill(run)
        here.await_nothing_left()
        (here.data / "runs" / name / "server.rdb").write_bytes(b"REDIS9999 of a later version")

        done = resumed(here, name)

        sums = done.sums
        assert "what workers had delivered last cannot be read" in done.err
        assert sums["ok"] + sums["lost"] == 600
        assert started_once(counting, name) <= sums["ok"] + sums["lost"]
