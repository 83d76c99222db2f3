"""Coordinators that are killed at every kind of moment, and runs that go on with another one."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from helpers.refolded import refolded, reported
from osbench.common.errors import OlderCopy, UsageError
from osbench.common.protocol import timers
from osbench.coordinator.front.cli.commands import workers as workers_command
from osbench.coordinator.results.accounting.block_contents import counted_rows
from osbench.coordinator.results.storage.run_directory import RunDirectory
from world import coordinators
from world.coordinators import STATES, SimulatedRun
from world.faults import Files, files_of, restore
from world.fibers import Process, S
from world.resumed_scenes import (
    added,
    begun,
    code,
    in_hand,
    iterations,
    played,
    steps,
    sums,
    under_load,
)
from world.scenes import staffed, when
from world.wire import Client
from world.world import KEYRING, World

#: Instants at which a short load is cut off, seconds apart, and how many at once.
INSTANTS, APART_S = 60, 0.04


@pytest.fixture
def world() -> Iterator[World]:
    """Two workers."""
    with staffed() as found:
        yield found


# a load of its own


def test_what_was_due_without_a_coordinator_is_dropped_and_not_made_up(world: World) -> None:
    run = added(world, {"rps": {"times": 400, "rps": 50}})

    # what was granted before goes on for as long
    under_load(run, lambda: run.kill_coordinator(timers.HORIZON_S + 0.5), 50)
    played(world)

    found = sums(run)
    assert found["planned"] == 400
    assert found["drops"]["coordinator_gone"] > 0
    assert found["ok"] + found["dropped"] == 400
    assert found["ok"] == len(iterations(run))
    assert code(run) == 3


def test_a_load_of_some_seconds_ends_when_it_was_to_end(world: World) -> None:
    run = added(world, {"constant_for_duration": {"duration": 6, "concurrency": 8}})

    under_load(run, lambda: run.kill_coordinator(0.1), 200)
    played(world)

    found = sums(run)
    assert code(run) in (0, 4)
    assert found["ok"] == found["planned"] == len(iterations(run))
    # an iteration that the first coordinator's six seconds had no room for was not begun
    rows = [rows for *_, rows in counted_rows(RunDirectory(run.folder))]
    assert max(int(one.started.max()) for one in rows) <= 6 * S


@pytest.mark.parametrize(
    "instants",
    [
        pytest.param(range(n, INSTANTS, 6), marks=pytest.mark.dear if n % 3 else (), id=str(n))
        for n in range(6)
    ],
)
def test_a_run_cut_off_at_any_moment_has_the_numbers_of_one_that_was_not(instants: range) -> None:
    with staffed() as world:
        run = naps(world)
        played(world)
        expected = numbers(run)

    resumed = 0
    for instant in instants:
        with staffed() as world:
            run = naps(world)
            world.scheduler.after((instant + 1) * APART_S, lambda run=run: cut_off(run))
            played(world)

            if run.summary is None:
                # its plan was not written
                assert not run.known.notes
                continue
            resumed += len(run.coordinators) - 1
            assert numbers(run) == expected
            assert code(run) == 0
            # histograms, matrices, charts and SLA are of one coordinator that saw all blocks
            directory = RunDirectory(run.folder)
            assert reported(directory) == refolded(directory, [NAPS])
    assert resumed > len(instants) / 2


NAPS = {
    "scenario": {"Noted.work": {"name": "nap", "judged": True, "slots": 7, "fails": 5}},
    "runner": {"constant": {"times": 200, "concurrency": 8}},
    "sla": {"failure_rate": {"max": 50}, "outliers": {"max": 400, "min_iterations": 5}},
}


def naps(world: World) -> SimulatedRun:
    return begun(world, NAPS)


def cut_off(run: SimulatedRun) -> None:
    if run.is_coordinated:
        run.kill_coordinator(0.5)


def numbers(run: SimulatedRun) -> dict[str, Any]:
    """What must not depend on when and where iterations ran."""
    assert run.summary is not None
    (workload,) = run.summary["workloads"]
    rows = [rows for *_, rows in counted_rows(RunDirectory(run.folder))]
    return {
        "sums": {state: workload["accounting"][state] for state in STATES},
        "sla": [(one["criterion"], one["success"]) for one in workload["sla"]],
        "errors": [(one["message"], one["count"]) for one in workload["errors"]],
        "outcomes": sorted(
            pair
            for one in rows
            for pair in zip(one.iteration.tolist(), one.outcome.tolist(), strict=True)
        ),
        "actions": {path: times["ok"]["count"] for path, times in workload["actions"].items()},
        "outputs": workload["outputs"],
        "by_workers": sum(worker["iterations"] for worker in workload["workers"]),
    }


def test_a_workload_that_could_not_begin_is_not_begun_by_another_coordinator(
    world: World,
) -> None:
    bad = {
        "scenario": {"Noted.work": {"name": "bad"}},
        "runner": {"serial": {"times": 5}},
        "contexts": {"dummy_context": {"fail_setup": True}},
    }
    good = {
        "scenario": {"Noted.work": {"name": "good", "fails": 1000}},
        "runner": {"constant": {"times": 200, "concurrency": 4}},
    }
    run = begun(world, bad, good)

    under_load(run, lambda: run.kill_coordinator(0.5))
    played(world)

    assert run.summary is not None
    assert code(run) == 2
    first, second = run.summary["workloads"]
    assert "fail_setup is true" in first["error"]
    assert (first["accounting"]["not_started"], first["sla"][-1]["success"]) == (5, False)
    assert second["error"] is None
    assert second["accounting"]["ok"] == 200


def test_ctrl_c_before_its_workers_are_heard_keeps_what_was_done(world: World) -> None:
    endless = {"constant_for_duration": {"duration": 600, "concurrency": 4}}
    run = added(world, endless, contexts={"noted": {}})

    def strike() -> None:
        run.kill_coordinator(0.5)
        for one in world.workers:
            one.pause(60)
        world.scheduler.after(0.7, run.interrupt)

    under_load(run, strike, 40)
    played(world)

    assert run.summary is not None
    assert run.interrupts == 1
    assert code(run) == 130
    assert sums(run)["ok"] > 0
    assert run.summary["workloads"][0]["not_begun"] is None
    assert steps(run)[-1] == "cleaned"


def test_ctrl_c_right_after_resume_lets_workers_end_what_they_run(world: World) -> None:
    run = added(world, {"constant": {"times": 4000, "concurrency": 8}})

    def strike() -> None:
        run.kill_coordinator(0.5)
        world.scheduler.after(0.52, run.interrupt)

    under_load(run, strike, 40)
    played(world)

    found = sums(run)
    assert (code(run), run.interrupts, found["lost"]) == (130, 1, 0)
    assert found["ok"] == len(iterations(run))


def test_an_older_copy_is_not_gone_on_with_and_the_right_files_are(world: World) -> None:
    run = added(world, {"constant": {"times": 3000, "concurrency": 8}})
    older: list[Files] = []

    def strike() -> None:
        right = files_of(run.folder)
        run.kill_coordinator(0.5)
        restore(run.folder, older[0])
        run.spoilt = 1

        def put_right() -> None:
            assert isinstance(run.error, OlderCopy)
            assert not in_hand(run)
            run.spoilt, run.over_at = 0, None
            restore(run.folder, right)
            run.begin()

        world.scheduler.after(5.0, put_right)

    under_load(run, lambda: older.append(files_of(run.folder)), 40)
    under_load(run, strike, 1500)
    played(world)

    assert (code(run), sums(run)["ok"]) == (0, 3000)
    assert set(iterations(run).values()) == {1}


# who goes on


def test_of_two_that_resume_at_once_one_goes_on() -> None:
    with staffed(trace=True) as world:
        run = added(world, {"constant": {"times": 600, "concurrency": 8}})

        def strike() -> None:
            run.kill_coordinator(3.0)
            world.scheduler.after(3.0, run.begin_second)

        under_load(run, strike)
        played(world)

        ended = [line for line in world.trace or () if " ended " in line]
        assert len(ended) == 1
        assert "UsageError" in ended[0]
        assert "has a coordinator already" in ended[0]
        assert sums(run)["ok"] == 600
        assert len(iterations(run)) == 600


def test_workers_that_are_freed_serve_another_run(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = added(world, {"constant": {"times": 100, "concurrency": 4}}, slot_s=0.1)
    other: list[SimulatedRun] = []
    said: list[Any] = []

    def free() -> None:
        # as `osbench-coord workers free` does it
        directory = RunDirectory.of(str(world.folder), run.plan.run_id)
        try:
            directory.lock()
        except UsageError as error:
            said.append(str(error))
            return
        settings: Any = SimpleNamespace(conf=world.conf, keyring=lambda: KEYRING)
        said.append(workers_command.dismiss(settings, directory))
        directory.close()

    def operator() -> None:
        world.scheduler.spawn(Process("operator", 1), free, "main")

    def strike() -> None:
        for one in world.workers:
            # who frees them gives up what they have in hand
            one.hurt = True
        run.kill_coordinator(30.0)
        world.scheduler.after(1.0, operator)
        other.append(world.add(at_s=world.scheduler.now / S + 15, workers=2, runner=few))

    few = {"constant": {"times": 4, "concurrency": 2}}
    monkeypatch.setattr(
        workers_command, "connect", lambda _, timeout_s: Client(world.redis, timeout_s)
    )
    under_load(run, operator)
    under_load(run, strike, 20)
    played(world)

    refused, freed = said
    assert "has a coordinator already" in refused
    assert freed == (2, 0)
    assert sums(other[0])["ok"] == 4
    assert other[0].over_at < run.over_at
    # what they had in hand may have started
    found = sums(run)
    assert found["ok"] + found["lost"] == 100
    assert found["ok"] < 100


def test_the_run_directory_on_another_host_is_enough(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinators, "ELSEWHERE", 1.0)
    run = added(world, {"constant": {"times": 600, "concurrency": 8}}, contexts={"noted": {}})

    def strike() -> None:
        run.kill_coordinator(1.0)
        before, there = run.folder, world.folder / "elsewhere"
        (there / "runs").mkdir(parents=True)
        before.rename(there / "runs" / before.name)
        (world.folder / "contexts.key").rename(there / "contexts.key")
        world.conf.set_override("data_dir", str(there))

    under_load(run, strike)
    played(world)

    assert run.coordinator is not None
    assert run.coordinator.process.boot != "host"
    assert sums(run)["ok"] == 600
    assert len(iterations(run)) == 600
    assert steps(run) == ["setup", "cleanup", "cleaned"]


# contexts


def with_contexts(world: World, *, times: int = 5) -> SimulatedRun:
    """Two workloads with a context each."""
    serial = {
        "scenario": {"Noted.work": {"name": "first", "judged": True}},
        "runner": {"serial": {"times": times}},
        "contexts": {"noted": {}},
    }
    return begun(world, serial, {**serial, "scenario": {"Noted.work": {"name": "second"}}})


def test_killed_while_contexts_are_set_up(world: World) -> None:
    run = with_contexts(world)

    when(world, lambda: steps(run) == ["setup"], lambda: run.kill_coordinator(1.0))
    played(world)

    assert code(run) == 0
    assert [sums(run, number)["ok"] for number in (0, 1)] == [5, 5]
    assert steps(run) == [
        *("setup", "cleanup", "cleaned"),
        *("setup", "cleanup", "cleaned"),
        *("setup", "cleanup", "cleaned"),
    ]


def test_killed_while_contexts_are_undone(world: World) -> None:
    run = with_contexts(world)

    when(world, lambda: steps(run)[-1:] == ["cleanup"], lambda: run.kill_coordinator(1.0))
    played(world)

    assert run.summary is not None
    assert code(run) == 0
    assert [sums(run, number)["ok"] for number in (0, 1)] == [5, 5]
    # what was taken down in part is taken down, and not set up again
    assert steps(run) == [
        *("setup", "cleanup", "cleanup", "cleaned"),
        *("setup", "cleanup", "cleaned"),
    ]
    assert run.summary["workloads"][0]["contexts"][0]["name"] == "noted"
    assert len(iterations(run)) == 10


def test_contexts_of_a_load_that_goes_on_are_not_made_again(world: World) -> None:
    runner = {"constant": {"times": 600, "concurrency": 8}}
    run = added(world, runner, contexts={"noted": {}})

    under_load(run, lambda: run.kill_coordinator(1.0))
    played(world)

    assert sums(run)["ok"] == 600
    assert steps(run) == ["setup", "cleanup", "cleaned"]
