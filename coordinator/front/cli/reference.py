"""Generates docs/task-reference.md: every key, plug-in, option and exit code, from the schemas."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from osbench.common.config.config import default_text, limits
from osbench.common.config.durations import is_duration
from osbench.common.config.options import OPTIONS
from osbench.common.plugin.plugins import Plugins
from osbench.common.plugin.signature import signature_of
from osbench.coordinator.report.exit_code import MEANINGS
from osbench.coordinator.task.taskfile.schema import schemas
from osbench.coordinator.task.taskfile.task_yaml import plain_yaml

_HEAD = """\
# Task reference

Written from the schemas that check task files, by

    python -m osbench.coordinator.front.cli.reference > docs/task-reference.md

Keys in bold are required. A duration is a number of seconds, or a text such as `30s`, `5m`, `500ms`
or `1h30m`; its units are ms, s, m, h and d. `osbench-coord plugin show KIND NAME` shows the same
for any plug-in, including your own. [Write tasks](tasks.md), [Shape the load](load.md) and
[Set limits](limits.md) explain their use."""

#: Heading of a kind of plug-ins, and the sentence below it.
_KINDS = {
    "runner": ("Runners", "How the load is shaped: `runner: {NAME: CONFIGURATION}`."),
    "sla": ("SLA criteria", "Limits that a run must meet: `sla: {NAME: CONFIGURATION}`."),
    "context": ("Contexts", "Resources of iterations: `contexts: {NAME: CONFIGURATION}`."),
    "hook": ("Hooks", "Actions during the load: `hooks: [{action: {NAME: CONFIGURATION}}]`."),
    "trigger": ("Triggers", "When hooks fire: `trigger: {NAME: CONFIGURATION}` of a hook."),
    "exporter": (
        "Exporters",
        "Other formats of results: `osbench-coord report RUN --export NAME`.",
    ),
}


def reference() -> str:
    """Return the whole page docs/task-reference.md, in Markdown."""
    plugins = Plugins()
    parts = [_HEAD, *_task_file(), *_scenarios(plugins)]
    for kind, (heading, sentence) in _KINDS.items():
        names = plugins.names(kind)
        if names:
            parts += [f"## {heading}", sentence]
        for name in names:
            parts += _plugin(name, plugins.get(kind, name))
    return "\n\n".join([*parts, *_options(), *_exit_codes()]) + "\n"


def _task_file() -> Iterator[str]:
    yield "## Task files, version 2"
    yield "### Task"
    yield _keys(schemas.TASK)
    yield "### Subtask"
    yield "A subtask has a list of workloads, or the keys of its only workload."
    yield _keys(schemas.SUBTASK)
    yield "### Workload"
    yield _keys(schemas.SUBTASK["properties"]["workloads"]["items"])
    yield "### Hook of a workload"
    yield _keys(schemas.HOOK)
    yield "## Task files, version 1"
    yield "An object of scenario names, each with a list of workloads."
    yield _keys(schemas.TASK_V1["additionalProperties"]["items"])


def _scenarios(plugins: Plugins) -> Iterator[str]:
    yield "## Scenarios"
    yield "The work of an iteration: `scenario: {NAME: ARGUMENTS}`."
    for name in plugins.scenario_names():
        found = plugins.scenario(name)
        method = getattr(found.cls, found.method)
        yield f"### {name}"
        yield inspect.getdoc(method) or found.title
        rows = [
            (_argument(parameter), _default(parameter))
            for parameter in list(signature_of(method).parameters.values())[1:]
        ]
        if rows:
            yield _table(("argument", "default"), rows)


def _argument(parameter: inspect.Parameter) -> str:
    if parameter.kind is inspect.Parameter.VAR_KEYWORD:
        return "any other"
    required = parameter.default is inspect.Parameter.empty
    return f"**`{parameter.name}`**" if required else f"`{parameter.name}`"


def _default(parameter: inspect.Parameter) -> str:
    if parameter.default is inspect.Parameter.empty:
        return ""
    return f"`{json.dumps(parameter.default)}`"


def _plugin(name: str, cls: type) -> Iterator[str]:
    schema: Mapping[str, Any] = getattr(cls, "CONFIG_SCHEMA", {})
    yield f"### {name}"
    yield inspect.getdoc(cls) or ""
    shape = _shape(schema)
    if shape.get("properties"):
        yield _keys(shape)
    elif "description" in schema:
        yield f"Takes {_kind(schema)}: {schema['description']}."
    elif isinstance(schema.get("additionalProperties"), Mapping):
        each = schema["additionalProperties"]
        text = each.get("description", "")
        yield f"Takes an object of names, each with {_kind(each)}" + (f": {text}." if text else ".")
    for found in (schema.get("examples") or shape.get("examples") or [])[:1]:
        text = plain_yaml({name: found})
        yield f"```yaml\n{text}```"


def _shape(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema if it has properties, else its first alternative with some, or {}."""
    if schema.get("properties"):
        return schema
    branches: list[Mapping[str, Any]] = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    return next((branch for branch in branches if branch.get("properties")), {})


