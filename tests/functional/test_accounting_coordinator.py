"""A coordinator that is killed, or sleeps: every iteration is accounted for all the same.

OSBENCH_RESUME_MOMENTS sets at how many moments a run is killed and resumed (2 unless set).
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator

import pytest

from helpers.arena import Arena, Load, arena, wait_until

pytestmark = [pytest.mark.functional, pytest.mark.faults, pytest.mark.timeout(600)]

MOMENTS = int(os.environ.get("OSBENCH_RESUME_MOMENTS", "2"))
TIMES = 1200
CLOSED = {"constant": {"times": TIMES, "concurrency": 8}}


@pytest.fixture
def pair() -> Iterator[Arena]:
    """Two hosts with an idle worker each, which wait for a coordinator as long as a test may."""
    with arena() as found:
        found.configured(worker={"coordinator_lost_s": 600})
        found.start_hosts(2)
        yield found


@pytest.fixture
def impatient() -> Iterator[Arena]:
    """The same, but they wait for five seconds."""
    with arena() as found:
        found.configured(worker={"coordinator_lost_s": 5})
        found.start_hosts(2)
        yield found


@pytest.fixture
def bare() -> Iterator[Arena]:
    """No hosts."""
    with arena() as found:
        yield found


def kill(found: Arena, load: Load) -> None:
    """Kill -9 of the coordinator, once the load is under way."""
    found.await_started(load, 100)
    load.signal(signal.SIGKILL)
    load.command.process.wait()


def test_a_run_whose_coordinator_was_killed_is_resumed(pair: Arena) -> None:
    load = pair.start_load(CLOSED)
    kill(pair, load)
    status = pair.site.coord("status", load.run)

    pair.resume(load)

    assert f"resume {load.run}" in status.out + status.err
    assert pair.finish(load) == 0, load.command.said()
    assert pair.exact(load)["ok"] == TIMES
    assert wait_until(pair.are_free)


@pytest.mark.parametrize("seed", range(MOMENTS))
def test_a_run_is_resumed_from_any_moment(pair: Arena, seed: int) -> None:
    load = pair.start_load(CLOSED)
    # from before the first iteration to behind the last
    time.sleep((seed + random.Random(seed).random()) / MOMENTS * 6.0)
    load.signal(signal.SIGKILL)

    pair.resume(load)
    if pair.finish(load) == 2:
        # refused, since it had ended: there is a report
        load.codes[-1] = pair.summary(load)["exit_code"]

    assert pair.exact(load)["ok"] == TIMES
    assert load.codes[-1] == 0
    assert wait_until(pair.are_free)


def test_workers_of_a_killed_coordinator_are_freed_by_a_command(pair: Arena) -> None:
    load = pair.start_load(CLOSED)
    kill(pair, load)

    freed = pair.site.coord("workers", "free", load.run)

    assert freed.code == 0, freed.err
    # they wait for ten minutes otherwise
    assert wait_until(pair.are_free)
    pair.resume(load)
    code = pair.finish(load)
    sums = pair.exact(load)
    # what a busy worker had not delivered, or not begun, is lost, as the command says
    assert sums["ok"] + sums["lost"] == TIMES, load.command.said()
    assert code == (3 if sums["lost"] else 0), load.command.said()


def test_workers_of_a_killed_coordinator_are_free_after_the_time_that_is_set(
    impatient: Arena,
) -> None:
    load = impatient.start_load(CLOSED)
    kill(impatient, load)

    assert wait_until(impatient.are_free)

    # they serve others meanwhile, and what they have still to deliver waits
    other = impatient.start_load({"constant": {"times": 50, "concurrency": 4}}, tag="other")
    assert impatient.finish(other) == 0, other.command.said()
    assert impatient.exact(other)["ok"] == 50
    impatient.resume(load)
    assert impatient.finish(load) == 0, load.command.said()
    assert impatient.exact(load)["ok"] == TIMES


def test_of_two_that_resume_a_run_one_wins(pair: Arena) -> None:
    load = pair.start_load(CLOSED)
    kill(pair, load)

    both = [pair.site.start("osbench-coord", "resume", load.run) for _ in range(2)]

    codes = sorted(one.finish().code for one in both)
    assert codes[0] == 0, [one.said() for one in both]
    assert codes[1] in (2, 3), [one.said() for one in both]
    load.codes.append(0)
    assert pair.exact(load)["ok"] == TIMES


def test_a_gap_in_an_open_load_is_dropped_and_never_made_up(pair: Arena) -> None:
    load = pair.start_load({"rps": {"rps": 60, "times": 900}})
    kill(pair, load)
    time.sleep(6)

    pair.resume(load)

    assert pair.finish(load) in (0, 3), load.command.said()
    sums = pair.exact(load)
    assert sums["lost"] == sums["not_started"] == 0
    # six seconds of arrivals, less those that the workers had been given
    assert sums["dropped"] >= 60 * 3
    assert not set(sums["drops"]) & {"late", "capacity", "max_concurrency"}, sums


def test_a_local_run_is_resumed(bare: Arena) -> None:
    local = bare.site.configure({}, name="local.conf")
    request = {"url": bare.log.url("local"), "method": "GET", "status_code": 200}
    task = bare.site.task(
        {"scenario": {"HttpRequests.check_request": request}, "runner": CLOSED},
        name="task-local.json",
    )
    command = bare.site.start("osbench-coord", "run", task, "--config-file", str(local))
    command.wait_for(bare.run_ids)
    (run,) = bare.run_ids()
    load = Load(command=command, run=run, tags=["local"])
    kill(bare, load)
    bare.site.await_nothing_left()

    bare.resume(load, "--config-file", str(local))

    assert bare.finish(load) in (0, 3), load.command.said()
    sums = bare.exact(load)
    assert sums["ok"] + sums["lost"] == TIMES
    bare.site.await_nothing_left()


def test_a_coordinator_that_slept_finds_that_it_has_lost_its_workers(impatient: Arena) -> None:
    sleeper = impatient.start_load({"constant": {"times": 3000, "concurrency": 8}}, tag="a")
    impatient.await_started(sleeper, 50)
    sleeper.signal(signal.SIGSTOP)
    other = impatient.start_load(
        {"constant": {"times": 1500, "concurrency": 8}},
        *("--workers", "2", "--wait-for-workers", "120"),
        tag="b",
    )
    impatient.await_started(other, 20)

    sleeper.signal(signal.SIGCONT)

    assert impatient.finish(other) == 0, other.command.said()
    assert impatient.exact(other)["ok"] == 1500
    # it ends for want of workers, or goes on with them once the other has left them
    assert impatient.finish(sleeper) in (0, 3), sleeper.command.said()
    sums = impatient.exact(sleeper)
    assert sums["lost"] == 0
    assert wait_until(impatient.are_free)
