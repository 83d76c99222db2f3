"""Placeholders: `{user.number}`, `{data.name}`, `{saved.token}`, `{iteration}`, `{run}`.

`{brace}` is an opening brace, for texts that need one before a letter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from osbench.common.plugin.request_values import as_text

_PLACEHOLDER = re.compile(r"\{(?:(user|data|saved)\.([A-Za-z_][\w-]*)|(iteration|run|brace))\}")
#: What looks like a placeholder and may be one that was mistyped.
_LIKE = re.compile(r"\{[A-Za-z_]+(?:\.[\w.-]*)?\}")


class FilledValues(Protocol):
    """Values of placeholders by kind (user, data, saved, iteration), and then by name."""

    def __getitem__(self, kind: str, /) -> Mapping[str, Any]: ...


Fill = Callable[[FilledValues], Any]


class MissingValue(LookupError):
    """Error of a placeholder without a value, such as a saved one before the step that saves it."""


def filler(value: Any) -> Fill:
    """Return a function that returns `value` with its placeholders filled in, at any depth.

    A string that is a single placeholder becomes the value itself, of whatever type; keys are not
    filled in. The function raises MissingValue if a placeholder has no value.
    """
    made = _filler(value)
    return made if made is not None else lambda values: value


def names_of(kind: str, value: Any) -> Iterator[str]:
    """Yield the NAME of each `{KIND.NAME}` in `value`, keys included, at any depth, with repeats.

    `kind` is user, data or saved.
    """
    for text in _texts(value):
        for found, name, _ in _PLACEHOLDER.findall(text):
            if found == kind:
                yield name


def unknown_placeholders(value: Any) -> Iterator[str]:
    """Yield texts in braces that look like placeholders and are not, at any depth, also keys."""
    for text in _texts(value):
        for piece in _LIKE.findall(text):
            if not _PLACEHOLDER.fullmatch(piece):
                yield piece


def are_in(text: str) -> bool:
    """Return whether `text` has at least one placeholder."""
    return _PLACEHOLDER.search(text) is not None


def is_one(text: str) -> bool:
    """Return whether `text` is a single placeholder and nothing else."""
    return _PLACEHOLDER.fullmatch(text) is not None


def names(value: Any) -> Iterator[str]:
    """Yield the keys of all mappings in `value`, at any depth, as strings."""
    if isinstance(value, Mapping):
        yield from map(str, value)
        for inner in value.values():
            yield from names(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from names(inner)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts(key)
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)


def _filler(value: Any) -> Fill | None:
    """Return a function as `filler` does; None if `value` has no placeholders."""
    if isinstance(value, str):
        return _text_filler(value)
    if isinstance(value, Mapping):
        inner = {key: fill for key, item in value.items() if (fill := _filler(item)) is not None}
        if inner:
            return lambda values: {
                **value,
                **{key: fill(values) for key, fill in inner.items()},
            }
    if isinstance(value, list | tuple):
        fills = [_filler(item) for item in value]
        if any(fill is not None for fill in fills):
            pairs = list(zip(fills, value, strict=True))
            return lambda values: [item if fill is None else fill(values) for fill, item in pairs]
    return None


def _text_filler(text: str) -> Fill | None:
    whole = _PLACEHOLDER.fullmatch(text)
    if whole is not None:
        return lambda values: _value(whole, values)
    if _PLACEHOLDER.search(text) is None:
        return None
    return lambda values: _PLACEHOLDER.sub(lambda found: as_text(_value(found, values)), text)


def _value(found: re.Match[str], values: FilledValues) -> Any:
    kind, name, single = found.groups()
    try:
        return values["iteration"][single] if single else values[kind][name]
    except KeyError:
        why = {
            "saved": "no step has saved it",
            "data": "the data file of users has no such column",
            "user": "the virtual user has no such value; it has number",
        }.get(kind, "")
        raise MissingValue(f"{found.group()} has no value: {why}") from None
