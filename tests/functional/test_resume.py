"""Coordinators that are killed, at any moment, and runs that go on with another one.

OSBENCH_RESUME_MOMENTS sets at how many random moments a run is cut off (2 unless set), and
OSBENCH_RESUME_SEED which moments these are.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import stat
import subprocess
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from helpers.refolded import refolded, reported
from helpers.runs import STATES, Cluster, Finished, Site, Started, site
from osbench.common.protocol import timers
from osbench.coordinator.storage.run_directory import RunDirectory
from servers import CountingServer, redis_server

pytestmark = [pytest.mark.functional, pytest.mark.timeout(900)]

MOMENTS = int(os.environ.get("OSBENCH_RESUME_MOMENTS", "2"))
SEED = int(os.environ.get("OSBENCH_RESUME_SEED", "1"))

CONTEXT = """
import pathlib
import time

from osbench.plugin import context

LOG = pathlib.Path(__file__).parent / "log"


def note(text):
    with LOG.open("a") as file:
        file.write(text + "\\n")


def pause(name):
    # for as long as the test has a file of that name
    while (LOG.parent / name).exists():
        time.sleep(0.01)


class Noted(context.Context):
    NAME = "noted"

    def setup(self):
        note("setup")
        self.made["noted"] = "it"
        self.keep()
        pause("hold-setup")

    def cleanup(self):
        note("cleanup")
        pause("hold-cleanup")
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
    """A folder with a context that notes what it does, and waits where it is told to."""
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


def test_a_closed_load_goes_on_and_all_of_it_is_done_once(
    pair: Cluster, counting: CountingServer
) -> None:
    counting.delay_s = 0.05
    run = under_load(pair.site, counting, pair.site.task(requests(counting, CONSTANT)))
    time.sleep(0.5)

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


def test_what_was_due_without_a_coordinator_is_dropped_and_not_made_up(
    pair: Cluster, counting: CountingServer
) -> None:
    runner = {"rps": {"times": 400, "rps": 50}}
    run = under_load(pair.site, counting, pair.site.task(requests(counting, runner)))
    time.sleep(1)

    name = kill(run)
    # what was granted before goes on for as long
    time.sleep(timers.HORIZON_S + 0.5)
    done = resumed(pair.site, name)

    sums = done.sums
    assert sums["planned"] == 400
    assert sums["drops"]["coordinator_gone"] > 0
    assert sums["ok"] + sums["dropped"] == 400
    assert sums["ok"] == started_once(counting, name)
    assert done.code == 3


def test_a_run_whose_coordinator_was_killed_after_its_report_has_it_told(
    pair: Cluster, counting: CountingServer
) -> None:
    criterion = {"sla": {"max_seconds_per_iteration": 0.001}}
    task = pair.site.task(requests(counting, {"constant": {"times": 4}}, **criterion))
    first = pair.site.coord("run", "--json", task)
    directory = pair.site.data / "runs" / str(first.result["run_id"])
    # what a coordinator has not removed yet when it has written its report
    (directory / "plan").touch()
    page = pair.site.home / "again.json"

    again = pair.site.coord("resume", directory.name, "--json", "--export", f"json={page}")

    assert (first.code, again.code) == (1, 1)
    assert again.result == first.result
    assert f"run {directory.name} is finished" in again.err
    assert json.loads(page.read_text("utf-8"))["run_id"] == directory.name
    assert not (directory / "plan").exists()


def test_a_load_of_some_seconds_ends_when_it_was_to_end(
    pair: Cluster, counting: CountingServer
) -> None:
    runner = {"constant_for_duration": {"duration": 6, "concurrency": 8}}
    run = under_load(pair.site, counting, pair.site.task(requests(counting, runner)))
    time.sleep(1)

    name = kill(run)
    done = resumed(pair.site, name)

    assert done.code in (0, 4), done.err
    sums = done.sums
    assert sums["ok"] == sums["planned"] == started_once(counting, name)
    # an iteration that the first coordinator's six seconds had no room for was not begun
    assert max(float(row["started_s"]) for row in pair.site.rows(name)) <= 6


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


def test_killed_while_contexts_are_set_up(
    pair: Cluster, counting: CountingServer, noted: Path
) -> None:
    (noted / "hold-setup").touch()
    small = requests(counting, {"serial": {"times": 5}})
    run = start(pair.site, *with_context(pair, counting, noted, small))
    held(run, noted, "setup")

    name = kill(run)
    (noted / "hold-setup").unlink()
    done = resumed(pair.site, name)

    assert (done.code, done.sums["ok"]) == (0, 5)
    assert log_of(noted) == ["setup", "cleanup", "cleaned", "setup", "cleanup", "cleaned"]


