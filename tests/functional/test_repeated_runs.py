"""`run --repeat`, `duel`, `compare` and `trends` with real runs in local mode."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest
import yaml

from helpers.commands import LENIENT, coord, environment
from servers.child import PATIENCE_S

pytestmark = pytest.mark.functional


def task(folder: Path, name: str, sleep_s: float, times: int = 100) -> str:
    """Write a task of short iterations."""
    document = {
        "version": 2,
        "title": "Naps",
        "subtasks": [
            {
                "title": "naps",
                "scenario": {"Dummy.dummy": {"sleep": sleep_s}},
                "runner": {"constant": {"times": times, "concurrency": 2}},
            }
        ],
    }
    (folder / name).write_text(yaml.safe_dump(document), "utf-8")
    return name


def test_repeated_runs_have_a_tag_in_common_and_are_compared_by_it(tmp_path: Path) -> None:
    short, long = task(tmp_path, "a.yaml", 0.02), task(tmp_path, "b.yaml", 0.1)

    first = coord(tmp_path, "run", short, "--repeat", "3", "--quiet")
    second = coord(tmp_path, "run", long, "--repeat", "3", "--quiet", "--json", "--tag", "slow")

    assert first.returncode == 0, first.stderr
    assert "Run-to-run spread of 3 runs" in first.stdout
    (tag,) = {line.split()[-1] for line in first.stdout.splitlines() if line.startswith("Tag")}
    document = json.loads(second.stdout)
    assert document["exit_code"] == second.returncode == 0
    assert len(document["runs"]) == 3
    assert {tuple(run["tags"]) for run in document["runs"]} == {("slow", document["tag"])}

    found = coord(tmp_path, "compare", f"tag:{tag}", "--against", "tag:slow", "--html", "c.html")

    assert found.returncode == 1, found.stderr
    assert "Worse: p50 of Dummy.dummy takes" in found.stdout
    assert "argument sleep of Dummy.dummy: 0.02 before, 0.1 after" in found.stdout
    assert "✕" in (tmp_path / "c.html").read_text("utf-8")
    trends = json.loads(coord(tmp_path, "trends", "--task", "Naps", "--json").stdout)
    assert [len(one["runs"]) for one in trends["trends"]] == [3, 3]


def test_a_duel_alternates_and_says_which_is_worse(tmp_path: Path) -> None:
    first, second = task(tmp_path, "a.yaml", 0.02, 40), task(tmp_path, "b.yaml", 0.1, 40)

    # of two pairs, one run that a busy machine slows down is enough to have no evidence
    found = coord(tmp_path, "duel", first, second, "--pairs", "3", "--json")

    assert found.returncode == 1, found.stderr
    result = json.loads(found.stdout)
    assert result["verdict"] == "worse"
    assert result["basis"] == "pairs"
    assert result["names"] == ["a.yaml", "b.yaml"]
    # A B, then B A, then A B; ids begin with the second at which their run began
    (a1, a2, a3), (b1, b2, b3) = result["before"], result["after"]
    begun = [one[:15] for one in (a1, b1, b2, a2, a3, b3)]
    assert begun == sorted(begun)
    runs = json.loads(coord(tmp_path, "runs", "list", "--json").stdout)
    tags = {run["run"]: run["tags"] for run in runs}
    assert tags[a1][0] == tags[b1][0]
    assert tags[a1][1].endswith("-A")
    assert tags[b2][1].endswith("-B")


def test_both_tasks_of_a_duel_are_checked_before_one_runs(tmp_path: Path) -> None:
    good = task(tmp_path, "a.yaml", 0.01)
    (tmp_path / "b.yaml").write_text("version: 2\ntitle: x\nsubtasks: []\n", "utf-8")

    found = coord(tmp_path, "duel", good, "b.yaml")

    assert found.returncode == 2
    assert "b.yaml" in found.stderr
    assert json.loads(coord(tmp_path, "runs", "list", "--json").stdout) == []


def test_ctrl_c_during_a_duel_compares_the_pairs_made_so_far(tmp_path: Path) -> None:
    first, second = task(tmp_path, "a.yaml", 0.01, 40), task(tmp_path, "b.yaml", 0.011, 40)
    command = ["osbench-coord", "duel", first, second, "--pairs", "50", "--json"]
    runs = tmp_path / ".osbench" / "runs"

    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment(tmp_path) | LENIENT,
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
    assert 2 <= len(result["before"]) == len(result["after"]) < 50


@pytest.mark.parametrize("option", [("--detach",), ("--web",), ("--export", "json")])
def test_what_is_for_one_run_is_refused_with_repeat(
    tmp_path: Path, option: tuple[str, ...]
) -> None:
    name = task(tmp_path, "a.yaml", 0.01)

    found = coord(tmp_path, "run", name, "--repeat", "2", *option)

    assert found.returncode == 2
    assert "cannot be combined with --repeat, which makes several runs" in found.stderr
