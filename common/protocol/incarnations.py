"""Names of workers as they stand in Redis, where anyone who reaches it may write."""

from __future__ import annotations

import re
from collections.abc import Iterable

#: As worker processes make them.
_NAME = re.compile(rb"[A-Za-z0-9-][A-Za-z0-9._-]{0,127}")

#: Most names that are looked at, so that a set that was filled takes bounded time.
MOST = 100_000


def incarnations(members: Iterable[bytes]) -> tuple[list[str], int]:
    """The members that can be a worker's name, sorted, and how many others there are."""
    found: list[str] = []
    others = 0
    for member in members:
        if len(found) < MOST and isinstance(member, bytes) and _NAME.fullmatch(member):
            found.append(member.decode("ascii"))
        else:
            others += 1
    return sorted(found), others
