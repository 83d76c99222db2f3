"""The commands that push runs to an archive, list and pull them, and use them beside their own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from helpers.kept_runs import kept_run
from helpers.made_runs import made_run
from helpers.queue_runs import Queue, side
from osbench.coordinator.front.cli.commands.runs import runs
from osbench.coordinator.front.cli.group import Group
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_documents import write_timeline
from osbench.edges.history.commands.compare import compare
from osbench.edges.history.commands.trends import trends
from osbench.edges.history.comparison.compared_run import ComparedRun

Invoke = Callable[..., Result]
RUNS = ["20260401-101500-abcd", "20260402-101500-abcd", "20260403-101500-abcd"]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A data directory."""
    return tmp_path / "here"


@pytest.fixture
def team(tmp_path: Path) -> str:
    """The folder of an archive."""
    return str(tmp_path / "team")


@pytest.fixture
def invoke(here: Path, tmp_path: Path) -> Invoke:
    """Call a command with that data directory."""
    conf = tmp_path / "osbench.conf"
    conf.write_text(f"[DEFAULT]\ndata_dir = {here}\n")
    group = Group(commands=[compare, runs, trends])

    def call(*args: str) -> Result:
        return CliRunner().invoke(group, [*args, "--config-file", str(conf)])

    return call


def vanish(here: Path) -> None:
    """Remove all that a node has."""
    shutil.rmtree(here)


def listed(invoke: Invoke, team: str) -> list[str]:
    found = invoke("runs", "list", "--archive", team, "--json")
    assert found.exit_code == 0, found.output
    return [row["run"] for row in json.loads(found.stdout)]


def local(here: Path) -> list[str]:
    return [one.path.name for one in RunDirectory.all(str(here))]


def keep(here: Path, found: list[ComparedRun]) -> None:
    """Write runs as run directories."""
    for run in found:
        directory = RunDirectory.create(str(here), run.run_id)
        loads = [
            {**one, "accounting": {**one["accounting"], "planned": one["accounting"]["ok"]}}
            for one in run.summary["workloads"]
        ]
        summary = {**run.summary, "workloads": loads}
        directory.write("run.json", {**run.manifest, "tags": []})
        directory.write("summary.json", summary)
        write_timeline(directory, {**run.timeline, "summary": summary}, sync=False)
        directory.close()


def test_all_runs_that_are_not_there_are_pushed(invoke: Invoke, here: Path, team: str) -> None:
    for name in RUNS:
        made_run(here, 100, run=name)

    first = invoke("runs", "push", RUNS[0], team)
    rest = invoke("runs", "push", team)
    nothing = invoke("runs", "push", team)
    again = invoke("runs", "push", "last", RUNS[0], team)

    for done in (first, rest, nothing, again):
        assert done.exit_code == 0, done.output
    assert f"pushed {RUNS[0]}, 1 of 1\n1 run pushed to {team}\n" == first.stderr
    assert f"2 runs pushed to {team}\n" in rest.stderr
    assert nothing.stderr == f"0 runs pushed to {team}\n"
    assert again.stderr == f"0 runs pushed to {team}; 2 runs there already\n"
    assert listed(invoke, team) == RUNS[::-1]


def test_runs_that_go_on_or_can_be_resumed_are_not_pushed_unasked(
    invoke: Invoke, here: Path, team: str
) -> None:
    made_run(here, 100, run=RUNS[0])
    for name in RUNS[1:]:
        run = RunDirectory.create(str(here), name)
        run.write("run.json", {"run_id": name, "started_at": 1.0, "task": "T", "tags": []})
        run.decide([{"do": "open", "run": name, "epoch": 1}])
        (run.path / "plan").write_bytes(b"signed")
        if name == RUNS[1]:
            run.close()

    done = invoke("runs", "push", team)
    named = invoke("runs", "push", RUNS[1], team)
    run.close()

    assert done.exit_code == named.exit_code == 0, done.output + named.output
    assert f"not pushed: run {RUNS[1]}: it can be resumed" in done.stderr
    assert f"not pushed: run {RUNS[2]}: it goes on" in done.stderr
    assert listed(invoke, team) == RUNS[1::-1]


def test_a_run_that_is_refused_does_not_keep_others_from_the_archive(
    invoke: Invoke, here: Path, team: str
) -> None:
    for name in RUNS[:2]:
        kept_run(here, run=name, count=500)
    (here / "runs" / RUNS[0] / "timeline").write_bytes(b"x")

    done = invoke("runs", "push", RUNS[0], RUNS[1], team)

    assert done.exit_code == 3
    assert f"Error: run {RUNS[0]} is damaged: timeline" in done.stderr
    assert done.stderr.endswith(f"1 run pushed to {team}\n")
    assert listed(invoke, team) == [RUNS[1]]


