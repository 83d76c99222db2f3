"""Runs started from the page: who may, what may be started, one at a time, and what is said."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from helpers.web import TOKENS, held, make_run, serving
from osbench.common.errors import UsageError
from osbench.coordinator.front.web import run_starts
from osbench.coordinator.front.web.access_tokens import Role
from osbench.coordinator.front.web.request_guard import ABORT_KEY
from osbench.coordinator.front.web.run_starts import RunStarts, StartRequest, TaskFolder
from osbench.coordinator.results.storage import detached_run
from servers.child import PATIENCE_S

BEARER = {"Authorization": f"Bearer {TOKENS.token}"}
READER = {"Authorization": f"Bearer {TOKENS.read_token}"}
RUN = "20260401-120000-ab12"
HOSTILE = "</script><img src=x onerror=alert(1)>"

#: Stands in for `osbench-coord`: notes its arguments, then does what a test wants.
_BEGIN = """
import json, os, pathlib, sys, time
data, *arguments = sys.argv[1:]
data = pathlib.Path(data)
(data / "asked").write_text(json.dumps([arguments, dict(os.environ)]))
run = data / "runs" / arguments[arguments.index("--run-id") + 1]
def begin():
    run.mkdir(parents=True)
    (run / "run.json").write_text("{}")
"""
BEGINS = "begin()"
GOES_ON = "begin(); time.sleep(600)"
FAILS = "print('Error: no Redis at redis://u:planted-1@h \\x1b[2J <b>'); sys.exit(3)"
HANGS = "print('waiting for Redis', flush=True); time.sleep(600)"
GOOD = {"Dummy.dummy": [{"args": {"sleep": 0}, "runner": {"constant": {"times": 1}}}]}


class Stage:
    """A server over a data directory, and a stand-in for the command that it starts."""

    def __init__(self, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.data = data
        self._patch = monkeypatch
        numbers = itertools.count(1)
        self.starts = RunStarts(str(data), lambda: f"new-{next(numbers)}", ("--config-file", "c"))
        self.starts.tasks.path.mkdir()
        (self.starts.tasks.path / "a.yaml").touch()
        self.validates({"problems": [], "notes": []})

    def validates(self, found: Any) -> None:
        """Have checks find something."""
        code = f"print({json.dumps(found)!r})"
        self._patch.setattr(run_starts, "own_command", lambda *_: [sys.executable, "-c", code])

    def acts(self, script: str) -> None:
        """Have what is started do something."""
        command = [sys.executable, "-c", _BEGIN + script, str(self.data)]
        self._patch.setattr(detached_run, "own_command", lambda *given: [*command, *given])

    @property
    def asked(self) -> tuple[list[str], dict[str, str]]:
        """Arguments and environment of what was started last."""
        arguments, environment = json.loads((self.data / "asked").read_text())
        return arguments, environment

    def end(self) -> None:
        """End what was started."""
        for one in self.starts._started.values():
            one._process.kill()
            one.wait()


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    found = Stage(tmp_path, monkeypatch)
    found.acts(BEGINS)
    yield found
    found.end()


@pytest.fixture
def client(stage: Stage) -> Iterator[httpx.Client]:
    with (
        serving(stage.data, starts=stage.starts) as server,
        httpx.Client(base_url=server.url, timeout=60) as found,
    ):
        yield found


def own_page(client: httpx.Client, role: Role = Role.ABORT) -> dict[str, str]:
    """The headers of a request that one of our pages makes."""
    cookie = f"osbench-{client.base_url.port}={TOKENS.cookie(role)}"
    return {"Cookie": cookie, "Sec-Fetch-Site": "same-origin", ABORT_KEY: TOKENS.abort_key}


def until(condition: Callable[[], object]) -> None:
    """Wait for something that a process comes to do."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def state(client: httpx.Client, run: str) -> dict[str, Any]:
    return dict(client.get(f"/starts/{run}/state", headers=BEARER).json())


def start(client: httpx.Client, **wanted: str) -> httpx.Response:
    return client.post("/start", headers=own_page(client), json=wanted or {"task": "a.yaml"})


def test_a_task_is_started_and_leads_to_its_page(client: httpx.Client, stage: Stage) -> None:
    found = start(client)

    assert found.status_code == 202
    assert found.json() == {"run": "new-1", "page": "/starts/new-1"}
    until(lambda: state(client, "new-1")["state"] == "begun")
    page = client.get("/starts/new-1", headers=BEARER)
    assert (page.status_code, page.headers["location"]) == (303, "/runs/new-1")
    arguments, environment = stage.asked
    task = str(stage.data / "tasks" / "a.yaml")
    assert arguments == ["--config-file", "c", "run", "--run-id", "new-1", "--", task]
    for text in (*arguments, *environment.values()):
        assert TOKENS.token not in text