def test_ctrl_c_before_its_workers_are_heard_keeps_what_was_done(
    pair: Cluster, counting: CountingServer, noted: Path
) -> None:
    endless = {"constant_for_duration": {"duration": 600, "concurrency": 4}}
    task = with_context(pair, counting, noted, requests(counting, endless))
    run = under_load(pair.site, counting, *task)
    run.wait_for(lambda: len(counting.instants) > 40)
    name = kill(run)
    for worker in pair.workers:
        worker.process.send_signal(signal.SIGSTOP)
        os.kill(pair.child_of(worker), signal.SIGSTOP)

    again = pair.site.start("osbench-coord", "resume", name, "--json")
    again.await_said("resumed")
    again.interrupt()
    done = again.finish()

    for worker in pair.workers:
        os.kill(pair.child_of(worker), signal.SIGCONT)
        worker.process.send_signal(signal.SIGCONT)
    assert done.code == 130, done.err
    assert done.sums["ok"] > 0
    assert done.result["workloads"][0]["not_begun"] is None
    assert log_of(noted)[-1] == "cleaned"


def test_a_workload_that_could_not_begin_is_not_begun_by_another_coordinator(
    pair: Cluster, counting: CountingServer
) -> None:
    bad = requests(
        counting, {"serial": {"times": 5}}, contexts={"dummy_context": {"fail_setup": True}}
    )
    good = requests(counting, {"constant": {"times": 200, "concurrency": 4}})
    run = under_load(pair.site, counting, pair.site.task(bad, good))

    name = kill(run)
    done = resumed(pair.site, name)

    assert done.code == 2
    first, second = done.result["workloads"]
    assert "fail_setup is true" in first["error"]
    assert (first["accounting"]["not_started"], first["sla"][-1]["success"]) == (5, False)
    assert second["error"] is None
    assert second["accounting"]["ok"] == 200


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


def test_contexts_of_a_load_that_goes_on_are_not_made_again(
    pair: Cluster, counting: CountingServer, noted: Path
) -> None:
    work = requests(counting, CONSTANT)
    run = under_load(pair.site, counting, *with_context(pair, counting, noted, work))

    name = kill(run)
    done = resumed(pair.site, name)

    assert done.sums["ok"] == 600
    assert log_of(noted) == ["setup", "cleanup", "cleaned"]


def test_of_two_that_resume_at_once_one_goes_on(pair: Cluster, counting: CountingServer) -> None:
    run = under_load(pair.site, counting, pair.site.task(requests(counting, CONSTANT)))
    name = kill(run)

    both = [pair.site.start("osbench-coord", "resume", name, "--json") for _ in range(2)]
    ended = [one.finish() for one in both]

    (won,) = (one for one in ended if one.code == 0)
    (lost,) = (one for one in ended if one.code != 0)
    assert won.sums["ok"] == 600
    assert lost.code == 2
    assert "has a coordinator already" in lost.out + lost.err
    assert started_once(counting, name) == 600


def test_workers_that_are_freed_serve_another_run(pair: Cluster, counting: CountingServer) -> None:
    counting.delay_s = 0.2
    times = {"constant": {"times": 100, "concurrency": 4}}
    run = under_load(pair.site, counting, pair.site.task(requests(counting, times)))
    refused = pair.site.coord("workers", "free", "last")
    name = kill(run)
    waiting = pair.site.coord("workers").out

    freed = pair.site.coord("workers", "free", name)
    pair.await_idle(2)
    other = pair.site.run("--scenario", "Dummy.dummy", "--times", "4")
    done = resumed(pair.site, name)

    assert refused.code == 2
    assert "has a coordinator already" in refused.err
    assert waiting.count("waits for resume") == 2
    assert freed.code == 0
    assert "2 worker processes of run" in freed.err
    assert other.sums["ok"] == 4
    # what they had in hand may have started
    sums = done.sums
    assert sums["ok"] + sums["lost"] == 100
    assert started_once(counting, name) <= 100


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


def test_the_run_directory_on_another_host_is_enough(
    pair: Cluster, counting: CountingServer
) -> None:
    run = under_load(pair.site, counting, pair.site.task(requests(counting, CONSTANT)))
    name = kill(run)

    with site() as other:
        other.configure(pair.messaging)
        for file in ("keys", "contexts.key"):
            (other.data / file).write_bytes((pair.site.data / file).read_bytes())
            (other.data / file).chmod(0o600)
        (other.data / "runs").mkdir(mode=0o700)
        RunDirectory(pair.site.data / "runs" / name).path.rename(other.data / "runs" / name)
        done = resumed(other, name)

    assert done.sums["ok"] == 600
    assert started_once(counting, name) == 600


