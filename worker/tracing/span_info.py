"""The info of a span as JSON text that is always valid, short and free of arguments."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from osbench.common.secrets.hiding import hide
from osbench.common.secrets.masking import mask_text
from osbench.common.secrets.secret_names import MASK, is_secret

#: Characters of one string, elements of one info, nesting depth, characters of one info.
_TEXT, _ELEMENTS, _DEPTH, _INFO = 1000, 200, 6, 16_000
_INTEGER_BITS = 256
#: Times as many characters of a message are looked at for secrets.
_MASKED = 4

#: OSProfiler's `trace` decorator stores all arguments of a call here, its SQLAlchemy hook all
#: bound parameters; they may include passwords and tokens.
_LEFT_OUT = {"function": ("args", "kwargs"), "db": ("params",)}


def info_text(info: Mapping[str, Any]) -> str:
    """Return the members of `info` as JSON, a comma before each; "" for none. Never raises.

    All is copied at once, because OSProfiler shares one dict between all calls of a traced
    function, in all threads. Secrets are masked; arguments of calls and `host` are left out. Values
    that JSON does not support become their repr; long ones are cut.
    """
    try:
        text = _members(_Copier().members(info))
    except Exception as error:  # noqa: BLE001 - methods of foreign objects may raise anything
        return _members({"unreadable": type(error).__name__})
    if len(text) > _INFO:
        return _members({"cut": text[:_TEXT]})
    return text


def failure_text(etype: str, message: str) -> str:
    """Return type and message of an error as JSON members that OSProfiler's readers expect.

    They are `etype` and `message`, a comma before each. Secrets are masked; long texts are cut.
    """
    # masked before it is cut: nothing recognizes the rest of a secret
    shown = mask_text(hide(message[: _MASKED * _TEXT]))[:_TEXT]
    return _members({"etype": etype[:_TEXT], "message": shown})


def _members(info: Mapping[str, Any]) -> str:
    return f",{json.dumps(info, separators=(',', ':'))[1:-1]}" if info else ""


class _Copier:
    """Copies one info into JSON types with secrets masked, up to 200 elements in all."""

    def __init__(self) -> None:
        self._left = _ELEMENTS

    def members(self, info: Mapping[str, Any]) -> dict[str, Any]:
        copied: dict[str, Any] = {}
        # dict() copies a dict atomically: another thread may change the original
        for key, value in dict(info).items():
            if key == "host":
                continue
            hidden = _LEFT_OUT.get(key, ()) if isinstance(key, str) else ()
            if hidden and isinstance(value, Mapping):
                value = {name: part for name, part in dict(value).items() if name not in hidden}  # noqa: PLW2901 - the same member, less what is hidden
            known = isinstance(key, str) and is_secret(key, value)
            copied[_printable(key)] = MASK if known else self.plain(value, _DEPTH)
        return copied

    def plain(self, value: Any, depth: int) -> Any:
        self._left -= 1
        if self._left < 0:
            return "..."
        if _is_simple(value):
            return value
        if depth > 0 and isinstance(value, dict):
            items = list(dict(value).items())[: max(self._left, 0)]
            return {_printable(key): self.plain(part, depth - 1) for key, part in items}
        if depth > 0 and isinstance(value, (list, tuple)):
            return [self.plain(part, depth - 1) for part in list(value)[: max(self._left, 0)]]
        return _printable(value)


def _is_simple(value: Any) -> bool:
    kind = type(value)
    if kind is int:
        return bool(value.bit_length() <= _INTEGER_BITS)
    return value is None or kind is bool or (kind is float and math.isfinite(value))


def _printable(value: Any) -> str:
    if type(value) is str:
        return value[:_TEXT]
    try:
        return repr(value)[:_TEXT]
    except Exception:  # noqa: BLE001 - a foreign __repr__ may raise anything
        return f"<{type(value).__name__}>"
