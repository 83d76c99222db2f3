"""A page of a list that repeats the last one ends the list, also for OpenStack's own clients."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from helpers.json_server import LoopbackServer, serving
from osbench.edges.rally.context_object.repeated_pages import ended_lists

MOST = 12


class Lists(BaseHTTPRequestHandler):
    """GET /odd gives the same page for ever; /even gives two pages, and then empty ones."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path, marker = urlsplit(self.path).path, parse_qs(urlsplit(self.path).query).get("marker")
        names = ["a", "b"] if path == "/odd" or marker is None else []
        if path == "/even" and marker == ["b"]:
            names = ["c"]
        document = {"servers": [{"id": one} for one in names], "next": "/odd?marker=b"}
        data = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def listed(url: str) -> list[str]:
    """List as novaclient does: until a page is empty, here at most `MOST` pages."""
    from keystoneauth1 import noauth, session

    ours = session.Session(auth=noauth.NoAuth())
    found: list[str] = []
    params = {}
    for _ in range(MOST):
        page = ours.request(url, "GET", params=params).json()["servers"]
        if not page:
            return found
        found += [one["id"] for one in page]
        params = {"marker": found[-1]}
    raise AssertionError("a list without end")


@pytest.mark.parametrize(("path", "expected"), [("odd", ["a", "b"]), ("even", ["a", "b", "c"])])
def test_a_page_that_repeats_the_last_one_ends_the_list(path: str, expected: list[str]) -> None:
    with serving(LoopbackServer(Lists)) as server, ended_lists():
        assert listed(f"{server.url}/{path}") == expected
        # what has no marker may be asked again
        assert listed(f"{server.url}/{path}") == expected


def test_outside_the_block_responses_are_as_they_come() -> None:
    with serving(LoopbackServer(Lists)) as server:
        with ended_lists():
            pass
        with pytest.raises(AssertionError, match="without end"):
            listed(f"{server.url}/odd")
