"""Texts of a pulled run are shown with escapes, by whichever command."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from helpers.cli_commands import command
from helpers.readme import REPOSITORY
from helpers.sample_reports import full_report
from helpers.summaries import to_json
from osbench.coordinator.front.cli.base import echo
from osbench.coordinator.front.cli.group import Group
from osbench.coordinator.front.cli.piped_console import PipedConsole
from osbench.coordinator.results.storage.run_directory import RunDirectory

RUN = "20260401-a"
#: Clears the screen, and turns the direction of text.
STEERING = "\x1b[2J\u202e\x9b"
#: Folders of the product with commands.
FOLDERS = (REPOSITORY / "coordinator", REPOSITORY / "edges")


def steering(document: Any) -> Any:
    """The document with STEERING in each text but names of times and instants."""
    if isinstance(document, dict):
        return {key: steering(value) for key, value in document.items()}
    if isinstance(document, list):
        return [steering(one) for one in document]
    if document in ("service", "response") or re.match(r"\d{4}-\d\d-\d\dT", str(document)):
        return document
    return f"{document}{STEERING}" if isinstance(document, str) else document


@pytest.fixture
def config(tmp_path: Path) -> str:
    """A configuration file; its data directory has a run with STEERING in each of its texts."""
    directory = RunDirectory.create(str(tmp_path), RUN)
    directory.write("run.json", steering({"run_id": RUN, "task": "t", "tags": ["a"]}))
    directory.write("summary.json", steering(to_json(full_report())))
    directory.close()
    path = tmp_path / "osbench.conf"
    path.write_text(f"[DEFAULT]\ndata_dir = {tmp_path}\n")
    return str(path)


@pytest.mark.parametrize(
    "words",
    ["results", "runs show", "runs list", "status", "sla", "results --errors", "trends", "logs"],
)
def test_no_command_lets_a_character_through_that_steers(words: str, config: str) -> None:
    name, *more = words.split()
    run = [] if words in ("runs list", "trends") else [RUN]
    group = Group(commands=[command(name)])

    done = CliRunner().invoke(group, [name, *more, *run, "--config-file", config])

    assert done.exception is None or isinstance(done.exception, SystemExit)
    assert not re.search("[\x1b\u202e\x9b]", done.output)
    if run and words != "logs":
        assert r"\u202e" in done.output


def test_a_console_keeps_its_own_colours(capsys: pytest.CaptureFixture[str]) -> None:
    PipedConsole(force_terminal=True, color_system="standard").print(
        f"a{STEERING}b", style="red", markup=False, highlight=False
    )

    assert capsys.readouterr().out == "\x1b[31ma\\x1b[2J\\u202e\\x9bb\x1b[0m\n"


def test_lines_and_tabs_stay(capsys: pytest.CaptureFixture[str]) -> None:
    echo(f"one\ttwo\n{STEERING}three")

    assert capsys.readouterr().out == "one\ttwo\n\\x1b[2J\\u202e\\x9bthree\n"


def test_commands_print_by_these_two_only() -> None:
    others = {
        str(path.relative_to(REPOSITORY))
        for folder in FOLDERS
        for path in folder.rglob("*.py")
        if re.search(r"click\.s?echo\(|(?<![\w.])(Console|print)\(", path.read_text())
    }

    # one is the door, the other escapes what it prints by itself, for it is imported first
    assert others == {
        "coordinator/front/cli/base.py",
        "coordinator/front/cli/group.py",
    }


def test_json_for_programs_has_the_characters_as_escapes(config: str) -> None:
    group = Group(commands=[command("results")])

    done = CliRunner().invoke(group, ["results", RUN, "--json", "--config-file", config])

    assert json.loads(done.stdout)["task"].endswith(STEERING)
    assert "\x1b" not in done.stdout
