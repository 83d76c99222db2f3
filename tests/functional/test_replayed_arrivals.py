"""Recorded arrivals are made as they were, each with its own request, and accounted for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.arrivals import write_arrivals
from helpers.form_site import FormSite
from helpers.json_server import serving
from helpers.runs import Site, checked, site

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
    sound = here.coord("validate", "tasks/r.yaml", *given)
    text = TASK.replace("name: GET /a,", "name: GET /A,")
    (here.home / "tasks" / "other.yaml").write_text(text, "utf-8")
    unknown = here.coord("validate", "tasks/other.yaml", *given)
    plain = TASK.replace("HttpFlow.run:", "Dummy.dummy_exception: {}").split("        base")[0]
    rest = TASK.rsplit("expect: 401}]}\n", maxsplit=1)[-1]
    (here.home / "tasks" / "plain.yaml").write_text(plain + rest, "utf-8")
    without = here.coord("validate", "tasks/plain.yaml")
    content = arrivals(here).read_bytes()
    arrivals(here).write_bytes(content[:-9])
    damaged = here.coord("validate", "tasks/r.yaml", *given)

    assert sound.code == 0, sound.err
    assert unknown.code == 2
    assert "mix has no branch 'GET /a', which arrivals ask for" in unknown.out
    assert without.code == 2
    assert "Dummy.dummy_exception has no argument 'branch'" in without.out
    assert damaged.code == 2
    assert "some.arrivals is damaged (the end is missing): copy it again" in damaged.out
    assert not [one for one in (unknown, without, damaged) if "Traceback" in one.err + one.out]
