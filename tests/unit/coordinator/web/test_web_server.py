"""The server as browsers, and pages of other sites, meet it: a real one on a free port."""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from helpers.made_runs import made_run
from helpers.web import TOKENS, held, make_run, serving, snapshot, worker_progress
from osbench.coordinator.storage.run_directory import RunDirectory
from osbench.coordinator.web import feed, web_server
from osbench.coordinator.web.access_tokens import Role
from osbench.coordinator.web.live_documents import RunDocument
from osbench.coordinator.web.request_guard import ABORT_KEY
from osbench.coordinator.web.web_server import WebServer
from servers.child import PATIENCE_S

RUN = "20260401-120000-ab12"
HOSTILE = "</script><img src=x onerror=alert(1)>"
PATHS = (
    "/",
    f"/runs/{RUN}",
    f"/runs/{RUN}/frames",
    "/frames",
    "/static/live.js",
    "/compare",
    "/absent",
)
BEARER = {"Authorization": f"Bearer {TOKENS.token}"}
READER = {"Authorization": f"Bearer {TOKENS.read_token}"}


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents follow each other more often than people can read them."""
    monkeypatch.setattr(feed, "PERIOD_S", 0.05)


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return make_run(tmp_path, RUN, task=HOSTILE)


@pytest.fixture
def server(tmp_path: Path, run: RunDirectory) -> Iterator[WebServer]:
    with serving(tmp_path) as found:
        yield found


@pytest.fixture
def client(server: WebServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=30) as found:
        yield found


def cookie(client: httpx.Client, role: Role = Role.ABORT) -> dict[str, str]:
    """The header of a browser that has opened the printed address."""
    return {"Cookie": f"osbench-{client.base_url.port}={TOKENS.cookie(role)}"}


def own_page(client: httpx.Client) -> dict[str, str]:
    """The headers of a request that one of our pages makes."""
    return {**cookie(client), "Sec-Fetch-Site": "same-origin", ABORT_KEY: TOKENS.abort_key}


# who may see anything


@pytest.mark.parametrize("path", PATHS)
def test_without_a_token_there_is_nothing_to_see(client: httpx.Client, path: str) -> None:
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Cookie": "osbench-1=x"},
                    {"Authorization": f"Basic {TOKENS.token}"}):  # fmt: skip
        found = client.get(path, headers=headers)

        assert found.status_code == 401
        assert RUN not in found.text


def test_a_wrong_token_in_the_address_gets_no_cookie(client: httpx.Client) -> None:
    found = client.get("/?token=wrong-0123456789abcdef")

    assert found.status_code == 401
    assert "set-cookie" not in found.headers


@pytest.mark.parametrize("role", list(Role))
def test_the_token_of_the_address_becomes_a_cookie_and_leaves_the_address(
    client: httpx.Client, role: Role
) -> None:
    token = TOKENS.token if role is Role.ABORT else TOKENS.read_token
    found = client.get(f"/?token={token}&all=1")

    assert found.status_code == 303
    assert found.headers["location"] == "/?all=1"
    given = found.headers["set-cookie"]
    assert given.startswith(f"osbench-{client.base_url.port}={TOKENS.cookie(role)};")
    assert "HttpOnly" in given
    assert "SameSite=strict" in given
    assert token not in given
    assert client.get("/").status_code == 200


def test_the_redirect_stays_on_this_host(client: httpx.Client) -> None:
    url = client.base_url
    with contextlib.closing(http.client.HTTPConnection(url.host, url.port)) as plain:
        # no client library that tidies the path
        plain.request("GET", f"//evil.example/?token={TOKENS.token}")
        found = plain.getresponse()

        assert found.status == 303
        assert found.headers["location"] == "/evil.example/"


def test_the_way_from_another_site_ends_on_a_page_of_ours(client: httpx.Client) -> None:
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    found = client.get(f"/?token={TOKENS.token}", headers=headers)

    # a strict cookie would not go along with a redirect that began there
    assert found.status_code == 200
    assert 'http-equiv="refresh"' in found.text
    assert "set-cookie" in found.headers


# other hosts and sites


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:80",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "[::2]",
    ],
)
def test_foreign_names_are_refused_even_with_a_token(client: httpx.Client, host: str) -> None:
    found = client.get("/", headers={"Host": host, **BEARER})

    assert found.status_code == 400
    assert RUN not in found.text


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1234", "127.0.0.1:9", "[::1]:5", "localhost."]
)
def test_own_names_are_taken_at_any_port_for_tunnels_have_others(
    client: httpx.Client, host: str
) -> None:
    assert client.get("/", headers={"Host": host, **BEARER}).status_code == 200


def test_more_names_can_be_allowed(tmp_path: Path) -> None:
    with serving(tmp_path, names=("Load.Example.org",)) as server:
        headers = {"Host": "load.example.org", **BEARER}

        assert httpx.get(server.url, headers=headers).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("mode", ["no-cors", "cors", "websocket"])
def test_pages_of_other_sites_load_nothing(client: httpx.Client, site: str, mode: str) -> None:
    headers = {**cookie(client), "Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode}

    assert client.get("/", headers=headers).status_code == 403


# what each answer carries


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_has_the_headers(client: httpx.Client, path: str) -> None:
    for headers in (BEARER, {}, {"Host": "evil.example"}):
        with client.stream("GET", path, headers=headers) as found:
            assert found.headers["x-frame-options"] == "DENY"
            assert found.headers["x-content-type-options"] == "nosniff"
            assert found.headers["referrer-policy"] == "no-referrer"
            assert found.headers["cache-control"] == "no-store"
            policy = found.headers["content-security-policy"]
            assert policy.startswith("default-src 'none';")
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert "access-control-allow-origin" not in found.headers
            assert "server" not in found.headers


def test_no_other_origin_is_invited(client: httpx.Client) -> None:
    headers = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    found = client.options(f"/runs/{RUN}/abort", headers={**headers, **BEARER})

    assert found.status_code == 405
    assert not [name for name in found.headers if name.startswith("access-control")]


# runs


def test_the_list_names_runs_and_hostile_names_stay_text(client: httpx.Client) -> None:
    found = client.get("/", headers=BEARER)

    assert found.status_code == 200
    assert f'href="/runs/{RUN}"' in found.text
    assert "broken off" in found.text
    assert "<img" not in found.text
    assert "&lt;img src=x onerror=alert(1)&gt;" in found.text


def test_pages_show_escaped_what_steers_a_terminal(client: httpx.Client, tmp_path: Path) -> None:
    name = "20260401-130000-e11e"
    make_run(tmp_path, name, task="evil \x1b[2J \u202e")

    for path in ("/", f"/runs/{name}"):
        page = client.get(path, headers=BEARER).text
        assert r"evil \x1b[2J \u202e" in page
        assert not {"\x1b", "\u202e"} & set(page)


@pytest.mark.parametrize(
    "name",
    ["%2e%2e", "..%2f..%2fetc", "20260401-120000-ab1", ".hidden", "a%00b", "%2Fetc", "a" * 300],
)
def test_no_other_folder_can_be_read(client: httpx.Client, tmp_path: Path, name: str) -> None:
    (tmp_path / "runs" / ".hidden").mkdir()

    for rest in ("", "/frames", "/trends"):
        found = client.get(f"/runs/{name}{rest}", headers=BEARER)

        assert found.status_code in (404, 405)


def test_files_and_runs_may_be_deleted_while_they_are_shown(
    client: httpx.Client, tmp_path: Path
) -> None:
    directory = made_run(tmp_path, 30)
    (directory.path / "replaced.tmp").symlink_to("gone")
    emptied = directory.path.with_name("20260409-101500-abcd")
    emptied.mkdir()
    # longer ago than a run takes to begin
    os.utime(emptied, (0, 0))

    shown = client.get(f"/runs/{directory.path.name}", headers=BEARER)
    gone = client.get(f"/runs/{emptied.name}", headers=BEARER)

    assert shown.status_code == 200
    assert gone.status_code == 409
    assert "is not the directory of a run, which has a run.json" in gone.text


def test_a_report_leads_to_the_list_and_to_the_run_before_it(
    client: httpx.Client, tmp_path: Path
) -> None:
    first = made_run(tmp_path, 30)
    second = first.path.with_name("20260409-101500-abcd")
    shutil.copytree(first.path, second)

    page = client.get(f"/runs/{second.name}", headers=BEARER).text
    oldest = client.get(f"/runs/{first.path.name}", headers=BEARER).text

    before = first.path.name
    assert '<a href="/">All runs</a>' in page
    assert f'<a href="/runs/{before}">the run before it</a>' in page
    assert f'href="/compare?run={before}&amp;run={second.name}"' in page
    assert "live.js" not in page
    assert '<a href="/">All runs</a>' in oldest
    assert "the run before it" not in oldest


def test_a_server_of_one_run_shows_no_other(tmp_path: Path, run: RunDirectory) -> None:
    other = make_run(tmp_path, "20260402-120000-cd34")
    with serving(tmp_path, only=RUN) as server, held(run):
        client = httpx.Client(base_url=server.url, headers=BEARER)

        home = client.get("/")
        assert (home.status_code, home.headers["location"]) == (303, f"/runs/{RUN}")
        assert client.get(f"/runs/{RUN}").status_code == 200
        assert client.get(f"/runs/{other.path.name}").status_code == 404
        assert client.get("/frames").status_code == 404
        client.close()


# aborting


@pytest.fixture
def running(run: RunDirectory) -> Iterator[subprocess.Popen[str]]:
    with held(run) as holder:
        yield holder


def refused(client: httpx.Client, holder: subprocess.Popen[str], found: httpx.Response) -> int:
    """The status of an answer; the run goes on."""
    assert holder.poll() is None
    assert client.get("/", headers=BEARER).text.count("1 running") > 0
    return found.status_code


def test_an_abort_interrupts_the_coordinator(
    client: httpx.Client, running: subprocess.Popen[str]
) -> None:
    found = client.post(f"/runs/{RUN}/abort", headers=own_page(client))

    assert found.status_code == 202
    assert running.stdout is not None
    assert running.stdout.readline() == "interrupted\n"
    assert running.wait(PATIENCE_S) == 0
    assert client.post(f"/runs/{RUN}/abort", headers=own_page(client)).status_code == 409


def test_a_script_aborts_with_the_token(
    client: httpx.Client, running: subprocess.Popen[str]
) -> None:
    assert client.post(f"/runs/{RUN}/abort", headers=BEARER).status_code == 202
    assert running.wait(PATIENCE_S) == 0


def test_aborts_by_get_are_refused(client: httpx.Client, running: subprocess.Popen[str]) -> None:
    for method in ("GET", "HEAD"):
        found = client.request(method, f"/runs/{RUN}/abort", headers=own_page(client))

        assert refused(client, running, found) == 405


def test_aborts_without_a_token_are_refused(
    client: httpx.Client, running: subprocess.Popen[str]
) -> None:
    headers = {**own_page(client), "Cookie": ""}

    assert refused(client, running, client.post(f"/runs/{RUN}/abort", headers=headers)) == 401


@pytest.mark.parametrize(
    "changed",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Sec-Fetch-Site": "", "Origin": "http://evil.example"},
        {"Sec-Fetch-Site": "", "Origin": "null"},
        {"Sec-Fetch-Site": "", "Origin": ""},
        {ABORT_KEY: ""},
        {ABORT_KEY: TOKENS.cookie(Role.ABORT)},
        {"Host": "evil.example"},
    ],
    ids=str,
)
@pytest.mark.parametrize("what", ["abort", "control"])
def test_changes_that_no_page_of_ours_sends_are_refused(
    client: httpx.Client, running: subprocess.Popen[str], changed: dict[str, str], what: str
) -> None:
    headers = {**own_page(client), **changed}

    found = client.post(f"/runs/{RUN}/{what}", headers=headers, content=b'{"pause": true}')

    assert refused(client, running, found) in (400, 403)


def test_browsers_that_send_only_an_origin_can_abort(
    client: httpx.Client, running: subprocess.Popen[str]
) -> None:
    origin = str(client.base_url).rstrip("/")
    headers = {**own_page(client), "Sec-Fetch-Site": "", "Origin": origin}

    assert client.post(f"/runs/{RUN}/abort", headers=headers).status_code == 202
    assert running.wait(PATIENCE_S) == 0


def test_who_only_reads_sees_no_button_and_cannot_abort(
    client: httpx.Client, running: subprocess.Popen[str]
) -> None:
    page = client.get(f"/runs/{RUN}", headers=READER)
    with_cookie = {**own_page(client), **cookie(client, Role.READ)}

    assert page.status_code == 200
    assert "Abort" not in page.text
    assert TOKENS.abort_key not in page.text
    for headers in (READER, with_cookie):
        found = client.post(f"/runs/{RUN}/abort", headers=headers)
        assert refused(client, running, found) == 403


@pytest.mark.parametrize("what", ["abort", "control"])
def test_a_run_that_is_not_there_cannot_be_changed(client: httpx.Client, what: str) -> None:
    assert client.post(f"/runs/absent/{what}", headers=BEARER).status_code == 404


@pytest.mark.parametrize("body", [b"", b'{"rate": -1}', b'{"pause": true}' + b" " * 5000])
def test_changes_that_cannot_be_are_told_and_not_asked_for(
    client: httpx.Client, running: subprocess.Popen[str], body: bytes, tmp_path: Path
) -> None:
    found = client.post(f"/runs/{RUN}/control", headers=BEARER, content=body)

    assert refused(client, running, found) == 409
    assert found.text.startswith("the request ") or "has an impossible value" in found.text
    assert not (tmp_path / "runs" / RUN / "controls").exists()


def test_who_only_reads_changes_no_load(
    client: httpx.Client, running: subprocess.Popen[str]
) -> None:
    page = client.get(f"/runs/{RUN}", headers=READER)

    found = client.post(f"/runs/{RUN}/control", headers=READER, content=b'{"pause": true}')

    assert refused(client, running, found) == 403
    assert "data-control" not in page.text


def test_a_load_that_has_ended_meanwhile_is_told(client: httpx.Client) -> None:
    found = client.post(f"/runs/{RUN}/control", headers=BEARER, content=b'{"pause": true}')

    assert found.status_code == 409
    assert "is not running" in found.text


# frames


def frames(client: httpx.Client, path: str, **headers: str) -> Iterator[dict[str, Any]]:
    """The events of a stream, with their ids."""
    with client.stream("GET", path, headers={**BEARER, **headers}) as found:
        assert found.headers["content-type"].startswith("text/event-stream")
        assert found.headers["x-accel-buffering"] == "no"
        number = ""
        for line in found.iter_lines():
            if line.startswith("id: "):
                number = line[4:]
            if line.startswith("data: "):
                yield {"id": number, **json.loads(line[6:])}


def note(run: RunDirectory, **fields: object) -> None:
    """Write how far a run is."""
    run.write("status.json", dataclasses.asdict(snapshot(**fields)), sync=False)


def test_frames_follow_the_run_and_the_last_one_says_how_it_ended(
    client: httpx.Client, run: RunDirectory
) -> None:
    with held(run) as holder:
        note(run, settled=40, rows=(worker_progress(),))
        stream = frames(client, f"/runs/{RUN}/frames")
        first = next(stream)["="]
        note(run, settled=55, elapsed_s=9.0)
        second = next(stream)
        holder.kill()
        holder.wait()
        *_, last = stream

    assert first["line"] == "running, 3 s"
    assert "40 of 100" in "\n".join(first["now"])
    assert "host-a:7" in "\n".join(first["now"])
    assert second["~"]["line"] == {"=": "running, 9 s"}
    assert "55 of 100" in json.dumps(second)
    assert last["="]["over"]
    assert last["="]["line"] == "the run has ended without a report"


def test_who_comes_back_gets_all_of_it(client: httpx.Client, run: RunDirectory) -> None:
    with held(run):
        note(run)
        stream = frames(client, f"/runs/{RUN}/frames")
        first = next(stream)
        note(run, elapsed_s=9.0)
        second = next(stream)
        stream.close()

        again = next(frames(client, f"/runs/{RUN}/frames", **{"Last-Event-ID": first["id"]}))
        foreign = next(frames(client, f"/runs/{RUN}/frames", **{"Last-Event-ID": "other-0"}))

    assert "~" in second
    # the change from the first to the second is all that it needs
    assert again == second
    assert foreign["="]["line"] == "running, 9 s"


def test_the_head_of_a_stream_is_no_stream(client: httpx.Client) -> None:
    found = client.head(f"/runs/{RUN}/frames", headers=BEARER)

    assert found.status_code == 200
    assert found.headers["content-type"].startswith("text/event-stream")


def test_the_list_follows_its_runs(client: httpx.Client, run: RunDirectory) -> None:
    with held(run):
        note(run)
        first = next(frames(client, "/frames"))["="]

    assert first["line"] == "1 run, 1 running"
    assert "40 of 100 done" in "\n".join(first["list"])


# the end


def test_the_server_stops_although_pages_are_open(tmp_path: Path, run: RunDirectory) -> None:
    note(run)
    with held(run), serving(tmp_path) as server:
        client = httpx.Client(base_url=server.url, timeout=30)
        streams = [frames(client, f"/runs/{RUN}/frames") for _ in range(5)]
        assert all("=" in next(stream) for stream in streams)
        server.stop()

        # each of them ends, and does not break
        for stream in streams:
            for _ in stream:
                pass
        client.close()
    assert "web" not in [thread.name for thread in threading.enumerate()]


def test_the_last_document_reaches_who_watches_although_it_takes_long(
    tmp_path: Path, run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_server, "CLIENTS_S", 0.1)
    ended = threading.Event()

    def build(_: RunDocument) -> dict[str, Any]:
        if ended.is_set():
            time.sleep(0.5)
        return {"line": "over"} if ended.is_set() else {"line": "running"}

    monkeypatch.setattr(RunDocument, "__call__", build)
    with held(run), serving(tmp_path) as server:
        client = httpx.Client(base_url=server.url, timeout=30)
        stream = frames(client, f"/runs/{RUN}/frames")
        assert next(stream)["="]["line"] == "running"
        ended.set()
        server.stop()
        (last,) = stream
        client.close()

    assert last["~"]["line"] == {"=": "over"}


def test_a_run_without_it_imports_no_server() -> None:
    code = (
        "import sys; import osbench.coordinator.cli.commands.run; "
        "print([one for one in ('starlette', 'uvicorn', 'anyio') if one in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