def test_a_run_is_run_again(client: httpx.Client, stage: Stage) -> None:
    make_run(stage.data, RUN, task=HOSTILE, exit_code=0)

    page = client.get(f"/start?again={RUN}", headers=BEARER)
    found = start(client, again=RUN)

    assert f'data-again="{RUN}"' in page.text
    assert "<img" not in page.text
    assert found.status_code == 202
    until(lambda: state(client, "new-1")["state"] == "begun")
    assert stage.asked[0][2:] == ["rerun", "--run-id", "new-1", "--", RUN]


def test_the_list_and_reports_lead_there(client: httpx.Client, stage: Stage) -> None:
    make_run(stage.data, RUN)

    own, reading = (client.get("/", headers=one).text for one in (BEARER, READER))

    assert 'href="/start"' in own
    assert f'href="/start?again={RUN}"' in own
    assert 'class="web starts"' in own
    assert 'href="/start"' not in reading
    assert 'class="web starts"' not in reading


# who may


@pytest.mark.parametrize("path", ["/start", "/start/check", "/starts/new-1/stop"])
def test_starts_need_the_token_and_a_page_of_ours(
    client: httpx.Client, stage: Stage, path: str
) -> None:
    own = own_page(client)
    refused = [
        ({}, 401),
        ({"Authorization": "Bearer wrong-0123456789"}, 401),
        (READER, 403),
        (own_page(client, Role.READ), 403),
        ({**own, "Cookie": ""}, 401),
        ({**own, ABORT_KEY: ""}, 403),
        ({**own, ABORT_KEY: "wrong"}, 403),
        ({**own, "Sec-Fetch-Site": "cross-site"}, 403),
        ({**own, "Sec-Fetch-Site": "same-site"}, 403),
        ({**own, "Sec-Fetch-Site": "", "Origin": "http://evil.example"}, 403),
        ({**own, "Host": "evil.example"}, 400),
    ]
    for headers, status in refused:
        found = client.post(path, headers=headers, json={"task": "a.yaml"})
        assert found.status_code == status, headers
    assert client.get("/start", headers=READER).status_code == 403
    assert client.get("/start").status_code == 401
    assert not (stage.data / "asked").exists()


def test_a_script_starts_with_the_token(client: httpx.Client) -> None:
    found = client.post("/start", headers=BEARER, content=b'{"task": "a.yaml"}')

    assert found.status_code == 202


def test_a_get_starts_nothing(client: httpx.Client, stage: Stage) -> None:
    for path in ("/start?task=a.yaml", "/start/check?task=a.yaml", "/starts/x/stop"):
        client.get(path, headers=own_page(client))

    assert not (stage.data / "asked").exists()


def test_a_server_of_one_run_starts_none(tmp_path: Path) -> None:
    run = make_run(tmp_path, RUN)
    with serving(tmp_path, only=RUN) as server, held(run), httpx.Client(headers=BEARER) as client:
        for path in ("start", "starts/x", "starts/x/state"):
            assert client.get(f"{server.url}{path}").status_code == 404
        for path in ("start", "start/check", "starts/x/stop"):
            assert client.post(f"{server.url}{path}", json={"task": "a"}).status_code == 404


# what may be started


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{", b"\xff", b"7", b"null", b"{}", b'{"task": 7}', b'{"task": ""}',
     b'{"task": "a.yaml", "again": "x"}', b'{"file": "a.yaml"}', b'{"task": ["a.yaml"]}',
     b"[" * 4000, b'{"task": "' + b"a" * 5000 + b'"}'],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/start", "/start/check"])
def test_requests_that_ask_for_nothing_are_told(
    client: httpx.Client, stage: Stage, body: bytes, path: str
) -> None:
    found = client.post(path, headers=BEARER, content=body)

    assert found.status_code == 400
    assert found.text.startswith("the request ")
    assert not (stage.data / "asked").exists()


def test_runs_cannot_be_checked(client: httpx.Client, stage: Stage) -> None:
    make_run(stage.data, RUN)

    found = client.post("/start/check", headers=BEARER, json={"again": RUN})

    assert found.status_code == 400
    assert "names no task file to check" in found.text


@pytest.mark.parametrize("name", ["../x.yaml", "/etc/passwd", "b.yaml", "--help", "a.yaml\n"])
def test_no_other_file_is_started(client: httpx.Client, stage: Stage, name: str) -> None:
    (stage.data / "x.yaml").touch()

    found = start(client, task=name)
    checked = client.post("/start/check", headers=BEARER, json={"task": name})

    assert found.status_code == 409
    assert "there is no task file" in found.text
    assert checked.status_code == 404
    assert not (stage.data / "asked").exists()


