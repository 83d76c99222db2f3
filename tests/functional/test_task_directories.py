"""`run DIR`: the tasks of a directory, in order, and one exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from helpers.commands import call, coord

pytestmark = pytest.mark.functional


def write(folder: Path, name: str, scenario: str = "Dummy.dummy", **sla: object) -> None:
    workload = {
        "title": name,
        "scenario": {scenario: {}},
        "runner": {"serial": {"times": 3}},
        "sla": sla or {"failure_rate": {"max": 0}},
    }
    document = {"version": 2, "title": name, "subtasks": [workload]}
    (folder / name).write_text(yaml.safe_dump(document), "utf-8")


@pytest.fixture
def nightly(home: Path) -> Path:
    folder = home / "nightly"
    folder.mkdir()
    write(folder, "10-first.yaml")
    write(folder, "30-last.json")
    (folder / "README.md").write_text("not a task")
    (folder / ".hidden.yaml").write_text("not a task")
    return folder


def test_tasks_run_in_the_order_of_their_names(home: Path, nightly: Path) -> None:
    done = coord(home, "run", "nightly", "--json", "--tag", "night")

    assert done.returncode == 0, done.stderr
    assert "task 1 of 2: 10-first.yaml" in done.stderr
    found = json.loads(done.stdout)
    assert [one["file"] for one in found["tasks"]] == ["10-first.yaml", "30-last.json"]
    tags = {tuple(one["run"]["tags"]) for one in found["tasks"]}
    assert tags == {("night", found["tag"])}


def test_the_first_that_fails_is_the_last_unless_told_otherwise(home: Path, nightly: Path) -> None:
    write(nightly, "20-second.yaml", max_avg_duration=1e-9)

    stopped = coord(home, "run", "nightly", "--quiet")

    assert stopped.returncode == 1
    assert "3 tasks, exit code 1" in stopped.stdout
    assert "not run: 20-second.yaml ended with exit code 1" in " ".join(stopped.stdout.split())


def test_all_are_checked_before_the_first_is_run(home: Path, nightly: Path) -> None:
    write(nightly, "25-mistyped.yaml", scenario="Dummy.dumy")

    refused = call(home, "run", "nightly")

    assert refused.returncode == 2
    assert refused.stdout == ""
    assert "25-mistyped.yaml: " in refused.stderr
    assert "run only the others with --keep-going" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("empty",), "empty has no file *.yaml, *.yml or *.json to run"),
        (("nightly", "--once"), "are for one task, not for a directory"),
        (("nightly", "--detach"), "--detach is for one task, not for a directory"),
        (("nightly", "--web", "127.0.0.1:0"), "`osbench-coord web` shows all runs"),
        (("-", "--detach"), "--detach cannot read a task from standard input"),
        (("nightly", "--export", "csv"), "`osbench-coord report RUN` exports each of its runs"),
        (("nightly", "--report", "night"), "needs a name that ends with .html"),
        (("nightly", "--report", "none/night.html"), "there is no folder none: create it"),
        (("nightly/10-first.yaml", "--keep-going"), "--keep-going is for a directory of tasks"),
    ],
)
def test_what_cannot_be_done_with_a_directory_is_said(
    home: Path, nightly: Path, words: tuple[str, ...], said: str
) -> None:
    (home / "empty").mkdir()

    done = call(home, "run", *words)

    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())
    assert not (nightly.parent / ".osbench" / "runs").exists()


def test_with_keep_going_all_are_run_and_one_page_links_to_their_reports(
    home: Path, nightly: Path
) -> None:
    write(nightly, "20-second.yaml", max_avg_duration=1e-9)
    # a mistyped name would have all that Rally has imported
    write(nightly, "25-mistyped.yaml", failure_rate={"max": 101})

    done = coord(
        home, "run", "nightly", "--keep-going", "--report", "night.html", "--json", "--quiet"
    )

    page = (home / "night.html").read_text("utf-8")
    tasks = {one["file"]: one for one in json.loads(done.stdout)["tasks"]}
    assert done.returncode == 2
    assert [tasks[name]["exit_code"] for name in sorted(tasks)] == [0, 1, 2, 0]
    assert "2 of 4 tasks did not end well." in page
    assert "got 101" in page
    assert not tasks["25-mistyped.yaml"]["run"]
    for name in ("10-first.yaml", "20-second.yaml", "30-last.json"):
        run = tasks[name]["run"]["run_id"]
        assert f'href="night-runs/{run}.html"' in page
        assert f'href="night-runs/{run}.html#w1"' in page
        assert "<script" in (home / "night-runs" / f"{run}.html").read_text("utf-8")
    assert "<script" not in page


def test_a_page_that_cannot_be_written_after_the_load_keeps_the_runs(
    home: Path, nightly: Path
) -> None:
    (home / "night-runs").write_text("a file where the folder of reports should be")

    done = coord(home, "run", "nightly", "--report", "night.html", "--json", "--quiet")

    assert done.returncode == 5
    assert "Error: --report night.html: cannot write it: " in done.stderr
    assert "Traceback" not in done.stderr
    found = json.loads(done.stdout)
    assert (found["exit_code"], len(found["tasks"])) == (5, 2)
