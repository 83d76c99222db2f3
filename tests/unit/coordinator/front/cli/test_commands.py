"""The list of commands: printed without what the commands need, and true."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import entry_points

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from helpers.cli_commands import COMMANDS, command
from osbench.coordinator.front.cli import main
from osbench.coordinator.front.cli.listed_command import OTHERS, SECTIONS

#: What most commands need, and each of which takes longer to import than a list takes to print.
HEAVY = (
    "celery",
    "cryptography",
    "jsonschema",
    "numpy",
    "oslo_config",
    "redis",
    "requests",
    "rich",
)


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ()])
def test_a_list_of_commands_imports_nothing_that_commands_need(arguments: tuple[str, ...]) -> None:
    program = (
        "import atexit, sys\n"
        f"sys.argv = ['osbench-coord', *{arguments!r}]\n"
        f"atexit.register(lambda: print('imported', sorted({{*{HEAVY!r}}} & {{*sys.modules}})))\n"
        "from osbench.coordinator.main import main\n"
        "main()\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )

    assert "osbench-coord" in done.stdout + done.stderr
    assert "imported []" in done.stdout


@pytest.mark.parametrize(
    ("module", "later"),
    [
        # before the workers of local mode start
        (
            "osbench.coordinator.front.cli.commands.run",
            (
                *("celery", "jinja2", "jsonschema", "numpy", "redis"),
                *("osbench.edges.history.comparison", "osbench.coordinator.report"),
                *("osbench.coordinator.load.run", "osbench.coordinator.task.taskfile"),
            ),
        ),
        # before they start their processes
        ("osbench.worker.main", ("celery", "numpy", "redis", "cryptography")),
    ],
)
def test_what_a_run_needs_later_does_not_delay_its_start(module: str, later: list[str]) -> None:
    program = f"import sys\nimport {module}\nprint(sorted({{*{later!r}}} & {{*sys.modules}}))"

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )

    assert done.stdout == "[]\n", done.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_listed_with_the_first_line_of_its_help(name: str) -> None:
    listed = main.get_command(click.Context(main), name)

    assert listed is not None
    assert (command(name).help or "").split("\n\n")[0] == listed.short_help


def test_help_shows_every_command_once_with_its_line_below_a_section() -> None:
    shown = CliRunner().invoke(main, ["--help"], terminal_width=120)

    assert shown.exit_code == 0
    rows = shown.output.partition("-h, --help")[2].partition("A first run")[0]
    for name in COMMANDS:
        listed = main.get_command(click.Context(main), name)
        assert listed is not None
        found = re.findall(rf"(?m)^  {name} +(.*)$", rows)
        assert found == [listed.short_help]
    assert re.findall(r"(?m)^(\w.*):$", rows) == [one for one in SECTIONS if one != OTHERS]


def test_an_unknown_command_is_met_with_a_similar_one() -> None:
    shown = CliRunner().invoke(main, ["rnu"])

    assert shown.exit_code == 2
    assert "No such command" in shown.output
    assert "run" in shown.output


@pytest.mark.parametrize(
    ("words", "typed", "completed"),
    [
        (["run"], "--on", ["--once"]),
        (["run"], "--plug", ["--plugin-path"]),
        (["run", "--prefer"], "r", ["rally"]),
        (["trace", "rank"], "--mi", ["--mistral"]),
        (["report"], "--csv", ["--csv", "--csv-times"]),
    ],
)
def test_shells_complete_options_and_their_values(
    words: list[str], typed: str, completed: list[str]
) -> None:
    found = ShellComplete(main, {}, "osbench-coord", "").get_completions(words, typed)

    assert [one.value for one in found] == completed


def test_the_short_name_is_the_same_command() -> None:
    scripts = entry_points(group="console_scripts")

    assert scripts["osbench"].value == scripts["osbench-coord"].value
