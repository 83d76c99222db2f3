"""Mistakes in the steps of a flow that a schema does not find."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from osbench.worker.http import jsonpath
from osbench.worker.scenarios.flow import placeholders

#: Of a virtual user.
_OF_USER = "number"
_SCHEME = re.compile(r"(?!https?://)[A-Za-z][\w+.-]*://")
_COUNT = re.compile(r"\d+")


def mistakes(step: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with a step, whose keys may be of any type, in words."""
    yield from _of_values(step)
    yield from _of_paths(step)
    repeat, when = step.get("repeat"), step.get("when")
    if isinstance(repeat, str) and not (_COUNT.fullmatch(repeat) or placeholders.is_one(repeat)):
        yield f"repeat is a whole number or one placeholder, not {repeat!r}"
    if isinstance(when, str) and placeholders.are_in(when) and not placeholders.is_one(when):
        yield f"when is one placeholder; with other text it is always true: {when!r}"
    if step.get("json") is not None and step.get("form"):
        yield "a step has json or form, not both: a request has one body"
    think = step.get("think")
    if isinstance(think, Mapping) and _is_less(think.get("max"), think.get("min")):
        yield f"the max of think is less than its min: {think['max']} and {think['min']}"


def _of_values(step: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with placeholders and addresses."""
    name, path = step.get("name"), step.get("path")
    if isinstance(name, str) and placeholders.are_in(name):
        yield f"a name is the same for all requests: no placeholder is filled in in {name!r}"
    if isinstance(path, str) and _SCHEME.match(path):
        yield f"a path is below base, or a URL with http:// or https://, not {path!r}"
    for key in placeholders.names(dict(step)):
        if placeholders.are_in(key):
            yield f"a placeholder stands in values; in names none is filled in: {key!r}"
    for attribute in placeholders.names_of("user", dict(step)):
        if attribute != _OF_USER:
            yield f"{{user.{attribute}}} is nothing that a virtual user has: it has {_OF_USER}"


def _of_paths(step: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with where checks and saved values look."""
    saves = step.get("save")
    said = [source for source in _mapping(saves).values() if isinstance(source, str)]
    for key in ("check", "verify"):
        said += map(str, _mapping(step.get(key)))
    for path in said:
        if path.startswith("$"):
            try:
                jsonpath.compiled(path)
            except jsonpath.BadPath as error:
                yield str(error)
        elif path != "text" and not path.lower().startswith("header "):
            yield f"{path!r} is neither a JSONPath ($...), nor text, nor header NAME"
    body = next((path for path in said if not path.lower().startswith("header ")), None)
    if step.get("stream") is True and body is not None:
        yield f"with stream: true nothing of the body is kept, and {body!r} is not there"


def _mapping(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def _is_less(high: Any, low: Any) -> bool:
    """Other types are told by the schema."""
    return isinstance(high, int | float) and isinstance(low, int | float) and high < low
