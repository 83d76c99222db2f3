"""Requests of an iteration that is looked at, as the log book gets them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator

import pytest
import requests

from helpers.json_server import LoopbackServer, QuietHandler, serving
from osbench.worker.http.on_loop.loop_client import LoopClient
from osbench.worker.http.socket_client import SocketClient
from osbench.worker.session.log_book import LogBook
from osbench.worker.session.shown_requests import BRIEF, WHOLE, ShownRequests

SENT = {"json": {"item": 3, "password": "planted"}, "headers": {"X-Shop": "north"}, "timeout": 9}


class Shop:
    """Stands for a scenario."""


class Handler(QuietHandler):
    def do_POST(self) -> None:
        self.sent_body()
        if self.path == "/bytes":
            self.send_response(200)
            self.send_header("Content-Length", "4")
            self.end_headers()
            self.wfile.write(b"a\0bc")
        else:
            self.answer(201, {"token": "planted", "long": "x" * 5000})


def by_threads(url: str, shown: ShownRequests) -> None:
    client = SocketClient((), observer=shown.note)
    client.request("POST", url, ["X-Own: of the iteration"], SENT, keep_body=False)


def by_loop(url: str, shown: ShownRequests) -> None:
    client = LoopClient((), observer=shown.note)
    asyncio.run(client.request("POST", url, ["X-Own: of the iteration"], SENT, keep_body=False))


def by_requests(url: str, _: ShownRequests) -> None:
    headers = {"X-Own": "of the iteration", **SENT["headers"]}
    requests.post(url, json=SENT["json"], headers=headers, timeout=9)


CLIENTS = pytest.mark.parametrize("post", [by_threads, by_loop, by_requests])
Post = Callable[[str, ShownRequests], None]


@pytest.fixture
def url() -> Iterator[str]:
    with serving(LoopbackServer(Handler)) as server:
        yield server.url


@pytest.fixture
def book() -> LogBook:
    found = LogBook()
    found.begin("r")
    return found


def texts(book: LogBook) -> list[str]:
    return [entry[4] for entry in book.take()[0] if entry[1] == "request"]


@CLIENTS
def test_a_request_is_shown_with_the_beginning_of_its_bodies(
    book: LogBook, url: str, post: Post
) -> None:
    shown = ShownRequests(book)
    shown.begin(BRIEF, Shop)
    post(f"{url}/buy?key=planted", shown)
    shown.end()
    post(f"{url}/unseen", shown)

    (text,) = texts(book)
    first, sent, got = text.splitlines()
    assert first.startswith(f"POST {url}/buy?key=*** -> 201 Created in ")
    assert sent == '> {"item": 3, "password": "***"}'
    assert got.startswith('< {"token": "***", "long": "xxx')
    assert got.endswith(" bytes)")
    assert len(got) < 1100


@CLIENTS
def test_header_fields_are_shown_where_they_are_wanted(book: LogBook, url: str, post: Post) -> None:
    shown = ShownRequests(book)
    shown.begin(WHOLE, Shop)
    post(url, shown)
    shown.end()

    (text,) = texts(book)
    assert "> X-Shop: north" in text
    assert "> X-Own: of the iteration" in text
    assert "< Content-Type: application/json" in text


@CLIENTS
def test_a_request_without_an_answer_is_shown_with_its_error(book: LogBook, post: Post) -> None:
    shown = ShownRequests(book)
    shown.begin(BRIEF, Shop)
    with pytest.raises((ConnectionError, requests.ConnectionError)):
        post("http://127.0.0.1:9/buy", shown)
    shown.end()

    (text,) = texts(book)
    assert text.startswith("POST http://127.0.0.1:9/buy -> ")
    assert '> {"item": 3' in text


def test_a_body_that_is_no_text_is_not_shown(book: LogBook, url: str) -> None:
    shown = ShownRequests(book)
    shown.begin(BRIEF, Shop)
    by_threads(f"{url}/bytes", shown)
    shown.end()

    assert texts(book)[0].endswith("< (4 bytes that are not text)")


def test_the_logger_of_the_scenario_logs_more_for_as_long() -> None:
    logger = logging.getLogger(__name__)
    shown = ShownRequests(LogBook())
    before = requests.Session.send

    levels = []
    for level in (BRIEF, WHOLE, 0):
        shown.begin(level, Shop)
        levels.append(logger.level)

    assert levels == [logging.INFO, logging.DEBUG, logging.NOTSET]
    assert requests.Session.send is before
