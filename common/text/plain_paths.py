"""Paths of requests without ids, and texts cut to a length that keeps them different."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

#: Characters of a text; texts that differ only beyond them are distinguished by a hash.
LIMIT = 200

_VERSION = re.compile(r"v\d+(?:\.\d+)*\Z")
_LONG = 32


@lru_cache(maxsize=8192)
def path(text: str) -> str:
    """Return the path in a path or URL, without host and query.

    Parts that contain a digit or have 32 characters or more become `{id}`, except versions such as
    v2.1. At most `LIMIT` characters.
    """
    plain = text.partition("?")[0].partition("#")[0]
    if "://" in plain:
        plain = "/" + plain.split("://", 1)[1].partition("/")[2]
    return short_text("/".join(map(_part, plain.split("/"))))


def short_text(text: str) -> str:
    """Return at most `LIMIT` characters; a longer text ends with "..." and a hash of all of it."""
    if len(text) <= LIMIT:
        return text
    mark = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=4).hexdigest()
    return f"{text[: LIMIT - 12]}... {mark}"


def _part(part: str) -> str:
    if _VERSION.match(part):
        return part
    return "{id}" if len(part) >= _LONG or any(char.isdigit() for char in part) else part
