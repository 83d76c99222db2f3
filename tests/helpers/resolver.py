"""A resolver that answers as a test says."""

from __future__ import annotations

import socket
from typing import Any

import pytest


def resolving(monkeypatch: pytest.MonkeyPatch, *found: tuple[int, tuple[Any, ...]]) -> list[str]:
    """Have every name resolved to addresses; returns the names that are asked for."""
    asked = []

    def resolve(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        # an address stands for itself
        itself = [one for one in found if one[1][0] == host]
        if not itself:
            asked.append(host)
        return [(family, socket.SOCK_STREAM, 6, "", at) for family, at in itself or found]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return asked
