"""Values of a JSON document by path: `$.servers[0].status`, `$.users[*].name`, `$['a key']`.

The part of RFC 9535 without filters, slices and descendants.
"""

from __future__ import annotations

import re
from typing import Any

_STEP = re.compile(r"""\.(?P<name>[^.\[\]]+)|\[(?P<index>-?\d+|\*|'[^']*'|"[^"]*")\]""")


class BadPath(ValueError):
    """A path that cannot be read; the message says which."""


def steps(path: str) -> list[str | int]:
    """The steps of a path; "*" is every value. Raises BadPath."""
    if not path.startswith("$"):
        raise BadPath(f"{path!r} does not begin with $")
    found: list[str | int] = []
    at = 1
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            raise BadPath(f"{path!r} cannot be read from character {at + 1}")
        index = step["index"]
        if index is None:
            found.append(step["name"])
        elif index[0] in "'\"":
            found.append(index[1:-1])
        else:
            found.append(index if index == "*" else int(index))
        at = step.end()
    return found


def values(document: Any, path: str) -> list[Any]:
    """What stands at a path; nothing where the document has no such place. Raises BadPath."""
    found = [document]
    for step in steps(path):
        found = [inner for one in found for inner in _within(one, step)]
    return found


def _within(value: Any, step: str | int) -> list[Any]:
    if step == "*":
        if isinstance(value, dict):
            return list(value.values())
        return list(value) if isinstance(value, list) else []
    if isinstance(value, dict) and step in value:
        return [value[step]]
    if isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value):
        return [value[step]]
    return []
