"""A child that a scenario forks and that returns into the worker ends at once."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from helpers.engines import COROUTINES, THREADS, batch, closed, until
from osbench.common.plugin.scenario import Scenario
from osbench.worker.engine.users import forked_children
from osbench.worker.engine.users.forked_children import RETURNED

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")

Work = Callable[[Scenario], Any]

REMARK = "test_forked_children.py:{} forked a process that returned into the worker, and was ended"


class Forking:
    """A scenario whose child does something; the parent notes how it ended."""

    def __init__(self, child: Callable[[], Any] = lambda: None) -> None:
        self.codes: list[int] = []
        self.line = 0
        self._child = child

    def __call__(self, scenario: Scenario) -> Any:
        self.line = sys._getframe().f_lineno + 1
        pid = os.fork()
        if not pid:
            return self._child()
        self.codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        return None


def run(work: Work, users: str, iterations: int = 3, **more: Any) -> list[list[Any]]:
    """Run iterations; returns what went wrong beside them."""
    with closed(work, users=users, **more) as engine:
        engine.set_user_limit(1)
        engine.add(batch((1, iterations + 1)))
        until(lambda: len(engine.rows) == iterations)
        engine.note_returned()
        return engine.body.asides.fresh()


@pytest.mark.parametrize("users", [THREADS, COROUTINES])
@pytest.mark.parametrize("child", [lambda: None, lambda: 1 / 0], ids=["returns", "raises"])
def test_a_child_that_returns_ends_and_is_told(users, child, caplog):
    work = Forking(child)

    asides = run(work, users)

    assert work.codes == [RETURNED] * 3
    told = REMARK.format(work.line)
    assert all(what.startswith(told) for what, _ in asides)
    assert sum(count for _, count in asides) == 3
    assert sum(told in one.message for one in caplog.records) == 1


def test_children_of_equal_process_ids_modulo_the_slots_count_each(monkeypatch):
    monkeypatch.setattr(forked_children, "_SLOTS", 1)

    asides = run(Forking(), THREADS)

    assert sum(count for _, count in asides) == 3


@pytest.mark.parametrize("users", [THREADS, COROUTINES])
@pytest.mark.parametrize(("code", "found"), [(None, 0), (3, 3), ("words", 1)])
def test_a_child_that_exits_does_so_and_is_no_news(users, code, found):
    work = Forking(lambda: sys.exit(code))

    assert run(work, users) == []
    assert work.codes == [found] * 3


def test_a_child_that_waits_does_not_run_the_event_loop():
    codes: list[int] = []
    done: list[str] = []
    read, write = os.pipe()

    async def beside() -> None:
        while not codes:
            # in a child: seen by the parent
            os.write(write, b"%d " % os.getpid())
            await asyncio.sleep(0)

    async def work(scenario: Scenario) -> None:
        task = asyncio.create_task(beside())
        await asyncio.sleep(0)
        pid = os.fork()
        if not pid:
            await asyncio.sleep(0)
            await asyncio.sleep(0.01)
            os._exit(1)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        await task
        done.append("here")

    asides = run(work, COROUTINES, 1)

    os.close(write)
    with os.fdopen(read) as pipe:
        assert set(pipe.read().split()) == {str(os.getpid())}
    assert (codes, done) == ([RETURNED], ["here"])
    assert len(asides) == 1


@pytest.mark.parametrize("users", [THREADS, COROUTINES])
def test_a_child_of_a_user_that_begins_ends(users):
    work = Forking()

    def begin(scenario: Scenario) -> None:
        work(scenario)

    asides = run(lambda scenario: None, users, 1, on_start=begin)

    assert work.codes == [RETURNED]
    assert len(asides) == 1


def test_a_child_of_a_blocking_call_ends():
    work = Forking()

    async def calling(scenario: Scenario) -> None:
        await scenario.run_blocking(work, scenario)

    assert len(run(calling, COROUTINES, 1)) == 1
    assert work.codes == [RETURNED]


def _answer(pipe: Any) -> None:
    pipe.send(sum(range(1000)))


@pytest.mark.parametrize("users", [THREADS, COROUTINES])
def test_children_that_behave_go_on_working(users):
    found: list[Any] = []

    def work(scenario: Scenario) -> None:
        here, there = multiprocessing.Pipe()
        process = multiprocessing.get_context("fork").Process(target=_answer, args=(there,))
        process.start()
        found.append(here.recv())
        process.join()
        found.append(process.exitcode)
        found.append(subprocess.run(["true"], preexec_fn=os.getpid, check=True).returncode)
        pid = os.fork()
        if not pid:
            os._exit(len([one for one in range(9) if one]))
        found.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

    assert run(work, users, 1) == []
    assert found == [499500, 0, 0, 8]