@pytest.mark.parametrize("name", ["absent", "..", "../runs", "--help", RUN[:-1]])
def test_no_other_run_is_run_again(client: httpx.Client, stage: Stage, name: str) -> None:
    make_run(stage.data, RUN)

    assert start(client, again=name).status_code == 404
    assert client.get(f"/start?again={name}", headers=BEARER).status_code == 200
    assert not (stage.data / "asked").exists()


def test_a_task_with_problems_is_not_started(client: httpx.Client, stage: Stage) -> None:
    problem = {"place": "subtasks[0]", "message": HOSTILE}
    stage.validates({"problems": [problem], "notes": []})

    found = start(client)

    assert found.status_code == 422
    assert found.json() == {"ok": False, "problems": [problem], "notes": []}
    assert found.headers["content-type"] == "application/json"
    assert not (stage.data / "asked").exists()
    checked = client.post("/start/check", headers=BEARER, json={"task": "a.yaml"})
    assert (checked.status_code, checked.json()) == (200, found.json())


# one at a time


def test_while_a_run_goes_on_no_other_starts(client: httpx.Client, stage: Stage) -> None:
    stage.acts(GOES_ON)
    assert start(client).status_code == 202
    until(lambda: state(client, "new-1")["state"] == "begun")

    second = start(client)
    stage.end()
    stage.acts(BEGINS)
    third = start(client)

    assert second.status_code == 409
    assert second.text.startswith("run new-1 is running")
    assert third.status_code == 202


def test_a_run_that_was_started_elsewhere_counts_too(client: httpx.Client, stage: Stage) -> None:
    with held(make_run(stage.data, RUN)):
        found = start(client)

    assert found.status_code == 409
    assert f"run {RUN} is running" in found.text


def test_starts_that_are_forgotten_are_bounded(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_starts, "REMEMBERED", 2)
    for number in range(1, 5):
        stage.starts.start(StartRequest(task="a.yaml"))
        until(lambda: stage.starts.state(f"new-{number}").exit_code is not None)  # noqa: B023

    assert stage.starts.state("new-2") is None
    assert stage.starts.state("new-4") is not None


def test_a_start_of_an_earlier_server_leads_to_its_run(client: httpx.Client, stage: Stage) -> None:
    make_run(stage.data, RUN)

    assert client.get(f"/starts/{RUN}", headers=BEARER).headers["location"] == f"/runs/{RUN}"
    for path in ("/starts/absent", "/starts/absent/state"):
        assert client.get(path, headers=BEARER).status_code == 404
    assert client.post("/starts/absent/stop", headers=BEARER).status_code == 404


# what goes wrong


def test_a_run_that_does_not_begin_says_why(client: httpx.Client, stage: Stage) -> None:
    stage.acts(FAILS)
    start(client)
    until(lambda: state(client, "new-1")["state"] == "ended")
    log = stage.data / "detached" / "new-1.log"
    until(lambda: not log.exists())

    found = state(client, "new-1")
    page = client.get("/starts/new-1", headers=BEARER).text

    assert found["exit_code"] == 3
    assert found["said"].startswith("Error: no Redis at")
    assert "Run new-1 ended with exit code 3 before it had begun." in page
    assert "Error: no Redis at" in page
    for text in (found["said"], page):
        assert "planted-1" not in text
        assert "\x1b" not in text
        assert "<b>" not in page
    assert stage.starts._going_on() == ""


def test_a_run_that_was_killed_before_it_began_says_so(client: httpx.Client, stage: Stage) -> None:
    stage.acts("os.kill(os.getpid(), 9)")
    start(client)
    until(lambda: state(client, "new-1")["state"] == "ended")

    page = client.get("/starts/new-1", headers=BEARER).text

    assert "was ended by signal 9 before" in page
    assert "It has printed nothing." in page


def test_a_run_that_hangs_before_it_begins_is_given_up(client: httpx.Client, stage: Stage) -> None:
    stage.acts(HANGS)
    start(client)
    until(lambda: "waiting for Redis" in state(client, "new-1")["said"])
    page = client.get("/starts/new-1", headers=BEARER).text
    reading = client.get("/starts/new-1", headers=READER).text

    stopped = client.post("/starts/new-1/stop", headers=own_page(client))
    until(lambda: state(client, "new-1")["state"] == "ended")
    again = client.post("/starts/new-1/stop", headers=own_page(client))

    assert "Give up" in page
    assert "Give up" not in reading
    assert TOKENS.abort_key not in reading
    assert (stopped.status_code, again.status_code) == (202, 409)


def test_what_cannot_be_started_is_told(
    client: httpx.Client, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detached_run, "own_command", lambda *_: [str(stage.data / "absent")])

    found = start(client)

    assert found.status_code == 409
    assert found.text.startswith("the run cannot be started")


