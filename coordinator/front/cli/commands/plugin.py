"""The command `plugin`: lists plug-ins and describes their configuration."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from osbench.common.errors import PluginError, UsageError
from osbench.common.plugin.loading.mixed_scenario import SEPARATOR
from osbench.common.plugin.plugin_names import NATIVE, RALLY, parse_name
from osbench.common.plugin.plugins import KINDS, Plugins
from osbench.common.plugin.signature import hints, near, placeholder, signature_of
from osbench.coordinator.front.cli.base import (
    CommandSettings,
    echo,
    echo_json,
    echo_table,
    warn_of_plugins,
    with_settings,
)
from osbench.coordinator.front.cli.group import Group
from osbench.coordinator.front.cli.options.option_table import flag, options
from osbench.coordinator.front.cli.options.shared_options import plugin_paths, preferred_plugins
from osbench.coordinator.task.taskfile.task_yaml import plain_yaml
from osbench.coordinator.text_table import TextTable, names, texts

#: In the order in which they are listed.
_KINDS = ("scenario", *KINDS)


@click.group(cls=Group)
def plugin() -> None:
    """List and describe scenarios, runners and other plug-ins."""


def _plugins(settings: CommandSettings, paths: tuple[str, ...], prefer: str) -> Plugins:
    return Plugins((*settings.conf.coordinator.plugin_path, *paths), prefer)


@plugin.command("list")
@click.argument("kind", type=click.Choice(_KINDS), required=False)
@options(
    rally=flag("--rally", help="Also list Rally's plug-ins."),
    prefer=preferred_plugins(),
    plugin_path=plugin_paths(),
)
@with_settings
def list_(
    settings: CommandSettings,
    kind: str | None,
    rally: bool,
    prefer: str,
    plugin_path: tuple[str, ...],
) -> None:
    """List plug-ins, of one KIND or of all.

    Names are as in task files. Rally's plug-ins are listed if they are in a plug-in path, or
    with --rally. If osbench and Rally both have a plug-in of the same name, one is
    listed with the suffix that it needs in task files: name@native or name@rally.

    \b
    Examples:
      osbench-coord plugin list
      osbench-coord plugin list scenario --plugin-path ./scenarios
      osbench-coord plugin list context --rally
    """
    plugins = _plugins(settings, plugin_path, prefer)
    with_rally = rally or prefer == RALLY
    if with_rally and (missing := plugins.source(RALLY).missing()):
        raise PluginError(f"install Rally for its plug-ins: it is {missing}")
    held = plugins.source(RALLY).held().values()
    in_paths = {one for contents in held for one in contents}
    warn_of_plugins(plugins)
    table = TextTable(names("kind", "name", "source"), texts("what it is"))
    for one in (kind,) if kind else _KINDS:
        theirs = plugins.source(RALLY).titles(one) if with_rally or in_paths else {}
        if not with_rally:
            theirs = {
                name: title
                for name, title in theirs.items()
                if f"{one} {parse_name(name).bare}" in in_paths
            }
        for row in sorted(_rows(plugins, one, prefer, theirs)):
            table.add_row(one, *row)
    echo_table(table)


def _rows(
    plugins: Plugins, kind: str, prefer: str, theirs: Mapping[str, str]
) -> Iterator[tuple[str, str, str]]:
    """Yield (name, source, title) of each plug-in of a kind: osbench's, then Rally's.

    `theirs`: titles of Rally's plug-ins by name. If both have a name, the plug-in that is not of
    the source `prefer` gets its source as a suffix, such as @rally.
    """
    ours = plugins.scenario_names() if kind == "scenario" else plugins.names(kind)
    bare = {parse_name(name).bare for name in theirs}
    for name in ours:
        means_ours = prefer == NATIVE or name not in bare
        title = _title(plugins, kind, f"{name}@{NATIVE}")
        yield name if means_ours else f"{name}@{NATIVE}", NATIVE, title
    for full, title in theirs.items():
        name = parse_name(full).bare
        means_ours = prefer == NATIVE and name in ours
        yield f"{name}@{RALLY}" if means_ours else name, RALLY, title


@plugin.command()
@click.argument("words", metavar="[KIND] NAME", nargs=-1, required=True)
@options(prefer=preferred_plugins(), plugin_path=plugin_paths())
@with_settings
def show(
    settings: CommandSettings,
    words: tuple[str, ...],
    prefer: str,
    plugin_path: tuple[str, ...],
) -> None:
    """Describe a plug-in and its configuration, with an example.

    KIND, as in `plugin list`, is needed only for a name that plug-ins of two kinds have.

    \b
    Examples:
      osbench-coord plugin show rps
      osbench-coord plugin show runner rps
      osbench-coord plugin show scenario HttpRequests.check_request
      osbench-coord plugin show scenario Dummy.dummy@rally
    """
    plugins = warn_of_plugins(_plugins(settings, plugin_path, prefer))
    kind, name = _kind_and_name(plugins, words)
    if kind == "scenario":
        echo(scenario_text(plugins, name))
        return
    found = plugins.find(kind, name)
    schema: Mapping[str, Any] = getattr(found.cls, "CONFIG_SCHEMA", {})
    echo(f"{kind} {name}{_of(found.source)}\n\n{inspect.getdoc(found.cls) or ''}\n\nschema:")
    echo_json(schema, indent=2)
    echo("\nexample:")
    echo(plain_yaml({kind: {name: example(schema)}}).rstrip())


def _kind_and_name(plugins: Plugins, words: Sequence[str]) -> tuple[str, str]:
    """Return kind and name of the plug-in that `words`, [KIND] NAME of a command, mean.

    With KIND, NAME is not looked up. Raises UsageError for too many words, an unknown kind or an
    ambiguous name, PluginError for an unknown name.
    """
    *kinds, name = words
    if len(kinds) > 1:
        raise UsageError(f"give one plug-in at a time, not {words[0]!r} and {name!r}")
    if kinds and kinds[0] not in _KINDS:
        raise UsageError(f"{kinds[0]!r} is not a kind of plug-in; choose from {', '.join(_KINDS)}")
    if kinds:
        return kinds[0], name
    matches = [kind for kind in _KINDS if _has(plugins, kind, name)]
    if len(matches) > 1:
        raise UsageError(
            f"{name} is the name of a {' and of a '.join(matches)}; choose one, as in "
            f"`osbench-coord plugin show {matches[0]} {name}`"
        )
    if not matches:
        every = {other for kind in KINDS for other in plugins.names(kind)}
        every.update(plugins.scenario_names())
        like = near(name, sorted(every)) or "; `osbench-coord plugin list` lists them"
        raise PluginError("; ".join((f"there is no plug-in {name!r}{like}", *plugins.reasons())))
    return matches[0], name


def _has(plugins: Plugins, kind: str, name: str) -> bool:
    try:
        plugins.scenario(name) if kind == "scenario" else plugins.find(kind, name)
    except PluginError:
        return False
    return True


def _title(plugins: Plugins, kind: str, name: str) -> str:
    if kind == "scenario":
        return plugins.scenario(name).title
    return (inspect.getdoc(plugins.get(kind, name)) or "").partition("\n")[0]


def _of(source: str) -> str:
    return " (Rally's)" if source == RALLY else ""


def scenario_text(plugins: Plugins, name: str) -> str:
    """Return description, arguments, an example and contexts of a scenario, as text.

    For a mix, several names in one, the text of each. Raises PluginError for an unknown scenario.
    """
    parts = name.split(SEPARATOR)
    if len(parts) > 1:
        return "\n\n".join(scenario_text(plugins, part) for part in parts)
    found = plugins.scenario(name)
    method = getattr(found.cls, found.method)
    parameters = [
        parameter
        for parameter in list(signature_of(method).parameters.values())[1:]
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    lines = [f"scenario {name}{_of(found.source)}", ""]
    lines += [inspect.getdoc(method) or inspect.getdoc(found.cls) or "", "", "arguments:"]
    lines += [f"  {parameter}" for parameter in parameters] or ["  none"]
    types = hints(method)
    given = {one.name: _default_value(one.default, types.get(one.name)) for one in parameters}
    lines += ["", "example:", plain_yaml({"scenario": {name: given}}).rstrip()]
    if found.context:
        lines += ["", "contexts it brings:"]
        lines += [f"  {context}: {json.dumps(config)}" for context, config in found.context.items()]
    return "\n".join(lines)


def _default_value(default: Any, hint: Any) -> Any:
    if default is inspect.Parameter.empty:
        return placeholder(hint)
    return json.loads(json.dumps(default, default=str))


def example(schema: Mapping[str, Any]) -> Any:
    """Return a value that fits a JSON schema: its example, default or first choice.

    Else a value of its type; objects get their required keys only, or else one key.
    """
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
