"""Parses the addresses of listeners in options: "ADDRESS:PORT", ":PORT" or "PORT"."""

from __future__ import annotations

import re

from osbench.common.errors import UsageError

#: Where something listens unless an address is given: what it shows is for this host.
LOOPBACK = "127.0.0.1"

#: An IPv6 address stands in brackets.
_ADDRESS = re.compile(r"(?:(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)?:)?(?P<port>[0-9]{1,5})")


def is_listen_address(text: str) -> bool:
    """Return whether `text` has the form PORT, :PORT or ADDRESS:PORT.

    A port up to 99999 passes: on a command line it is a wrong address, not the next argument.
    """
    return _ADDRESS.fullmatch(text) is not None


def parse_listen_address(text: str) -> tuple[str, int]:
    """Return host and port of "ADDRESS:PORT", ":PORT" or "PORT"; without a host LOOPBACK.

    Brackets of an IPv6 address are removed. Port 0 is any free port. Raises UsageError for other
    text, or a port above 65535.
    """
    found = _ADDRESS.fullmatch(text)
    if found is None or int(found["port"]) > 65535:
        raise UsageError(
            f"{text!r} is not an address to listen at: write PORT or ADDRESS:PORT, such as"
            f" {LOOPBACK}:8089"
        )
    return (found["host"] or LOOPBACK).strip("[]"), int(found["port"])
