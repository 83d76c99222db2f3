"""`run --repeat`, `duel`, `compare` and `trends`, as the guide to comparisons has them."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from helpers.commands import LENIENT, coord, environment
from helpers.machine import Machine, with_worker
from helpers.readme import blocks, files
from servers import folder
from servers.child import PATIENCE_S

pytestmark = pytest.mark.functional

GUIDE = "docs/comparing.md"


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    """A machine with a worker and an empty folder to type in."""
    with folder() as home:
        desk = home / "desk"
        desk.mkdir()
        made = Machine(home, folder=desk, forked=True)
        with with_worker(made):
            yield made


@dataclass(frozen=True, kw_only=True)
class Walk:
    """Output of the blocks of the guide, and the files that they left."""

    #: Folder in which they were typed.
    desk: Path
    compared: str
    duelled: str
    trends: str
    by_load: str
    #: `runs list --json`.
    runs: list[dict[str, Any]]


@pytest.fixture(scope="module")
def walk(machine: Machine) -> Walk:
    """The guide from repeats to trends.

    The duel is between tasks that differ by more than what a busy machine adds, which those of the
    guide do not.
    """
    desk = machine.folder
    for name, text in files(GUIDE).items():
        slower = text.replace("0.021", "0.1").replace("times: 200", "times: 40")
        (desk / name).write_text(machine.text(slower), encoding="utf-8")
    repeats, duel, *others = blocks("comparing", GUIDE)
    printed = [
        machine.run(step)
        for step in (
            replace(repeats, text=repeats.text.replace("--times 200", "--times 100")),
            replace(duel, text=f'{duel.text.rstrip()} || echo "exit code $?"'),
            *others,
        )
    ]
    listed = coord(machine.home, "runs", "list", "--json").stdout
    compared, duelled, trends, by_load = printed
    return Walk(
        desk=desk,
        compared=compared,
        duelled=duelled,
        trends=trends,
        by_load=by_load,
        runs=json.loads(listed),
    )


def test_repeated_runs_have_a_tag_in_common_and_are_compared_by_it(walk: Walk) -> None:
    # which percentile is named first depends on the machine's other work
    assert re.search(r"Worse: p\d+ of Dummy\.dummy takes", walk.compared), walk.compared
    assert "exit code 1" in walk.compared
    assert "argument sleep of Dummy.dummy: 0.02 before, 0.05 after" in walk.compared
    assert walk.compared.count("Run-to-run spread of 3 runs") == 2
    assert "✕" in (walk.desk / "comparison.html").read_text("utf-8")
    for side in ("before", "after"):
        tags = [tuple(run["tags"]) for run in walk.runs if side in run["tags"]]
        assert len(tags) == 3
        # that of the option, and that of the command, which says so
        ((_, own),) = set(tags)
        assert re.search(rf"^Tag.* {own}$", walk.compared, re.M)


def test_a_duel_alternates_and_says_which_is_worse(walk: Walk) -> None:
    assert "Basis: 3 pairs of runs made in turn" in walk.duelled
    assert re.search(r"Worse: p\d+ of Dummy\.dummy takes", walk.duelled), walk.duelled
    assert "exit code 1" in walk.duelled
    assert "old.yaml" in walk.duelled
    assert "new.yaml" in walk.duelled
    # A B, then B A, then A B
    duel = [run["tags"] for run in reversed(walk.runs) if run["task"] in ("Old", "New")]
    assert [side[-2:] for _, side in duel] == ["-A", "-B", "-B", "-A", "-A", "-B"]
    assert len({common for common, _ in duel}) == 1


def test_trends_are_those_of_a_task_and_by_load(walk: Walk) -> None:
    assert "too few to look for changes" in walk.trends
    document = json.loads((walk.desk / "trends.json").read_text("utf-8"))
    assert [len(one["runs"]) for one in document["trends"]] == [3]
    assert "Dummy.dummy, by load" in walk.by_load
    assert "A fit takes 6 steps of different concurrency or more; there are 3" in walk.by_load
    for page in ("comparison.html", "duel.html", "trends.html", "steps.html"):
        assert (walk.desk / page).read_text("utf-8").startswith("<!doctype html>")


def test_the_guide_to_nightly_runs(machine: Machine) -> None:
    (nightly,) = blocks("nightly", GUIDE)

    said = machine.run(nightly)

    assert "1 task, exit code 0" in said
    assert "1 of at least 8 runs: too few to check the last one." in said


def task(folder: Path, name: str, sleep_s: float) -> str:
    """Write a task of short iterations."""
    document = {
        "version": 2,
        "title": "Naps",
        "subtasks": [
            {
                "title": "naps",
                "scenario": {"Dummy.dummy": {"sleep": sleep_s}},
                "runner": {"constant": {"times": 20, "concurrency": 2}},
            }
        ],
    }
    (folder / name).write_text(yaml.safe_dump(document), "utf-8")
    return name


def test_repeated_runs_are_one_object(home: Path) -> None:
    name = task(home, "a.yaml", 0.01)

    done = coord(home, "run", name, "--repeat", "2", "--quiet", "--json", "--tag", "slow")

    document = json.loads(done.stdout)
    assert document["exit_code"] == done.returncode == 0
    assert len(document["runs"]) == 2
    assert {tuple(run["tags"]) for run in document["runs"]} == {("slow", document["tag"])}


def test_ctrl_c_during_a_duel_compares_the_pairs_made_so_far(home: Path) -> None:
    first, second = task(home, "c.yaml", 0.01), task(home, "d.yaml", 0.011)
    command = ["osbench-coord", "duel", first, second, "--pairs", "50", "--json"]
    runs = home / ".osbench" / "runs"

    with subprocess.Popen(
        command,
        cwd=home,
        env=environment(home) | LENIENT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        deadline = time.monotonic() + PATIENCE_S
        # a run writes its summary before it ends: the fifth has begun after two whole pairs
        while len([*runs.glob("*/summary.json")]) < 5 and time.monotonic() < deadline:
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=PATIENCE_S)

    result = json.loads(printed)
    assert process.returncode == 130
    assert result["names"] == [first, second]
    assert 2 <= len(result["before"]) == len(result["after"]) < 50
