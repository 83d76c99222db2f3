"""Prints the help of every command, as JSON: command -> its text and those of the commands below.

A process of its own prints it: click keeps the `--help` of a command as it was first asked for.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import click
from click.testing import CliRunner

from helpers.cli_commands import COMMANDS, command, commands_of
from helpers.import_path import TESTS, import_path
from osbench.coordinator.front.cli import main as coordinator
from osbench.worker.main import main as worker

#: Columns of a terminal.
WIDTH = 80


def help_texts() -> dict[str, str]:
    """What a new process prints."""
    done = subprocess.run(
        [sys.executable, "-m", "helpers.help_texts"],
        env=os.environ | import_path(TESTS),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found


def main() -> None:
    """Print the texts."""
    texts = {"osbench-coord": _shown("osbench-coord", coordinator)}
    for name in COMMANDS:
        each = [_shown("osbench-coord", coordinator, *path) for path in _paths(name, command(name))]
        texts[name] = "\n".join(each)
    texts["osbench-worker"] = _shown("osbench-worker", worker)
    print(json.dumps(texts))


def _paths(name: str, found: click.Command) -> Iterator[tuple[str, ...]]:
    """The words that call a command, and those of the commands below it."""
    yield (name,)
    if isinstance(found, click.Group):
        for below, one in commands_of(found).items():
            for path in _paths(below, one):
                yield name, *path


def _shown(called: str, root: click.Command, *path: str) -> str:
    done = CliRunner().invoke(root, [*path, "--help"], prog_name=called, terminal_width=WIDTH)
    assert done.exit_code == 0, done.output
    return f"$ {' '.join((called, *path, '--help'))}\n{done.output}"


if __name__ == "__main__":
    main()
