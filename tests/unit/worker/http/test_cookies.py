"""Cookies: lines Set-Cookie, and what is sent back, as in RFC 6265."""

from __future__ import annotations

import json
import pickle
import time
from pathlib import Path
from urllib.parse import quote

import pytest

from helpers.recording_server import RecordingServer, recording_server
from osbench.worker.http.other_clients.curl_client import CurlClient
from osbench.worker.http.other_clients.requests_client import RequestsClient
from osbench.worker.http.socket_client import SocketClient
from osbench.worker.http.wire.cookies import BrowserJar, Cookies
from osbench.worker.http.wire.set_cookie import date

#: Values of the test suite of RFC 6265 (github.com/abarth/http-state, tests/data at 155e45c),
#: cookies/http-state in web-platform-tests. Not here: its disabled cases, and one line of 4 kB.
CASES = json.loads(Path(__file__).with_name("http_state_cases.json").read_text())
#: Dates of the cases lie some years before and after it.
FEBRUARY_2017 = 1_486_000_000
PAGE = "http://home.example.org:8888/cookie-parser"


@pytest.fixture
def then(monkeypatch):
    monkeypatch.setattr("http.cookiejar.time.time", lambda: FEBRUARY_2017)


def sent_back(lines: list[str], to: str, page: str = PAGE) -> str:
    jar = BrowserJar()
    # one character for each byte, as heads are read
    jar.take([line.encode().decode("latin-1") for line in lines], page)
    return (jar.line(to) or "").encode("latin-1").decode()


@pytest.mark.parametrize(
    ("received", "to", "expected"),
    [case[1:] for case in CASES["cookies"]],
    ids=[case[0] for case in CASES["cookies"]],
)
def test_public_cases_of_cookies(then, received, to, expected):
    assert sent_back(received, to) == expected


@pytest.mark.parametrize(("text", "expected"), CASES["dates"])
def test_public_cases_of_dates(text, expected):
    assert date(text) == expected


#: A response of /c/x sets them; they are sent to /c/y, /z: "" for not sent.
LINES = {
    "quoted root": (['s=1; Path="/"'], "s=1", ""),
    "quoted path": (['s=1; Path="/c"'], "s=1", ""),
    "relative path": (["s=1; Path=c"], "s=1", ""),
    "bad age": (["s=1; Max-Age=abc; Path=/"], "s=1", "s=1"),
    "quoted age": (['s=1; Max-Age="3600"; Path=/'], "s=1", "s=1"),
    "empty age": (["s=1; Max-Age=; Path=/"], "s=1", "s=1"),
    "age with a point": (["s=1; Max-Age=0.5; Path=/"], "s=1", "s=1"),
    "other digits": (["s=1; Max-Age=\u0660; Path=/"], "s=1", "s=1"),
    "zeros": (["s=1; Max-Age=" + 5000 * "0" + "; Path=/"], "", ""),
    "a long age": (["s=1; Max-Age=" + 5000 * "9" + "; Path=/"], "s=1", "s=1"),
    "a bad age, then a date": (["s=1; Max-Age=x; Expires=Thu, 01 Jan 1970 00:00:00 GMT"], "", ""),
    "an age wins over a date": (
        ["s=1; Max-Age=9; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Path=/"],
        "s=1",
        "s=1",
    ),
    "empty domain": (["s=1; Domain=; Path=/"], "s=1", "s=1"),
    "an address": (["s=1; Domain=127.0.0.1; Path=/"], "s=1", "s=1"),
    "a part of an address": (["s=1; Domain=0.0.1; Path=/"], "", ""),
    "set and deleted": (["s=1; Path=/", "s=; Path=/; Max-Age=0"], "", ""),
    "deleted and set": (["s=; Path=/; Max-Age=0", "s=2; Path=/"], "s=2", "s=2"),
    "deleted by a date": (
        ["s=1; Path=/", "s=x; Path=/; Expires=Thu, 01-Jan-1970 00:00:00 GMT"],
        "",
        "",
    ),
    "another path is not deleted": (["s=1; Path=/", "s=; Max-Age=0"], "s=1", "s=1"),
    "quotes in a value": ([r's="a\"b"; Path=/'], r's="a\"b"', r's="a\"b"'),
}


