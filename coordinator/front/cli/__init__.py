"""The command `osbench-coord`: its subcommands, their options and their output."""

from __future__ import annotations

from keyword import iskeyword

import click

from osbench import __version__
from osbench.coordinator.front.cli.group import config_option
from osbench.coordinator.front.cli.listed_command import (
    LOOK,
    OPERATE,
    OTHERS,
    RUN,
    SECTIONS,
    SHARE,
    ListedCommand,
    OpenGroup,
)

EPILOG = """
\b
A first run, of a URL or of a dummy scenario:
  osbench-coord run --url http://127.0.0.1:8080/ --rps 20 --duration 10
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

#: Command -> its section of `--help`, the module of `commands` that defines it, its first line.
COMMANDS = {
    "abort": (RUN, "runs", "End a run as Ctrl-C would."),
    "cleanup": (OPERATE, "cleanup", "Remove resources that a run has left behind."),
    "completion": (OPERATE, "init", "Print the script that completes commands in your shell."),
    "config": (OPERATE, "init", "Look at the configuration."),
    "control": (RUN, "runs", "Change the load of a run in progress."),
    "deployment": (OPERATE, "deployment", "Keep records of the clouds and services under test."),
    "doctor": (OPERATE, "doctor", "Find reasons why a run would fail, before there is load."),
    "import": (SHARE, "results", "Make runs of results that Rally has written."),
    "init": (RUN, "init", "Write a task to FILE (task.yaml): a flow that runs as it is."),
    "keys": (OPERATE, "keys", "Make the keys that coordinator and workers share."),
    "logs": (LOOK, "results", "Print the output and logs of the workers of a run."),
    "plugin": (OPERATE, "plugin", "List and describe scenarios, runners and other plug-ins."),
    "report": (SHARE, "report", "Write the results of a run to files, or send them to a server."),
    "rerun": (RUN, "run", "Run the task of a run again, with its arguments and options."),
    "results": (LOOK, "results", "Print the results of a run; `report` writes them to files."),
    "resume": (RUN, "run", "Continue a run whose coordinator was killed."),
    "run": (RUN, "run", "Run a task file, one request or one scenario."),
    "runs": (SHARE, "runs", "List, show, delete, prune and share runs."),
    "sla": (LOOK, "results", "Print the verdicts of a run, and exit with its exit code."),
    "status": (LOOK, "runs", "Show the progress of a run, or how it ended."),
    "use": (OPERATE, "default_use", "Choose the deployment record that commands use by default."),
    "validate": (RUN, "validate", "Check task files without running them; `-` is standard input."),
    "wait": (LOOK, "runs", "Wait for a run to end, and exit with its code."),
    "web": (LOOK, "web", "Show the runs in a browser, until Ctrl-C."),
    "workers": (OPERATE, "workers", "List the worker processes, or free the workers of a run."),
}


class Commands(OpenGroup):
    """The commands of osbench and of installed packages, listed by section."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections with their commands; an unknown section is `OTHERS`."""
        entries = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        width = max(map(len, entries))
        rows: dict[str, list[tuple[str, str]]] = {section: [] for section in SECTIONS}
        for name, entry in entries.items():
            if entry is not None and not entry.hidden:
                section = getattr(entry, "section", OTHERS)
                row = (name.ljust(width), entry.get_short_help_str(formatter.width - width - 6))
                rows.get(section, rows[OTHERS]).append(row)
        for section, commands in rows.items():
            if commands:
                with formatter.section(section):
                    formatter.write_dl(commands)


@click.group(
    cls=Commands,
    commands=[
        # no function can have the name of a keyword
        ListedCommand(
            name,
            line,
            place=f"{__name__}.commands.{module}:{f'{name}_' if iskeyword(name) else name}",
            section=section,
        )
        for name, (section, module, line) in COMMANDS.items()
    ],
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@config_option
@click.version_option(__version__, prog_name="osbench-coord")
def main() -> None:
    """Put OpenStack or any other HTTP service under load, from many worker processes and hosts."""
