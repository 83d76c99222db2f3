"""`osbench-coord gate` with real commits and services, and the CI jobs that call it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import yaml

from helpers.commands import BIN, LENIENT, call, coord, environment
from helpers.engines import until
from helpers.machine import Machine, with_worker
from helpers.readme import blocks
from helpers.runs import Cluster
from servers import folder
from servers.child import PATIENCE_S, Child, free_port

pytestmark = pytest.mark.functional

GUIDE = "docs/gate.md"
DEPLOY = Path(__file__).parents[2] / "deploy"

SERVICE = """
import http.server, os, socketserver, time

class Shop(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        time.sleep({sleep_s})
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass

print("serving", flush=True)
socketserver.ThreadingTCPServer(("127.0.0.1", int(os.environ["PORT"])), Shop).serve_forever()
"""
RUNNING = """
server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Shop)
with open("port.new", "w") as file:
    file.write(str(server.server_address[1]))
os.rename("port.new", "port")
server.serve_forever()
"""
TASK = {
    "version": 2,
    "title": "Shop",
    "subtasks": [
        {
            "title": "Items",
            "scenario": {"HttpRequests.check_request": {"url": "{{ url }}/items"}},
            "runner": {"constant": {"times": 60, "concurrency": 2}},
        }
    ],
}
SERVE = "exec python3 shop.py"


def git(repository: Path, *arguments: str) -> str:
    """Run git in a repository."""
    identity = ("-c", "user.name=me", "-c", "user.email=me@example.org")
    return subprocess.run(
        ["git", "-C", str(repository), *identity, *arguments],
        check=True,
        capture_output=True,
        text=True,
    ).stdout


@pytest.fixture
def shop(fleet: Cluster, tmp_path: Path) -> Path:
    """A repository whose last commit makes each request 100 ms slower; runs have a worker."""
    repository = tmp_path / "shop"
    repository.mkdir()
    fleet.lend(repository)
    git(repository, "init", "--quiet")
    (repository / "load.yaml").write_text(yaml.safe_dump(TASK), "utf-8")
    for sleep_s in (0.01, 0.11):
        (repository / "shop.py").write_text(SERVICE.format(sleep_s=sleep_s), "utf-8")
        git(repository, "add", ".")
        git(repository, "commit", "--quiet", "--message", f"Sleep {sleep_s}")
    return repository


def gate(repository: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Judge the last commit of a repository."""
    return coord(repository, "gate", "load.yaml", "--serve", SERVE, "--pairs", "2", *arguments)


def services(repository: Path) -> list[psutil.Process]:
    """The processes that serve trees of a repository."""
    found = []
    for process in psutil.process_iter(["cmdline", "environ"]):
        command = process.info["cmdline"] or []
        here = (process.info["environ"] or {}).get("PWD", "")
        if command[-1:] == ["shop.py"] and "osbench-trees-" in here:
            found.append(process)
    return found


def steps_of_github() -> list[str]:
    """The commands of the action, without the step that installs osbench."""
    action = yaml.safe_load((DEPLOY / "github" / "action.yml").read_text("utf-8"))
    return [step["run"] for step in action["runs"]["steps"] if "run" in step][1:]


def test_a_slower_change_fails_the_github_action_with_what_is_slower(
    shop: Path, tmp_path: Path
) -> None:
    (tmp_path / "osbench" / "bin").mkdir(parents=True)
    script = tmp_path / "osbench" / "bin" / "osbench-coord"
    script.write_text(f'#!/bin/sh\nexec {BIN / "osbench-coord"} "$@"\n', "utf-8")
    script.chmod(0o755)
    variables = (
        environment(shop)
        | LENIENT
        | {
            "RUNNER_TEMP": str(tmp_path),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
            "TASK": "load.yaml",
            "SERVE": SERVE,
            "SETUP": "echo set up",
            "PARENT": "HEAD^1",
            # of two pairs, one run that a busy machine slows down is enough to have no evidence
            "PAIRS": "3",
        }
    )

    done = [
        subprocess.run(
            ["bash", "-e", "-c", step],
            cwd=shop,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )
        for step in steps_of_github()
    ]

    assert [one.returncode for one in done] == [1, 0], done[0].stderr
    assert "Worse: p" in done[0].stdout
    assert "**worse**" in (tmp_path / "summary.md").read_text("utf-8")
    output = shop / "osbench-gate"
    verdict = (output / "verdict.md").read_text("utf-8")
    assert "**worse**" in verdict
    assert "HEAD^1" in verdict.replace("\\", "")
    assert json.loads((output / "verdict.json").read_text("utf-8"))["verdict"] == "worse"
    assert (output / "verdict.html").read_text("utf-8").startswith("<!doctype html>")
    assert (output / "change.log").read_text("utf-8").splitlines()[:2] == ["set up", "serving"]
    assert len(git(shop, "worktree", "list").splitlines()) == 1
    assert services(shop) == []


