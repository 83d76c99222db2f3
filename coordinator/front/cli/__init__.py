"""The command `osbench-coord`: its subcommands, their options and their output."""

from __future__ import annotations

import importlib
from keyword import iskeyword

import click

from osbench import __version__
from osbench.common.machine.import_block import import_block
from osbench.coordinator.front.cli.group import Group, config_option

EPILOG = """
\b
A first run, with nothing set up:
  osbench-coord run --scenario Dummy.dummy --arg sleep=0.1 --concurrency 4 --duration 5

\b
Your own task, to change and run again:
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


#: Instead of a module: an edge has the command, as an entry point `osbench.command` of its name.
EDGE = ""
#: Command -> the module of `commands` that defines it, or `EDGE`, and the first line of its help.
COMMANDS = {
    "abort": ("runs", "End a run as Ctrl-C would."),
    "cleanup": ("cleanup", "Remove resources that a run has left behind."),
    "compare": (EDGE, "Compare runs: the first side is before, the second after."),
    "completion": ("init", "Print the script that completes commands in your shell."),
    "config": ("init", "Look at the configuration."),
    "control": ("runs", "Change the load of a run while it goes on."),
    "deployment": ("deployment", "Keep records of the clouds and services under test."),
    "doctor": ("doctor", "Find the causes that would make a run fail, before there is load."),
    "duel": (EDGE, "Run two task files in turn and compare them."),
    "gate": (EDGE, "Compare a change of a service with its parent commit, under load."),
    "import": ("results", "Make runs of results that Rally has written."),
    "init": ("init", "Write a task to FILE (task.yaml): a flow of requests that runs as it is."),
    "keys": ("keys", "Make the keys that coordinator and workers share."),
    "logs": ("results", "Print the output and logs of the workers of a run."),
    "plan": (EDGE, "Say how many workers a task needs, from a calibration."),
    "plugin": ("plugin", "List and describe scenarios, runners and other plug-ins."),
    "report": ("report", "Write the results of a run to files, or send them to a server."),
    "results": ("results", "Print the results of a run; `report` writes them to files."),
    "rerun": ("run", "Run the task of a run again, with the same arguments and options."),
    "resume": ("run", "Go on with a run whose coordinator was killed, to its report."),
    "run": ("run", "Run a task file, one request or one scenario, and print the report."),
    "runs": ("runs", "List, show, delete, prune and share the runs in the data directory."),
    "sla": ("results", "Print the verdicts of a run, and exit with its exit code."),
    "status": ("runs", "Show the progress of a run, or how it ended."),
    "trace": (EDGE, "Show where iterations spent their time."),
    "trends": (EDGE, "Show percentiles over runs, and their lasting changes."),
    "use": ("default_use", "Choose the deployment record that commands use by default."),
    "validate": ("validate", "Check task files without running them; `-` is standard input."),
    "wait": ("runs", "Wait for a run to end, and exit with its code."),
    "web": ("web", "Show the runs of the data directory in a browser until Ctrl-C."),
    "workers": ("workers", "List the worker processes, or free the workers of a run."),
}


class Commands(Group):
    """The commands, each imported when it is used: importing all of them takes a second."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return name, imported command and remaining arguments of a command line.

        The name is looked up in the group's commands, which are stand-ins with a help line; only
        the command found is imported. Raises PluginError as `command` does.
        """
        name, listed, rest = super().resolve_command(ctx, args)
        return name, None if name is None or listed is None else command(name), rest


def command(name: str) -> click.Command:
    """Import the command `name` of `COMMANDS` and return it.

    Raises PluginError if the edge (an optional package) that has the command is not installed.
    """
    found: click.Command
    where, _ = COMMANDS[name]
    if where == EDGE:
        # `--help` does without what it imports
        from osbench.common.plugin import entry_points  # noqa: PLC0415 - see above

        found = entry_points.load_object("command", name)
    else:
        with import_block():
            module = importlib.import_module(f"osbench.coordinator.front.cli.commands.{where}")
        # no function can have the name of a keyword
        found = getattr(module, f"{name}_" if iskeyword(name) else name)
    return found


@click.group(
    cls=Commands,
    # click lists and completes these, and suggests similar ones for an unknown name
    commands=[click.Command(name, short_help=line) for name, (_, line) in COMMANDS.items()],
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@config_option
@click.version_option(__version__, prog_name="osbench-coord")
def main() -> None:
    """Drive load at OpenStack-style services from many worker processes and hosts."""
