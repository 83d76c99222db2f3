"""What commands say of a run with a damaged file: the same as before, or which file it is."""

from __future__ import annotations

import json
import random
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from helpers.cli_commands import command
from helpers.kept_runs import DAMAGES, FILES, damage, kept_run
from helpers.made_runs import RUN
from osbench.coordinator.front.cli.group import Group
from osbench.coordinator.results.storage.run_directory import RunDirectory

OTHER = "20260402-101500-cdef"
NAMES = ("results", "report", "compare", "trends", "trace", "sla", "logs", "runs", "status")
#: What is printed and written; PAGE is a file of another folder.
COMMANDS = (
    ("results", RUN),
    ("results", RUN, "--json"),
    ("results", RUN, "--csv"),
    ("results", RUN, "--errors"),
    ("results", RUN, "--iteration", "17"),
    ("results", RUN, "--rally-json"),
    ("report", RUN, "--html", "PAGE.html"),
    ("report", RUN, "--csv", "PAGE.csv"),
    ("compare", RUN, OTHER, "--json"),
    ("trends", "--json"),
    ("trace", "explain", RUN, "--json"),
    ("trace", "export", RUN),
    ("sla", RUN),
    ("logs", RUN),
    ("runs", "show", RUN),
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with two runs of a task."""
    data = tmp_path_factory.mktemp("kept") / "data"
    for run, seed in ((RUN, 1), (OTHER, 2)):
        kept_run(data, run, seed, count=300)
    return data


@pytest.fixture
def data(runs: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(runs, tmp_path / "data"))


def call(data: Path, *args: str) -> Result:
    conf = data.parent / "osbench.conf"
    conf.write_text(f"[DEFAULT]\ndata_dir = {data}\n")
    group = Group(commands=[command(name) for name in NAMES])
    return CliRunner().invoke(group, [*args, "--config-file", str(conf)])


def told(data: Path, args: tuple[str, ...], folder: Path, *more: str) -> tuple[Result, str]:
    """What a command prints, and what it writes to a page."""
    page = folder / args[-1]
    page.unlink(missing_ok=True)
    given = [*args[:-1], str(page) if page.stem == "PAGE" else args[-1]]
    done = call(data, *given, *more)
    return done, page.read_text() if page.exists() else ""


def lasting(text: str) -> str:
    """A text without the instant at which it was printed."""
    return re.sub(r'"generated_at": "[^"]*"', "", text)


@pytest.fixture(scope="module")
def before(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, ...], str]:
    """What all commands print of the runs as they ended."""
    folder = tmp_path_factory.mktemp("pages")
    found = {}
    for args in COMMANDS:
        done, written = told(runs, args, folder)
        assert isinstance(done.exception, SystemExit | None), done.exception
        assert done.exit_code in (0, 1), (args, done.output)
        found[args] = lasting(done.stdout + written)
    return found


HOW = (*DAMAGES, "gone", "swapped")


@pytest.mark.parametrize(
    ("name", "how"),
    [
        # of each file one way, the next one for the next file; the others for make test-all
        pytest.param(name, how, marks=() if at % len(HOW) == turn else pytest.mark.dear)
        for at, name in enumerate(FILES)
        for turn, how in enumerate(HOW)
    ],
)
def test_a_damaged_file_changes_nothing_or_is_named(
    data: Path, before: dict[tuple[str, ...], str], tmp_path: Path, name: str, how: str
) -> None:
    directory = data / "runs" / RUN
    damage(directory / name, how, random.Random(f"{name} {how}"), data / "runs" / OTHER / name)

    for args in COMMANDS:
        done, written = told(data, args, tmp_path)

        assert isinstance(done.exception, SystemExit | None), (args, done.exception)
        if done.exit_code == 3:
            said = done.output
            assert "damaged" in said, (args, said)
            assert name in said or how == "swapped", (args, said)
        else:
            assert lasting(done.stdout + written) == before[args], args


def test_no_command_shows_rows_of_cut_blocks_unless_it_is_asked_to(
    data: Path, tmp_path: Path
) -> None:
    run = kept_run(tmp_path / "large", "20260403-large", count=20_001)
    shutil.copytree(run.path, data / "runs" / run.path.name)
    blocks = data / "runs" / run.path.name / "blocks"
    with blocks.open("r+b") as file:
        file.truncate(blocks.stat().st_size - 9)

    for args in (("results", "last"), ("results", "last", "--csv"), ("trends",), ("sla", "last")):
        refused = call(data, *args)
        assert refused.exit_code == 3, args
        assert "blocks has" in refused.stderr
        assert "and 20,000 of 20,001 rows" in refused.stderr
        assert "--damaged" in refused.stderr
        assert not refused.stdout

    rows = call(data, "results", "last", "--csv", "--damaged")
    text = call(data, "results", "last", "--damaged")
    document = call(data, "results", "last", "--json", "--damaged")
    page, _ = told(data, ("report", "last", "--html", "PAGE.html"), tmp_path, "--damaged")
    assert len(rows.stdout.splitlines()) == 20_002
    assert rows.stdout.startswith("# PARTIAL: files of this run are damaged: blocks has")
    assert "PARTIAL: files of this run are damaged: blocks has" in " ".join(text.stdout.split())
    assert json.loads(document.stdout)["notes"][0].startswith("PARTIAL: ")
    for done in (rows, text, document, page):
        assert done.exit_code == 0
        assert "Warning: PARTIAL: " in done.stderr


@pytest.mark.parametrize(
    "changes",
    [{"census": None}, {"clocks": 7}, {"ranking": [{}]}, {"traced": "many"}, {"calls": [1]}],
)
def test_a_document_of_another_form_is_named_when_damage_is_accepted(
    data: Path, changes: dict[str, object]
) -> None:
    path = data / "runs" / RUN / "traces" / "collection.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    found = [
        call(data, *args, "--damaged")
        for args in (("trace", "explain", RUN), ("trace", "export", RUN), ("compare", RUN, OTHER))
    ]

    assert all(isinstance(one.exception, SystemExit | None) for one in found)
    for done in found[:2]:
        assert done.exit_code == (0 if "calls" in changes else 2), done.output
        assert (
            "calls" in changes or "collection.json is damaged: it has another shape" in done.stderr
        )
    assert found[2].exit_code in (0, 1)


def test_a_damaged_run_that_nobody_named_is_left_out_of_trends_when_asked(data: Path) -> None:
    kept_run(data, "20260403-third", seed=3, count=300)
    (data / "runs" / OTHER / "summary.json").write_text("{")

    refused, asked = call(data, "trends", "--json"), call(data, "trends", "--json", "--damaged")
    compared = call(data, "compare", RUN, "20260403-third", "--damaged")

    assert refused.exit_code == 3
    assert (
        f"run {OTHER} is damaged: summary.json has 1 of"
        in json.loads(refused.stdout)["error"]["message"]
    )
    assert asked.exit_code == 0
    assert f"Warning: left out: run {OTHER} is damaged" in asked.stderr
    assert compared.exit_code in (0, 1)


def test_lists_and_states_of_damaged_runs_are_shown(data: Path) -> None:
    (data / "runs" / RUN / "failure.json").write_text("{")
    (data / "runs" / OTHER / "summary.json").write_text("{")

    listed = json.loads(call(data, "runs", "list", "--json").stdout)

    assert "summary.json has 1 of" in listed[0]["why"]
    assert "failure.json has 1 of" in listed[1]["why"]
    assert RunDirectory.find(str(data), RUN).files.problems()


def test_the_status_of_a_damaged_run_is_refused_and_lists_call_it_damaged(data: Path) -> None:
    (data / "runs" / RUN / "summary.json").write_text("{")

    for args in (("status", RUN), ("status", RUN, "--json")):
        done = call(data, *args)
        assert done.exit_code == 3, args
        assert f"run {RUN} is damaged: summary.json has 1 of" in done.output
    (_, row) = json.loads(call(data, "runs", "list", "--json").stdout)
    assert row["state"] == "damaged"
    assert row["why"].startswith(f"run {RUN} is damaged: ")
    assert "--damaged" not in row["why"]
