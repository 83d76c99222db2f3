"""Tasks made of HAR files: which requests they make, what they save, and what they never hold."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from helpers.examples import examples
from helpers.recordings import entry, shop, write_har
from osbench.coordinator.front.cli import main
from osbench.coordinator.task.taskfile.template import render

SITE = "https://shop.example"
PAGE = {"_resourceType": "document"}


def coord(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, env={"COLUMNS": "200"})


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


class Made:
    """The task made of a recording; `args` are the task arguments it is checked with."""

    def __init__(self, entries: list[Any], *options: str, browser: str = "WebInspector", **args):
        write_har(Path("it.har"), entries, browser=browser)
        Path("task.yaml").unlink(missing_ok=True)
        self.said = coord("init", "task.yaml", "--from-har", "it.har", *options)
        assert self.said.exit_code == 0, self.said.output
        self.text = Path("task.yaml").read_text(encoding="utf-8")
        checked = coord("validate", "task.yaml", "--task-args", json.dumps(args))
        assert checked.exit_code == 0, checked.output + self.text
        document, problems = render(self.text, ".", args)
        assert not problems
        self.flow = yaml.safe_load(document)["subtasks"][0]["scenario"]["HttpFlow.run"]
        self.steps = self.flow["steps"]


def paths(made: Made) -> list[str]:
    return [step["path"] for step in made.steps]


def test_a_recorded_visit_of_a_shop_becomes_a_flow():
    made = Made(shop(SITE), password='se"cret\\')

    assert made.flow["base"] == SITE
    assert made.steps == [
        {
            **{"name": "GET /items", "path": "/items", "expect": 200},
            **{"save": {"item_id": "$[0].id"}, "think": 1.0},
        },
        {
            **{"name": "POST /login", "method": "POST", "path": "/login", "expect": 200},
            "json": {"name": "ann", "password": 'se"cret\\'},
            "save": {"token": "$.token"},
        },
        {"name": "GET /items/[id]", "path": "/items/{saved.item_id}", "expect": 200},
        {
            **{"name": "POST /orders", "method": "POST", "path": "/orders", "expect": 201},
            "json": {"item": "{saved.item_id}"},
            "headers": {"Authorization": "Bearer {saved.token}"},
        },
    ]
    assert "assets (1)" in made.said.output
    assert "requests of the host cdn.example (1)" in made.said.output
    assert "--task-args '{password: ...}'" in made.said.output


def test_firefox_files_have_a_mark_and_no_types_of_their_own():
    entries = [
        entry("GET", f"{SITE}/login", answer="<html>", response_type="text/html; charset=utf-8"),
        entry("GET", f"{SITE}/app.css", status=0, response_type=""),
        entry("POST", f"{SITE}/login", form={"user": "ann", "passwd": "hidden%21"}, status=200),
    ]

    made = Made(entries, browser="Firefox", passwd="p")

    assert paths(made) == ["/login", "/login"]
    assert made.steps[1]["form"] == {"user": "ann", "passwd": "p"}
    assert "without a response (1)" in made.said.output


def test_nothing_secret_is_written():
    jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTYifQ.c2lnbmF0dXJl"
    hidden = {
        "authorization": "Basic YW5uOm9wZW5zZXNhbWUxMg==",
        "x-auth-token": "gone-with-the-wind-17",
        "cookie": "sid=cookie-value-4711; theme=dark",
        "x-api-key": "0123-key",
    }
    entries = [
        entry("GET", f"{SITE}/", answer="<html>", response_type="text/html", headers=hidden),
        entry("GET", f"{SITE}/reset/{jwt}?signature=abcdef99&page=2"),
        entry("GET", f"{SITE}/note?text=my+cookie-value-4711+is+here"),
        entry(
            "POST", f"{SITE}/a", json_body={"auth": {"secret": {"x": "deep-secret"}}, "pin": 4321}
        ),
        entry("POST", f"{SITE}/b", form={"new_password_again": "form-secret"}),
        entry("GET", "https://ann:urlpass99@shop.example/x"),
    ]
    write_har(Path("it.har"), entries)

    assert coord("init", "task.yaml", "--from-har", "it.har").exit_code == 0
    text = Path("task.yaml").read_text(encoding="utf-8")

    told = [
        *("YW5uOm9wZW5zZXNhbWUxMg", "opensesame", "gone-with", "4711", "0123-key", "eyJ"),
        "4321",
    ]
    told += ["abcdef99", "deep-secret", "form-secret", "urlpass99"]
    assert [secret for secret in told if secret in text] == []
    assert "page: '2'" in text
    needed = coord("validate", "task.yaml")
    assert needed.exit_code == 2
    names = needed.output.partition("arguments ")[2].partition(":")[0].split(", ")
    given = json.dumps(dict.fromkeys(names, 'x"{{ y }}'))
    checked = coord("validate", "task.yaml", "--task-args", given)
    assert checked.exit_code == 0, checked.output


def secrets_of_each_kind() -> list[dict[str, Any]]:
    """Requests with a secret, `planted-N...`, in every place where one may stand."""
    headers = {
        "DPoP": "planted-00-proof",
        "Proxy-Authorization": "Basic planted-01-proxy",
        "X-CSRF-Token": "planted-02-csrf",
        "X-Amz-Security-Token": "planted-03-aws",
        "X_Auth_Key": "planted-04-key",
        "Cookie": "sid=planted-05-cookie1; theme=dark",
        "Authorization": "DPoP planted-06-bound",
    }
    body = {
        "auth": {"identity": {"password": {"user": {"name": "demo", "password": "planted-07-pw"}}}},
        "otp": "planted-08-otp",
        "adminPass": "planted-09-admin",
        "list": [{"tokens": ["planted-10-token"]}],
        "note": "-----BEGIN PRIVATE KEY-----\nplanted-11-pem\n-----END PRIVATE KEY-----",
        "passcode": "planted-12-code",
        "user_data": "planted-13-data",
        "private_key": {"pem": "planted-14-key"},
    }
    login = {
        "grant_type": "authorization_code",
        "code": "planted-15-code",
        "code_verifier": "planted-16-verifier",
        "redirect_uri": "https://shop.example/cb",
        "client_secret": "planted-17-client",
    }
    query = "temp_url_sig=planted-18-sig&temp_url_expires=1700000000&X-Amz-Signature=planted-19-sig"
    return [
        entry("GET", f"{SITE}/a?limit=5&sort_key=name&code=200", headers=headers),
        entry("POST", f"{SITE}/v3/auth/tokens", json_body=body),
        entry("POST", f"{SITE}/oauth/token", form=login),
        entry("GET", f"{SITE}/v1/AUTH_demo/box/file?{query}"),
        entry("GET", f"{SITE}/callback?code=planted-20-code&state=planted-21-state"),
        entry("GET", f"{SITE}/password-reset/MQ/planted-22-0123456789abcdef"),
        entry("GET", f"{SITE}/a?api%5Fkey=planted-23-key&user%5Bpassword%5D=planted-24-pw"),
        entry("GET", "https://ann:planted-25-user@shop.example/x"),
        # not made by a flow: comments say so
        entry("PUT", f"{SITE}/reset/planted-26-0123456789abcdef?sig=a", body=("image/png", "x")),
    ]


def test_secrets_of_all_kinds_become_arguments():
    write_har(Path("it.har"), secrets_of_each_kind())

    made = coord("init", "task.yaml", "--from-har", "it.har")

    text = Path("task.yaml").read_text(encoding="utf-8")
    assert re.findall(r"planted\S*", text + made.output) == []
    # the check above sees them: they are in the recording
    assert len(set(re.findall(r"planted-(\d\d)", Path("it.har").read_text()))) == 27
    for kept in ("limit: '5'", "sort_key: name", "code: '200'", "name: demo", "grant_type: auth"):
        assert kept in text
    assert "temp_url_expires: '1700000000'" in text


def test_a_password_that_is_a_word_is_replaced_where_it_is_one_only():
    entries = [
        entry("POST", f"{SITE}/login", form={"username": "admin", "password": "admin"}),
        entry("GET", f"{SITE}/admin/users?role=admin"),
    ]
    write_har(Path("it.har"), entries)

    assert coord("init", "task.yaml", "--from-har", "it.har").exit_code == 0

    text = Path("task.yaml").read_text(encoding="utf-8")
    assert "username: admin" in text
    assert "path: /admin/users" in text
    assert "password: {{ password" in text


def test_braces_of_a_recording_stay_braces():
    query = "query{items{id}} {{ 7*7 }} {% raw %} {# x #} {saved.token} {user}"
    entries = [
        entry("GET", f"{SITE}/%7Bid%7D/{{run}}", **PAGE),
        entry("POST", f"{SITE}/graphql", json_body={"operationName": "Items", "query": query}),
    ]

    made = Made(entries)

    assert paths(made)[0] == "/%7Bid%7D/%7Brun%7D"
    assert made.steps[1]["name"] == "POST /graphql Items"
    assert made.steps[1]["json"]["query"].replace("{brace}", "{") == query


def test_redirects_are_followed_and_not_made_twice():
    entries = [
        entry("GET", "http://shop.example/", status=301, redirect=f"{SITE}/"),
        entry("GET", f"{SITE}/", answer="<html>", response_type="text/html"),
        entry("POST", f"{SITE}/buy", form={"n": "1"}, status=303, redirect="/bought?n=1"),
        entry("GET", f"{SITE}/bought?n=1", answer={"order_id": "A-4711-x"}),
        entry("GET", f"{SITE}/orders/A-4711-x", status=304),
        entry("GET", f"{SITE}/away", status=302, redirect="https://sso.example/"),
    ]

    made = Made(entries)

    assert [(step["path"], step.get("expect")) for step in made.steps] == [
        ("http://shop.example/", 200),
        ("/buy", 200),
        ("/orders/{saved.order_id}", 200),
        ("/away", None),
    ]
    assert made.steps[1]["save"] == {"order_id": "$.order_id"}
    assert made.steps[2]["name"] == "GET /orders/[id]"


def test_what_a_flow_cannot_send_is_named_in_a_comment():
    entries = [
        entry("GET", f"{SITE}/", **PAGE),
        entry("POST", f"{SITE}/up", body=("multipart/form-data; boundary=x", "--x")),
        entry("POST", f"{SITE}/bad", body=("application/json", "{")),
        entry("PROPFIND", f"{SITE}/dav"),
        entry("GET", f"{SITE}/live", status=101, _resourceType="websocket"),
        entry("GET", "wss://shop.example/ws", status=101),
        entry("GET", f"{SITE}/old", _fromCache="disk"),
        entry("OPTIONS", f"{SITE}/a", headers={"Access-Control-Request-Method": "PUT"}),
    ]

    made = Made(entries)

    assert paths(made) == ["/"]
    assert "# left out: POST /up: its type is multipart/form-data, but not its" in made.text
    assert "# left out: POST /bad: its type is JSON, but not its" in made.text
    assert "# left out: PROPFIND /dav: the method PROPFIND" in made.text
    assert all(f"{why} (1)" in made.said.output for why in ("WebSockets", "not HTTP", "cache"))


def test_other_hosts_and_assets_are_kept_on_request():
    entries = [
        entry("GET", f"{SITE}/", answer="<html>", response_type="text/html"),
        entry("GET", f"{SITE}/logo.png", response_type="image/png"),
        entry("GET", "https://api.example:8443/v1/items?tag=a&tag=b&empty="),
    ]

    every = Made(entries, "--host", "shop.example", "--host", "api.example", "--with-assets")
    one = Made(entries, "--host", "API.example:8443")
    none = coord("init", "no.yaml", "--from-har", "it.har", "--host", "none.example")

    assert paths(every) == ["/", "/logo.png", "https://api.example:8443/v1/items"]
    assert every.steps[2]["query"] == {"tag": ["a", "b"], "empty": ""}
    assert (one.flow["base"], paths(one)) == ("https://api.example:8443", ["/v1/items"])
    assert none.exit_code == 2
    assert "none goes to none.example; requests by host: shop.example (2), api.ex" in none.output
    assert "name one of them by --host" in none.output
    assert not Path("no.yaml").exists()


def test_think_times_are_those_without_any_request():
    entries = [
        entry("GET", f"{SITE}/", took_s=0.2, **PAGE),
        entry("GET", f"{SITE}/slow.png", at_s=0.1, took_s=2.0, response_type="image/png"),
        entry("GET", f"{SITE}/b", at_s=2.3, took_s=0.1),
        entry("GET", f"{SITE}/c", at_s=4.4, took_s=0.1),
        entry("GET", f"{SITE}/d", at_s=904.5),
    ]

    made = Made(entries)

    assert [step.get("think") for step in made.steps] == [None, 2.0, 60.0, None]
    assert "# recorded think time: 900 s" in made.text
    assert "timeout: 92s" in made.text


def test_base64_answers_give_values_and_values_of_the_user_are_not_saved():
    entries = [
        entry("POST", f"{SITE}/find", json_body={"customer_id": "C-99881"}, **PAGE),
        entry(
            "GET", f"{SITE}/cart", answer={"cart": {"id": "c0ffee-42"}, "a'b c": 1}, encoded=True
        ),
        entry("PUT", f"{SITE}/carts/c0ffee-42", json_body={"customer_id": "C-99881", "n": 1}),
        entry(
            "GET", f"{SITE}/binary", answer="\x00", response_type="application/json", encoded=True
        ),
    ]
    entries[0]["response"]["content"]["text"] = '{"customer_id": "C-99881"}'

    made = Made(entries)

    assert made.steps[1]["save"] == {"cart_id": "$.cart.id"}
    assert made.steps[2]["path"] == "/carts/{saved.cart_id}"
    assert made.steps[2]["json"] == {"customer_id": "C-99881", "n": 1}


def test_equal_numbers_that_mean_other_things_are_not_saved():
    entries = [
        entry("GET", f"{SITE}/items", answer=[{"id": 2, "stock": 3}], **PAGE),
        entry("GET", f"{SITE}/pages/2?page=3&limit=2"),
        entry("POST", f"{SITE}/orders", json_body={"amount": 2, "item_id": 2}),
    ]

    made = Made(entries)

    assert paths(made)[1] == "/pages/2"
    assert made.steps[1]["query"] == {"page": "3", "limit": "2"}
    assert made.steps[2]["json"] == {"amount": 2, "item_id": "{saved.item_id}"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "is not a HAR file, which has a list log.entries"),
        ('{"log": {"entries": {}}}', "is not a HAR file, which has a list log.entries"),
        ('{"log": {"entries": []}}', "has no HTTP request"),
        ('{"log": {"entries": [1]}}', "log.entries[0] is not an object"),
        ('{"log": {"entries": [{}]}}', "log.entries[0].request must be an object"),
        ('{"log": {"entries": [{"request": {"url": 5}}]}}', "request.url must be a text"),
        ('{"log": {"entries": [{"request": {"url": "http://[x"}}]}}', "request.url: "),
        ('{"log": {"entries": [{"request": {"url": "http://h:x/"}}]}}', "request.url: "),
        (
            '{"log": {"entries": [{"request": {"url": "/", "headers": 1}}]}}',
            "headers must be a list",
        ),
    ],
)
def test_a_malformed_file_is_one_message(text: str, said: str):
    Path("bad.har").write_text(text, encoding="utf-8")

    refused = coord("init", "task.yaml", "--from-har", "bad.har")

    assert refused.exit_code == 2
    assert said in refused.output
    assert len(refused.output.splitlines()) == 1
    assert not Path("task.yaml").exists()


@pytest.mark.parametrize(
    ("wishes", "why"),
    [
        ({"body": ("application/octet-stream", "\x00\x01")}, "application/octet-stream"),
        ({"body": ("multipart/form-data; boundary=x", "--x")}, "multipart/form-data"),
        ({"body": ("application/json", "\x00{")}, "its type is JSON, but not its body"),
        ({"body": ("application/json", "[NaN]")}, "its type is JSON, but not its body"),
        ({"body": ("application/json", "[1e999]")}, "its type is JSON, but not its body"),
        ({"json_body": {"{user}": 1}}, "a name in it has braces"),
    ],
)
def test_a_recording_of_which_no_flow_can_be_made_is_refused(wishes: dict[str, Any], why: str):
    write_har(Path("it.har"), [entry("POST", f"{SITE}/a", **wishes)])

    refused = coord("init", "task.yaml", "--from-har", "it.har")

    assert refused.exit_code == 2
    assert "it.har has no request that a flow can make" in refused.output
    assert why in refused.output
    assert len(refused.output.splitlines()) == 1
    assert not Path("task.yaml").exists()


def test_files_that_cannot_be_read_or_written_are_one_message():
    write_har(Path("it.har"), shop(SITE))
    Path("latin.har").write_bytes(b'{"log": "\xff"}')

    absent = coord("init", "a.yaml", "--from-har", "absent.har")
    latin = coord("init", "a.yaml", "--from-har", "latin.har")
    nowhere = coord("init", "none/a.yaml", "--from-har", "it.har")
    alone = coord("init", "a.yaml", "--host", "x")

    assert "absent.har: No such file" in absent.output
    assert "is not UTF-8 text" in latin.output
    assert "none/a.yaml: No such file" in nowhere.output
    assert "needs --from-har" in alone.output
    assert {absent.exit_code, latin.exit_code, nowhere.exit_code, alone.exit_code} == {2}


def test_odd_entries_do_not_break_a_task():
    odd = entry("GET", f"{SITE}/a\tb/%zz/ü?x=%ff&{'y' * 300}=1", **PAGE)
    odd |= {"time": "long", "startedDateTime": 5}
    odd["response"]["status"] = "200"
    fine = entry("GET", f"{SITE}/deep", answer="[" * 50_000)
    named = entry(
        "POST", f"{SITE}/odd", json_body={"yes": "no", "": None, "1": "null", "a: b": "# x"}
    )
    bad = entry("POST", f"{SITE}/named", json_body={"{user}": 1})
    half = entry("POST", f"{SITE}/half", json_body={"\ud800": "\udfff"}, headers={"\ud800 ": "x"})

    made = Made([odd, fine, named, bad, half])

    assert paths(made) == ["/deep", "/odd", "/half"]
    assert made.steps[1]["json"] == {"yes": "no", "": None, "1": "null", "a: b": "# x"}
    assert made.steps[2]["json"] == {"?": "?"}
    assert "headers" not in made.steps[2]
    assert "# left out: POST /named: a name in it has braces" in made.text


def test_parts_that_no_request_can_have_are_left_out():
    late = entry("GET", f"{SITE}/late", headers={"X-Name": "\u65e5"}) | {"time": 10**400}
    half = entry("GET", f"{SITE}/\ud800?a=\ud800")
    nowhere = entry("GET", "https://a b/")
    head = entry("HEAD", f"{SITE}/head", answer={"id": "abcdef123456789"})
    used = entry("GET", f"{SITE}/used/abcdef123456789")
    odd = entry(
        "GET",
        f"{SITE}/odd",
        answer={"\x00": {"token": "0123456789abcdef"}},
        response_headers=[("x token", "0123456789abcdef")],
    )
    last = entry("GET", f"{SITE}/last", headers={"X-Token": "0123456789abcdef"})

    made = Made([late, half, nowhere, head, used, odd, last], x_token="0123456789abcdef")

    assert [step["name"] for step in made.steps] == [
        *("GET /late", "GET /_", "HEAD /head", "GET /used/abcdef123456789", "GET /odd"),
        "GET /last",
    ]
    assert "headers" not in made.steps[0]
    assert not any("save" in step for step in made.steps)


def test_secrets_within_texts_are_all_replaced_however_many():
    count = examples(400)
    secrets = [f"secret{number:05}value" for number in range(count)]
    cookies = "; ".join(f"c{number}={secret}" for number, secret in enumerate(secrets))
    start = entry("GET", f"{SITE}/start", headers={"Cookie": cookies})
    texts = [" and ".join(secrets), *(f"<{secret}>" for secret in secrets)]
    sent = entry("POST", f"{SITE}/sent", json_body={"texts": texts})

    made = Made([start, sent], **{f"c{number}": f"v{number}" for number in range(count)})

    assert "secret0" not in made.text
    values = [f"v{number}" for number in range(count)]
    assert made.steps[1]["json"]["texts"] == [
        " and ".join(values),
        *(f"<{value}>" for value in values),
    ]


def test_of_secrets_that_begin_alike_the_longest_is_replaced():
    short, long = "secret-of-1", "secret-of-1-and-more"
    start = entry("GET", f"{SITE}/start", headers={"Cookie": f"a={short}; b={long}"})
    sent = entry("POST", f"{SITE}/sent", json_body={"text": f"<{long}> <{short}>"})

    made = Made([start, sent], a="A", b="B")

    assert made.steps[1]["json"]["text"] == "<B> <A>"


def test_secrets_of_one_name_have_a_number_each():
    requests = [
        entry("GET", f"{SITE}/a", headers={"X-Token": f"secret{number:05}value"})
        for number in range(3)
    ]

    made = Made(requests, x_token="a", x_token_2="b", x_token_3="c")

    assert [step["headers"]["X-Token"] for step in made.steps] == ["a", "b", "c"]


def test_many_requests_are_read_in_bounded_time():
    count = examples(1200)
    entries = [
        *(entry("GET", f"{SITE}/r{n}", status=302, redirect="/never") for n in range(count)),
        entry("GET", f"{SITE}/list", answer=[{"id": n} for n in range(20_000)]),
    ]

    made = Made(entries)

    assert len(made.steps) == count + 1


def written(method: str, path: str, **posted: Any) -> dict[str, Any]:
    """An entry as tools write it that have not sent anything: a request alone."""
    request = {
        "method": method,
        "url": f"{SITE}{path}",
        "headers": [{"name": "Content-Type", "value": posted.get("mimeType", "text/plain")}],
        "queryString": [],
        **({"postData": posted} if posted else {}),
    }
    return {"request": request}


def test_requests_that_a_tool_has_written_need_no_answers():
    made = Made([written("GET", "/items"), written("GET", "/items/7")])

    assert made.steps == [
        {"name": "GET /items", "path": "/items"},
        {"name": "GET /items/[id]", "path": "/items/7"},
    ]


def test_requests_that_a_browser_has_broken_off_are_left_out_among_them():
    broken = {**written("GET", "/broken"), "response": {"status": 0}}

    assert paths(Made([written("GET", "/items"), broken])) == ["/items"]


def test_parts_of_a_form_that_stand_apart_are_sent():
    parts = [
        {"name": "hello", "value": "world"},
        {"name": "hello", "value": "there"},
        {"name": "file", "fileName": "a.csv", "contentType": "text/csv", "value": "a,b"},
        {"name": "photo", "fileName": "a.jpg", "contentType": "image/jpeg"},
    ]
    kind = "multipart/form-data; boundary=---b"

    (step,) = Made([written("POST", "/up", mimeType=kind, params=parts)]).steps

    assert step["multipart"] == {
        "hello": ["world", "there"],
        "file": {"filename": "a.csv", "type": "text/csv", "content": "a,b"},
        "photo": {"filename": "a.jpg", "type": "image/jpeg", "size": 0},
    }
    # it would name another boundary than the one that is sent
    assert "headers" not in step
