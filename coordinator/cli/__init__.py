"""The command `osbench-coord`."""

from __future__ import annotations

import importlib

import click

from osbench import __version__
from osbench.coordinator.cli.base import Group, config_option

EPILOG = """
\b
A first run, with nothing set up:
  osbench-coord run --scenario Dummy.dummy --arg sleep=0.1 --concurrency 4 --duration 5

\b
A task of your own, to change and run again:
  osbench-coord init task.yaml
  osbench-coord validate task.yaml
  osbench-coord run task.yaml

\b
Against a cloud:
  osbench-coord deployment create --name mycloud --from-env
  osbench-coord run task.yaml --deployment mycloud

\b
On more hosts, once `osbench-worker` runs there:
  osbench-coord workers
  osbench-coord run task.yaml --wait-for-workers 60
"""


#: Command -> the module of `commands` that defines it.
COMMANDS = {
    "abort": "runs",
    "cleanup": "cleanup",
    "compare": "compare",
    "completion": "init",
    "config": "init",
    "deployment": "deployment",
    "duel": "duel",
    "init": "init",
    "keys": "keys",
    "plugin": "plugin",
    "report": "report",
    "results": "results",
    "resume": "run",
    "run": "run",
    "runs": "runs",
    "status": "runs",
    "trace": "trace",
    "trends": "trends",
    "validate": "validate",
    "web": "web",
    "workers": "workers",
}


class Commands(Group):
    """The commands, each imported when it is used: importing all of them takes a second."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, None where there is none."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"osbench.coordinator.cli.commands.{COMMANDS[cmd_name]}")
        found: click.Command = getattr(module, cmd_name)
        return found


@click.group(
    cls=Commands,
    # click lists these, and suggests similar ones for an unknown name
    commands=[click.Command(name) for name in COMMANDS],
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@config_option
@click.version_option(__version__, prog_name="osbench-coord")
def main() -> None:
    """Drive load at OpenStack-style services from many worker processes and hosts."""
