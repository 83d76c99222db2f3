"""Workers that come while load runs: the run takes them, and its load moves to them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from osbench.common.errors import PluginError
from osbench.worker.session.preparation import Preparation
from world import present
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
    until,
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


def rows(folder: Path, count: int = USERS) -> dict[str, Any]:
    """A data file with a row for each of so many users."""
    file = folder / "users.csv"
    file.write_text("row\n" + "".join(f"r{number}\n" for number in range(1, count + 1)))
    return {"data": {"file": str(file), "unique": True}}


def test_a_user_keeps_its_number_and_its_row_when_it_moves(tmp_path: Path) -> None:
    with staffed(1) as world:
        run = joined(world, workers=4, runner=LASTING, scenario="lived", users=rows(tmp_path))
        for at_s in (3.0, 6.0, 9.0):
            world.scheduler.after(at_s, world.hire)

        assert not play_out(world)
        assert code_and_ok(run)[0] == 0
        assert len(report(run)["workloads"][0]["workers"]) == 4
        assert set(run.known.notes) == {f"{one} {{'row': 'r{one}'}}" for one in range(1, USERS + 1)}


@pytest.mark.parametrize(
    ("more", "runner"),
    [
        ({"start_rate": 10}, {"constant_for_duration": {"concurrency": 40, "duration": 9}}),
        ({}, {"constant_for_duration": {"concurrency": 40, "duration": 9, "ramp_up": 5}}),
        (
            {},
            {
                "user_stages": {
                    "stages": [{"users": 40, "duration": 5}, {"users": 40, "duration": 4}]
                }
            },
        ),
    ],
    ids=["start_rate", "ramp_up", "stages"],
)
def test_a_worker_that_comes_in_a_ramp_needs_no_further_rows(
    tmp_path: Path, more: dict[str, Any], runner: dict[str, Any]
) -> None:
    slow = {"least_s": 0.3, "most_s": 0.6}
    with staffed(1) as world:
        users = {**rows(tmp_path, 40), **more}
        run = joined(world, runner=runner, scenario="lived", args=slow, users=users)
        world.scheduler.after(2.0, world.hire)

        assert not play_out(world)
        assert code_and_ok(run)[0] == 0
        assert set(run.known.users) == set(range(1, 41))


@pytest.mark.parametrize("kill_s", [2.2, 2.5, 3.0])
def test_a_move_is_ended_by_a_new_coordinator(tmp_path: Path, kill_s: float) -> None:
    long = {"least_s": 4.0, "most_s": 4.0}
    with staffed(1) as world:
        run = joined(world, runner=LASTING, scenario="lived", args=long, users=rows(tmp_path))
        world.scheduler.after(1.0, world.hire)
        world.scheduler.after(kill_s, lambda: run.kill_coordinator(5.2 - kill_s))

        assert not play_out(world)
        assert set(run.known.users) == set(range(1, USERS + 1))
        assert code_and_ok(run)[1] >= 32


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_worker_that_drains_in_a_move_gives_its_users_to_the_other(
    tmp_path: Path, seed: int
) -> None:
    with staffed(1, seed=seed) as world:
        args = {"least_s": 0.1, "most_s": 4.0}
        run = joined(world, runner=LASTING, scenario="lived", args=args, users=rows(tmp_path))
        world.scheduler.after(3.0, world.hire)
        first = world.workers[0]

        def has_moved() -> bool:
            session = first.agent._session if first.agent is not None else None
            engine = session.workloads.engine if session is not None else None
            return engine is not None and engine.places == USERS // 2 and not engine.surplus

        when(world, has_moved, first.drain)

        assert not play_out(world)
        assert code_and_ok(run)[0] == 0
        assert set(run.known.users) == set(range(1, USERS + 1))


def test_a_worker_without_users_is_told_nothing_again_and_again() -> None:
    with staffed(4) as world:
        few = {"constant_for_duration": {"concurrency": 2, "duration": 40}}
        run = world.add(workers=4, runner=few, args=SHORT, scenario="lived")

        def pause() -> None:
            assert run.services is not None
            served = [one.name for one in run.services.pool.workers.values() if one.user_limit]
            next(one for one in world.workers if served[0].startswith(one.name)).pause(14.0)

        world.scheduler.after(5.0, pause)

        assert not play_out(world)
        assert run.services is not None
        assert max(one.generation for one in run.services.pool.workers.values()) < 20


def test_workers_that_cannot_prepare_take_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    prepare = Preparation.prepare

    def refuse(self: Preparation, *given: Any) -> Any:
        fiber = present.fiber()
        if fiber is not None and fiber.process.name in ("w1", "w2", "w3"):
            raise PluginError("the plug-in differs")
        return prepare(self, *given)

    monkeypatch.setattr(Preparation, "prepare", refuse)
    with staffed(1) as world:
        four = {"constant_for_duration": {"concurrency": 4, "duration": SECONDS}}
        run = joined(world, runner=four)
        for at_s in (3.0, 4.0, 5.0, 8.0):
            world.scheduler.after(at_s, world.hire)

        assert not play_out(world)
        assert set(by_process(run, 0.0, 60.0)) == {"w0", "w4"}


def test_workloads_at_once_wait_for_all_workers_that_were_asked_for() -> None:
    workloads = [
        {
            "scenario": {"Simulated.lived": {"least_s": 1.0, "most_s": 1.0}},
            "runner": {"constant_for_duration": {"concurrency": 100, "duration": 4}},
        },
        {"scenario": {"Simulated.work": SHORT}, "runner": open_load(10, 4)},
    ]
    both = {"title": "both", "run_in_parallel": True, "workloads": workloads}
    document = {"version": 2, "title": "both", "subtasks": [both]}
    with staffed(2) as world:
        run = world.begin(document, at_s=0.0, workers=4, join=True)
        for at_s in (1.0, 1.5):
            world.scheduler.after(at_s, world.hire)

        assert world.play(200.0)
        assert report(run)["exit_code"] == 0


def test_an_open_load_whose_users_have_rows_keeps_its_workers(tmp_path: Path) -> None:
    runner = {"rps": {"rps": 40, "times": 400, "max_concurrency": USERS}}
    with staffed(1) as world:
        run = joined(world, runner=runner, scenario="lived", users=rows(tmp_path))
        world.scheduler.after(4.0, world.hire)

        assert not play_out(world)
        assert code_and_ok(run) == (0, 400)
        assert set(by_process(run, 0.0, 60.0)) == {"w0"}


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


def test_nobody_joins_a_load_after_its_end() -> None:
    with staffed(1) as world:
        run = joined(world, runner={"constant_for_duration": {"concurrency": 4, "duration": 6}})
        world.scheduler.after(4.0, world.hire)

        def sleep() -> None:
            # it has accepted, and has no part of the load yet
            assert run.coordinator is not None
            run.coordinator.process.paused_until = until(world, 8.0)

        when(world, lambda: any(one.serves() for one in world.workers[1:]), sleep)

        assert not play_out(world)
        assert set(by_process(run, 0.0, 60.0)) == {"w0"}
        assert marks(run) == []