def test_a_change_against_itself_passes(shop: Path) -> None:
    found = gate(shop, "--parent", "HEAD", "--margin", "90%", "--quiet")

    assert found.returncode == 0, found.stdout + found.stderr
    assert "worse" not in (shop / "osbench-gate" / "verdict.md").read_text("utf-8")


def test_a_change_that_fails_is_worse_without_any_success(shop: Path) -> None:
    text = (shop / "shop.py").read_text("utf-8").replace("send_response(200)", "send_response(500)")
    (shop / "shop.py").write_text(text, "utf-8")
    git(shop, "commit", "--quiet", "--all", "--message", "Break it")

    found = gate(shop, "--quiet")

    assert found.returncode == 1, found.stderr
    assert "misses the criteria of the task" in found.stdout
    assert "**worse**" in (shop / "osbench-gate" / "verdict.md").read_text("utf-8")


def test_a_gate_that_is_interrupted_gives_no_verdict(shop: Path) -> None:
    # pairs whose change serves nothing say nothing of times, however many were made
    text = (shop / "shop.py").read_text("utf-8").replace("send_response(200)", "send_response(500)")
    (shop / "shop.py").write_text(text, "utf-8")
    git(shop, "commit", "--quiet", "--all", "--message", "Break it")
    command = [str(BIN / "osbench-coord"), "gate", "load.yaml", "--serve", SERVE, "--pairs", "50"]

    with subprocess.Popen(
        command,
        cwd=shop,
        env=environment(shop) | LENIENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        until(lambda: len([*shop.glob(".osbench/runs/*/summary.json")]) >= 2)
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE_S)

    assert process.returncode == 130
    verdict = (shop / "osbench-gate" / "verdict.md").read_text("utf-8")
    assert verdict.startswith("⚪ **no verdict**: interrupted")


