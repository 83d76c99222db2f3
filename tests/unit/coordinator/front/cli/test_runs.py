"""The commands that list, delete and prune runs."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from osbench.common.errors import ConfigError
from osbench.coordinator.front.cli.commands.runs import control, runs
from osbench.coordinator.front.cli.group import Group
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_retention import check_writable

DAY_S = 86400
Invoke = Callable[..., Result]


@pytest.fixture
def invoke(tmp_path: Path) -> Invoke:
    """Call `runs` with a data directory of the test."""
    conf = tmp_path / "osbench.conf"
    conf.write_text(f"[DEFAULT]\ndata_dir = {tmp_path}\n")
    group = Group(commands=[runs])

    def call(*args: str, answer: str | None = None) -> Result:
        given = ["runs", *args, "--config-file", str(conf)]
        return CliRunner().invoke(group, given, input=answer)

    return call


def make_runs(data: Path, *ages_days: float) -> list[str]:
    """Runs of some ages, oldest first; returns their ids."""
    names = []
    for number, days in enumerate(ages_days):
        run = RunDirectory.create(str(data), f"2026010{number}-120000-aaaa")
        run.write("run.json", {"started_at": time.time() - days * DAY_S, "task": "T", "tags": []})
        run.close()
        names.append(run.path.name)
    return names


def left(data: Path) -> list[str]:
    return [one.path.name for one in RunDirectory.all(str(data))]


def test_sizes_are_listed(invoke: Invoke, tmp_path: Path) -> None:
    (name,) = make_runs(tmp_path, 1)
    (tmp_path / "runs" / name / "blocks").write_bytes(b"x" * 2_000_000)

    text, rows = invoke("list").stdout, json.loads(invoke("list", "--json").stdout)

    assert "2.0" in text
    assert "MB" in text
    assert rows[0]["size_bytes"] >= 2_000_000


def test_the_newest_run_comes_first(invoke: Invoke, tmp_path: Path) -> None:
    names = make_runs(tmp_path, 3, 2, 1)

    text, rows = invoke("list").stdout, json.loads(invoke("list", "--json").stdout)

    assert [row["run"] for row in rows] == names[::-1]
    assert [line.split()[0] for line in text.splitlines()[1:]] == names[::-1]


def test_ids_are_whole_on_a_narrow_terminal_and_lines_end_without_blanks(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = make_runs(tmp_path, 2, 1)
    for name in names:
        written = json.loads((tmp_path / "runs" / name / "run.json").read_text())
        long = {**written, "task": "A title of many words " * 9, "tags": ["nightly"]}
        (tmp_path / "runs" / name / "run.json").write_text(json.dumps(long))
    monkeypatch.setenv("COLUMNS", "80")

    lines = invoke("list").stdout.splitlines()

    assert {name for name in names if any(name in line for line in lines)} == {*names}
    assert max(map(len, lines)) <= 80
    assert [line for line in lines if line.endswith(" ")] == []


def test_the_question_says_what_goes_and_no_means_no(invoke: Invoke, tmp_path: Path) -> None:
    first, second, third = make_runs(tmp_path, 40, 35, 1)

    found = invoke("prune", "--older-than", "30d", answer="n\n")

    assert "delete 2 runs" in found.stderr
    assert f"{first} to {second}" in found.stderr
    assert left(tmp_path) == [first, second, third]


def test_yes_to_the_question_deletes(invoke: Invoke, tmp_path: Path) -> None:
    *_, third = make_runs(tmp_path, 40, 35, 1)

    found = invoke("prune", "--older-than", "30d", answer="y\n")

    assert found.exit_code == 0
    assert "2 runs deleted" in found.stderr
    assert left(tmp_path) == [third]


def test_without_an_answer_nothing_is_deleted(invoke: Invoke, tmp_path: Path) -> None:
    names = make_runs(tmp_path, 40)

    found = invoke("prune", "--keep", "0", answer="")

    assert found.exit_code == 130
    assert left(tmp_path) == names


def test_prune_leaves_running_runs_and_those_that_left_resources(
    invoke: Invoke, tmp_path: Path
) -> None:
    running, unclean, _ = make_runs(tmp_path, 40, 40, 40)
    (tmp_path / "runs" / unclean / "contexts").write_bytes(b"signed")
    held = RunDirectory(tmp_path / "runs" / running)
    held.lock()

    careful = invoke("prune", "--keep", "0", "--yes")
    after_careful = left(tmp_path)
    forced = invoke("prune", "--keep", "0", "--yes", "--force")
    held.close()

    assert careful.exit_code == forced.exit_code == 0
    assert f"kept: run {running} is running" in careful.stderr
    assert f"kept: run {unclean} has left resources" in careful.stderr
    assert after_careful == [running, unclean]
    assert left(tmp_path) == [running]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "give --keep N or --older-than AGE"),
        (("--older-than", "30"), "is not an age"),
        (("--keep", "-1"), "--keep"),
    ],
)
def test_bad_options_delete_nothing(
    invoke: Invoke, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    names = make_runs(tmp_path, 40)

    found = invoke("prune", *options, "--yes")

    assert found.exit_code == 2
    assert message in found.stderr
    assert left(tmp_path) == names


def test_the_last_run_named_twice_is_one_run(invoke: Invoke, tmp_path: Path) -> None:
    first, second = make_runs(tmp_path, 2, 1)

    found = invoke("delete", "last", second)

    assert found.exit_code == 0
    assert left(tmp_path) == [first]


def test_delete_refuses_what_left_resources_unless_forced(invoke: Invoke, tmp_path: Path) -> None:
    (name,) = make_runs(tmp_path, 1)
    (tmp_path / "runs" / name / "contexts").write_bytes(b"signed")

    refused = invoke("delete", name)
    forced = invoke("delete", name, "--force")

    assert refused.exit_code == 2
    assert f"osbench-coord cleanup {name}" in refused.stderr
    assert forced.exit_code == 0
    assert left(tmp_path) == []


def test_where_there_are_no_runs_the_place_is_named(invoke: Invoke, tmp_path: Path) -> None:
    done = invoke("list")

    assert done.exit_code == 0
    assert f"no runs in {tmp_path / 'runs'}" in done.stderr


def test_a_data_directory_that_cannot_be_read_is_an_error(invoke: Invoke, tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")

    done = invoke("list")

    assert done.exit_code == 2
    assert f"[DEFAULT] data_dir: the runs in {tmp_path / 'runs'} cannot be listed" in done.stderr


@pytest.mark.parametrize("place", ["file", "file/below", "closed"])
def test_where_no_run_can_be_kept_is_told_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "closed").mkdir()
    # who runs tests as root may write anywhere
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "closed")

    with pytest.raises(ConfigError) as raised:
        check_writable(str(tmp_path / place))

    why = "may not write to" if place == "closed" else f"{tmp_path / 'file'} is not a directory"
    assert f"[DEFAULT] data_dir: no run can be kept in {tmp_path / place}: " in str(raised.value)
    assert why in str(raised.value)


def test_a_new_data_directory_is_fit(tmp_path: Path) -> None:
    check_writable(str(tmp_path / "new" / "place"))


@pytest.mark.parametrize("rate", ["nan", "inf", "-inf", "1e999", "-1"])
def test_a_rate_that_no_load_can_have_is_refused(rate: str, tmp_path: Path) -> None:
    conf = tmp_path / "osbench.conf"
    conf.write_text(f"[DEFAULT]\ndata_dir = {tmp_path}\n")
    make_runs(tmp_path, 1)

    given = ["control", "--rate", rate, "--config-file", str(conf)]
    refused = CliRunner().invoke(Group(commands=[control]), given)

    assert refused.exit_code == 2
    assert "--rate" in refused.stderr
    assert "not a finite number" in refused.stderr or "not in the range" in refused.stderr
