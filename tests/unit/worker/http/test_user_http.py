"""`self.http`: requests of a virtual user, for threads and for coroutines."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import pytest
import requests

from helpers.json_server import LoopbackServer, QuietHandler, serving
from osbench.common.plugin.atomic import WIDTH
from osbench.common.plugin.scenario import Scenario, VirtualUser
from osbench.worker.http.http_clients import HttpClients
from osbench.worker.http.other_clients.turned_adapter import TurnedAdapter
from osbench.worker.http.outgoing_request import OutgoingRequest
from osbench.worker.http.user.expectations import CheckFailed, UnexpectedStatus
from osbench.worker.http.user.http_session import HttpSession, LoopHttpSession, default_name
from osbench.worker.http.user.request_base import Base, Bases
from osbench.worker.http.wire.prepared_request import PreparedRequest

ITEM = {"id": 3, "name": "lamp", "password": "hunter2", "tags": [{"t": "a"}, {"t": "b"}]}
LARGE = json.dumps([{"id": n, "password": "hunter2", "of": "lamp"} for n in range(50_000)]).encode()


class _Shop(QuietHandler):
    """Answers with what it was asked, sets and deletes cookies, redirects."""

    def do_GET(self) -> None:
        body = self.sent_body()
        path, _, query = self.path.partition("?")
        headers = self.sent_headers()
        told = {"method": self.command, "path": self.path, "headers": headers}
        told["body"] = body.decode("latin-1")
        told["cookies"] = self.headers.get_all("Cookie") or []
        self.server.told.append(told)  # type: ignore[attr-defined]
        extra: list[tuple[str, str]] = []
        status, answer = 200, json.dumps(ITEM).encode()
        if path == "/set":
            extra = [("Set-Cookie", part.replace("%3B", ";")) for part in query.split("&")]
        elif path == "/go":
            status, extra = 302, [("Location", "/item/3"), ("Set-Cookie", "went=1; Path=/")]
        elif path.startswith("/status/"):
            status = int(path.rpartition("/")[2])
        elif path == "/text":
            answer = "password=hunter2 grüße".encode()
            extra = [("Content-Type", "text/plain; charset=utf-8")]
        elif path.startswith("/charset/"):
            extra = [("Content-Type", f"text/plain; charset={path.rpartition('/')[2]}")]
        elif path == "/echo":
            answer = json.dumps({"sent": headers}).encode()
        elif path == "/large":
            answer = LARGE
        elif path == "/empty":
            answer = b""
        self.send_response(status)
        for name, value in [*extra, ("Content-Length", str(len(answer)))]:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer)

    do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = do_GET


@pytest.fixture(scope="module")
def server() -> Iterator[LoopbackServer]:
    made = LoopbackServer(_Shop)
    made.told = []  # type: ignore[attr-defined]
    with serving(made):
        yield made


class Customer:
    """A virtual user and its session, of a thread or of a loop; `ask` is one iteration."""

    def __init__(self, kind: str, base: Base, **context: Any) -> None:
        clients = HttpClients(["X-Osbench-Run: r"])
        self.kind = kind
        session = LoopHttpSession if kind == "loop" else HttpSession
        self.user = VirtualUser(7, open_http=lambda user: session(clients, base))
        self.context = {"iteration": 5, "timeout_s": 0.0, **context}
        self._loop = asyncio.new_event_loop()

    def close(self) -> None:
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        if tasks:
            self._loop.run_until_complete(asyncio.wait(tasks))
        self._loop.close()

    def scenario(self) -> Scenario:
        made = Scenario(dict(self.context))
        made.context = dict(self.context)
        made._user = self.user
        return made

    def ask(self, method: str, path: str, **wishes: Any) -> Any:
        return self.asked(method, path, **wishes)[0]

    def actions(self) -> list[str]:
        """The actions of the last request, in order."""
        recorder = self.last._recorder
        return [recorder.names.names[number] for number in recorder.actions[::WIDTH]]

    def asked(self, method: str, path: str, **wishes: Any) -> tuple[Any, Scenario]:
        self.last = scenario = self.scenario()
        if self.kind == "loop":

            async def go() -> Any:
                return await getattr(scenario.http, method)(path, **wishes)

            return self._loop.run_until_complete(go()), scenario
        return getattr(scenario.http, method)(path, **wishes), scenario


@pytest.fixture(params=["thread", "loop"])
def customer(request, server) -> Iterator[Customer]:
    server.told.clear()
    made = Customer(request.param, Base(url=server.url))
    yield made
    made.close()


def test_a_request_says_what_came_back(customer, server):
    answer, scenario = customer.asked("get", "/item/3?x=1", check={"$.id": 3})

    assert (answer.status, answer.url) == (200, f"{server.url}/item/3?x=1")
    assert answer.json() == ITEM
    assert json.loads(answer.text) == ITEM
    assert answer.headers["CONTENT-length"] == str(len(answer.body))
    assert scenario._recorder.names.names == ["GET /item/[id]"]
    assert len(scenario._recorder.exchanges) > 0
    headers = server.told[0]["headers"]
    assert (headers["x-osbench-run"], headers["x-osbench-iteration"]) == ("r", "5")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/items/17/parts/9", "GET /items/[id]/parts/[id]"),
        ("/i/3f2504e0-4f89-11d3-9a0c-0305e82c3301?a=1", "GET /i/[id]"),
        ("/v2/0a1b2c3d4e5f60718293a4b5c6d7e8f9", "GET /v2/[id]"),
        ("", "GET /"),
    ],
)
def test_ids_are_no_part_of_names(customer, path, name):
    _, scenario = customer.asked("get", path)

    assert scenario._recorder.names.names == [name]


def test_bodies_are_json_forms_or_files(customer, server):
    customer.ask("post", "/item", json={"a": [1]})
    customer.ask("put", "/item", data={"a": "b c"})
    customer.ask("patch", "/item", data="raw", headers={"Content-Type": "text/x"})
    customer.ask("post", "/item", files={"f": ("a.txt", b"content")}, data={"k": "v"})

    sent = [(one["method"], one["headers"]["content-type"], one["body"]) for one in server.told]
    assert sent[0] == ("POST", "application/json", '{"a": [1]}')
    assert sent[1] == ("PUT", "application/x-www-form-urlencoded", "a=b+c")
    assert sent[2] == ("PATCH", "text/x", "raw")
    _, content_type, body = sent[3]
    assert content_type.startswith("multipart/form-data; boundary=")
    assert 'name="k"' in body
    assert 'filename="a.txt"' in body
    assert "content" in body


def test_files_keep_the_content_type_that_was_given_in_any_case(customer, server):
    kind = "multipart/mixed; boundary=x"
    customer.ask("post", "/item", files={"f": b"content"}, headers={"content-type": kind})

    assert server.told[0]["headers"]["content-type"] == kind


def test_files_may_be_open_and_forms_may_have_lists(customer, server, tmp_path):
    (tmp_path / "lamp.csv").write_text("from a file")
    with (tmp_path / "lamp.csv").open("rb") as lamp:
        customer.ask("post", "/item", files={"f": lamp}, data={"k": ["v1", 2, None]})
        lamp.seek(0)
        customer.ask("post", "/item", files={"f": ("b.csv", lamp, "text/csv"), "raw": b"bytes"})

    first, second = (one["body"] for one in server.told)
    assert 'filename="lamp.csv"' in first
    assert "from a file" in first
    assert "v1" in first
    assert first.count('name="k"') == 2
    assert 'filename="b.csv"' in second
    assert "text/csv" in second
    assert "from a file" in second
    assert 'name="raw"; filename="raw"' in second


@pytest.mark.parametrize(
    ("wishes", "said"),
    [
        ({"expct": 200}, r"no argument 'expct'; did you mean expect\?"),
        ({"zzz": 1}, "no argument 'zzz'$"),
        ({"files": {"f": 5}}, "the file 'f' must be bytes, text or an open file, got 5"),
        ({"files": {"f": b"a"}, "data": "x"}, "must be mappings of names"),
    ],
)
def test_wrong_arguments_are_named_before_the_request(customer, server, wishes, said):
    with pytest.raises(TypeError, match=said):
        customer.ask("post", "/item", **wishes)

    assert not server.told


def test_a_path_is_a_text(customer):
    with pytest.raises(TypeError, match="the path of a request must be text, got 5"):
        customer.ask("get", 5)


def test_cookies_are_kept_between_iterations_until_they_are_over(customer, server, monkeypatch):
    def cookies() -> str:
        customer.ask("get", "/item")
        return server.told[-1]["headers"].get("cookie", "")

    customer.ask("get", "/set?a=1%3B Path=/&b=2%3B Path=/only".replace(" ", ""))
    assert cookies() == "a=1"
    customer.ask("get", "/only/here")
    assert sorted(server.told[-1]["headers"]["cookie"].split("; ")) == ["a=1", "b=2"]
    customer.ask("get", "/set?a=%3BPath=/%3BMax-Age=0")
    assert cookies() == ""
    customer.scenario().http.cookies.set("mine", "3")
    assert cookies() == "mine=3"
    customer.ask("get", "/set?soon=1%3BPath=/%3BMax-Age=600")
    assert "soon=1" in cookies()
    now = time.time()
    monkeypatch.setattr("http.cookiejar.time.time", lambda: now + 601)
    assert cookies() == "mine=3"
    customer.ask("get", "/item", headers={"Cookie": "own=1"})
    assert server.told[-1]["cookies"] == ["own=1"]


@pytest.mark.parametrize("value", ["x\r\nInjected: 1", "x\nInjected: 1", "\u20ac"])
def test_a_cookie_that_would_be_another_header_is_not_sent(customer, server, value):
    customer.scenario().http.cookies.set("a", value)

    with pytest.raises(ValueError, match="a cookie of the user has a character"):
        customer.ask("get", "/item")

    assert not server.told


def test_cookies_are_sent_back_in_the_bytes_in_which_they_came(customer, server):
    customer.ask("get", "/set?a=1%3BPath=/")
    customer.scenario().http.cookies.set("b", "gr\xfcn")

    customer.ask("get", "/item")

    assert "b=gr\xfcn" in server.told[-1]["headers"]["cookie"]


def test_a_redirect_sets_cookies_and_is_followed(customer, server):
    answer = customer.ask("get", "/go")

    assert answer.url == f"{server.url}/item/3"
    assert server.told[-1]["headers"]["cookie"] == "went=1"
    assert customer.ask("get", "/go", allow_redirects=False, expect=302).status == 302


def test_two_users_have_two_jars(server):
    first, second = (Customer("thread", Base(url=server.url)) for _ in range(2))
    first.ask("get", "/set?a=1")
    server.told.clear()
    second.ask("get", "/item")

    assert "cookie" not in server.told[0]["headers"]


@pytest.mark.parametrize("expect", [404, HTTPStatus.NOT_FOUND, {404, 410}, [404], range(400, 500)])
def test_a_status_may_be_expected(customer, expect):
    assert customer.ask("get", "/status/404", expect=expect).status == 404


def test_an_unexpected_status_says_what_came_and_masks_secrets(customer):
    with pytest.raises(UnexpectedStatus) as caught:
        customer.ask("get", "/status/500")

    text = str(caught.value)
    assert text.startswith("GET /status/[id] answered 500, expected less than 400: {")
    assert "hunter2" not in text
    assert '"password": "***"' in text
    assert caught.value.kind == "GET /status/[id] answered 500, expected less than 400"
    with pytest.raises(UnexpectedStatus, match="expected 201 or 204"):
        customer.ask("get", "/text", expect={204, 201}, name="look")
    with pytest.raises(UnexpectedStatus) as caught:
        customer.ask("get", "/text", expect=201)
    assert "password=***" in str(caught.value)


@pytest.mark.parametrize("expect", ["200", True, [], [200, "x"], 2.0])
def test_a_wrong_expectation_is_refused_before_the_request(customer, server, expect):
    with pytest.raises(TypeError, match="expect must be"):
        customer.ask("get", "/item", expect=expect)

    assert not server.told


@pytest.mark.parametrize(
    "check",
    [
        {"$.id": 3, "$.tags[*].t": "b", "text": "lamp"},
        {"$.id": lambda value: value > 2},
        {"header Content-Length": lambda value: int(value) > 10},
        lambda response: response.json()["id"] == 3,
    ],
)
def test_checks_that_hold(customer, check):
    assert customer.ask("get", "/item/3", check=check).status == 200


@pytest.mark.parametrize(
    ("check", "said"),
    [
        ({"$.id": 4}, r"\$\.id is 3, not 4"),
        ({"$.absent": 1}, r"\$\.absent is not there, not 1"),
        ({"text": "chair"}, "the text has no 'chair'"),
        ({"header etag": "7"}, "header etag is None, not '7'"),
        ({"$.id": lambda value: value > 3}, r"\$\.id does not hold"),
        (lambda response: False, "check does not hold"),
    ],
)
def test_checks_that_do_not_hold_fail_the_iteration(customer, check, said):
    with pytest.raises(CheckFailed, match=said) as caught:
        customer.ask("get", "/item/3", check=check)

    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("path", ["$", "$[*]", "$[0]", "$[0].password", "$[0]['password']"])
def test_what_a_check_found_is_shown_without_secrets_and_cut(customer, path):
    with pytest.raises(CheckFailed) as caught:
        customer.ask("get", "/large", check={path: "chair"})

    assert "hunter2" not in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("name", ["Cookie", "Authorization", "X-Auth-Token"])
def test_an_answer_that_repeats_the_request_shows_no_secrets(customer, name):
    with pytest.raises(CheckFailed) as caught:
        customer.ask("get", "/echo", headers={name: "sid=hunter2"}, check={"text": "chair"})

    assert "hunter2" not in str(caught.value)


def test_a_check_of_a_cookie_does_not_show_it(customer):
    with pytest.raises(CheckFailed) as caught:
        customer.ask("get", "/set?sid=hunter2", check={"header Set-Cookie": "sid=other"})

    assert "header Set-Cookie is '***', not '***'" in str(caught.value)


@pytest.mark.parametrize("charset", ["undefined", "idna", "hex", "no-such"])
def test_a_text_of_no_charset_is_read_as_utf_8(customer, charset):
    assert "lamp" in customer.ask("get", f"/charset/{charset}").text


def test_soft_checks_are_counted_and_fail_nothing(customer):
    _, scenario = customer.asked("get", "/item/3", verify={"$.id": 3, "$.name": "chair"})

    assert scenario._checks == {
        "GET /item/[id]: $.id": [1, 0],
        "GET /item/[id]: $.name": [0, 1],
    }
    assert not scenario.verify("mine", [])
    assert scenario._checks["mine"] == [0, 1]


def test_a_check_of_nothing_that_is_known_is_refused(customer):
    with pytest.raises(ValueError, match=r"a check must look at .* got 'status'"):
        customer.ask("get", "/item", check={"status": 200})
    with pytest.raises(ValueError, match="cannot be read"):
        customer.ask("get", "/item", check={"$.a[": 1})
    with pytest.raises(CheckFailed, match="the response is not JSON"):
        customer.ask("get", "/empty", check={"$.a": 1})


@pytest.mark.parametrize("options", [{}, {"auth": ("ann", "pw")}], ids=["own", "requests"])
def test_a_stream_is_read_and_not_kept(customer, options):
    answer = customer.ask("get", "/item", stream=True, **options)

    assert answer.status == 200
    with pytest.raises(ValueError, match="not kept"):
        _ = answer.body


@pytest.mark.parametrize("method", ["head", "delete", "options"])
def test_all_methods_are_there(customer, server, method):
    assert customer.ask(method, "/item").status == 200
    assert server.told[0]["method"] == method.upper()


def test_what_requests_alone_can_do_has_the_same_cookies_and_answers(customer, server):
    customer.ask("get", "/set?a=1%3BPath=/")
    answer = customer.ask("get", "/item/3", auth=("ann", "pw"), check={"$.id": 3})

    assert answer.headers["content-length"] == str(len(answer.body))
    headers = server.told[-1]["headers"]
    assert headers["authorization"].startswith("Basic ")
    assert headers["cookie"] == "a=1"
    customer.ask("get", "/set?b=2%3BPath=/", auth=("ann", "pw"))
    customer.ask("get", "/item")
    assert sorted(server.told[-1]["headers"]["cookie"].split("; ")) == ["a=1", "b=2"]


@pytest.mark.parametrize(
    ("base", "path", "url"),
    [
        ("http://a/v1/", "item", "http://a/v1/item"),
        ("http://a/v1", "/item", "http://a/v1/item"),
        ("http://a/v1/", "//item", "http://a/v1//item"),
        ("http://a", "//b/c", "http://a//b/c"),
        ("http://a/v1", "?x=1", "http://a/v1?x=1"),
        ("http://a", "HTTP://b/c", "HTTP://b/c"),
        ("http://a", "Https://b/c", "Https://b/c"),
        ("http://a", "/http://b/c", "http://a/http://b/c"),
    ],
)
def test_paths_are_put_behind_the_base(base, path, url):
    assert Base(url=base).join(path) == url


@pytest.mark.parametrize(
    ("url", "below"),
    [
        ("HTTP://Shop.test/x", True),
        ("http://shop.test:80/x", True),
        ("https://shop.test/x", False),
        ("http://shop.test.evil/x", False),
        ("http://shop.test:99999/x", False),
    ],
)
def test_a_token_is_for_the_origin_of_the_base_alone(url, below):
    assert Base(url="http://shop.test/v1").is_below(url) is below


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/users/ann@shop.test?x=1", "/users/[id]"),
        ("/users/ann%40shop.test/cart", "/users/[id]/cart"),
        ("/reset/Zk3JhQ9vXw2LmN8pT4yB", "/reset/[id]"),
        ("/password/reset", "/password/reset"),
        ("/auth/token/refresh", "/auth/token/refresh"),
        ("http://a.test/orders/0b2c7f0e8e/17", "/orders/[id]/[id]"),
        ("HTTP://a.test", "/"),
        ("/v2/facade//x/", "/v2/facade//x/"),
        ("/user-{iteration}/{saved.token}", "/user-{iteration}/{saved.token}"),
    ],
)
def test_names_of_actions_have_no_ids_persons_and_secrets(path, name):
    assert default_name("GET", path) == f"GET {name}"


@pytest.mark.parametrize("url", ["http://[fe80::1%25Eth0]:81//x", "HTTP://[FE80::1%25Eth0]:81//x"])
def test_the_zone_of_an_address_is_looked_up_and_not_sent(url):
    request = PreparedRequest(OutgoingRequest("GET", url, (), (), {}))

    assert (request.host, request.port) == ("fe80::1%Eth0", 81)
    assert request.data(()).startswith(b"GET //x HTTP/1.1\r\nHost: [fe80::1]:81\r\n")


def test_requests_keeps_the_slashes_of_a_path():
    asked = requests.Request("GET", "http://a.test//b//c?d").prepare()

    assert TurnedAdapter().request_url(asked, {}) == "//b//c?d"
    assert TurnedAdapter().request_url(asked, {"http": "http://p"}) == "http://a.test//b//c?d"


def test_the_task_says_where_requests_go_and_what_they_carry(server):
    base = Bases({"base": f"{server.url}/v1/", "headers": {"X-A": "1"}, "timeout": 5}).of(1)
    customer = Customer("thread", base, timeout_s=4.0)
    server.told.clear()
    customer.ask("get", "item", headers={"X-B": "2"})

    (seen,) = server.told
    assert seen["path"] == "/v1/item"
    assert (seen["headers"]["x-a"], seen["headers"]["x-b"]) == ("1", "2")
    assert customer.user.http()._call("GET", "/x").options["timeout"] == pytest.approx(4.2)
    with pytest.raises(ValueError, match="is a path without a base; set http"):
        Customer("thread", Base()).ask("get", "/item")


def test_a_token_goes_to_its_service_alone(server):
    base = Base(url=server.url, token=_Token())
    customer = Customer("thread", base)
    server.told.clear()
    customer.ask("get", "/item")
    customer.ask("get", f"http://localhost:{server.server_port}/item")

    assert ["x-auth-token" in one["headers"] for one in server.told] == [True, False]


def test_there_is_no_session_outside_a_worker():
    with pytest.raises(RuntimeError, match=r"self.http needs a virtual user of a worker"):
        _ = Scenario({}).http


class _Token:
    """A token that the service may refuse; each renewal makes the next one."""

    def __init__(self, number: int = 1, *, over: bool = False) -> None:
        self.number, self.over = number, over
        self.refused: list[Any] = []

    def headers(self) -> dict[str, str]:
        return {"X-Auth-Token": f"t{self.number}"}

    def is_over(self) -> bool:
        return self.over

    def renew(self, refused: Any) -> None:
        self.refused.append(dict(refused))
        self.number, self.over = self.number + 1, False


@pytest.mark.parametrize("kind", ["thread", "loop"])
def test_a_token_that_a_service_refuses_is_renewed_and_both_are_actions(server, kind):
    token = _Token()
    customer = Customer(kind, Base(url=server.url, token=token))
    server.told.clear()

    with pytest.raises(UnexpectedStatus, match="answered 401"):
        customer.ask("get", "/status/401")

    # once: a second refusal is a response like any other
    assert [one["headers"]["x-auth-token"] for one in server.told] == ["t1", "t2"]
    assert token.refused == [{"X-Auth-Token": "t1"}]
    assert customer.actions() == ["GET /status/[id]", "re-authentication", "retry"]
    customer.close()


@pytest.mark.parametrize("kind", ["thread", "loop"])
def test_a_token_that_is_over_is_renewed_before_the_request(server, kind):
    token = _Token(over=True)
    customer = Customer(kind, Base(url=server.url, token=token))
    server.told.clear()

    customer.ask("get", "/item")

    assert [one["headers"]["x-auth-token"] for one in server.told] == ["t2"]
    assert customer.actions() == ["GET /item", "re-authentication"]
    customer.close()


def test_a_scenario_that_expects_401_renews_nothing(server):
    token = _Token()
    customer = Customer("thread", Base(url=server.url, token=token))

    assert customer.ask("get", "/status/401", expect=401).status == 401
    assert token.refused == []
    customer.close()


def test_messages_have_none_of_the_values_that_a_user_hides(server):
    customer = Customer("thread", Base(url=server.url))
    customer.user.hidden["csrf"] = "grüße"

    with pytest.raises(UnexpectedStatus) as status:
        customer.ask("get", "/text", expect=500)
    with pytest.raises(CheckFailed) as check:
        customer.ask("get", "/text", check={"text": "grüße-2"})

    assert "grüße" not in str(status.value)
    assert "grüße" not in str(check.value)
    customer.close()
