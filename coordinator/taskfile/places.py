"""Formats places in a document, and the values found there, for messages."""

from __future__ import annotations

import json
import re
from typing import Any

from osbench.common.secrets.masking import mask
from osbench.common.secrets.secret_names import MASK, is_secret

#: Longest value that a message repeats, in characters.
SHOWN = 60

_PLAIN = re.compile(r"[\w.@-]+")


def inside(place: str, part: str | int) -> str:
    """The place of a key or an index inside `place`, like `subtasks[0].title`."""
    if isinstance(part, int):
        return f"{place}[{part}]"
    if not _PLAIN.fullmatch(part):
        return f"{place}[{json.dumps(part)}]"
    return f"{place}.{part}" if place else part


def shown(value: Any, key: str | int | None = None) -> str:
    """A value as JSON, cut; a summary for containers; secrets are masked."""
    if isinstance(key, str) and is_secret(key, value):
        return MASK
    if isinstance(value, dict):
        keys = ", ".join(str(name) for name in value)
        return f"an object with {_cut(keys)}" if value else "an empty object"
    if isinstance(value, list):
        return f"a list of {len(value)}" if value else "an empty list"
    try:
        return _cut(json.dumps(mask(value), ensure_ascii=False))
    except TypeError:
        return _cut(f"{value!r}")


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
