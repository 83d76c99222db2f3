"""Arguments of Rally's scenarios: packed for workers, resolved for each iteration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from osbench.common.errors import ContextError
from osbench.edges.rally.context_object import codec

#: Key of a mapping that replaces an argument that is not plain data.
PACKED = "osbench.rally.packed"


def for_workers(args: Mapping[str, Any]) -> dict[str, Any]:
    """Return a new dict of the arguments for messages: plain data as it is, other values packed.

    Raises ContextError for a value that cannot be packed.
    """
    return {name: _sendable(name, value) for name, value in args.items()}


def for_iteration(args: Mapping[str, Any], scenario: Any) -> dict[str, Any]:
    """Return the arguments for one iteration: unpacked copies, which it may change.

    Arguments that Rally resolves per iteration are resolved with `scenario`, Rally's scenario
    object.
    """
    return {name: _resolved_value(value, scenario) for name, value in args.items()}


def _sendable(name: str, value: Any) -> Any:
    if _plain(value):
        return value
    try:
        return {PACKED: codec.pack(value)}
    except ContextError as error:
        raise ContextError(f"argument {name!r}: {error}; correct it in the task") from None


def _plain(value: Any) -> bool:
    kind = type(value)
    if kind is dict:
        return all(type(key) is str and _plain(item) for key, item in value.items())
    if kind is list:
        return all(map(_plain, value))
    return kind in codec.PLAIN


def _resolved_value(value: Any, scenario: Any) -> Any:
    if type(value) is dict and PACKED in value:
        value = codec.unpack(value[PACKED])
        return value.resolve(scenario) if codec.is_deferred(value) else value
    return codec.deep_copy(value)
