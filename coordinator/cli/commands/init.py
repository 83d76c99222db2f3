"""The commands `config`, `init` and `completion`."""

from __future__ import annotations

from pathlib import Path

import click
from click.shell_completion import get_completion_class

from osbench.common.config.options import OPTIONS
from osbench.common.errors import UsageError
from osbench.coordinator.cli.base import CommandSettings, with_settings
from osbench.coordinator.cli.group import Group
from osbench.coordinator.taskfile.recording.flow_task import FlowTask, written
from osbench.coordinator.taskfile.recording.har_file import read_har
from osbench.coordinator.taskfile.recording.har_selection import select
from osbench.coordinator.taskfile.recording.har_steps import task_of as har_task
from osbench.coordinator.taskfile.recording.openapi_file import ServiceDescription
from osbench.coordinator.taskfile.recording.openapi_steps import task_of as openapi_task

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
@click.option("--from-har", metavar="HAR", help="Make the task of what a browser recorded.")
@click.option(
    "--host",
    "hosts",
    metavar="HOST",
    multiple=True,
    help="With --from-har: make requests to this host, in place of the page's; repeatable.",
)
@click.option(
    "--with-assets", is_flag=True, help="With --from-har: keep images, fonts, styles and scripts."
)
@click.option(
    "--from-openapi", metavar="SPEC", help="Make the task of what OpenAPI 3 or Swagger 2 describes."
)
def init(
    file: str,
    from_har: str | None,
    hosts: tuple[str, ...],
    with_assets: bool,
    from_openapi: str | None,
) -> None:
    """Write a task to FILE (task.yaml): a sample, or a flow of requests.

    \b
    Examples:
      osbench-coord init
      osbench-coord init nightly.yaml
      osbench-coord init shop.yaml --from-har shop.har
      osbench-coord init shop.yaml --from-openapi shop-api.yaml
    """
    target = Path(file)
    if target.exists():
        raise UsageError(f"{file} exists; give another name")
    if from_har is not None and from_openapi is not None:
        raise UsageError("give --from-har or --from-openapi, not both")
    if from_har is None and (hosts or with_assets):
        raise UsageError("--host and --with-assets go with --from-har")
    if from_har is not None:
        recording = select(read_har(from_har), hosts, assets=with_assets, file=from_har)
        _write_flow(target, har_task(recording, from_har))
    elif from_openapi is not None:
        _write_flow(target, openapi_task(ServiceDescription(from_openapi), from_openapi))
    else:
        _write(target, SAMPLE.format(name=file))
        click.echo(f"wrote {file}; check it with: osbench-coord validate {file}", err=True)


def _write_flow(target: Path, flow: FlowTask) -> None:
    _write(target, written(flow, target.name))
    left_out = f"; left out: {flow.omissions()}" if flow.omissions() else ""
    said = f"wrote {target}: {flow.made()} requests{left_out}"
    click.echo(f"{said}; check it with: {flow.check_command(str(target))}", err=True)


def _write(target: Path, text: str) -> None:
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{target}: {error.strerror or error}") from None


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
