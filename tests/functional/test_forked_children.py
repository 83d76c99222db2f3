"""A scenario whose child process goes on as if it were the worker: the run is as without it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from helpers.runs import Site, site

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


def note(what):
    with NOTES.open("a") as file:
        file.write(f"{{what}} {{os.getpid()}}\\n")


class Forking(scenario.Scenario):
    @scenario.configure(name="Forking.returns")
    def returns(self):
        note("begins")
        atexit.register(note, "ends")
        pid = os.fork()
        if pid == 0:
            return
        os.waitpid(pid, 0)

    @scenario.configure(name="Forking.in_loop")
    async def in_loop(self):
        note("begins")
        pid = os.fork()
        if pid == 0:
            await asyncio.sleep(0)
            return
        os.waitpid(pid, 0)
        await asyncio.sleep(0)

    @scenario.configure(name="Forking.behaves")
    def behaves(self):
        note("begins")
        process = multiprocessing.get_context("fork").Process(target=note, args=("child",))
        process.start()
        process.join()
        assert process.exitcode == 0
"""


@pytest.fixture
def here() -> Iterator[Site]:
    with site() as found:
        yield found


@pytest.mark.parametrize("name", ["returns", "in_loop"])
def test_a_child_that_returns_neither_works_nor_stays(here: Site, name: str) -> None:
    notes = here.home / "notes"
    plugin = here.home / "forking.py"
    plugin.write_text(PLUGIN.format(notes=str(notes)))

    done = here.run("--plugin-path", str(plugin), "--scenario", f"Forking.{name}", "--times", "6")

    assert done.code == 0, done.err
    assert done.sums["ok"] == 6
    noted = [line.split() for line in notes.read_text().splitlines()]
    begun = [pid for what, pid in noted if what == "begins"]
    assert len(begun) == 6
    # of the worker, once, and of no child
    assert {pid for what, pid in noted if what == "ends"} <= set(begun)
    assert len(set(begun)) == 1
    remarks = [one for one in done.result["notes"] if "forking.py" in one]
    assert len(remarks) == 1
    assert "forked a process that returned into the worker, and was ended" in remarks[0]


def test_children_of_multiprocessing_work(here: Site) -> None:
    notes = here.home / "notes"
    plugin = here.home / "forking.py"
    plugin.write_text(PLUGIN.format(notes=str(notes)))

    done = here.run("--plugin-path", str(plugin), "--scenario", "Forking.behaves", "--times", "3")

    assert done.sums["ok"] == 3
    assert sum(line.startswith("child") for line in notes.read_text().splitlines()) == 3
    assert "forked a process" not in done.out
