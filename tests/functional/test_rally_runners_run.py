"""Runners of Rally's plug-ins that start iterations by their own code, in a worker process."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from helpers.runs import Cluster, Site, Started, checked, site
from osbench.edges.rally import importing
from servers import redis_server

pytestmark = [
    pytest.mark.functional,
    pytest.mark.skipif(
        not importing.is_installed(), reason="the extra osbench[rally] is not installed"
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


@pytest.fixture(scope="module")
def made() -> Iterator[Cluster]:
    """A Redis, and a site that has the plug-ins."""
    with redis_server(password="functional") as redis, site() as found:
        found.write("plugins/rally_runners.py", PLUGIN)
        yield Cluster(found, redis)


@pytest.fixture
def cluster(made: Cluster) -> Cluster:
    """Two idle workers with the plug-ins; they import Rally once for all tests that end none."""
    for _ in range(2 - sum(one.process.poll() is None for one in made.workers)):
        made.start_worker("--plugin-path", plugin(made))
    made.await_idle(2)
    return made


@pytest.fixture
def here(cluster: Cluster) -> Iterator[Site]:
    """An empty site, whose runs use these workers."""
    with site() as found:
        found.rally = True
        cluster.lend(found.home)
        yield found


def plugin(cluster: Cluster) -> str:
    return str(cluster.site.home / "plugins" / "rally_runners.py")


def settled(here: Site) -> int:
    return int(here.status().get("settled", 0))


def endless(cluster: Cluster, here: Site) -> Started:
    """A run whose runner goes on until it is told to end, and has begun."""
    (cluster.site.home / "plugins" / "begun").unlink(missing_ok=True)
    run = here.begin(
        "osbench-coord", "run", "--json", here.task(ENDLESS), "--plugin-path", plugin(cluster)
    )
    run.wait_for(lambda: settled(here) > 20)
    return run


def living(cluster: Cluster) -> list[Started]:
    return [one for one in cluster.workers if one.process.poll() is None]


def process_of_runner(cluster: Cluster, run: Started) -> int:
    """Process id of the worker process in which the runner is, as heartbeats show it."""
    busy: list[int] = []

    def is_known() -> bool:
        busy[:] = [one.pid for one in cluster.present() if one.busy]
        return bool(busy)

    run.wait_for(is_known)
    (pid,) = busy
    return pid


def test_each_iteration_that_a_runner_starts_is_accounted_for_once(
    cluster: Cluster, here: Site
) -> None:
    scenarios: list[dict[str, Any]] = [
        {"Dummy.dummy@rally": {"sleep": 0.01}},
        {"Dummy.dummy": {"sleep": 0.01}},
    ]
    good = [
        {"scenario": one, "runner": runner} for one in scenarios for runner in (TIMES, CONSTANT)
    ]
    # its load ends with one message, and the next one is begun
    failing = {"scenario": {"Dummy.dummy": {}}, "runner": {"gives_up": {}}}
    task = here.task(failing, *good)

    validated = here.coord("validate", task, "--plugin-path", plugin(cluster))
    done = here.run(task, "--plugin-path", plugin(cluster))

    assert validated.code == 0
    said = validated.out + validated.err
    assert "starts its iterations itself, in one process of one worker" in said
    first, *ran = done.result["workloads"]
    assert done.code == 1, done.err
    assert (checked(first)["ok"], first["offered"]["cut_short"]) == (5, "runner_failed")
    assert [one["criterion"] for one in first["sla"] if not one["success"]] == ["runner"]
    (note,) = [one for one in done.result["notes"] if "no sixth" in one]
    assert note.endswith("the load was ended: the runner's own code failed: ValueError: no sixth")
    assert "Traceback" not in done.err
    assert [checked(one)["ok"] for one in ran] == [37, 60, 37, 60]
    assert [one["offered"]["cut_short"] for one in ran] == [None] * 4
    # one process of the two
    for one in (first, *ran):
        assert sorted(worker["iterations"] > 0 for worker in one["workers"]) == [False, True]
    notes = [one for one in done.result["notes"] if "1 of 2 took no part" in one]
    assert len(notes) == 5
    rows = here.rows(done.result["run_id"])
    assert len(rows) == 5 + 37 + 60 + 37 + 60


def test_an_interruption_ends_the_runner_and_its_iterations_finish(
    cluster: Cluster, here: Site
) -> None:
    run = endless(cluster, here)

    run.interrupt()
    done = run.finish()

    assert done.code == 130
    assert done.sums["ok"] == done.sums["planned"] > 20
    cluster.await_idle(2)


def test_a_runner_whose_worker_is_killed_is_not_begun_again(cluster: Cluster, here: Site) -> None:
    run = endless(cluster, here)

    os.kill(process_of_runner(cluster, run), signal.SIGKILL)
    done = run.finish()

    (ran,) = done.result["workloads"]
    assert done.code == 3, done.err
    assert ran["offered"]["cut_short"] == "runner_lost"
    sums = checked(ran)
    # what the runner had begun and nobody has reported, and not what it might have begun
    begun = (cluster.site.home / "plugins" / "begun").stat().st_size
    assert 0 < sums["lost"] <= begun + 1 - sums["ok"]
    assert len([one for one in done.result["notes"] if AGAIN in one]) == 1
    assert [one["criterion"] for one in ran["sla"] if not one["success"]] == ["runner"]


def test_a_run_that_is_resumed_does_not_begin_the_runner_again(
    cluster: Cluster, here: Site
) -> None:
    run = endless(cluster, here)
    (directory,) = here.data.glob("runs/*/")

    worker = process_of_runner(cluster, run)
    os.kill(run.process.pid, signal.SIGKILL)
    run.process.wait()
    os.kill(worker, signal.SIGKILL)
    done = here.coord("resume", "--json", directory.name)

    (ran,) = done.result["workloads"]
    assert done.code in (1, 3), done.err
    assert ran["offered"]["cut_short"] == "runner_lost"
    assert checked(ran)["ok"] > 20
    assert len([one for one in done.result["notes"] if AGAIN in one]) == 1


def test_a_runner_goes_on_where_it_was_when_only_its_coordinator_is_killed(
    cluster: Cluster, here: Site
) -> None:
    times = {"sample_times": {"min_times": 150, "max_times": 151}}
    task = here.task({"scenario": {"Dummy.dummy": {"sleep": 0.02}}, "runner": times})
    run = here.begin("osbench-coord", "run", "--json", task, "--plugin-path", plugin(cluster))
    run.wait_for(lambda: settled(here) > 20)
    (directory,) = here.data.glob("runs/*/")

    os.kill(run.process.pid, signal.SIGKILL)
    run.process.wait()
    done = here.coord("resume", "--json", directory.name)

    (ran,) = done.result["workloads"]
    assert checked(ran)["ok"] == checked(ran)["planned"] == 150
    assert ran["offered"]["cut_short"] is None
    assert done.code == 0, done.err


def test_a_worker_that_leaves_ends_the_load_of_its_runner(cluster: Cluster, here: Site) -> None:
    run = endless(cluster, here)

    for one in living(cluster):
        one.process.send_signal(signal.SIGTERM)
    done = run.finish()

    (ran,) = done.result["workloads"]
    assert (done.code, ran["offered"]["cut_short"]) == (1, "runner_lost")
    assert checked(ran)["ok"] == checked(ran)["planned"] > 20
    for one in living(cluster):
        one.finish()
