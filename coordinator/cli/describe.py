"""The commands `plugin`, `config`, `init` and `completion`: what there is to use, and how."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import yaml
from click.shell_completion import get_completion_class
from rich.table import Table

from osbench.common.errors import UsageError
from osbench.common.options import OPTIONS
from osbench.common.plugins import Plugins
from osbench.coordinator.cli.common import (
    Group,
    Settings,
    echo_table,
    warn_of_plugins,
    with_settings,
)

KINDS = ("scenario", "runner", "sla", "context", "hook", "trigger", "exporter")

SAMPLE = """\
# A task: subtasks, each with a scenario, a runner and what must hold. Run it with
#   osbench-coord run {name}
version: 2
title: My first task
subtasks:
  - title: As many iterations as fit on four virtual users
    scenario:
      # `osbench-coord plugin list scenario` lists the others
      HttpRequests.check_request:
        url: http://127.0.0.1:8080/
        method: GET
        status_code: 200
    runner:
      # closed: each virtual user starts again when it is done
      constant:
        times: 100
        concurrency: 4
        timeout: 10
    sla:
      failure_rate:
        max: 1

  - title: Twenty arrivals a second, however long each takes
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
    """Write a commented sample task to FILE (task.yaml)."""
    target = Path(file)
    if target.exists():
        raise UsageError(f"{file} exists; give another name")
    target.write_text(SAMPLE.format(name=file), encoding="utf-8")
    click.echo(f"wrote {file}; check it with: osbench-coord validate {file}", err=True)


@click.group(cls=Group)
def plugin() -> None:
    """List and describe scenarios, runners, SLA criteria and other plug-ins."""


def _plugins(settings: Settings, paths: tuple[str, ...]) -> Plugins:
    return warn_of_plugins(Plugins((*settings.conf.coordinator.plugin_path, *paths)))


_path_option = click.option(
    "--plugin-path", multiple=True, metavar="PATH", help="Python file, or directory of them."
)


@plugin.command("list")
@click.argument("kind", type=click.Choice(KINDS), required=False)
@_path_option
@with_settings
def list_(settings: Settings, kind: str | None, plugin_path: tuple[str, ...]) -> None:
    """List plug-ins, of one KIND or of all.

    \b
    Examples:
      osbench-coord plugin list
      osbench-coord plugin list scenario --plugin-path ./scenarios
    """
    plugins = _plugins(settings, plugin_path)
    table = Table("kind", "name", "what it is", box=None)
    for one in (kind,) if kind else KINDS:
        for name in plugins.scenario_names() if one == "scenario" else plugins.names(one):
            table.add_row(one, name, _title(plugins, one, name))
    echo_table(table)


@plugin.command()
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("name")
@_path_option
@with_settings
def show(settings: Settings, kind: str, name: str, plugin_path: tuple[str, ...]) -> None:
    """Describe a plug-in: what it does, its arguments or schema, and an example.

    \b
    Examples:
      osbench-coord plugin show runner rps
      osbench-coord plugin show scenario HttpRequests.check_request
    """
    plugins = _plugins(settings, plugin_path)
    if kind == "scenario":
        click.echo(_scenario_text(plugins, name))
        return
    found = plugins.get(kind, name)
    schema: Mapping[str, Any] = getattr(found, "CONFIG_SCHEMA", {})
    click.echo(f"{kind} {name}\n\n{inspect.getdoc(found) or ''}\n\nschema:")
    click.echo(json.dumps(schema, indent=2))
    click.echo("\nexample:")
    click.echo(yaml.safe_dump({kind: {name: example(schema)}}, sort_keys=False).rstrip())


def _title(plugins: Plugins, kind: str, name: str) -> str:
    if kind == "scenario":
        return plugins.scenario(name).title
    return (inspect.getdoc(plugins.get(kind, name)) or "").partition("\n")[0]


def _scenario_text(plugins: Plugins, name: str) -> str:
    found = plugins.scenario(name)
    method = getattr(found.cls, found.method)
    parameters = [
        parameter
        for parameter in list(inspect.signature(method).parameters.values())[1:]
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    lines = [f"scenario {name}", "", inspect.getdoc(method) or inspect.getdoc(found.cls) or ""]
    lines += ["", "arguments:"]
    lines += [f"  {parameter}" for parameter in parameters] or ["  none"]
    given = {
        parameter.name: None if parameter.default is inspect.Parameter.empty else parameter.default
        for parameter in parameters
    }
    lines += ["", "example:", yaml.safe_dump({"scenario": {name: given}}, sort_keys=False).rstrip()]
    return "\n".join(lines)


def example(schema: Mapping[str, Any]) -> Any:
    """A value that fits a JSON schema, required properties only; made for reading."""
    alternatives = schema.get("anyOf") or schema.get("oneOf")
    if alternatives and "type" not in schema:
        return example(alternatives[0])
    if schema.get("examples"):
        return schema["examples"][0]
    if "default" in schema:
        return schema["default"]
    if "enum" in schema:
        return schema["enum"][0]
    return _of_type(schema)


def _of_type(schema: Mapping[str, Any]) -> Any:
    properties = schema.get("properties", {})
    lowest = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
    match schema.get("type"):
        case "object":
            wanted = schema.get("required") or list(properties)[:1]
            found: Any = {name: example(properties.get(name, {})) for name in wanted}
            others = schema.get("additionalProperties")
            if not found and isinstance(others, Mapping):
                found = {"name": example(others)}
        case "array":
            found = [example(schema.get("items", {}))]
        case "integer" | "number":
            found = lowest
        case "boolean":
            found = True
        case _:
            found = "..."
    return found


@click.group(cls=Group)
def config() -> None:
    """Look at the configuration."""


@config.command("show")
@with_settings
def config_show(settings: Settings) -> None:
    """Print every option with its value as it is in force; secrets are masked."""
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
    """Print the script that completes osbench-coord's commands in your shell.

    \b
    Example, for bash:
      osbench-coord completion bash > ~/.local/share/bash-completion/completions/osbench-coord
    """
    kind = get_completion_class(shell)
    assert kind is not None
    root = context.find_root()
    script = kind(root.command, {}, "osbench-coord", "_OSBENCH_COORD_COMPLETE")
    click.echo(script.source())
