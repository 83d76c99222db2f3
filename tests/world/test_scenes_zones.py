"""Loads that are divided among zones of workers by shares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
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

EU, US = "eu", "us/rack-1"
SHARES = {"eu": 30.0, "us": 70.0}
USERS = 10
#: How long an iteration takes at least and at most, of a load with few of them, seconds.
SLOW = {"least_s": 0.2, "most_s": 0.2}
LASTING = {"constant_for_duration": {"concurrency": USERS, "duration": 20}}


@contextmanager
def zoned(*labels: str) -> Iterator[World]:
    """A world with workers of these labels, w0 and so on."""
    with staffed(0) as world:
        for label in labels:
            world.hire(label)
        yield world


def run_of(world: World, workers: int = 2, **load: Any) -> SimulatedRun:
    """A run with a share for each of two zones."""
    return world.add(workers=workers, **{"zones": SHARES, "args": SHORT, **load})


def by_process(run: SimulatedRun, from_s: float = 0.0, to_s: float = 600.0) -> Counter[str]:
    """How many iterations each process has started within a time."""
    starts = run.known.starts
    return Counter(one.process for one in starts if from_s * S <= one.at_ns <= to_s * S)


def notes(run: SimulatedRun) -> str:
    """The notes of the report, as one text."""
    return " ".join(report(run)["notes"])


def test_arrivals_are_divided_exactly() -> None:
    with zoned(EU, US, US) as world:
        run = run_of(world, workers=3, runner=open_load(90, 10))

        assert not play_out(world)
        assert code_and_ok(run) == (0, 900)
        assert by_process(run) == {"w0": 270, "w1": 315, "w2": 315}
        assert "zone" not in notes(run)


def test_users_are_divided_exactly() -> None:
    with zoned(EU, US) as world:
        run = run_of(world, runner=LASTING, scenario="lived")

        assert not play_out(world)
        assert code_and_ok(run)[0] == 0
        assert run.known.most_at_once == USERS
        found = by_process(run, 5.0, 15.0)
        assert found["w0"] / found.total() == pytest.approx(0.3, abs=0.01)


def test_workers_of_other_zones_make_the_rest_or_are_left_alone() -> None:
    with zoned(EU, "", US) as world:
        rest = run_of(world, workers=3, runner=open_load(50, 6), zones={"eu": 30.0})

        assert not play_out(world)
        found = by_process(rest)
        assert (found["w0"], found["w1"] + found["w2"]) == (90, 210)
    with zoned(EU, "", US) as world:
        whole = run_of(world, runner=open_load(50, 6))

        assert not play_out(world)
        assert by_process(whole) == {"w0": 90, "w2": 210}


def test_a_run_takes_workers_by_share_and_one_of_each_zone_at_least() -> None:
    with zoned(US, US, US, US, EU, EU) as world:
        run = run_of(world, workers=3, runner=open_load(50, 4))

        assert not play_out(world)
        assert set(by_process(run)) == {"w0", "w1", "w4"}


def test_a_run_waits_for_a_worker_of_each_zone() -> None:
    with zoned(US, US, US) as world:
        run = run_of(world, workers=2, runner=open_load(50, 4))
        world.scheduler.after(5.0, partial(world.hire, EU))

        assert not play_out(world)
        assert by_process(run)["w3"] == 60


def test_a_run_without_a_worker_of_a_zone_says_so() -> None:
    with zoned(US, US) as world:
        run = run_of(world, workers=2, runner=open_load(50, 4))

        assert world.play(600.0)
        assert run.summary is None
        assert "no free worker of zone eu within" in str(run.error)
        assert "osbench-worker --label eu" in str(run.error)


@pytest.mark.parametrize(
    ("labels", "load", "message"),
    [
        ((EU, US), {"workers": 1}, "2 zones have shares, each on its own worker processes; give"),
        ((EU, US, "x"), {"workers": 3}, "1 worker process of zones without a share is not used"),
        ((EU, EU), {"zones": {"eu": 30.0}}, "no free worker of the zone of all other workers"),
    ],
    ids=["few", "others", "rest"],
)
def test_workers_that_do_not_fit_the_zones_have_a_message(
    labels: tuple[str, ...], load: dict[str, Any], message: str
) -> None:
    with zoned(*labels) as world:
        run = run_of(world, runner=open_load(50, 4), **load)

        assert world.play(600.0)
        assert run.summary is None
        assert message in str(run.error)


def test_a_limit_of_concurrent_iterations_leaves_each_zone_its_share() -> None:
    runner = {"rps": {"rps": 40, "times": 400, "max_concurrency": 10}}
    with zoned(EU, US) as world:
        run = run_of(world, runner=runner, zones={"eu": 3.0, "us": 97.0})

        assert not play_out(world)
        assert by_process(run) == {"w0": 12, "w1": 388}


@pytest.mark.parametrize("runner", [open_load(50, 30), LASTING], ids=["open", "closed"])
def test_a_lost_zone_leaves_its_load_to_others_and_the_report_says_so(runner: Any) -> None:
    with zoned(EU, US) as world:
        run = run_of(world, runner=runner, join=True)
        world.scheduler.after(5.0, lambda: world.workers[0].kill(supervised=False))

        assert not play_out(world)
        assert sums(run)["not_started"] == 0
        assert "zone eu had no worker from " in notes(run)
        assert set(by_process(run, 16.0, 20.0)) == {"w1"}
        assert "zone eu lost" in [mark["label"] for mark in marks(run)]


@pytest.mark.parametrize("scenario", ["work", "lived"])
@pytest.mark.parametrize("runner", [open_load(30, 60), None], ids=["open", "closed"])
def test_a_zone_that_comes_back_has_its_share_again(scenario: str, runner: Any) -> None:
    lasts = {"constant_for_duration": {"concurrency": USERS, "duration": 60}}
    with zoned(EU, US) as world:
        load = {"runner": runner or lasts, "scenario": scenario, "args": SLOW}
        run = run_of(world, workers=4, join=True, **load)
        world.scheduler.after(5.0, world.workers[0].drain)
        world.scheduler.after(20.0, partial(world.hire, "eu/other"))

        assert not play_out(world)
        assert code_and_ok(run)[0] == 0
        assert run.known.most_at_once <= 2 * USERS
        found = by_process(run, 35.0, 55.0)
        assert found["w2"] / found.total() == pytest.approx(0.3, abs=0.01)
        assert "zone eu had no worker from 5 s to 2" in notes(run)


@pytest.mark.parametrize("runner", [open_load(50, 30), LASTING], ids=["open", "closed"])
def test_a_resumed_load_keeps_its_shares(runner: Any) -> None:
    with zoned(EU, US) as world:
        run = run_of(world, runner=runner)
        when(world, lambda: len(run.known.starts) > 100, lambda: run.kill_coordinator(0.5))

        assert not play_out(world)
        assert sums(run)["lost"] == 0
        found = by_process(run, 12.0, 20.0)
        assert found["w0"] / found.total() == pytest.approx(0.3, abs=0.01)


def test_shares_of_a_ramp_hold_at_each_level() -> None:
    stages = [{"users": 40, "duration": 20}, {"users": 40, "duration": 5}]
    with zoned(EU, US) as world:
        runner = {"user_stages": {"stages": stages}}
        run = run_of(world, runner=runner, scenario="lived", args=SLOW)

        assert not play_out(world)
        assert code_and_ok(run)[0] == 0
        for from_s in (8.0, 12.0, 16.0, 21.0):
            found = by_process(run, from_s, from_s + 2.0)
            assert found["w0"] / found.total() == pytest.approx(0.3, abs=0.03)


def test_a_zone_that_comes_back_after_the_load_was_lost_to_its_end() -> None:
    with zoned(EU, US) as world:
        run = run_of(world, runner=open_load(50, 8), join=True)
        world.scheduler.after(3.0, lambda: world.workers[0].kill(supervised=False))
        world.scheduler.after(14.0, partial(world.hire, EU))

        assert not play_out(world)
        assert "zone eu had no worker from 5 s on" in notes(run)


def test_users_of_a_lost_zone_are_users_of_the_others() -> None:
    with zoned(EU, US) as world:
        run = run_of(world, runner=LASTING, args=SLOW)
        world.scheduler.after(3.0, lambda: world.workers[0].kill(supervised=False))

        assert not play_out(world)
        # ten users, five iterations a second each
        assert by_process(run, 10.0, 18.0)["w1"] == pytest.approx(400, rel=0.02)


def test_a_worker_without_users_keeps_no_user_from_other_zones() -> None:
    runner = {"constant_for_duration": {"concurrency": 4, "duration": 18}}
    with zoned("a", "b", "c", "c") as world:
        shares = {"a": 50.0, "b": 25.0, "c": 25.0}
        run = run_of(world, workers=3, runner=runner, zones=shares, args=SLOW, scenario="lived")
        # the fourth takes its place, with a new number, and both of them stay
        world.scheduler.after(1.0, lambda: world.workers[2].pause(5.0))
        world.scheduler.after(8.0, lambda: world.workers[1].kill(supervised=False))

        assert not play_out(world)
        found = by_process(run, 13.0, 17.0)
        assert found["w0"] == 3 * (found["w2"] + found["w3"])
