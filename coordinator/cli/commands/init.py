"""The commands `config`, `init` and `completion`."""

from __future__ import annotations

from pathlib import Path

import click
from click.shell_completion import get_completion_class

from osbench.common.config.options import OPTIONS
from osbench.common.errors import UsageError
from osbench.coordinator.cli.base import CommandSettings, with_settings
from osbench.coordinator.cli.group import Group

SAMPLE = """\
# A task: subtasks, each with a scenario, a runner and SLA criteria. Run it with
#   osbench-coord run {name}
version: 2
title: My first task
subtasks:
  - title: A hundred iterations by four virtual users
    scenario:
      # `osbench-coord plugin list scenario` lists the others
      HttpRequests.check_request:
        url: http://127.0.0.1:8080/
        method: GET
        status_code: 200
    runner:
      # closed: each virtual user starts its next iteration when the last one ends
      constant:
        times: 100
        concurrency: 4
        timeout: 10
    sla:
      failure_rate:
        max: 1

  - title: Twenty arrivals per second, however long each takes
    scenario:
      HttpRequests.check_request:
        url: http://127.0.0.1:8080/
        method: GET
        status_code: 200
    runner:
      # open: arrivals keep to their schedule
      rps:
        times: 200
        rps: 20
        timeout: 10
"""


@click.command()
@click.argument("file", default="task.yaml", type=click.Path(dir_okay=False))
def init(file: str) -> None:
    """Write a commented sample task to FILE (task.yaml).

    \b
    Examples:
      osbench-coord init
      osbench-coord init nightly.yaml
    """
    target = Path(file)
    if target.exists():
        raise UsageError(f"{file} exists; give another name")
    target.write_text(SAMPLE.format(name=file), encoding="utf-8")
    click.echo(f"wrote {file}; check it with: osbench-coord validate {file}", err=True)


@click.group(cls=Group)
def config() -> None:
    """Look at the configuration."""


@config.command("show")
@with_settings
def config_show(settings: CommandSettings) -> None:
    """Print the effective value of every option; secrets are masked.

    \b
    Example:
      osbench-coord config show
    """
    conf = settings.conf
    for group, options in OPTIONS.items():
        click.echo(f"[{group}]")
        values = conf if group == "DEFAULT" else conf[group]
        for option in options:
            value = values[option.dest]
            shown = "***" if option.secret and value is not None else value
            click.echo(f"{option.name} = {'' if shown is None else shown}")
        click.echo()


@click.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes commands in your shell.

    \b
    Example, for bash:
      osbench-coord completion bash > ~/.local/share/bash-completion/completions/osbench-coord
    """
    kind = get_completion_class(shell)
    assert kind is not None
    root = context.find_root()
    script = kind(root.command, {}, "osbench-coord", "_OSBENCH_COORD_COMPLETE")
    click.echo(script.source())
