"""Recorded arrivals are made as they were, each with its own request, and accounted for."""

from __future__ import annotations

import csv
import io
import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.arrivals import write_arrivals
from helpers.form_site import FormSite
from helpers.json_server import serving
from helpers.runs import Site, Started, checked, site

pytestmark = pytest.mark.functional

TASK = """
version: 2
title: Replayed
subtasks:
  - title: As it was
    scenario:
      HttpFlow.run:
        base: {{ base }}
        mix:
          - {name: GET /a, weight: 3, steps: [{path: /a, expect: 401}]}
          - {name: "GET /b,c", steps: [{path: "/b,c", expect: 401}]}
          - {name: GET /never, steps: [{path: /never, expect: 401}]}
    runner:
      replay: {file: some.arrivals, speed: 2.0, from: 1s, to: 3s}
"""
NAMES = ["GET /a", "GET /b,c", "GET /a"]


@pytest.fixture
def here() -> Iterator[Site]:
    with site() as made:
        (made.home / "tasks").mkdir()
        (made.home / "tasks" / "r.yaml").write_text(TASK, "utf-8")
        write_arrivals(arrivals(made), [k / 50 for k in range(200)], NAMES, 4)
        yield made


def arrivals(here: Site) -> Path:
    """The file that the task names, relative to its own folder."""
    return here.home / "tasks" / "some.arrivals"


def test_each_arrival_makes_its_own_request_on_many_workers(here: Site) -> None:
    with serving(FormSite()) as shop:
        done = here.run("tasks/r.yaml", "--task-args", f"base: {shop.url}", "--workers", "2")

    assert done.code == 0, done.out + done.err
    (workload,) = done.printed["workloads"]
    wanted = Counter(NAMES[k % 3] for k in range(50, 150))
    assert checked(workload)["ok"] == 100
    assert len(workload["workers"]) == 2
    branches = {name: one["ok"]["count"] for name, one in workload["actions"].items()}
    assert {name: branches[name] for name in wanted} == wanted
    # bins of time are no stages
    assert workload["stages"] == []
    assert Counter(f"{method} {path}" for method, path, _ in shop.seen) == wanted


def test_what_cannot_be_replayed_is_told_before_the_run(here: Site) -> None:
    given = ("--task-args", "base: http://127.0.0.1:9")
    sound = here.call("validate", "tasks/r.yaml", *given)
    text = TASK.replace("name: GET /a,", "name: GET /A,")
    (here.home / "tasks" / "other.yaml").write_text(text, "utf-8")
    unknown = here.call("validate", "tasks/other.yaml", *given)
    plain = TASK.replace("HttpFlow.run:", "Dummy.dummy_exception: {}").split("        base")[0]
    rest = TASK.rsplit("expect: 401}]}\n", maxsplit=1)[-1]
    (here.home / "tasks" / "plain.yaml").write_text(plain + rest, "utf-8")
    without = here.call("validate", "tasks/plain.yaml")
    content = arrivals(here).read_bytes()
    arrivals(here).write_bytes(content[:-9])
    damaged = here.call("validate", "tasks/r.yaml", *given)

    assert sound.code == 0, sound.err
    assert unknown.code == 2
    assert "mix has no branch 'GET /a'" in unknown.out
    assert without.code == 2
    assert "Dummy.dummy_exception has no argument 'branch'" in without.out
    assert damaged.code == 2
    assert "some.arrivals is damaged (the end is missing): copy it again" in damaged.out
    assert not [one for one in (unknown, without, damaged) if "Traceback" in one.err + one.out]


NOTED = """
import os

from osbench.plugin import scenario


@scenario.configure(name="Noted.run")
class Noted(scenario.Scenario):
    def run(self, branch):
        file = os.open("{log}", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, f"{{self.context['iteration']}} {{os.getpid()}} {{branch}}\\n".encode())
        os.close(file)
"""


def noted(here: Site, *options: str) -> Started:
    """Start a replay whose iterations are noted; some have been made."""
    (here.home / "noted.py").write_text(NOTED.format(log=here.home / "noted"), "utf-8")
    (here.home / "noted.yaml").write_text(
        "version: 2\ntitle: Noted\nsubtasks:\n  - title: one\n    scenario: {Noted.run: {}}\n"
        "    runner: {replay: {file: tasks/some.arrivals, speed: 0.5, from: 1s}}\n",
        "utf-8",
    )
    run = here.begin(
        *("osbench-coord", "run", "--json", "noted.yaml", "--plugin-path", "noted.py", *options)
    )
    run.wait_for(lambda: len(notes(here)) > 20)
    return run


def notes(here: Site) -> list[list[str]]:
    """Number, process and branch of the iterations that were made."""
    log = here.home / "noted"
    text = log.read_text("utf-8") if log.exists() else ""
    return [line.split(" ", 2) for line in text.splitlines()]


def assert_as_recorded(here: Site) -> None:
    """Each iteration was due when the arrival of its branch was, and none was made twice."""
    made = {int(number): branch for number, _, branch in notes(here)}
    assert len(made) == len(notes(here))
    rows = csv.DictReader(io.StringIO(here.coord("results", "last", "--csv").out))
    # from the first second on, at half the speed
    due = {int(row["iteration"]): round(float(row["due_s"]) * 25) for row in rows}
    assert len(due) > 20
    assert {number: made[number] for number in due if number in made} == {
        number: NAMES[(at + 50) % 3] for number, at in due.items() if number in made
    }


def test_a_replay_that_is_resumed_makes_each_arrival_as_it_was(here: Site) -> None:
    run = noted(here)
    os.kill(run.process.pid, signal.SIGKILL)
    run.process.wait()
    content = arrivals(here).read_bytes()
    arrivals(here).write_bytes(content[:-1] + b"x")
    damaged = here.coord("resume", "last")
    write_arrivals(arrivals(here), [k / 50 for k in range(200)], NAMES[1:], 4)
    changed = here.coord("resume", "last")
    arrivals(here).write_bytes(content)
    done = here.coord("resume", "last", "--json")

    assert (damaged.code, changed.code) == (2, 2), damaged.err + changed.err
    assert "cannot be resumed: " in damaged.err
    assert "some.arrivals is damaged" in damaged.err
    assert "some.arrivals has changed since the run began" in changed.err
    # what killed workers had may be lost, and arrivals meanwhile are dropped
    assert done.code in (0, 1, 3), done.err
    (workload,) = done.printed["workloads"]
    sums = checked(workload)
    assert sums["planned"] == 150
    assert len(notes(here)) >= sums["ok"] > 20
    assert_as_recorded(here)


def test_a_replay_goes_on_without_a_worker_that_died(here: Site) -> None:
    run = noted(here, "--workers", "2")
    os.kill(int(notes(here)[0][1]), signal.SIGKILL)

    done = run.finish()

    assert done.code in (0, 1, 3), done.err
    (workload,) = done.printed["workloads"]
    sums = checked(workload)
    assert sums["planned"] == 150
    assert sums["ok"] > 20
    assert_as_recorded(here)