@pytest.mark.parametrize(("lines", "below", "elsewhere"), LINES.values(), ids=LINES)
def test_attributes_that_are_not_valid_are_ignored(lines, below, elsewhere):
    page = "http://127.0.0.1:8000/c/x"

    assert sent_back(lines, "http://127.0.0.1:8000/c/y", page) == below
    assert sent_back(lines, "http://127.0.0.1:8000/z", page) == elsewhere


@pytest.mark.parametrize(
    ("domain", "page", "to", "sent"),
    [
        ("localhost", "localhost", "localhost", True),
        ("localhost", "localhost", "a.localhost", False),
        ("org", "example.org", "example.org", False),
        ("münchen.example", "a.xn--mnchen-3ya.example", "b.xn--mnchen-3ya.example", True),
        ("gr\udce4.example", "example.org", "example.org", False),
    ],
)
def test_domains(domain, page, to, sent):
    jar = BrowserJar()
    line = f"s=1; Domain={domain}".encode(errors="surrogateescape").decode("latin-1")
    jar.take([line], f"http://{page}/")

    assert (jar.line(f"http://{to}/") == "s=1") is sent


def test_a_cookie_that_was_sent_over_tls_alone_stays_there():
    jar = BrowserJar()
    jar.take(["s=1; Secure", "t=2"], "https://shop.test/")

    assert jar.line("https://shop.test/") == "s=1; t=2"
    assert jar.line("http://shop.test/") == "t=2"


def test_a_cookie_keeps_its_place_and_copies_have_all():
    jar = BrowserJar()
    jar.take(["a=1", "b=2", "a=3"], "http://shop.test/")
    jar.set("c", "4")

    assert jar.line("http://shop.test/") == "a=3; b=2; c=4"
    assert jar.copy().line("http://shop.test/") == "a=3; b=2; c=4"
    assert pickle.loads(pickle.dumps(jar)).line("http://shop.test/") == "a=3; b=2; c=4"


def test_a_cookie_expires_with_its_age(monkeypatch):
    cookies = Cookies()
    now = time.time()
    cookies.jar.take(["s=1; Max-Age=60; Path=/"], "http://shop.test/")
    assert cookies.header("http://shop.test/a") == "s=1"

    monkeypatch.setattr("http.cookiejar.time.time", lambda: now + 61)
    assert cookies.header("http://shop.test/b") is None


@pytest.fixture
def server():
    with recording_server() as made:
        yield made


def _ask(way: str, url: str) -> None:
    if way == "libcurl":
        CurlClient([]).status("GET", url, [], {})
    elif way == "requests":
        RequestsClient([]).status("GET", url, [], {})
    elif way == "requests of a user":
        RequestsClient([]).answer("GET", url, [], {}, Cookies(), keep_body=True)
    else:
        SocketClient([]).request("GET", url, [], {}, cookies=Cookies())


@pytest.mark.parametrize("way", ["libcurl", "requests", "requests of a user", "threads"])
@pytest.mark.parametrize(
    ("line", "sent"),
    [
        ('s=1; Path="/"', "s=1"),
        ("s=1; Max-Age=abc", "s=1"),
        ("s=1; Domain=", "s=1"),
        ("s=1; Max-Age=0", None),
        (r's="a\"b"', r's="a\"b"'),
    ],
)
def test_all_clients_have_the_same_rules(server: RecordingServer, way, line, sent):
    _ask(way, f"{server.url}/to?code=302&url=/a&cookie={quote(line)}")

    first, second = server.taken()
    assert "cookie" not in first.headers
    assert second.headers.get("cookie") == sent


def test_a_user_has_one_jar_for_all_clients(server: RecordingServer):
    cookies = Cookies()
    SocketClient([]).request(
        "GET",
        f"{server.url}/to?code=200&url=x&cookie={quote('a=1; Path=/')}",
        [],
        {},
        cookies=cookies,
    )
    one = RequestsClient([])
    for headers in ({}, {"Cookie": "own=1"}):
        one.answer("GET", server.url + "/b", [], {"headers": headers}, cookies, keep_body=True)
    one.answer("GET", server.url + "/c", [], {"cookies": {"b": "2"}}, cookies, keep_body=True)

    sent = [request.headers.get("cookie") for request in server.taken()]
    assert sent == [None, "a=1", "own=1", "a=1; b=2"]
    assert cookies.header(server.url + "/d") == "a=1"
