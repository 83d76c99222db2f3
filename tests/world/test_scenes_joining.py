"""Workers that come while load runs: the run takes them, and its load moves to them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from world.coordinators import SimulatedRun
from world.fibers import S
from world.scenes import (
    SHORT,
    code_and_ok,
    marks,
    open_load,
    play_out,
    report,
    staffed,
    sums,
    when,
)
from world.world import World

USERS = 8
#: Users that a load of this many seconds keeps in use.
SECONDS = 20
LASTING = {"constant_for_duration": {"concurrency": USERS, "duration": SECONDS}}
#: When others come, and until when the load has moved, seconds.
COMES_S = 5.0
MOVED_S = 5.0


def joined(world: World, workers: int = 9, **load: Any) -> SimulatedRun:
    """A run that takes workers as they come."""
    return world.add(workers=workers, join=True, **{"args": SHORT, **load})


def by_process(run: SimulatedRun, from_s: float, to_s: float) -> Counter[str]:
    """How many iterations each process has started within a time."""
    return Counter(
        start.process for start in run.known.starts if from_s * S <= start.at_ns <= to_s * S
    )


@pytest.mark.parametrize("scenario", ["work", "awaited", "lived"])
def test_users_of_a_closed_load_move_to_a_worker_that_comes(scenario: str) -> None:
    with staffed(1) as world:
        run = joined(world, runner=LASTING, scenario=scenario)
        world.scheduler.after(COMES_S, world.hire)

        assert not play_out(world)
        assert code_and_ok(run)[0] == 0
        assert sums(run)["lost"] == 0
        assert run.known.most_at_once == USERS
        before, after = by_process(run, 2.0, COMES_S), by_process(run, COMES_S + MOVED_S, SECONDS)
        assert set(before) == {"w0"}
        assert after["w1"] >= 0.45 * after.total()
        # nearly all of them start as many as before
        rate = before.total() / (COMES_S - 2.0)
        while_moving = by_process(run, COMES_S, COMES_S + MOVED_S)
        assert while_moving.total() >= 0.9 * rate * MOVED_S
        assert after.total() >= 0.98 * rate * (SECONDS - COMES_S - MOVED_S)
        assert [mark["label"] for mark in marks(run)] == ["w1 joins"]


def test_arrivals_of_an_open_load_go_to_a_worker_that_comes() -> None:
    with staffed(1) as world:
        run = joined(world, runner=open_load(40, SECONDS))
        world.scheduler.after(COMES_S, world.hire)

        assert not play_out(world)
        assert code_and_ok(run) == (0, 40 * SECONDS)
        after = by_process(run, COMES_S + MOVED_S, SECONDS)
        assert after["w1"] >= 0.45 * after.total()


def test_no_more_join_than_were_asked_for_and_no_more_than_there_are_users() -> None:
    with staffed(1) as world:
        runs = [
            joined(world, workers=2, runner=LASTING),
            joined(world, runner={"constant_for_duration": {"concurrency": 2, "duration": 20}}),
        ]
        world.hire()
        for at_s in range(1, 8):
            world.scheduler.after(float(at_s), world.hire)

        assert not play_out(world)
        assert [len(by_process(run, 0.0, 60.0)) for run in runs] == [2, 2]


def test_nobody_joins_a_run_that_does_not_take_others() -> None:
    with staffed(1) as world:
        run = world.add(workers=1, runner=LASTING, args=SHORT)
        world.scheduler.after(COMES_S, world.hire)

        assert not play_out(world)
        assert set(by_process(run, 0.0, 60.0)) == {"w0"}


def test_a_resumed_load_takes_workers_too() -> None:
    with staffed(1) as world:
        run = joined(world, runner=LASTING, scenario="lived")

        def replace() -> None:
            run.kill_coordinator(0.5)
            world.scheduler.after(3.0, world.hire)

        when(world, lambda: len(run.known.starts) > 100, replace)

        assert not play_out(world)
        assert sums(run)["lost"] == 0
        assert by_process(run, 12.0, 20.0)["w1"]


@pytest.mark.parametrize("ends", ["kill", "drain"])
def test_what_a_worker_took_over_goes_back_when_it_ends(ends: str) -> None:
    with staffed(1) as world:
        run = joined(world, runner=LASTING, scenario="lived")

        def come() -> None:
            new = world.hire()
            world.scheduler.after(5.0, getattr(new, ends))

        world.scheduler.after(3.0, come)

        assert not play_out(world)
        assert code_and_ok(run)[0] == (3 if sums(run)["lost"] else 0)
        # what ran, and what was not shipped for 0.2 s
        assert sums(run)["lost"] <= (60 if ends == "kill" else 0)
        after = by_process(run, 14.0, SECONDS)
        assert set(after) == {"w0"}
        assert after.total() >= 0.95 * USERS / SHORT["most_s"] * (SECONDS - 14.0) * 0.9


def test_a_user_keeps_its_number_and_its_row_when_it_moves(tmp_path: Path) -> None:
    file = tmp_path / "users.csv"
    file.write_text("row\n" + "".join(f"r{number}\n" for number in range(1, USERS + 1)))
    users = {"data": {"file": str(file), "unique": True}}
    with staffed(1) as world:
        run = joined(world, workers=4, runner=LASTING, scenario="lived", users=users)
        for at_s in (3.0, 6.0, 9.0):
            world.scheduler.after(at_s, world.hire)

        assert not play_out(world)
        assert code_and_ok(run)[0] == 0
        assert len(report(run)["workloads"][0]["workers"]) == 4
        assert set(run.known.notes) == {f"{one} {{'row': 'r{one}'}}" for one in range(1, USERS + 1)}


def test_a_long_iteration_keeps_its_user_where_it_is_until_it_ends() -> None:
    long = {"least_s": 4.0, "most_s": 4.0}
    with staffed(1) as world:
        run = joined(world, runner=LASTING, scenario="lived", args=long)
        world.scheduler.after(1.0, world.hire)

        assert not play_out(world)
        assert code_and_ok(run)[0] == 0
        assert run.known.most_at_once == USERS
        assert by_process(run, 7.9, 12.0)["w1"] == USERS // 2


def test_workers_that_come_in_a_ramp_have_its_users_and_no_others() -> None:
    stages = [{"users": 24, "duration": 12}, {"users": 24, "duration": 6}]
    slow = {"least_s": 0.2, "most_s": 0.2}
    with staffed(1) as world:
        runner = {"user_stages": {"stages": stages}}
        run = joined(world, runner=runner, scenario="lived", args=slow)
        for at_s in (2.0, 4.0, 4.5, 7.0, 9.0):
            world.scheduler.after(at_s, world.hire)

        assert not play_out(world)
        assert code_and_ok(run)[0] == 0
        assert set(run.known.users) == set(range(1, 25))
        assert len(by_process(run, 14.0, 18.0)) == 6


def test_a_new_coordinator_gives_nobody_the_users_that_are_about_to_move() -> None:
    long = {"least_s": 12.0, "most_s": 12.0}
    with staffed(1) as world:
        run = joined(world, runner=LASTING, args=long)
        world.scheduler.after(1.0, world.hire)
        world.scheduler.after(5.0, lambda: run.kill_coordinator(0.5))

        assert not play_out(world)
        assert run.known.most_at_once == USERS
        assert by_process(run, 12.0, SECONDS)["w1"]