def _keys(schema: Mapping[str, Any]) -> str:
    return _table(("key", "value", "meaning"), _rows(schema, ""))


def _rows(schema: Mapping[str, Any], within: str) -> Iterator[tuple[str, str, str]]:
    required = schema.get("required", ())
    for key, value in schema["properties"].items():
        place = f"`{within}{key}`"
        yield (
            f"**{place}**" if key in required else place,
            _kind(value),
            value.get("description", ""),
        )
        # workloads and hooks have separate tables
        if within or key not in ("workloads", "hooks", "runner"):
            inner = value.get("items") or value
            yield from _rows(inner, f"{within}{key}.") if "properties" in inner else ()


def _kind(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(f"`{choice}`" for choice in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    branches = schema.get("anyOf") or schema.get("oneOf")
    if branches and "type" not in schema:
        return " or ".join(_kind(branch) for branch in branches)
    if is_duration(schema):
        return "a duration" + _range(schema)
    words = {
        "object": "an object",
        "array": "a list",
        "string": "text",
        "integer": "an integer",
        "number": "a number",
        "boolean": "`true` or `false`",
        "null": "`null`",
    }
    kinds = schema.get("type", "")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    return " or ".join(words.get(kind, "anything") for kind in kinds) + _range(schema)


def _range(schema: Mapping[str, Any]) -> str:
    words = {
        "minimum": "at least {:g}",
        "exclusiveMinimum": "above {:g}",
        "maximum": "at most {:g}",
        "maxLength": "up to {} characters",
    }
    bounds = [text.format(schema[key]) for key, text in words.items() if key in schema]
    return ", " + ", ".join(bounds) if bounds else ""


def _options() -> Iterator[str]:
    yield "## Configuration"
    yield (
        "Options of `osbench.conf`, by section. An environment variable, `OS_SECTION__OPTION` in"
        " capitals, overrides the file."
    )
    for group, options in OPTIONS.items():
        yield f"### [{group}]"
        rows = [
            (
                f"`{option.dest}`",
                f"`{default_text(option.default)}`" if default_text(option.default) else "",
                f"{option.help} {limits(option)}".strip(),
            )
            for option in options
        ]
        yield _table(("option", "default", "meaning"), rows)


def _exit_codes() -> Iterator[str]:
    yield "## Exit codes of a run"
    yield _table(("code", "meaning"), [(str(code), text) for code, text in MEANINGS.items()])
    yield (
        "Commands that read a run also exit with 3 if one of its files is cut, changed or missing:"
        " see [a damaged run directory](faults.md#a-damaged-run-directory)."
    )


def _table(head: tuple[str, ...], rows: Any) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(_cell(text) for text in line)} |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(reference())
