"""Addresses to listen at, of the metrics endpoints and of the web server."""

from __future__ import annotations

import pytest

from osbench.common.errors import UsageError
from osbench.common.network.listen_address import is_listen_address, parse_listen_address


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("9100", ("127.0.0.1", 9100)),
        (":9000", ("127.0.0.1", 9000)),
        ("0.0.0.0:80", ("0.0.0.0", 80)),
        ("node-1.example:1", ("node-1.example", 1)),
        ("[::1]:0", ("::1", 0)),
    ],
)
def test_addresses_are_read(text: str, found: tuple[str, int]) -> None:
    assert is_listen_address(text)
    assert parse_listen_address(text) == found


@pytest.mark.parametrize(
    "text",
    ["", "x", "host:", "a:b", "a b:80", "::1:9100", "http://a:1", "-1", "1:70000", "task.yaml"],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(
        UsageError, match="is not an address to listen at: write PORT or ADDRESS:PORT"
    ):
        parse_listen_address(text)
