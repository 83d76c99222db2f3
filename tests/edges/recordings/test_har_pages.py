"""Recordings of pages: values for one use, uploads, logins of clouds, and what is missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from helpers.recordings import entry, write_har
from osbench.coordinator.front.cli import main
from osbench.coordinator.task.taskfile.template import render

SITE = "https://shop.example"
TOKEN = "4fJ/9s+kQ2mZx81bVw0aLg=="
HTML = {"response_type": "text/html; charset=utf-8", "_resourceType": "document"}


def coord(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, env={"COLUMNS": "200"})


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


class Imported:
    """The task made of a recording."""

    def __init__(self, *entries: Any, **args: str) -> None:
        write_har(Path("it.har"), entries)
        Path("task.yaml").unlink(missing_ok=True)
        self.said = coord("init", "task.yaml", "--from-har", "it.har")
        assert self.said.exit_code == 0, self.said.output
        self.text = Path("task.yaml").read_text(encoding="utf-8")
        checked = coord("validate", "task.yaml", "--task-args", json.dumps(args))
        assert checked.exit_code == 0, checked.output + self.text
        document, problems = render(self.text, ".", args)
        assert not problems
        flow = yaml.safe_load(document)["subtasks"][0]["scenario"]["HttpFlow.run"]
        self.steps: list[dict[str, Any]] = flow["steps"]


def page(html: str, path: str = "/", **more: Any) -> dict[str, Any]:
    return entry("GET", f"{SITE}{path}", answer=html, **HTML, **more)


def posted(fields: dict[str, str], path: str = "/login") -> dict[str, Any]:
    made = entry("POST", f"{SITE}{path}", status=200, answer="<p>", **HTML)
    made["request"]["postData"] = {
        "mimeType": "application/x-www-form-urlencoded",
        "params": [{"name": name, "value": value} for name, value in fields.items()],
    }
    return made


# values for one use


@pytest.mark.parametrize("name", ["csrf", "nonce", "__VIEWSTATE", "_token", "authenticity_token"])
def test_a_hidden_field_is_saved_whatever_its_name(name):
    form = f'<form><input type=hidden name="{name}" value="{TOKEN}"><input name=user></form>'

    made = Imported(page(form), posted({name: TOKEN, "user": "ann"}))

    (saved,) = made.steps[0]["save"].items()
    assert saved[1] == f"input {name}"
    assert made.steps[1]["form"] == {name: f"{{saved.{saved[0]}}}", "user": "ann"}
    assert TOKEN not in made.text


def test_of_forms_with_the_same_field_the_right_one_is_named():
    form = """<form action=/find><input type=hidden name=t value=a1></form>
        <form id=login><input type=hidden name=t value=b2></form>
        <form><input type=hidden name=t value=c3></form>"""

    first = Imported(page(form), posted({"t": "a1"}))
    second = Imported(page(form), posted({"t": "b2"}))
    third = Imported(page(form), posted({"t": "c3"}))

    assert first.steps[0]["save"] == {"t": "input t"}
    assert second.steps[0]["save"] == {"t": "input t of form login"}
    # nothing names it
    assert third.steps[1]["form"] == {"t": "c3"}


def test_a_field_with_quotes_is_saved_as_it_is_sent():
    form = "<input type=hidden name=q value='a&quot;b&#39;c&amp;d'>"

    made = Imported(page(form), posted({"q": "a\"b'c&d"}))

    assert made.steps[0]["save"] == {"q": "input q"}


def test_an_input_comes_before_a_path_a_cookie_and_an_expression():
    form = f'<script>t = "{TOKEN}"</script><input type=hidden name=other value="{TOKEN}">'
    cookie = [("Set-Cookie", f"c={TOKEN}; Path=/")]
    document = entry("GET", f"{SITE}/t", answer={"t": TOKEN})

    by_input = Imported(document, page(form, response_headers=cookie), posted({"x": TOKEN}))
    by_path = Imported(document, page("<p>", response_headers=cookie), posted({"x": TOKEN}))
    by_cookie = Imported(page("<p>", response_headers=cookie), posted({"x": TOKEN}))

    assert by_input.steps[1]["save"] == {"other": "input other"}
    assert [*by_path.steps[0]["save"].values()] == ["$.t"]
    assert by_cookie.steps[0]["save"] == {"c": "cookie c"}


def test_a_cookie_that_a_script_sends_back_is_saved_even_if_a_redirect_set_it():
    away = entry(
        "GET",
        f"{SITE}/",
        status=302,
        redirect="/start",
        response_headers=[("Set-Cookie", "XSRF-TOKEN=ab%3D4711c0ffee99; Path=/")],
    )
    sent = entry("POST", f"{SITE}/api", headers={"X-XSRF-TOKEN": "ab=4711c0ffee99"}, json_body={})

    made = Imported(away, page("<p>", "/start"), sent)

    assert made.steps[0]["save"] == {"xsrf_token": "cookie XSRF-TOKEN"}
    assert made.steps[1]["headers"] == {"X-Xsrf-Token": "{saved.xsrf_token}"}


@pytest.mark.parametrize(
    ("html", "source"),
    [
        (
            '<head><meta name="csrf-token"  content="{}"></head>',
            r'regex <meta\s+name="csrf\-token"\s+content="([^\s"]+)',
        ),
        (
            '<script>window.app = {{a: 1, nonce: "{}"}};</script>',
            r'regex nonce:\s+"([^\s"]+)',
        ),
        (
            "<a href=/?t={}>",
            r"regex <a\s+href=/\?t=([^\s>]+)",
        ),
    ],
)
def test_what_nothing_else_names_is_found_by_an_expression(html, source):
    value = "n0nceQ2mZx81bVw0aLg77"
    sent = entry("POST", f"{SITE}/api", headers={"X-CSRF-Token": value}, json_body={"a": 1})

    made = Imported(page(html.format(*[value] * html.count("{}"))), sent)

    assert [*made.steps[0]["save"].values()] == [source]
    assert value not in made.text


def test_what_the_user_typed_and_small_words_are_no_saves():
    form = "<input name=q value=lamp><input type=hidden name=page value=1><p>lamp 12345"

    made = Imported(page(form), entry("GET", f"{SITE}/find?q=lamp&limit=1"), page(form, "/x"))

    assert made.steps[1]["query"] == {"q": "lamp", "limit": "1"}
    assert not any("save" in step for step in made.steps)


@pytest.mark.parametrize("html", ["<input " * 50_000, "\ufffd<!--" * 9, "", '<input name="a'])
def test_broken_and_empty_pages_are_read(html):
    assert len(Imported(page(html), page("<p>", "/b")).steps) == 2


# bodies


MULTIPART = (
    "------WebKitFormBoundaryA1\r\n"
    'Content-Disposition: form-data; name="note"\r\n\r\na\r\nb\r\n'
    "------WebKitFormBoundaryA1\r\n"
    'Content-Disposition: form-data; name="file"; filename="b.txt"\r\n'
    "Content-Type: text/plain\r\n\r\n{}\r\n"
    "------WebKitFormBoundaryA1--\r\n"
)
KIND = "multipart/form-data; boundary=----WebKitFormBoundaryA1"


def test_a_recorded_upload_is_made_with_its_parts():
    made = Imported(entry("POST", f"{SITE}/up", body=(KIND, MULTIPART.format("hello"))))

    assert made.steps[0]["multipart"] == {
        "note": "a\r\nb",
        "file": {"filename": "b.txt", "type": "text/plain", "content": "hello"},
    }


def test_a_file_that_the_browser_left_out_has_its_size_and_is_named():
    text = MULTIPART.format("")
    length = {"Content-Length": str(len(text) + 2000)}

    made = Imported(entry("POST", f"{SITE}/up", body=(KIND, text), headers=length))

    assert made.steps[0]["multipart"]["file"]["size"] == 2000
    assert "# the recording does not have the file 'b.txt': 2000 bytes are sent for it" in made.text


def test_an_upload_without_its_body_is_named_and_not_sent_empty():
    headers = {"Content-Type": KIND, "Content-Length": "2271"}
    upload = entry("POST", f"{SITE}/up", headers=headers, status=201)

    made = Imported(page("<p>"), upload, entry("DELETE", f"{SITE}/x", status=204))

    assert [step["path"] for step in made.steps] == ["/", "/x"]
    assert "left out: POST /up, whose body is not in the recording (1)" in made.said.output
    assert "(2271 bytes of multipart/form-data): add a step with method: POST, path" in made.text
    assert "multipart: {NAME: {filename: ..., type: ..., size: BYTES}}" in made.text


# logins


def test_a_login_at_keystone_keeps_its_names():
    user = {"name": "demo", "domain": {"id": "default"}, "password": "s3cret-Pass"}
    identity = {"methods": ["password"], "password": {"user": user}}
    scope = {"project": {"name": "demo", "domain": {"id": "default"}}}
    token = "gAAAAABtoken0123456789abcdef"
    login = entry(
        "POST",
        f"{SITE}/v3/auth/tokens",
        status=201,
        json_body={"auth": {"identity": identity, "scope": scope}},
        answer={"token": {}},
        response_headers=[("X-Subject-Token", token)],
    )
    servers = entry("GET", f"{SITE}/v2.1/servers", headers={"X-Auth-Token": token})

    made = Imported(login, servers, password="p")

    assert made.steps[0]["path"] == "/v3/auth/tokens"
    assert made.steps[0]["json"]["auth"]["identity"] == {
        "methods": ["password"],
        "password": {"user": {**user, "password": "p"}},
    }
    assert made.steps[0]["json"]["auth"]["scope"] == scope
    assert made.steps[1]["headers"] == {"X-Auth-Token": "{saved.x_subject_token}"}
    assert "--task-args '{password: ...}'" in made.said.output


def test_a_password_admin_replaces_its_own_field_only():
    made = Imported(
        posted({"username": "admin", "password": "admin"}),
        entry("GET", f"{SITE}/admin/users?role=admin"),
        entry("POST", f"{SITE}/administrators", json_body={"name": "admin", "title": "admin of"}),
        password="p",
    )

    assert made.steps[0]["form"] == {"username": "admin", "password": "p"}
    assert made.steps[1]["query"] == {"role": "admin"}
    assert made.steps[2]["path"] == "/administrators"
    assert made.steps[2]["json"] == {"name": "admin", "title": "admin of"}


# advice on hosts


def test_the_advice_on_hosts_keeps_the_page_and_the_others():
    made = Imported(page("<p>"), entry("GET", "https://api.example/items"))

    assert (
        "# To keep requests of all hosts: init --host shop.example --host api.example" in made.text
    )


def test_assets_alone_are_no_matter_of_hosts():
    write_har(Path("it.har"), [entry("GET", f"{SITE}/a.png", response_type="image/png")])

    refused = coord("init", "task.yaml", "--from-har", "it.har")

    assert refused.exit_code == 2
    assert "left out: assets (1); --with-assets keeps assets" in refused.output
    assert "--host" not in refused.output
