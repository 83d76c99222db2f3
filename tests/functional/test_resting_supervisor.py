"""A supervisor at rest: it takes little memory, and is back when one of its processes ends."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from helpers.processes import command_of, is_living
from helpers.runs import Cluster, Started, checked, site
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.worker.process import resting
from osbench.worker.process.resting import STATE
from servers import RedisServer

pytestmark = pytest.mark.functional

USERS = 4
ENDLESS: dict[str, Any] = {
    "scenario": {"Dummy.dummy": {"sleep": 600}},
    "runner": {"constant": {"times": 1_000_000, "concurrency": USERS}},
}


@pytest.fixture
def cluster(redis: RedisServer) -> Iterator[Cluster]:
    with site() as here:
        yield Cluster(here, redis)


def rested(worker: Started) -> psutil.Process:
    """A supervisor, once it is at rest."""
    found = psutil.Process(worker.process.pid)
    worker.wait_for(lambda: "resting.py" in command_of(found))
    return found


def records(cluster: Cluster) -> list[Path]:
    """The life records of supervisors."""
    return list((cluster.site.data / "supervisors").iterdir())


def state_of(record: Path) -> str:
    return str(json.loads(record.read_bytes())["state"])


def await_wait(cluster: Cluster, worker: Started) -> None:
    """Wait until a supervisor at rest waits: then it writes its life record."""
    (record,) = records(cluster)
    before = record.read_text("utf-8")
    worker.wait_for(lambda: record.read_text("utf-8") != before)


def test_a_killed_process_is_replaced_and_its_supervisor_rests_again(cluster: Cluster) -> None:
    worker = cluster.site.begin("osbench-worker", "--processes", "2")
    cluster.await_idle(2)
    supervisor = rested(worker)
    first, second = supervisor.children()

    first.kill()

    worker.await_said("ended (-9)")
    worker.wait_for(lambda: first not in supervisor.children() and len(supervisor.children()) == 2)
    assert rested(worker) == supervisor
    cluster.await_idle(2)
    assert second in supervisor.children()
    assert worker.said().count("osbench-worker on ") == 1
    assert cluster.site.coord("workers").code == 0
    supervisor.terminate()
    assert worker.finish().code == 0
    assert not is_living(second)
    assert records(cluster) == []


def test_it_keeps_no_descriptor_of_an_earlier_rest(cluster: Cluster) -> None:
    worker = cluster.site.begin("osbench-worker", "--processes", "1")
    supervisor = rested(worker)
    await_wait(cluster, worker)
    before = supervisor.num_fds()

    (process,) = supervisor.children()
    process.kill()
    worker.await_said("ended (-9)")

    assert rested(worker) == supervisor
    # a program that begins has further ones, for its files
    await_wait(cluster, worker)
    worker.wait_for(lambda: supervisor.num_fds() == before)


def test_a_process_is_replaced_even_if_sigchld_was_ignored_at_the_start(cluster: Cluster) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        # a program inherits it
        worker = cluster.site.start("osbench-worker", "--processes", "1")
    finally:
        signal.signal(signal.SIGCHLD, before)
    (process,) = rested(worker).children()

    process.kill()

    worker.await_said("ended (-9)")
    assert rested(worker).children() != [process]


def test_a_stop_for_longer_than_its_waits_ends_nothing(cluster: Cluster) -> None:
    worker = cluster.site.begin("osbench-worker", "--processes", "1")
    supervisor = rested(worker)
    await_wait(cluster, worker)
    (record,) = records(cluster)
    children = supervisor.children()

    supervisor.suspend()
    # not for a condition: the stop has to outlast the wait
    time.sleep(2 * resting._LOOK_S)
    before = record.read_text("utf-8")
    supervisor.resume()
    worker.wait_for(lambda: record.read_text("utf-8") != before)

    assert (state_of(record), supervisor.children()) == ("running", children)


@pytest.mark.parametrize("foreign", ["{", "7", '{"pid": 1}'])
def test_the_state_of_another_process_is_ignored(cluster: Cluster, foreign: str) -> None:
    cluster.site.variables[STATE] = foreign
    worker = cluster.site.begin("osbench-worker", "--processes", "1")
    cluster.await_idle(1)
    worker.process.send_signal(signal.SIGTERM)

    assert worker.finish().code == 0
    assert "Traceback" not in worker.said()


def test_the_others_work_on_if_the_configuration_has_become_faulty(cluster: Cluster) -> None:
    worker = cluster.site.begin("osbench-worker", "--processes", "2")
    cluster.await_idle(2)
    supervisor = rested(worker)
    first, second = supervisor.children()
    cluster.site.configure({**cluster.messaging, "worker": {"processes": "many"}})

    first.kill()

    worker.await_said("many")
    worker.wait_for(lambda: supervisor.children() == [second])
    assert rested(worker) == supervisor
    assert is_living(second)
    supervisor.terminate()
    assert worker.finish().code == 0
    assert records(cluster) == []


def test_its_times_include_those_of_its_processes(cluster: Cluster) -> None:
    worker = cluster.site.start("osbench-worker", "--processes", "1")
    cluster.await_idle(1)
    (process,) = rested(worker).children()
    least = sum(process.cpu_times()[:2]) + sum(psutil.Process(worker.process.pid).cpu_times()[:2])

    worker.process.terminate()

    _, _, used = os.wait4(worker.process.pid, 0)
    assert used.ru_utime + used.ru_stime >= least


def test_its_health_record_is_kept_up(cluster: Cluster) -> None:
    worker = cluster.site.begin("osbench-worker", "--processes", "1")
    cluster.await_idle(1)
    rested(worker)
    (record,) = records(cluster)
    before = record.read_text("utf-8")
    worker.wait_for(lambda: record.read_text("utf-8") != before)

    found = cluster.site.begin("osbench-worker", "--check", "alive").finish()

    assert (found.code, state_of(record)) == (0, "running")


def test_the_will_of_a_process_that_is_killed_while_it_ends_is_sent(cluster: Cluster) -> None:
    worker = cluster.site.begin("osbench-worker", "--processes", "1")
    cluster.await_idle(1)
    supervisor = rested(worker)
    (process,) = supervisor.children()
    run = cluster.site.begin("osbench-coord", "run", "--json", cluster.site.task(ENDLESS))
    run.wait_for(lambda: any(one.run and one.busy == USERS for one in cluster.present()))

    # it cannot leave its run
    process.suspend()
    supervisor.terminate()
    process.kill()

    assert worker.finish().code == 0
    run.interrupt()
    done = run.finish()
    sums = checked(done.result["workloads"][0])
    directory = RunDirectory(cluster.site.data / "runs" / done.result["run_id"])
    assert "will" in {record["do"] for record in directory.decisions()}
    # numbers are noted in portions, before users take them
    assert USERS <= sums["lost"] <= 2 * USERS
    assert sums["not_started"] == sums["planned"] - sums["lost"]
    assert "a new process is started" not in worker.said()
