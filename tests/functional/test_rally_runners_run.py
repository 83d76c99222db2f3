"""Runners of Rally's plug-ins that start iterations by their own code, in a worker process."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from helpers.runs import Cluster, Site, checked, site
from osbench.common.rally import importing
from servers import redis_server

pytestmark = [
    pytest.mark.functional,
    pytest.mark.skipif(
        not importing.installed(), reason="the extra osbench[rally] is not installed"
    ),
]

#: The first is Rally's own sample, from "Scenario runner as a plugin" of Rally 5.1.
PLUGIN = '''
import random
from pathlib import Path

from rally import consts
from rally.plugins.task.runners import constant
from rally.task import runner


@runner.configure(name="sample_times")
class RandomTimesScenarioRunner(runner.ScenarioRunner):
    """Sample scenario runner plugin."""

    CONFIG_SCHEMA = {
        "type": "object",
        "$schema": consts.JSON_SCHEMA,
        "properties": {
            "type": {"type": "string"},
            "min_times": {"type": "integer", "minimum": 1},
            "max_times": {"type": "integer", "minimum": 1},
        },
        "additionalProperties": True,
    }

    def _run_scenario(self, cls, method_name, context, args):
        min_times = self.config.get("min_times", 1)
        max_times = self.config.get("max_times", 1)
        for i in range(random.randrange(min_times, max_times)):
            run_args = (i, cls, method_name, runner._get_scenario_context(context), args)
            result = runner._run_scenario_once(run_args)
            self._send_result(result)


@runner.configure(name="own_constant")
class OwnConstant(constant.ConstantScenarioRunner):
    """As Rally's, with processes and threads."""

    def _run_scenario(self, cls, method_name, context, args):
        super()._run_scenario(cls, method_name, context, args)


@runner.configure(name="until_aborted")
class UntilAborted(runner.ScenarioRunner):
    CONFIG_SCHEMA = {"type": "object"}

    def _run_scenario(self, cls, method_name, context, args):
        i = 0
        while not self.aborted.is_set():
            with Path(__file__).with_name("begun").open("ab") as file:
                file.write(b"x")
            made = runner._get_scenario_context(i, context)
            self._send_result(
                runner._run_scenario_once(cls, method_name, made, args, self.event_queue)
            )
            i += 1


@runner.configure(name="gives_up")
class GivesUp(runner.ScenarioRunner):
    CONFIG_SCHEMA = {"type": "object"}

    def _run_scenario(self, cls, method_name, context, args):
        for i in range(5):
            made = runner._get_scenario_context(i, context)
            runner._run_scenario_once(cls, method_name, made, args, self.event_queue)
        raise ValueError("no sixth")
