"""Commands of installed packages: their section of the help, and a broken one."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from types import SimpleNamespace
from typing import Any

import click
import pytest
from click.testing import CliRunner

from osbench.common.plugin import entry_points
from osbench.coordinator.front.cli import main
from osbench.coordinator.front.cli.listed_command import COMPARE, OTHERS, ListedCommand


@click.command()
def plain() -> None:
    """Greet."""
    click.echo("hello")


LISTED = ListedCommand("late", "Greet later.", place="greetings:plain", section=COMPARE)
UNKNOWN = ListedCommand("odd", "Greet oddly.", place="greetings:plain", section="Odd")


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a package had these entry points, in addition to those that are installed."""
    read = entry_points.installed_points
    objects = {
        "late": LISTED,
        "odd": UNKNOWN,
        "plain": plain,
        "run": plain,
    }
    monkeypatch.setitem(sys.modules, "greetings", SimpleNamespace(**objects))
    points = [EntryPoint(name, f"greetings:{name}", "osbench.command") for name in objects]
    points.append(EntryPoint("broken", "greetings_gone:broken", "osbench.command"))

    def installed(kinds: Any) -> Any:
        return {
            kind: [*found, *(points if kind == "command" else ())]
            for kind, found in read(kinds).items()
        }

    monkeypatch.setattr(entry_points, "installed_points", installed)


def sections() -> dict[str, list[str]]:
    """Section of the program's help -> its lines."""
    shown = CliRunner().invoke(main, ["--help"], terminal_width=120)
    assert shown.exit_code == 0, shown.output
    parts = [part.splitlines() for part in shown.output.split("\n\n")]
    return {
        lines[0].removesuffix(":"): [" ".join(line.split()) for line in lines] for lines in parts
    }


def test_a_command_of_a_package_is_in_its_section_or_among_the_others() -> None:
    found = sections()

    assert "late Greet later." in found[COMPARE]
    assert found[OTHERS][1:] == [
        "broken Cannot be loaded; run it to see why.",
        "odd Greet oddly.",
        "plain Greet.",
    ]


@pytest.mark.parametrize("name", ["late", "odd", "plain"])
def test_a_command_of_a_package_runs(name: str) -> None:
    done = CliRunner().invoke(main, [name])

    assert (done.exit_code, done.output) == (0, "hello\n")


def test_a_package_replaces_no_command_of_osbench() -> None:
    shown = CliRunner().invoke(main, ["run", "--help"])

    assert "Run a task file" in shown.output


def test_a_command_that_cannot_be_loaded_says_why() -> None:
    done = CliRunner().invoke(main, ["broken"])

    assert done.exit_code == 2
    reason = "broken (entry point greetings_gone:broken) cannot be loaded: "
    assert done.stderr.startswith(f"Error: {reason}")


def test_an_unknown_command_is_compared_with_those_of_packages() -> None:
    done = CliRunner().invoke(main, ["plian"])

    assert done.exit_code == 2
    assert "plain" in done.stderr


def test_errors_are_json_unless_the_command_is_report(tmp_path: Any) -> None:
    conf = tmp_path / "osbench.conf"
    conf.write_text(f"[DEFAULT]\ndata_dir = {tmp_path}\n")

    of_results = CliRunner().invoke(
        main, ["--config-file", str(conf), "results", "report", "--json"]
    )
    of_report = CliRunner().invoke(
        main, ["--config-file", str(conf), "report", "report", "--json", "file"]
    )

    assert of_results.stdout.startswith("{")
    assert of_report.stdout == ""
    assert of_report.stderr.startswith("Error: there is no run")
