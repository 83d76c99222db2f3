"""Checks of the steps of a flow, before the load, for mistakes that its JSON schema cannot find."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from osbench.common.network.origins import is_http
from osbench.common.plugin.request_values import (
    address_fault,
    base_fault,
    header_faults,
    is_token,
)
from osbench.worker.http import jsonpath
from osbench.worker.http.user.request_base import default_name
from osbench.worker.scenarios.flow import placeholders
from osbench.worker.scenarios.flow.multipart_body import part_faults
from osbench.worker.scenarios.flow.response_parts import is_of_body, part_fault

#: Name of the action that makes the steps of `on_start` once more.
RELOGIN = "relogin"
#: Of a virtual user.
_OF_USER = "number"
_SCHEME = re.compile(r"(?!https?://)[A-Za-z][\w+.-]*://")
_COUNT = re.compile(r"\d+")
#: Of what `{saved.NAME}` can name.
_SAVED = re.compile(r"[A-Za-z_][\w-]*")


def name_of(step: Mapping[str, Any]) -> str:
    """Return the name of a step's action: its own, else method and path as the task writes it.

    Values of placeholders would be a row of the report each.
    """
    return step.get("name") or default_name(step.get("method", "GET"), str(step.get("path", "")))


def of_flow(args: Mapping[str, Any]) -> Iterator[str]:
    """Yield a message for each mistake in the arguments of a flow, except mistakes within steps.

    Looks at base, mix, common headers and relogin, and whether there are steps at all.
    """
    base, mix = args.get("base"), args.get("mix")
    if isinstance(base, str) and placeholders.are_in(base):
        yield f"base is the same for all requests: no placeholder is filled in in {base!r}"
    elif isinstance(base, str) and base and (fault := base_fault(base)):
        yield fault
    if ("steps" in args or "mix" in args) and not (args.get("steps") or mix):
        yield "there are no steps: an iteration would make no request"
    weights = [one.get("weight", 1) for one in mix or () if isinstance(one, Mapping)]
    if all(isinstance(one, int | float) for one in weights) and math.isinf(sum(weights)):
        yield "the weights of mix are too large to be added up"
    headers = _mapping(args.get("headers"))
    yield from header_faults(headers)
    yield from _of_names(headers)
    yield from _of_relogin(args)


def _of_relogin(args: Mapping[str, Any]) -> Iterator[str]:
    """Yield a message for each reason why `relogin` could never log a virtual user in again.

    Reasons are a missing `on_start`, and a step that expects a status code of the step's `relogin`.
    Nothing without `relogin`.
    """
    steps = all_steps(args)
    wishes = [one.get("relogin") for one in (args, *steps) if one.get("relogin") is not None]
    if wishes and ("steps" in args or "mix" in args) and not args.get("on_start"):
        yield "relogin makes the steps of on_start, and there are none: put the login there"
    for step in steps:
        on, expect = _codes(_mapping(step.get("relogin")).get("on")), _codes(step.get("expect"))
        if both := sorted(on & expect):
            at = step.get("name") or step.get("path")
            yield f"{at!r} expects {both[0]}, so that relogin is never made: take it out of one"


def mistakes(step: Mapping[str, Any]) -> Iterator[str]:
    """Yield a message for each mistake in one step of a flow; its keys may have values of any type.

    Looks at name, path, placeholders, headers, body, checks, saved values, repeat, when and think.
    """
    yield from _of_values(step)
    yield from _of_paths(step)
    yield from header_faults(_mapping(step.get("headers")))
    repeat, when = step.get("repeat"), step.get("when")
    if isinstance(repeat, str) and not (_COUNT.fullmatch(repeat) or placeholders.is_one(repeat)):
        yield f"repeat is an integer or one placeholder, not {repeat!r}"
    if isinstance(when, str) and placeholders.are_in(when) and not placeholders.is_one(when):
        yield f"when is one placeholder; with other text it is always true: {when!r}"
    bodies = (step.get("json") is not None, step.get("form"), step.get("multipart"))
    if sum(map(bool, bodies)) > 1:
        yield "a step has json, form or multipart: a request has one body"
    if step.get("method") == "QUERY" and not any(map(bool, bodies)):
        yield "the body of a QUERY is the query: give json, form or multipart"
    yield from part_faults(_mapping(step.get("multipart")))
    think = step.get("think")
    if isinstance(think, Mapping) and _is_less(think.get("max"), think.get("min")):
        yield f"the max of think is less than its min: {think['max']} and {think['min']}"


def _of_values(step: Mapping[str, Any]) -> Iterator[str]:
    """Yield a message for each mistake in a step's name, path and placeholders.

    Placeholders are not allowed in a name. A path has to be an http(s) URL, or to be below base.
    """
    name, path = step.get("name"), step.get("path")
    if isinstance(name, str) and placeholders.are_in(name):
        yield f"a name is the same for all requests: no placeholder is filled in in {name!r}"
    if isinstance(path, str) and is_http(path):
        if not placeholders.are_in(path.split("/", 3)[2]) and (fault := address_fault(path)):
            yield fault
    elif isinstance(path, str) and _SCHEME.match(path):
        yield f"a path is below base, or a URL with http:// or https://, not {path!r}"
    yield from _of_names(step)


def _of_names(value: Mapping[str, Any]) -> Iterator[str]:
    """Yield a message for each key with a placeholder, and for each `{user.NAME}` except number.

    Keys and values at any depth of `value` are looked at.
    """
    for key in placeholders.names(dict(value)):
        if placeholders.are_in(key):
            yield f"placeholders are filled in values, not in names: {key!r}"
    for attribute in placeholders.names_of("user", dict(value)):
        if attribute != _OF_USER:
            yield f"a virtual user has no {{user.{attribute}}}, only {{user.{_OF_USER}}}"


def _of_paths(step: Mapping[str, Any]) -> Iterator[str]:
    """Yield a message for each mistake in the keys check, verify and save of a step.

    Mistakes are malformed JSONPaths, expressions and names, expected header values of a wrong type,
    and parts of a body that the response will not have (HEAD, `stream: true`).
    """
    saves = _mapping(step.get("save"))
    sources = [source for source in saves.values() if isinstance(source, str)]
    yield from filter(None, map(part_fault, sources))
    checked = [str(path) for key in ("check", "verify") for path in _mapping(step.get(key))]
    for path in checked:
        if path.startswith("$"):
            try:
                jsonpath.compiled_query(path)
            except jsonpath.BadPath as error:
                yield str(error)
        elif path.lower().startswith("header "):
            if not is_token(path[7:].strip()):
                yield f"{path!r} names no header: {path[7:].strip()!r} is not a header name"
        elif path != "text":
            yield f"{path!r} is neither a JSONPath ($...), nor text, nor header NAME"
    of_body = [*filter(is_of_body, sources)]
    of_body += [path for path in checked if not path.lower().startswith("header ")]
    body = next(iter(of_body), None)
    if step.get("stream") is True and body is not None:
        yield f"with stream: true the body is not kept, and {body!r} is not there"
    elif step.get("method") == "HEAD" and body is not None:
        yield f"the response to HEAD has no body, and {body!r} is not there"
    for name in saves:
        if not _SAVED.fullmatch(str(name)):
            yield f"{{saved.{name}}} cannot be filled in: names have letters, digits, _ and - only"
    yield from _of_headers(step)


def _of_headers(step: Mapping[str, Any]) -> Iterator[str]:
    """Yield a message for each header value in check or verify that is not text or null."""
    for key in ("check", "verify"):
        for path, wanted in _mapping(step.get(key)).items():
            of_header = str(path).lower().startswith("header ")
            # null: the header is not there
            if of_header and wanted is not None and not isinstance(wanted, str):
                yield f"the value of a header is a text: put the value of {path!r} in quotes"


def all_steps(args: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return all steps of a flow: of on_start, steps and on_stop, then of the branches of mix.

    Items that are not mappings are left out: the schema reports them.
    """
    lists = [args.get(key) for key in ("on_start", "steps", "on_stop")]
    mix = args.get("mix")
    branches = mix if isinstance(mix, list | tuple) else ()
    lists += [branch.get("steps") for branch in branches if isinstance(branch, Mapping)]
    return [
        step
        for one in lists
        if isinstance(one, list | tuple)
        for step in one
        if isinstance(step, Mapping)
    ]


def _codes(value: Any) -> set[int]:
    return {one for one in (value if isinstance(value, list) else [value]) if type(one) is int}


def _mapping(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def _is_less(high: Any, low: Any) -> bool:
    """Return whether `high` is less than `low`; False if either is not a number."""
    return isinstance(high, int | float) and isinstance(low, int | float) and high < low
