"""Whatever a scenario does wrong is one failed iteration, reported with type, message and place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from helpers.runs import Finished, Site, checked, site

pytestmark = pytest.mark.functional

PLUGIN = '''
import asyncio
import os
import time
from osbench.plugin import atomic, scenario


class Halt(BaseException):
    """Not an Exception."""


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("cannot be told")


@scenario.configure(name="Bad.build")
class Build(scenario.Scenario):
    def __init__(self, context):
        super().__init__(context)
        raise LookupError("no such thing")

    def run(self):
        pass


class Bad(scenario.Scenario):
    """Goes wrong in every third iteration."""

    def _third(self):
        return self.context["iteration"] % 3 == 0

    @scenario.configure(name="Bad.value")
    def value(self):
        with atomic.ActionTimer(self, "step"):
            if self._third():
                raise ValueError("not this one")

    @scenario.configure(name="Bad.exit")
    def exit(self):
        if self._third():
            raise SystemExit(7)

    @scenario.configure(name="Bad.leave")
    def leave(self):
        if self._third():
            os._exit(7)

    @scenario.configure(name="Bad.interrupt")
    def interrupt(self):
        if self._third():
            raise KeyboardInterrupt

    @scenario.configure(name="Bad.halt")
    def halt(self):
        if self._third():
            raise Halt("stop it all")

    @scenario.configure(name="Bad.mute")
    def mute(self):
        if self._third():
            raise Mute

    @scenario.configure(name="Bad.output")
    def output(self):
        if self._third():
            data = []
            data.append(data)
            self.add_output(additive={"title": "t", "chart_plugin": "Pie", "data": data})

    @scenario.configure(name="Bad.recursion")
    def recursion(self):
        if self._third():
            self.recursion()

    @scenario.configure(name="Bad.long")
    def long(self):
        if self._third():
            raise ValueError("x" * 100_000)

    @scenario.configure(name="Bad.loop")
    def loop(self):
        while self._third():
            pass

    @scenario.configure(name="Bad.sleep")
    def sleep(self):
        if self._third():
            time.sleep(3)

    @scenario.configure(name="Bad.deaf")
    def deaf(self):
        while self._third():
            try:
                time.sleep(0.01)
            except BaseException:
                continue

    @scenario.configure(name="Bad.promise")
    def promise(self):
        async def later():
            pass

        if self._third():
            return later()

    @scenario.configure(name="Bad.awaited")
    async def awaited(self):
        await asyncio.sleep(0)
        with atomic.ActionTimer(self, "step"):
            if self._third():
                raise ValueError("not this one")

    @scenario.configure(name="Bad.awaited_exit")
    async def awaited_exit(self):
        await asyncio.sleep(0)
        if self._third():
            raise SystemExit(7)

    @scenario.configure(name="Bad.awaited_call")
    async def awaited_call(self):
        await self.run_blocking(self.value)

    @scenario.configure(name="Bad.awaited_sleep")
    async def awaited_sleep(self):
        if self._third():
            await asyncio.sleep(5)

    @scenario.configure(name="Bad.awaited_deaf")
    async def awaited_deaf(self):
        while self._third():
            try:
                await asyncio.sleep(0.01)
            except BaseException:
                continue

    async def _step(self):
        await asyncio.sleep(0)

    @scenario.configure(name="Bad.forgotten")
    async def forgotten(self):
        if self._third():
            self._step()
        await asyncio.sleep(0)

    @scenario.configure(name="Bad.dropped")
    def dropped(self):
        if self._third():
            self._step()

    @scenario.configure(name="Bad.left")
    async def left(self):
        async def later():
            await asyncio.sleep(0)
            raise LookupError("s3cret")

        asyncio.create_task(later())
        await asyncio.sleep(0.1)

    @scenario.configure(name="Bad.blocking")
    async def blocking(self):
        time.sleep(0.2)
'''

#: Type of the error, and a part of its message.
FAILURES = {
    "Bad.build": ("LookupError", "no such thing"),
    "Bad.value": ("ValueError", "not this one"),
    "Bad.exit": ("SystemExit", "7"),
    "Bad.leave": ("SystemExit", "os._exit(7) was called"),
    "Bad.interrupt": ("KeyboardInterrupt", ""),
    "Bad.halt": ("Halt", "stop it all"),
    "Bad.mute": ("Mute", ""),
    "Bad.output": ("TypeError", "additive output cannot be stored"),
    "Bad.recursion": ("RecursionError", "recursion"),
    "Bad.long": ("ValueError", "xxx"),
    "Bad.promise": ("TypeError", "`async def`"),
    "Bad.awaited": ("ValueError", "not this one"),
    "Bad.awaited_exit": ("SystemExit", "7"),
    "Bad.forgotten": ("ForgottenAwait", "coroutine 'Bad._step' was never awaited: bad.py:"),
    "Bad.dropped": ("ForgottenAwait", "coroutine 'Bad._step' was never awaited: bad.py:"),
    "Bad.awaited_call": ("ValueError", "not this one"),
}
TIMEOUTS = ("Bad.loop", "Bad.sleep", "Bad.deaf", "Bad.awaited_sleep", "Bad.awaited_deaf")
#: What is told of scenarios that end well, beside their iterations.
ASIDES = {
    "Bad.left": r"that the scenario left behind failed with LookupError: bad\.py:(\d+) \(9 times\)",
}
TIMES = 9


def workload(name: str, **runner: Any) -> dict[str, Any]:
    return {
        "scenario": {name: {}},
        "runner": {"constant": {"times": TIMES, "concurrency": 2, **runner}},
    }


@pytest.fixture(scope="module")
def run() -> Iterator[tuple[Site, Finished]]:
    """One run of all that can go wrong."""
    with site() as here:
        here.write("bad.py", PLUGIN)
        task = here.task(
            *[workload(name) for name in FAILURES],
            *[workload(name, timeout=0.6) for name in TIMEOUTS],
            *[workload(name) for name in ASIDES],
            {"scenario": {"Dummy.dummy": {}}, "runner": {"serial": {"times": 5}}},
        )
        yield here, here.run(task, "--plugin-path", "bad.py")


@pytest.fixture
def by_name(run: tuple[Site, Finished]) -> dict[str, dict[str, Any]]:
    return {workload["name"]: workload for workload in run[1].result["workloads"]}


@pytest.mark.parametrize("name", FAILURES)
def test_it_is_a_failed_iteration(by_name: dict[str, dict[str, Any]], name: str) -> None:
    etype, message = FAILURES[name]
    wrong = TIMES if name == "Bad.build" else TIMES // 3

    found = by_name[name]

    sums = checked(found)
    assert (sums["ok"], sums["failed"]) == (TIMES - wrong, wrong)
    (error,) = found["errors"]
    assert error["type"] == etype
    assert message in error["message"]
    assert len(error["message"]) <= 1000
    assert error["count"] == wrong
    # nobody has run a line of the coroutine that was returned
    assert "bad.py" in error["traceback"] or name == "Bad.promise"
    assert "engine.py" not in error["traceback"]


@pytest.mark.parametrize("name", TIMEOUTS)
def test_it_is_a_timed_out_iteration(by_name: dict[str, dict[str, Any]], name: str) -> None:
    found = by_name[name]

    sums = checked(found)
    assert (sums["ok"], sums["timed_out"]) == (TIMES - TIMES // 3, TIMES // 3)
    assert sum(error["count"] for error in found["errors"]) == TIMES // 3
    for error in found["errors"]:
        assert error["type"] == "IterationTimeout"
        assert "0.6 s" in error["message"]
        assert "bad.py" in error["traceback"]


@pytest.mark.parametrize("name", ASIDES)
def test_what_goes_wrong_beside_iterations_is_counted_with_its_place(
    run: tuple[Site, Finished], by_name: dict[str, dict[str, Any]], name: str
) -> None:
    _, done = run
    wrong = {"Bad.left": '            raise LookupError("s3cret")'}

    (found,) = filter(None, (re.search(ASIDES[name], note) for note in done.result["notes"]))

    assert int(found[1]) == PLUGIN.splitlines().index(wrong[name]) + 1
    assert checked(by_name[name])["ok"] == TIMES
    assert "s3cret" not in done.out


def test_a_failed_action_is_a_failed_action(by_name: dict[str, dict[str, Any]]) -> None:
    step = by_name["Bad.value"]["actions"]["step"]

    assert (step["ok"]["count"], step["failed"]["count"]) == (TIMES - TIMES // 3, TIMES // 3)


def test_the_run_goes_on_to_its_end(
    run: tuple[Site, Finished], by_name: dict[str, dict[str, Any]]
) -> None:
    here, done = run

    assert len(by_name) == len(FAILURES) + len(TIMEOUTS) + len(ASIDES) + 1
    assert checked(by_name["Dummy.dummy"])["ok"] == 5
    # an SLA failed; where machines are slow the generator may have been the limit, too
    assert done.code in (1, 4)
    assert "Traceback" not in done.err
    here.await_nothing_left()


def test_csv_tells_each_iteration_with_its_error(run: tuple[Site, Finished]) -> None:
    here, done = run
    names = [workload["name"] for workload in done.result["workloads"]]

    rows = here.rows("last")

    assert len(rows) == TIMES * (len(names) - 1) + 5
    for row in rows:
        name = names[int(row["workload"])]
        wrong = name == "Bad.build" or int(row["iteration"]) % 3 == 0
        if not wrong or name == "Dummy.dummy" or name in ASIDES:
            assert (row["outcome"], row["error"]) == ("ok", "")
        elif name in TIMEOUTS:
            assert row["outcome"] == "timed_out"
            assert row["error"].startswith("IterationTimeout")
        else:
            assert row["outcome"] == "failed"
            assert row["error"].startswith(FAILURES[name][0])


def test_a_scenario_that_blocks_the_event_loop_is_named() -> None:
    with site() as here:
        here.write("bad.py", PLUGIN)
        # what it blocks is more than that, on any machine
        here.configure({"benchmark": {"lag_limit_s": 0.1}})
        done = here.run(here.task(workload("Bad.blocking")), "--plugin-path", "bad.py")

    (found,) = done.result["workloads"]
    assert checked(found)["ok"] == TIMES
    assert done.code == 4
    (said,) = (note for note in done.result["notes"] if "blocked the event loop" in note)
    assert "bad.py:" in said
    assert "(Bad.blocking)" in said