def test_a_generator_that_was_the_limit_gives_no_verdict(shop: Path) -> None:
    conf = shop / ".osbench" / "osbench.conf"
    text = conf.read_text("utf-8").replace("lag_limit_s = 60", "lag_limit_s = 0.000001")
    conf.write_text(text, "utf-8")
    command = [str(BIN / "osbench-coord"), "gate", "load.yaml"]

    found = subprocess.run(
        [*command, "--serve", SERVE, "--pairs", "2", "--quiet", "--parent", "HEAD"],
        cwd=shop,
        env=environment(shop),
        capture_output=True,
        text=True,
        check=False,
    )

    assert found.returncode == 4, found.stderr
    assert "no verdict" in (shop / "osbench-gate" / "verdict.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--setup", "echo no compiler; exit 3"], "no compiler"),
        (["--serve", "echo no port; exit 4"], "ended with exit code 4"),
        (["--serve", "exec sleep 60", "--ready-within", "0.3s"], "does not accept connections"),
    ],
)
def test_services_that_do_not_start_are_one_message(
    shop: Path, arguments: list[str], message: str
) -> None:
    earlier = shop / "osbench-gate" / "verdict.md"
    earlier.parent.mkdir()
    earlier.write_text("worse", "utf-8")

    found = gate(shop, *arguments)

    assert found.returncode not in {0, 1}, found.stdout
    assert earlier.read_text("utf-8").startswith("⚪ **no verdict**: the ")
    assert message in found.stderr
    assert "Traceback" not in found.stderr
    assert len(git(shop, "worktree", "list").splitlines()) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_services_end_with_the_command(shop: Path, number: signal.Signals) -> None:
    command = [str(BIN / "osbench-coord"), "gate", "load.yaml", "--serve", SERVE]
    with subprocess.Popen(
        command,
        cwd=shop,
        env=environment(shop),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        until(lambda: len(services(shop)) == 2)
        process.send_signal(number)
        process.wait(PATIENCE_S)

    until(lambda: not services(shop))


@pytest.fixture
def running_shop(fleet: Cluster, tmp_path: Path) -> Iterator[Path]:
    """A folder with a service that runs, its task, and the script that changes it."""
    home = tmp_path / "running"
    home.mkdir()
    fleet.lend(home)
    # it chooses a port, and takes its pause from a file at each request
    text = SERVICE.format(sleep_s="float(open('pause').read())")
    serving, _, _ = text.partition("print(")
    (home / "shop.py").write_text(f"{serving}{RUNNING}", "utf-8")
    (home / "pause").write_text("0.01", "utf-8")
    (home / "load.yaml").write_text(yaml.safe_dump(TASK), "utf-8")
    service = Child([sys.executable, "shop.py"], folder=home, log=home / "shop.log")
    try:
        assert service.wait_until((home / "port").exists), service.tail()
        yield home
    finally:
        service.end()


def upgrade(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Judge a change of the service that runs."""
    url = f"url=http://127.0.0.1:{(home / 'port').read_text('utf-8')}"
    sizes = ("--blocks", "3", "--runs", "1")
    return coord(home, "gate", "load.yaml", "--task-args", url, *sizes, *arguments)


def test_an_upgrade_that_slows_a_running_service_down_is_worse(running_shop: Path) -> None:
    found = upgrade(
        running_shop,
        "--before",
        "echo started >> starts",
        "--change",
        "echo 0.2 > pause; echo migrated",
        "--after",
        "echo started again >> starts",
    )

    assert found.returncode == 1, found.stdout + found.stderr
    assert "Worse: p50 of" in found.stdout
    output = running_shop / "osbench-gate"
    document = json.loads((output / "verdict.json").read_text("utf-8"))
    assert (document["verdict"], document["basis"]) == ("worse", "blocks")
    assert "Drift: from one block to the next" in (output / "verdict.md").read_text("utf-8")
    assert "--in-blocks 1" in (output / "verdict.html").read_text("utf-8")
    assert (output / "change.log").read_text("utf-8") == "migrated\n"
    starts = (running_shop / "starts").read_text("utf-8").splitlines()
    assert starts == [*["started"] * 3, *["started again"] * 3]
    assert "before the change: block 1 of 3, run 1 of 1" in found.stderr


def test_an_upgrade_that_fails_gives_no_verdict(running_shop: Path) -> None:
    found = upgrade(running_shop, "--quiet", "--change", "echo no such column; false")

    assert found.returncode not in {0, 1}
    assert "--change ended with exit code 1; correct the command" in found.stderr
    assert "no such column" in found.stderr
    assert "Traceback" not in found.stderr
    verdict = (running_shop / "osbench-gate" / "verdict.md").read_text("utf-8")
    assert verdict.startswith("⚪ **no verdict**: --change ended with exit code 1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "the change to judge is missing: give --serve COMMAND or --change"),
        (("--before", "true"), "the change to judge is missing"),
        (("--change", " "), "--change is empty"),
        (("--serve", "true", "--blocks", "3"), "--blocks cannot be combined with --serve"),
        (("--change", "true", "--setup", "make"), "--setup needs --serve COMMAND"),
        (("--change", "true", "--blocks", "2"), "2 is not in the range x>=3"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    (tmp_path / "load.yaml").write_text(yaml.safe_dump(TASK), "utf-8")

    found = call(tmp_path, "gate", "load.yaml", *arguments)

    assert found.returncode == 2
    assert message in found.stderr
    assert not [*tmp_path.glob(".osbench/runs/*")]


def test_the_guide() -> None:
    with folder() as home:
        desk = home / "desk"
        desk.mkdir()
        machine = Machine(home, folder=desk, forked=True)
        first, second = blocks("gate", GUIDE)

        # slower by more than what a busy machine adds
        text = f"{first.text}\n{second.text}".replace("0.004", "0.04").replace("0.008", "0.2")
        with with_worker(machine):
            said = machine.run(replace(first, text=text))

        assert "exit code 1" in said
        assert "**worse**" in said


def test_the_guide_of_upgrades() -> None:
    with folder() as home:
        desk = home / "desk"
        desk.mkdir()
        machine = Machine(home, folder=desk, forked=True)
        first, second = blocks("upgrade", GUIDE)

        # slower by more than what a busy machine adds
        text = f"{first.text}\n{second.text}".replace("8090", str(free_port()))
        text = text.replace("echo 0.1 >", "echo 0.3 >")
        try:
            with with_worker(machine):
                said = machine.run(replace(first, text=text))
        finally:
            for pid in desk.glob("running/pid"):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid.read_text("utf-8")), signal.SIGKILL)

    assert "exit code 1" in said
    assert "**worse**" in said
    assert "Drift: from one block to the next" in said