def test_a_run_of_local_mode_goes_on_with_other_workers(counting: CountingServer) -> None:
    with site() as here:
        run = under_load(here, counting, here.task(requests(counting, CONSTANT)), "--workers", "1")
        name = kill(run)

        # at once: it waits for what the earlier workers still deliver
        done = resumed(here, name)

        assert (done.code, done.sums["ok"], done.sums["planned"]) == (0, 600, 600)
        assert started_once(counting, name) == 600
        # workers that had ended are not waited for, nor told as lost
        assert done.result["notes"] == ["the run was resumed once, after its coordinator had ended"]
        here.await_nothing_left()
        left = {path.name for path in (here.data / "runs" / name).iterdir()}
        assert not left & {"server.rdb", "server.lock", "plan"}


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
    pytest.skip("this machine is too busy: workers could give nothing back within two seconds")


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


def resumable_now(here: Site, name: str) -> bool:
    return bool(json.loads(here.coord("status", name, "--json").out)["state"] == "resumable")


SEEDED = """
import time

from osbench.plugin import atomic, scenario


@scenario.configure(name="Seeded.nap")
class Seeded(scenario.Scenario):
    def run(self):
        number = self.context["iteration"]
        with atomic.ActionTimer(self, "nap"):
            time.sleep(0.01 + number % 7 / 100)
        pairs = [["of seven", number % 7]]
        self.add_output(
            additive={"title": "numbers", "chart_plugin": "StatsTable", "data": pairs}
        )
        if number % 5 == 0:
            raise ValueError("a fifth of them")
"""


def numbers(here: Site, done: Finished) -> dict[str, Any]:
    """What must not depend on when and where iterations ran."""
    (workload,) = done.result["workloads"]
    rows = here.rows(done.result["run_id"])
    return {
        "sums": {state: workload["accounting"][state] for state in STATES},
        "sla": [(one["criterion"], one["success"]) for one in workload["sla"]],
        "errors": [(one["message"], one["count"]) for one in workload["errors"]],
        "outcomes": sorted((int(row["iteration"]), row["outcome"]) for row in rows),
        "actions": {path: times["ok"]["count"] for path, times in workload["actions"].items()},
        "outputs": workload["outputs"],
        "by_workers": sum(worker["iterations"] for worker in workload["workers"]),
    }


NAPS = {
    "scenario": {"Seeded.nap": {}},
    "runner": {"constant": {"times": 400, "concurrency": 8}},
    "sla": {"failure_rate": {"max": 50}, "outliers": {"max": 400, "min_iterations": 5}},
}


@pytest.fixture(scope="module")
def naps(cluster: Cluster) -> Iterator[Cluster]:
    """A cluster of its own, whose workers know a scenario that fails as its number says."""
    folder = cluster.site.home / "seeded"
    folder.mkdir()
    (folder / "seeded.py").write_text(SEEDED)
    with redis_server(password="functional") as redis, site() as here:
        found = Cluster(here, redis)
        for _ in range(2):
            found.start_worker("--plugin-path", str(folder))
        found.await_idle(2)
        yield found


@pytest.fixture(scope="module")
def uninterrupted(naps: Cluster, cluster: Cluster) -> tuple[dict[str, Any], float]:
    """The numbers of the run that nobody disturbs, and for how long it took, seconds."""
    plugins = str(cluster.site.home / "seeded")
    done = naps.site.run(naps.site.task(NAPS), "--plugin-path", plugins)
    began, ended = (
        datetime.fromisoformat(done.result[key]) for key in ("started_at", "finished_at")
    )
    return numbers(naps.site, done), (ended - began).total_seconds()


@pytest.mark.parametrize("moment", range(MOMENTS))
def test_a_run_cut_off_at_any_moment_has_the_numbers_of_one_that_was_not(
    naps: Cluster, cluster: Cluster, uninterrupted: tuple[dict[str, Any], float], moment: int
) -> None:
    expected, took_s = uninterrupted
    wait_s = random.Random(SEED * 1000 + moment).uniform(0.0, 1.0) * took_s
    print(f"OSBENCH_RESUME_SEED={SEED}, moment {moment}: killed after {wait_s:.3f} s")
    naps.await_idle(2)
    before = {one.path.name for one in RunDirectory.all(str(naps.site.data))}
    plugins = str(cluster.site.home / "seeded")
    run = naps.site.start(
        "osbench-coord", "run", "--json", naps.site.task(NAPS), "--plugin-path", plugins
    )

    run.wait_for(lambda: len(RunDirectory.all(str(naps.site.data))) > len(before))
    with contextlib.suppress(subprocess.TimeoutExpired):
        run.process.wait(wait_s)
    run.process.kill()
    run.process.wait()
    runs = {one.path.name: one for one in RunDirectory.all(str(naps.site.data))}
    made = runs.keys() - before
    if not made or not resumable_now(naps.site, *made):
        # before its first decision, or after its report
        return
    (name,) = made
    done = resumed(naps.site, name)

    assert numbers(naps.site, done) == expected
    assert done.code == 0
    # histograms, matrices, charts and SLA state are those of one coordinator that saw all blocks
    assert reported(runs[name]) == refolded(runs[name], [NAPS])
