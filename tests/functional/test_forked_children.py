"""A scenario whose child process goes on as if it were the worker: the run is as without it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from helpers.runs import Finished, checked, site

pytestmark = pytest.mark.functional

PLUGIN = """
import asyncio
import atexit
import multiprocessing
import os
import time
from pathlib import Path

from osbench.plugin import scenario

NOTES = Path({notes!r})


def note(what, name):
    with (NOTES / name).open("a") as file:
        file.write(f"{{what}} {{os.getpid()}}\\n")


class Forking(scenario.Scenario):
    @scenario.configure(name="Forking.returns")
    def returns(self):
        note("begins", "returns")
        atexit.register(note, "ends", "returns")
        pid = os.fork()
        if pid == 0:
            return
        os.waitpid(pid, 0)

    @scenario.configure(name="Forking.in_loop")
    async def in_loop(self):
        note("begins", "in_loop")
        pid = os.fork()
        if pid == 0:
            await asyncio.sleep(0)
            return
        os.waitpid(pid, 0)
        await asyncio.sleep(0)

    @scenario.configure(name="Forking.behaves")
    def behaves(self):
        note("begins", "behaves")
        forking = multiprocessing.get_context("fork")
        process = forking.Process(target=note, args=("child", "behaves"))
        process.start()
        process.join()
        assert process.exitcode == 0
"""


NAMES = ("returns", "in_loop", "behaves")


@pytest.fixture(scope="module")
def ran() -> Iterator[tuple[Finished, dict[str, list[list[str]]]]]:
    """A run with a workload for each of them, and what each has noted."""
    with site() as here:
        plugin = here.home / "forking.py"
        plugin.write_text(PLUGIN.format(notes=str(here.home)))
        runner = {"constant": {"times": 6, "concurrency": 1}}
        task = here.task(*({"scenario": {f"Forking.{one}": {}}, "runner": runner} for one in NAMES))
        done = here.run(task, "--plugin-path", str(plugin))
        assert done.code == 0, done.err
        noted = {
            name: [line.split() for line in (here.home / name).read_text().splitlines()]
            for name in NAMES
        }
        yield done, noted


@pytest.mark.parametrize("name", ["returns", "in_loop"])
def test_a_child_that_returns_neither_works_nor_stays(
    ran: tuple[Finished, dict[str, list[list[str]]]], name: str
) -> None:
    done, noted = ran

    workload = done.result["workloads"][NAMES.index(name)]

    assert checked(workload)["ok"] == 6
    begun = [pid for what, pid in noted[name] if what == "begins"]
    assert len(begun) == 6
    # of the worker, once, and of no child
    assert {pid for what, pid in noted[name] if what == "ends"} <= set(begun)
    assert len(set(begun)) == 1


def test_children_of_multiprocessing_work_and_others_are_told(
    ran: tuple[Finished, dict[str, list[list[str]]]],
) -> None:
    done, noted = ran

    assert checked(done.result["workloads"][NAMES.index("behaves")])["ok"] == 6
    assert sum(what == "child" for what, _ in noted["behaves"]) == 6
    # both places that are at fault; a place may be told once more, with a count
    remarks = [one for one in done.result["notes"] if "forking.py" in one]
    said = "forked a process that returned into the worker, and was ended"
    assert len({one.partition(" ")[0] for one in remarks}) == 2, remarks
    assert all(said in one for one in remarks), remarks