def test_runs_are_pulled_by_name_task_tag_and_number(invoke: Invoke, here: Path, team: str) -> None:
    for seed, name in enumerate(RUNS, 1):
        kept_run(here, run=name, seed=seed, count=500)
    assert invoke("runs", "push", team).exit_code == 0
    task = json.loads(invoke("runs", "list", "--json").stdout)[0]["task"]

    for options, wanted in (
        ((), RUNS),
        (("last",), RUNS[2:]),
        ((RUNS[0], "20260402"), RUNS[:2]),
        (("--newest", "2"), RUNS[1:]),
        (("--tag", "2"), RUNS[1:2]),
        (("--task", task), RUNS),
    ):
        vanish(here)
        done = invoke("runs", "pull", team, *options)
        assert done.exit_code == 0, done.output
        assert local(here) == wanted

    again = invoke("runs", "pull", team)
    assert again.stderr == f"0 runs pulled into {here / 'runs'}; 3 runs here already\n"
    assert invoke("runs", "show", RUNS[0]).exit_code == 0


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("runs", "push"), "Missing argument 'URL'"),
        (("runs", "push", "20269999", "TEAM"), "no run '20269999' in "),
        (("runs", "pull", "TEAM", "20269999"), "no run '20269999' in TEAM; give"),
        (("runs", "pull", "TEAM", "--task", "Unknown"), "no run in the archive TEAM matches"),
        (("runs", "push", "sftp://a:hunter2@h/x", "last"), "sftp://***@h/x is not a run; the arch"),
        (("runs", "pull", "TEAM-empty"), "the archive TEAM-empty does not exist"),
        (("runs", "pull", "TEAM", "last", "--newest", "2"), "--newest cannot be combined with RUN"),
        (("runs", "pull", ""), "an archive is a folder, or a URL such as s3://BUCKET/FOLDER"),
        (("trends", "--archive", "s3://a:hunter2@b/c"), "a URL with a password is seen by others"),
        (("trends", "--archive", "TEAM", "--task", "Unknown"), "no finished run matches"),
        (("compare", "last", "20269999", "--archive", "TEAM"), "no run '20269999' in "),
    ],
)
def test_what_is_wrong_is_one_message(
    invoke: Invoke, here: Path, team: str, args: tuple[str, ...], said: str
) -> None:
    made_run(here, 100, run=RUNS[0])
    assert invoke("runs", "push", team).exit_code == 0

    done = invoke(*(one.replace("TEAM", team) for one in args))

    assert done.exit_code == 2, done.output
    assert said.replace("TEAM", team) in done.stderr
    assert "hunter2" not in done.output
    assert done.stdout == ""


def test_an_archive_that_does_not_exist_is_not_merely_empty(invoke: Invoke, team: str) -> None:
    done = invoke("runs", "list", "--archive", team)

    assert done.exit_code == 0
    assert done.stderr == (
        f"the archive {team} does not exist: check the path; `runs push` creates it\n"
    )


def test_an_empty_archive_is_listed(invoke: Invoke, team: str) -> None:
    Path(team).mkdir()
    done = invoke("runs", "list", "--archive", team)

    assert done.exit_code == 0
    assert done.stderr == f"there is no run in the archive {team}\n"
    trend = invoke("trends", "--archive", team)
    assert trend.exit_code == 2
    assert trend.stderr == (
        f"Warning: there is no run in the archive {team}\nError: no finished run matches: "
        "`osbench-coord runs list` shows all runs\n"
    )


def test_the_list_of_an_archive_is_that_of_its_data_directory(
    invoke: Invoke, here: Path, team: str
) -> None:
    kept_run(here, run=RUNS[0], count=500)
    invoke("runs", "push", team)
    mine = json.loads(invoke("runs", "list", "--json").stdout)
    vanish(here)

    there = json.loads(invoke("runs", "list", "--archive", team, "--json").stdout)
    tagged = invoke("runs", "list", "--archive", team, "--tag", "other", "--json")

    assert [{**row, "size_bytes": 0} for row in there] == [{**row, "size_bytes": 0} for row in mine]
    assert tagged.stdout == "[]\n"


def test_trends_and_comparisons_see_the_runs_of_nodes_that_vanished(
    invoke: Invoke, here: Path, team: str
) -> None:
    chance = np.random.default_rng(1)
    found = side(Queue(duration_s=60), chance, "A", 8)
    slow = side(Queue(duration_s=60), chance, "B", 1, slower=1.5)
    keep(here, found)
    before = invoke("trends", "--json")
    assert invoke("runs", "push", team).exit_code == 0
    vanish(here)
    keep(here, slow)

    # the new run is here and not in the archive
    checked = invoke("trends", "--check", "--archive", team)
    compared = invoke("compare", "A0", "B0", "--archive", team)
    alone = invoke("trends", "--check")
    vanish(here)
    after = invoke("trends", "--archive", team, "--json")

    assert json.loads(after.stdout) == json.loads(before.stdout)
    assert checked.exit_code == 1, checked.output
    assert "Run B0 is worse: p" in checked.stdout
    assert compared.exit_code == 1, compared.output
    assert "too few to check" in alone.stdout
    # its files are fetched for a comparison, and for nothing else
    assert len(list(here.glob("archives/*/runs/*/*"))) == 0


def test_a_run_that_is_here_and_there_counts_once(invoke: Invoke, here: Path, team: str) -> None:
    keep(here, side(Queue(duration_s=60), np.random.default_rng(1), "A", 3))
    alone = invoke("trends", "--json")
    invoke("runs", "push", team)

    both = invoke("trends", "--json", "--archive", team)

    assert json.loads(both.stdout) == json.loads(alone.stdout)


def test_a_damaged_run_of_the_archive_ends_a_comparison_and_not_a_trend(
    invoke: Invoke, here: Path, team: str
) -> None:
    keep(here, side(Queue(duration_s=60), np.random.default_rng(1), "A", 3))
    invoke("runs", "push", team)
    vanish(here)
    for packed in Path(team, "runs").iterdir():
        packed.write_bytes(packed.read_bytes()[:-200])

    trend = invoke("trends", "--archive", team)
    compared = invoke("compare", "A0", "A1", "--archive", team)

    assert trend.exit_code == 0, trend.output
    assert compared.exit_code == 3
    assert compared.stderr.startswith(f"Error: the archive {team}: runs/A0.")