'''

TIMES = {"sample_times": {"min_times": 37, "max_times": 38}}
CONSTANT = {"own_constant": {"times": 60, "concurrency": 6}}
ENDLESS = {"scenario": {"Dummy.dummy": {"sleep": 0.02}}, "runner": {"until_aborted": {}}}
AGAIN = "not begun again on another"


@pytest.fixture
def here() -> Iterator[Site]:
    with site() as found:
        yield found


def plugin(here: Site) -> str:
    return str(here.write("plugins/rally_runners.py", PLUGIN))


def settled(here: Site) -> int:
    return int(here.status().get("settled", 0))


def processes(here: Site) -> list[int]:
    """Process ids of the worker processes of local mode: children of their supervisor."""
    own = {one.pid: one for one in here.private() if "osbench.worker.main" in one.cmdline()}
    return [pid for pid, one in own.items() if one.ppid() in own]


def test_each_iteration_that_a_runner_starts_is_accounted_for_once(here: Site) -> None:
    scenarios: list[dict[str, Any]] = [
        {"Dummy.dummy@rally": {"sleep": 0.01}},
        {"Dummy.dummy": {"sleep": 0.01}},
    ]
    task = here.task(
        *({"scenario": one, "runner": runner} for one in scenarios for runner in (TIMES, CONSTANT))
    )

    done = here.run(task, "--plugin-path", plugin(here), "--workers", "2")

    assert done.code == 0, done.err
    ran = done.result["workloads"]
    assert [checked(one)["ok"] for one in ran] == [37, 60, 37, 60]
    assert [one["offered"]["cut_short"] for one in ran] == [None] * 4
    # one process of the two
    for one in ran:
        assert sorted(worker["iterations"] > 0 for worker in one["workers"]) == [False, True]
    notes = [one for one in done.result["notes"] if "1 of 2 took no part" in one]
    assert len(notes) == 4
    rows = here.rows(done.result["run_id"])
    assert len(rows) == 37 + 60 + 37 + 60


def test_validate_says_that_one_process_has_the_load(here: Site) -> None:
    task = here.task({"scenario": {"Dummy.dummy": {}}, "runner": TIMES})

    done = here.coord("validate", task, "--plugin-path", plugin(here))

    assert done.code == 0
    assert "starts its iterations itself, in one process of one worker" in done.out + done.err


def test_an_interruption_ends_the_runner_and_its_iterations_finish(here: Site) -> None:
    task = here.task(ENDLESS)
    run = here.start("osbench-coord", "run", "--json", task, "--plugin-path", plugin(here))
    run.wait_for(lambda: settled(here) > 20)

    run.interrupt()
    done = run.finish()

    assert done.code == 130
    assert done.sums["ok"] == done.sums["planned"] > 20
    here.await_nothing_left()


def test_a_runner_that_fails_ends_its_load_with_one_message(here: Site) -> None:
    task = here.task(
        {"scenario": {"Dummy.dummy": {}}, "runner": {"gives_up": {}}},
        {"scenario": {"Dummy.dummy": {}}, "runner": TIMES},
    )

    done = here.run(task, "--plugin-path", plugin(here))

    first, second = done.result["workloads"]
    assert done.code == 1
    assert (checked(first)["ok"], first["offered"]["cut_short"]) == (5, "runner_failed")
    assert [one["criterion"] for one in first["sla"] if not one["success"]] == ["runner"]
    (note,) = [one for one in done.result["notes"] if "no sixth" in one]
    assert note.endswith("the load was ended: the runner's own code failed: ValueError: no sixth")
    assert checked(second)["ok"] == 37
    assert "Traceback" not in done.err


def test_a_runner_whose_worker_is_killed_is_not_begun_again(here: Site) -> None:
    task = here.task(ENDLESS)
    run = here.start(
        "osbench-coord", "run", "--json", task, "--plugin-path", plugin(here), "--workers", "2"
    )
    run.wait_for(lambda: settled(here) > 20)

    for pid in processes(here):
        os.kill(pid, signal.SIGKILL)
    done = run.finish()

    (ran,) = done.result["workloads"]
    assert done.code == 3, done.err
    assert ran["offered"]["cut_short"] == "runner_lost"
    sums = checked(ran)
    # what the runner had begun and nobody has reported, and not what it might have begun
    begun = (here.home / "plugins" / "begun").stat().st_size
    assert 0 < sums["lost"] <= begun + 1 - sums["ok"]
    assert len([one for one in done.result["notes"] if AGAIN in one]) == 1
    assert [one["criterion"] for one in ran["sla"] if not one["success"]] == ["runner"]


def test_a_run_that_is_resumed_does_not_begin_the_runner_again(here: Site) -> None:
    task = here.task(ENDLESS)
    run = here.start("osbench-coord", "run", "--json", task, "--plugin-path", plugin(here))
    run.wait_for(lambda: settled(here) > 20)
    (directory,) = here.data.glob("runs/*/")
    run_id = directory.name

    os.kill(run.process.pid, signal.SIGKILL)
    run.process.wait()
    done = here.coord("resume", "--json", run_id)

    (ran,) = done.result["workloads"]
    assert done.code in (1, 3), done.err
    assert ran["offered"]["cut_short"] == "runner_lost"
    assert checked(ran)["ok"] > 20
    assert len([one for one in done.result["notes"] if AGAIN in one]) == 1


def test_a_worker_that_leaves_ends_the_load_of_its_runner(here: Site) -> None:
    with redis_server(password="functional") as redis:
        cluster = Cluster(here, redis)
        path = plugin(here)
        workers = [cluster.start_worker("--plugin-path", path) for _ in range(2)]
        cluster.await_idle(2)
        run = here.start(
            "osbench-coord", "run", "--json", here.task(ENDLESS), "--plugin-path", path
        )
        run.wait_for(lambda: settled(here) > 20)

        for one in workers:
            one.process.send_signal(signal.SIGTERM)
        done = run.finish()

    (ran,) = done.result["workloads"]
    assert (done.code, ran["offered"]["cut_short"]) == (1, "runner_lost")
    assert checked(ran)["ok"] == checked(ran)["planned"] > 20


def test_a_runner_goes_on_where_it_was_when_only_its_coordinator_is_killed(here: Site) -> None:
    with redis_server(password="functional") as redis:
        cluster = Cluster(here, redis)
        path = plugin(here)
        for _ in range(2):
            cluster.start_worker("--plugin-path", path)
        cluster.await_idle(2)
        times = {"sample_times": {"min_times": 150, "max_times": 151}}
        task = here.task({"scenario": {"Dummy.dummy": {"sleep": 0.02}}, "runner": times})
        run = here.start("osbench-coord", "run", "--json", task, "--plugin-path", path)
        run.wait_for(lambda: settled(here) > 20)
        (directory,) = here.data.glob("runs/*/")

        os.kill(run.process.pid, signal.SIGKILL)
        run.process.wait()
        done = here.coord("resume", "--json", directory.name)

    (ran,) = done.result["workloads"]
    assert checked(ran)["ok"] == checked(ran)["planned"] == 150
    assert ran["offered"]["cut_short"] is None
    assert done.code == 0, done.err
