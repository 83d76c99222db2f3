"""A coordinator that is killed: its run is resumed, and its workers are freed, by commands.

tests/world has the moments at which it is killed, and what its workers do meanwhile.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from helpers.arena import Arena, Load, arena, wait_until

pytestmark = [pytest.mark.functional, pytest.mark.faults, pytest.mark.timeout(600)]

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
