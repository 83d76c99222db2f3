"""osbench's commands as a user runs them: real processes with a home of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from helpers import forked_commands
from servers.child import PATIENCE_S

#: Where the commands lie that belong to the interpreter of the tests.
BIN = Path(sys.executable).parent

#: Variables that would let a user's own cloud or configuration into a test.
_FOREIGN = ("OS_", "OSPROFILER_", "OSBENCH_")

#: How late iterations start on a busy machine is not what is tested.
LENIENT = {"OS_BENCHMARK__LAG_LIMIT_S": "60", "OS_BENCHMARK__MAX_LAG_S": "60"}


def environment(home: Path) -> dict[str, str]:
    """The environment of a command: ours, with another home and without clouds."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
    return {**kept, "HOME": str(home), "PATH": f"{BIN}{os.pathsep}{kept['PATH']}"}


def coord(
    home: Path, *arguments: str, within_s: float = PATIENCE_S
) -> subprocess.CompletedProcess[str]:
    """Run osbench-coord to its end; stdout and stderr apart, standard input empty.

    In local mode it has one worker process unless `--workers` asks for more.
    """
    env = environment(home) | LENIENT | {"OS_WORKER__PROCESSES": "1"}
    return forked_commands.run(arguments, folder=home, env=env, within_s=within_s)


def call(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run osbench-coord to its end in this process; only Rally's plug-ins are not looked for.

    For commands that end before a run: they start nothing. An import of all that Rally has, for a
    name that nobody knows, takes four seconds of CPU.
    """
    from osbench.common.plugin import plugin_source, plugins
    from osbench.coordinator.front.cli import main

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        patch.setattr(plugins, "Sources", lambda _: plugin_source.Sources(()))
        values = environment(home) | LENIENT
        for name in os.environ.keys() - values.keys():
            patch.delenv(name)
        for name, value in values.items():
            patch.setenv(name, value)
        done = CliRunner().invoke(main, arguments, prog_name="osbench-coord")
    if not isinstance(done.exception, SystemExit | None):
        raise done.exception
    return subprocess.CompletedProcess(
        ["osbench-coord", *arguments], done.exit_code, done.stdout, done.stderr
    )
