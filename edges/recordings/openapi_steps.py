"""Turns the operations of an OpenAPI description into steps of `HttpFlow.run`.

Lists and objects of parameters are written by `style`, `explode` and `collectionFormat`. Source:
https://spec.openapis.org/oas/v3.1.0#style-values, and Swagger 2.0. The styles `matrix` and `label`
of paths are written as `simple`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from osbench.common.errors import UsageError
from osbench.common.plugin.request_values import as_text
from osbench.common.secrets.masking import holds_secret
from osbench.common.secrets.secret_names import Place, is_secret
from osbench.coordinator.task.taskfile.flow_task import (
    Computed,
    FlowTask,
    RecordingOptions,
    WrittenBranch,
    WrittenStep,
    step_name,
)
from osbench.edges.recordings.har_file import is_json
from osbench.edges.recordings.openapi_examples import SchemaExamples
from osbench.edges.recordings.openapi_file import ServiceDescription, ServiceOperation
from osbench.edges.recordings.recorded_parts import MULTIPART
from osbench.edges.recordings.secret_arguments import (
    SecretArguments,
    argument_name,
    joined_string,
    literal,
)

_FORM = "application/x-www-form-urlencoded"
#: Bytes of a file that is made up.
_FILE_BYTES = 1024
_READS = frozenset({"GET", "HEAD", "OPTIONS", "QUERY"})
#: Headers that are made by `self.http`, or by the security schemes.
_OWN = frozenset({"accept", "content-type", "authorization", "cookie", "host"})
#: Separators of a list by `style`, and by the `collectionFormat` of Swagger 2.0.
_SEPARATORS = {
    **{"spaceDelimited": " ", "pipeDelimited": "|"},
    **{"ssv": " ", "tsv": "\t", "pipes": "|"},
}


def read_task(file: str, _options: RecordingOptions) -> FlowTask:
    """Read an OpenAPI file; return a task that makes its operations, as far as a flow can.

    The reader "openapi" for `init`; options have no effect. Raises UsageError if the file is not an
    OpenAPI description or has no operation that a flow can make.
    """
    return task_of(ServiceDescription(file), file)


def task_of(description: ServiceDescription, file: str) -> FlowTask:
    """Return a task with a branch of steps per tag, and another one for steps that change data.

    Branches that change data are commented out, unless there are no others. `file`: origin, for
    messages. Raises UsageError if there is no operation that a flow can make.
    """
    steps = _OperationSteps(description)
    branches: dict[tuple[bool, str], list[WrittenStep]] = {}
    left_out: Counter[str] = Counter()
    for operation in description.operations():
        step, why = steps.step(operation)
        if why:
            left_out[why] += 1
        branches.setdefault((operation.method not in _READS, operation.tag), []).append(step)
    made = {key: found for key, found in branches.items() if any(s.keys for s in found)}
    if not made:
        remedy = "describe at least one in paths"
        if description.elsewhere:
            remedy = "bundle the files that it refers to into one"
        raise UsageError(f"{file} describes no operation that a flow can make; {remedy}")
    # without any that only reads there would be no load at all
    off = any(not changes for changes, _ in made)
    return FlowTask(
        title=f"Operations of {description.title}",
        origin=file,
        base=description.base,
        branches=[
            WrittenBranch(
                name=re.sub(r"[^\w ./:-]", "_", tag)[:80] + (", changes" if changes else ""),
                weight=1,
                steps=found,
                notes=_notes(off=off) if changes else (),
                off=changes and off,
            )
            for (changes, tag), found in sorted(made.items(), key=lambda item: item[0][0])
        ],
        arguments=steps.arguments.hints,
        left_out=left_out,
        notes=_of_all(description),
    )


def _of_all(description: ServiceDescription) -> list[str]:
    said = ["Values are examples and defaults of the description, or made up: look at the ids."]
    if description.elsewhere:
        count = len(description.elsewhere)
        said.append(f"References to other files are not followed ({count}): bundle them first.")
    return said


def _notes(*, off: bool) -> list[str]:
    how = "; take away the lines with a brace and # around them to make them"
    more = how if off else ": do you want them made?"
    return [f"These operations change data{more}"]


class _OperationSteps:
    def __init__(self, description: ServiceDescription) -> None:
        self.arguments = SecretArguments()
        self._description = description
        self._examples = SchemaExamples(description)

    def step(self, operation: ServiceOperation) -> tuple[WrittenStep, str]:
        """Return (step, "") for an operation; (step with only a note, reason) if it cannot be made.

        Adds arguments for secrets to `arguments`.
        """
        shown = re.sub(r"\{([^{}]*)\}", r"[\1]", operation.path)
        name = step_name(operation.method, shown)
        if operation.lasting:
            why = operation.lasting
            return WrittenStep(keys=None, notes=[f"left out: {name}: {why}"]), why
        keys: dict[str, Any] = {"name": name}
        if operation.method != "GET":
            keys["method"] = operation.method
        keys["path"] = self._path(operation)
        for key, place in (("query", "query"), ("headers", "header")):
            if found := self._parameters(operation, place):
                keys[key] = found
        body, why = self._body(operation)
        if operation.method == "QUERY" and not body:
            why = why or "a QUERY without a body"
        if why:
            return WrittenStep(keys=None, notes=[f"left out: {name}: {why}"]), why
        keys |= body
        self._let_in(operation, keys)
        if codes := [int(c) for c in operation.answers if re.fullmatch(r"2\d\d", c)]:
            keys["expect"] = codes[0] if len(codes) == 1 else codes
        return WrittenStep(keys=keys), ""

    def _path(self, operation: ServiceOperation) -> str:
        values = {
            str(one["name"]): simple(one, self._examples.value(one))
            for one in operation.parameters
            if one.get("in") == "path"
        }
        pieces = re.split(r"\{([^{}]*)\}", operation.path)
        return "".join(
            ",".join(quote(text, safe="") for text in values.get(piece, ["1"]))
            if at % 2
            else quote(piece, safe="/%:@,;=~+")
            for at, piece in enumerate(pieces)
        )

    def _parameters(self, operation: ServiceOperation, place: str) -> dict[str, Any]:
        """Return values by name for the parameters in `place` that are required or have an example.

        `place`: "query" or "header". A default, constant or enum is an example, too. Secrets become
        task arguments. Headers that `self.http` makes, and names with braces, are left out.
        """
        found: dict[str, Any] = {}
        for one in operation.parameters:
            name = str(one.get("name"))
            own = place == "header" and name.lower() in _OWN
            if one.get("in") != place or own:
                continue
            value = self._examples.told(one)
            if value is None and one.get("required") is True:
                value = self._examples.value(one)
            if value is None:
                continue
            kind = Place.QUERY if place == "query" else Place.FIELD
            texts: Mapping[str, Any] = {name: ",".join(simple(one, value))}
            if place == "query":
                texts = query_fields(one, value)
            for field, text in texts.items():
                if re.search(r"\{[A-Za-z_]", field):
                    continue
                secret = is_secret(field, text, kind) or is_secret(name, value, kind)
                found[field] = self._written(text, field, secret=secret)
        return found

    def _body(self, operation: ServiceOperation) -> tuple[dict[str, Any], str]:
        """Return (the step's keys for the body, ""); ({}, reason) if no type of body is supported.

        JSON is preferred to forms and multipart. ({}, "") if the operation has no body.
        """
        if not operation.bodies:
            return {}, ""
        for kind, body in operation.bodies.items():
            if is_json(kind) or kind == "*/*":
                return {"json": self._written(self._examples.value(body), "")}, ""
        for kind, body in operation.bodies.items():
            value = self._examples.value(body)
            if kind == _FORM and isinstance(value, dict):
                return {"form": self._written(value, "")}, ""
            if kind == MULTIPART and (parts := self._parts(value, body)):
                return {"multipart": parts}, ""
        return {}, "bodies that are neither JSON nor forms nor multipart"

    def _parts(self, value: Any, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parts of a multipart body by name, as a step has them.

        `value`: example of the body; `body`: its description, by whose schema some parts are files.
        A file gets a made-up name and `_FILE_BYTES` as size.
        """
        schema = self._description.mapping(body.get("schema"))
        found: dict[str, Any] = {}
        for name, one in self._description.mapping(schema.get("properties")).items():
            kind = self._description.mapping(one)
            if kind.get("format") == "binary" or kind.get("type") == "file":
                found[str(name)] = {
                    "filename": f"{argument_name(str(name))}.bin",
                    "size": _FILE_BYTES,
                }
        texts = self._written(value, "") if isinstance(value, dict) else {}
        for name, one in texts.items():
            plain = isinstance(one, str | int | float | Computed)
            found.setdefault(name, one if plain else json.dumps(one, default=str))
        return found

    def _written(self, value: Any, name: str, *, secret: bool = False) -> Any:
        """Return `value` as written in a step: task arguments instead of secrets, braces escaped.

        `name`: its key; `secret`: it is known to be secret, unless it is a mapping. Keys in which
        `HttpFlow` would look for a placeholder are left out.
        """
        if isinstance(value, Mapping):
            # the names below say more: no value here is that of a real user
            return {
                key: self._written(inner, key)
                for key, inner in value.items()
                if not re.search(r"\{[A-Za-z_]", key)
            }
        secret = secret or _is_secret_field(name, value)
        if isinstance(value, list):
            return [self._written(inner, name, secret=secret) for inner in value]
        if isinstance(value, str):
            if secret or holds_secret("", value):
                return joined_string(
                    [self.arguments.of(f"named:{name}", name, f"{name} of requests")]
                )
            return literal(value)
        return value

    def _let_in(self, operation: ServiceOperation, keys: dict[str, Any]) -> None:
        """Add an operation's credentials, as task arguments, to headers or query in `keys`.

        They are API keys for header or query, basic authentication, or a bearer token for all other
        HTTP schemes, OAuth 2 and OpenID Connect. Other security schemes are ignored.
        """
        for scheme in operation.security:
            kind, way = scheme.get("type"), str(scheme.get("scheme", "")).lower()
            if kind == "apiKey" and scheme.get("in") in ("query", "header"):
                place = "headers" if scheme["in"] == "header" else "query"
                name = str(scheme.get("name", "key"))
                whole = name.lower() == "authorization"
                hint = "the header authorization, as in Bearer TOKEN" if whole else ""
                hint = hint or f"the API key {name}"
                argument = self.arguments.of(f"apiKey:{name}", name, hint)
                keys.setdefault(place, {})[name] = joined_string([argument])
            elif kind == "basic" or (kind == "http" and way == "basic"):
                hint = "base64 of NAME:PASSWORD"
                argument = self.arguments.of("basic:", "basic_credentials", hint)
                keys.setdefault("headers", {})["Authorization"] = joined_string(
                    ["Basic ", argument]
                )
            elif kind in ("http", "oauth2", "openIdConnect"):
                argument = self.arguments.of("bearer:", "token", "the bearer token")
                keys.setdefault("headers", {})["Authorization"] = joined_string(
                    ["Bearer ", argument]
                )


def _is_secret_field(name: str, value: Any) -> bool:
    """Return whether a field of a body is a secret, by its name and value.

    A name that ends in "key" must show it otherwise, because it may be the key of a map.
    """
    if not is_secret(name, value):
        return False
    return re.search(r"(?i)keys?$", name) is None or is_secret(f"{name}_data", value)


def query_fields(parameter: Mapping[str, Any], value: Any) -> dict[str, str | list[str]]:
    """Return the fields of a query by name for a parameter's value; a list if it is repeated."""
    name, style = str(parameter.get("name")), parameter.get("style", "form")
    explode = _explodes(parameter, style)
    if isinstance(value, Mapping):
        if style == "deepObject":
            return {f"{name}[{key}]": as_text(inner) for key, inner in value.items()}
        if explode:
            return {str(key): as_text(inner) for key, inner in value.items()}
    elif isinstance(value, list) and explode:
        return {name: [as_text(inner) for inner in value]}
    return {name: _SEPARATORS.get(_format(parameter, style), ",").join(_pieces(value))}


def simple(parameter: Mapping[str, Any], value: Any) -> list[str]:
    """Return the texts, to be joined by commas, of the value of a parameter in a path or header."""
    if isinstance(value, Mapping) and parameter.get("explode") is True:
        return [f"{key}={as_text(inner)}" for key, inner in value.items()]
    return _pieces(value)


def _explodes(parameter: Mapping[str, Any], style: Any) -> bool:
    if "collectionFormat" in parameter or ("schema" not in parameter and "type" in parameter):
        # Swagger 2.0, in which csv is the default
        return parameter.get("collectionFormat") == "multi"
    explode = parameter.get("explode")
    return explode if isinstance(explode, bool) else style == "form"


def _format(parameter: Mapping[str, Any], style: Any) -> str:
    return str(parameter.get("collectionFormat", style))


def _pieces(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [as_text(part) for pair in value.items() for part in pair]
    return [as_text(inner) for inner in value] if isinstance(value, list) else [as_text(value)]
