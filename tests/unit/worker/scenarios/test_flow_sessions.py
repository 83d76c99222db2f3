"""Flows that keep what pages gave, send files, and log in again when their token has ended."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from requests.cookies import RequestsCookieJar
from requests.structures import CaseInsensitiveDict

from osbench.common.plugin.scenario import VirtualUser
from osbench.common.text.pages import page_patterns
from osbench.worker.http.user.expectations import UnexpectedStatus
from osbench.worker.http.user.request_base import Base
from osbench.worker.scenarios.flow.flow_steps import Flow
from osbench.worker.scenarios.flow.response_parts import NothingToSave, hidden_in
from osbench.worker.scenarios.http_flow import HttpFlow

PAGE = """<form id=search><input name=csrf value=s-111111></form>
<form id=login action=/login><input type=hidden name=csrf value="l&quot;222222"></form>
<script>window.nonce = "n-333333";</script>"""


class Site:
    """Answers requests in order: a page, a document, or a status that is not expected."""

    def __init__(self, *answers: Any) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self._answers = list(answers)
        self.base = Base(url="http://site.example")
        self.cookies = RequestsCookieJar()

    def serve(self, scenario: Any) -> Site:
        return self

    async def request(self, method: str, path: str, **wishes: Any) -> Any:
        self.asked.append((path, wishes))
        answer = self._answers.pop(0) if self._answers else {}
        if isinstance(answer, int):
            raise UnexpectedStatus(f"{method} {path}", answer, "less than 400")

        def document() -> Any:
            if isinstance(answer, str):
                raise ValueError("not JSON")
            return answer

        headers = CaseInsensitiveDict({"X-Token": "from-header"})
        return SimpleNamespace(json=document, text=answer, headers=headers)

    @property
    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]


def flow(args: dict[str, Any], site: Site, user: VirtualUser | None = None) -> HttpFlow:
    made = HttpFlow.__new__(HttpFlow)
    made._user = user or VirtualUser(3, {}, lambda _: site)
    made.context = {"iteration": 7, "run": "r", "flow": Flow(args), "args": args}
    return made


def play(args: dict[str, Any], site: Site, user: VirtualUser | None = None) -> HttpFlow:
    made = flow(args, site, user)
    asyncio.run(made.run())
    return made


# what is saved


def test_a_pattern_that_takes_long_fails_the_step(monkeypatch):
    monkeypatch.setattr(page_patterns, "TEXT_S", 0.0)
    args = {"steps": [{"name": "look", "path": "/", "save": {"x": "regex a.*b"}}]}

    with pytest.raises(page_patterns.SearchedTooLong, match=r"look: save x: .* 'a\.\*b' took"):
        play(args, Site("c" + "a" * 5000))


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("input csrf", "s-111111"),
        ("input csrf of form login", 'l"222222'),
        ("INPUT csrf of form /login", 'l"222222'),
        ('regex nonce = "([^"]+)"', "n-333333"),
        (r"regex n-\d+", "n-333333"),
        ("header x-token", "from-header"),
        ("cookie XSRF-TOKEN", "c=444444"),
    ],
)
def test_a_part_of_an_answer_is_saved(source, value):
    site = Site(PAGE)
    site.cookies.set("XSRF-TOKEN", "c%3D444444")
    args = {"steps": [{"path": "/", "save": {"x": source}}, {"path": "/", "json": "{saved.x}"}]}

    assert HttpFlow.check_arguments("run", args) == []
    made = play(args, site)

    assert site.asked[1][1]["json"] == value
    assert made.user.hidden == {"x": value}


@pytest.mark.parametrize(
    "source",
    ["input none", "input csrf of form none", "cookie none", "regex none", "$.none", "header none"],
)
def test_what_is_not_there_fails_the_step(source):
    with pytest.raises(NothingToSave, match=r"look: the response .*"):
        play({"steps": [{"name": "look", "path": "/", "save": {"x": source}}]}, Site(PAGE))


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("input csrf of form login", f"< {PAGE}"),
        ('regex nonce = "([^"]+)"', PAGE),
        ("$.data['nonce']", '{"data": {"nonce": "n-333333"}}'),
        ("header X-Nonce", "< x-nonce: n-333333\n< b"),
    ],
)
def test_what_a_step_will_save_is_hidden_in_its_answer(source, text):
    found = hidden_in(text, VirtualUser(), {"token": source})

    assert found & {'l"222222', "n-333333"}
    assert hidden_in("nothing", VirtualUser(), {"token": source}) == set()


def test_numbers_and_addresses_are_not_hidden():
    args = {"steps": [{"path": "/", "save": {"id": "$.id", "name": "$.name", "a": "$.token"}}]}

    made = play(args, Site({"id": 3, "name": "lamp-000", "token": "t-999999"}))

    assert made.user.hidden == {"a": "t-999999"}


def test_the_name_of_an_action_has_no_saved_secret():
    args = {
        "steps": [
            {"path": "/", "save": {"token": "$.token", "id": "$.id"}},
            {"path": "/confirm/{saved.token}/{saved.id}?t={saved.token}"},
        ]
    }
    site = Site({"token": "t-999999", "id": 4})

    play(args, site)

    assert site.asked[1][0] == "/confirm/t-999999/4?t=t-999999"
    assert site.asked[1][1]["name"] == "GET /confirm/{saved.token}/{saved.id}"


# headers of the flow


def test_headers_of_a_flow_go_to_its_host_once_their_values_are_there():
    site = Site({"token": "t-999999"})
    args = {
        "headers": {"Authorization": "Bearer {saved.token}", "X-A": "1"},
        "steps": [
            {"path": "/login", "save": {"token": "$.token"}},
            {"path": "/items", "headers": {"x-a": "2"}},
            {"path": "http://site.example/x"},
            {"path": "http://other.example/x"},
        ],
    }

    play(args, site)

    assert [wishes.get("headers") for _, wishes in site.asked] == [
        {"X-A": "1"},
        {"Authorization": "Bearer t-999999", "x-a": "2"},
        {"Authorization": "Bearer t-999999", "X-A": "1"},
        None,
    ]


# bodies of several parts


def test_a_body_has_texts_and_files():
    site = Site()
    parts = {
        "note": 'a"b {iteration}',
        "n": [1, True],
        "text": {"filename": "ü.txt", "type": "text/plain", "content": "hello"},
        "raw": {"base64": "AAEC"},
        "big": {"filename": "big.bin", "size": 3000},
    }
    args = {"steps": [{"method": "POST", "path": "/up", "multipart": parts}]}

    assert HttpFlow.check_arguments("run", args) == []
    play(args, site)

    wishes = site.asked[0][1]
    kind = wishes["headers"]["Content-Type"]
    body = wishes["data"]
    assert kind.startswith("multipart/form-data; boundary=")
    assert body.startswith(b"--" + kind.partition("=")[2].encode())
    assert b'name="note"\r\n\r\na"b 7\r\n' in body
    assert body.count(b'name="n"') == 2
    assert 'filename="ü.txt"\r\nContent-Type: text/plain\r\n\r\nhello\r\n'.encode() in body
    assert b'filename="raw"\r\nContent-Type: application/octet-stream\r\n\r\n\0\1\2\r\n' in body
    assert bytes(3000) in body


# tokens that end

LOGIN = {"path": "/login", "save": {"token": "$.token"}}
SESSION = {
    "on_start": [LOGIN],
    "headers": {"Authorization": "{saved.token}"},
    "relogin": {"on": [401, 419]},
    "steps": [{"name": "look", "path": "/items"}, {"path": "/more"}],
}


def logged_in(site: Site) -> VirtualUser:
    user = VirtualUser(1, {}, lambda _: site)
    asyncio.run(flow(SESSION, site, user).on_start())
    site.asked.clear()
    return user


def token_of(wishes: dict[str, Any]) -> str | None:
    return wishes.get("headers", {}).get("Authorization")


def test_a_refused_token_is_renewed_once_and_the_request_made_again():
    site = Site({"token": "first-1"}, 401, {"token": "second-2"})
    user = logged_in(site)

    made = play(SESSION, site, user)

    assert [(path, token_of(wishes)) for path, wishes in site.asked] == [
        ("/items", "first-1"),
        # without the token that has ended
        ("/login", None),
        ("/items", "second-2"),
        ("/more", "second-2"),
    ]
    assert made._recorder.names.names == ["relogin"]
    assert "second-2" in user.hidden.values()
    assert "first-1" not in user.hidden.values()


def test_a_second_refusal_fails_the_iteration():
    site = Site({"token": "first-1"}, 401, {"token": "second-2"}, 401)
    user = logged_in(site)

    with pytest.raises(UnexpectedStatus, match="GET /items answered 401"):
        play(SESSION, site, user)

    assert site.paths == ["/items", "/login", "/items"]


def test_a_login_that_fails_fails_the_iteration_and_the_next_tries_again():
    site = Site({"token": "first-1"}, 419, 401, 401, {"token": "second-2"})
    user = logged_in(site)

    with pytest.raises(UnexpectedStatus, match="GET /login answered 401"):
        play(SESSION, site, user)
    play(SESSION, site, user)

    assert site.paths == ["/items", "/login", "/items", "/login", "/items", "/more"]
    # the old one is asked with again
    assert token_of(site.asked[2][1]) == "first-1"


def test_other_answers_and_the_login_itself_log_nobody_in():
    site = Site({"token": "first-1"}, 403)
    user = logged_in(site)

    with pytest.raises(UnexpectedStatus):
        play(SESSION, site, user)
    refused = Site(401)
    with pytest.raises(UnexpectedStatus):
        asyncio.run(flow(SESSION, refused).on_start())

    assert site.paths == ["/items"]
    assert refused.paths == ["/login"]


def test_a_step_may_say_so_alone():
    args = {
        "on_start": [LOGIN],
        "steps": [{"path": "/a", "relogin": {"on": 401}}, {"path": "/b"}],
    }
    site = Site(401, {"token": "t"}, {}, 401)

    with pytest.raises(UnexpectedStatus, match="GET /b"):
        play(args, site)

    assert site.paths == ["/a", "/login", "/a", "/b"]


def test_each_user_logs_in_for_itself():
    site = Site({"token": "of-one-1"}, {"token": "of-two-2"}, 401, {"token": "of-one-3"})
    one, two = logged_in(site), logged_in(site)

    play(SESSION, site, one)
    site.asked.clear()
    play(SESSION, site, two)

    assert [token_of(wishes) for _, wishes in site.asked] == ["of-two-2", "of-two-2"]


STEP = {"path": "/"}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"relogin": {"on": 401}, "steps": [STEP]}, "on_start, and there are none"),
        ({"steps": [{**STEP, "relogin": {"on": 401}}]}, "on_start, and there are none"),
        (
            {"on_start": [STEP], "steps": [{**STEP, "relogin": {"on": 401}, "expect": [200, 401]}]},
            "'/' expects 401, so that relogin is never made",
        ),
        ({"headers": {"A B": "x"}, "steps": [STEP]}, "'A B' is not a header name"),
        ({"headers": {"A": "{saved.none}"}, "steps": [STEP]}, "{saved.none} is not saved"),
        ({"steps": [{**STEP, "save": {"a": "regex (a+)+$"}}]}, "a repeat within a repeat"),
        ({"steps": [{**STEP, "save": {"a": "cookie a b"}}]}, "names no cookie"),
        ({"steps": [{**STEP, "save": {"a": "body x"}}]}, "is neither a JSONPath ($...), nor"),
        ({"steps": [{**STEP, "stream": True, "save": {"a": "input x"}}]}, "'input x' is not there"),
        ({"steps": [{**STEP, "form": {"a": 1}, "multipart": {"a": "1"}}]}, "one body"),
        ({"steps": [{**STEP, "multipart": {"f": {"filename": "x"}}}]}, "needs one of content"),
        ({"steps": [{**STEP, "multipart": {"f": {"size": -1}}}]}, "is a number of bytes"),
        ({"steps": [{**STEP, "multipart": {"f": {"size": 1, "x": 1}}}]}, "has no key 'x'"),
        ({"steps": [{**STEP, "multipart": {"f": {"base64": "?"}}}]}, "cannot be decoded"),
        ({"steps": [{**STEP, "multipart": {"f": None}}]}, "is a text, a file"),
        ({"steps": [{**STEP, "multipart": {"f": {"size": 1, "type": "a\nb"}}}]}, "in one line"),
    ],
)
def test_mistakes_are_told_before_the_run(args, said):
    (message,) = HttpFlow.check_arguments("run", args)

    assert said in message
