"""A cloud of nothing but users: as much of Keystone as lets many of them in."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from helpers.fake_keystone import PASSWORD, fake_keystone


@contextlib.contextmanager
def crowd() -> Iterator[str]:
    """The `auth_url` of a running server."""
    with fake_keystone() as server:
        yield server.auth_url


def spec(auth_url: str, users: int) -> dict[str, Any]:
    """A deployment record with so many users, each in a project of its own."""
    return {
        "auth_url": auth_url,
        "users": [
            {"username": f"u{number}", "password": PASSWORD, "project_name": f"of-u{number}"}
            for number in range(users)
        ],
    }