def test_very_long_output_is_bounded(client: httpx.Client, stage: Stage) -> None:
    stage.acts("print('x' * 10_000_000); print('\\n'.join(map(str, range(9999)))); sys.exit(2)")
    start(client)
    until(lambda: state(client, "new-1")["state"] == "ended")

    said = state(client, "new-1")["said"]

    assert said.endswith("9998")
    assert len(said.splitlines()) <= 40


def test_the_end_of_the_server_ends_no_run(stage: Stage) -> None:
    stage.acts(GOES_ON)
    with serving(stage.data, starts=stage.starts) as server:
        httpx.post(f"{server.url}start", headers=BEARER, json={"task": "a.yaml"}, timeout=60)
        until(lambda: stage.starts.state("new-1").state == "begun")

    process: subprocess.Popen[bytes] = stage.starts._started["new-1"]._process
    assert process.poll() is None
    # a Ctrl-C in the terminal of the server does not reach it
    assert os.getsid(process.pid) == process.pid != os.getsid(0)
    process.send_signal(signal.SIGKILL)


@pytest.fixture
def folder(tmp_path: Path) -> TaskFolder:
    found = TaskFolder(str(tmp_path))
    found.path.mkdir()
    return found


def test_task_files_are_offered_by_name(folder: TaskFolder) -> None:
    for name in ("b.yaml", "a.yml", "c d.json", "notes.txt", ".hidden.yaml", "-x.yaml", "d.YAML"):
        (folder.path / name).write_text("x")
    (folder.path / "folder.yaml").mkdir()
    os.mkfifo(folder.path / "pipe.yaml")
    (folder.path / "link.yaml").symlink_to(folder.path / "b.yaml")

    assert folder.names() == ["a.yml", "b.yaml", "c d.json"]


def test_without_the_folder_nothing_is_offered(tmp_path: Path) -> None:
    assert TaskFolder(str(tmp_path)).names() == []


def test_very_many_files_are_bounded(folder: TaskFolder) -> None:
    for number in range(run_starts.MOST + 5):
        (folder.path / f"{number:04}.yaml").touch()

    assert len(folder.names()) == run_starts.MOST


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../osbench.conf", "../secret.yaml", "sub/x.yaml", "/etc/passwd", "link.yaml",
     "absent.yaml", "a.yaml\n", "a.yaml\x00", "pipe.yaml", "--help", "x" * 5000 + ".yaml"],
)  # fmt: skip
def test_nothing_else_is_found(folder: TaskFolder, name: str) -> None:
    (folder.path / "a.yaml").touch()
    (folder.path.parent / "secret.yaml").touch()
    (folder.path / "sub").mkdir()
    (folder.path / "sub" / "x.yaml").touch()
    (folder.path / "link.yaml").symlink_to("/etc/passwd")
    os.mkfifo(folder.path / "pipe.yaml")

    with pytest.raises(UsageError, match="there is no task file"):
        folder.find(name)


def test_a_file_is_checked_as_validate_does(folder: TaskFolder) -> None:
    (folder.path / "good.json").write_text(json.dumps(GOOD))
    (folder.path / "bad.yaml").write_text("Dummy.absent: [{runner: {constant: {times: many}}}]")

    good, bad = folder.check("good.json"), folder.check("bad.yaml")

    assert good.ok
    assert good.to_json()["problems"] == []
    assert not bad.ok
    assert any("Dummy.absent" in message for _, message in bad.problems)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("import sys; sys.exit('Error: token=planted-1 is wrong')", "Error: token="),
        ("print('[]')", "the check ended with 0"),
        ("print('{}')", "the check ended with 0"),
        ("import time; time.sleep(60)", "has not ended within 0.2 s"),
    ],
)
def test_a_check_that_goes_wrong_is_a_problem(
    folder: TaskFolder, monkeypatch: pytest.MonkeyPatch, script: str, message: str
) -> None:
    monkeypatch.setattr(run_starts, "own_command", lambda *_: [sys.executable, "-c", script])
    if "sleep" in script:
        monkeypatch.setattr(run_starts, "CHECK_S", 0.2)
    (folder.path / "a.yaml").touch()

    found = folder.check("a.yaml")

    assert not found.ok
    ((_, told),) = found.problems
    assert told.startswith(message) or message in told
    assert "planted-1" not in told


def test_problems_are_bounded_and_masked(
    folder: TaskFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = (
        "import json; long = 'x' * 9000\n"
        "problem = {'place': long, 'message': 'password=planted-1 ' + long}\n"
        "print(json.dumps({'problems': [problem] * 999, 'notes': []}))"
    )
    monkeypatch.setattr(run_starts, "own_command", lambda *_: [sys.executable, "-c", script])
    (folder.path / "a.yaml").touch()

    found = folder.check("a.yaml")

    assert len(found.problems) == 50
    assert len(json.dumps(found.to_json())) < 100_000
    assert "planted-1" not in json.dumps(found.to_json())
