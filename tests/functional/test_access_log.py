"""What nginx logs becomes the load that it was: same requests, same instants, all accounted for."""

from __future__ import annotations

import contextlib
import json
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from helpers.machine import Machine, with_worker
from helpers.readme import REPOSITORY, Block, blocks, files
from helpers.runs import Site, checked
from osbench.edges.recordings.arrival_file import ArrivalFile
from servers import folder, nginx_server
from servers.child import PATIENCE_S

pytestmark = pytest.mark.functional

LOGS = """
log_format fields escape=json
  '{{"msec": "$msec", "request": "$request", "status": $status, "request_time": $request_time}}';
access_log {folder}/access.log combined;
access_log {folder}/access.json fields;
"""
LOCATIONS = "location = /gone { return 404 'no'; } location / { return 200 'yes'; }"


def ask(url: str, method: str = "GET") -> None:
    request = urllib.request.Request(url, method=method, data=b"x" if method == "POST" else None)
    with contextlib.suppress(urllib.error.HTTPError), urllib.request.urlopen(request) as answer:
        answer.read()


def lines(log: Path) -> list[str]:
    return log.read_text("utf-8").splitlines()


def wait_for(condition: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_the_log_of_nginx_is_replayed(guest: Site) -> None:
    with (
        folder() as home,
        nginx_server(home, LOGS.format(folder=home), LOCATIONS) as url,
    ):
        for number in range(20):
            ask(f"{url}/items/{number}?token=geheim")
            ask(f"{url}/list")
        ask(f"{url}/gone")
        ask(f"{url}/list", "HEAD")
        ask(f"{url}/orders", "POST")
        logs = [home / "access.log", home / "access.json"]
        # nginx writes a line once it has answered
        for log in logs:
            wait_for(lambda log=log: "POST /orders" in log.read_text("utf-8"))
        before = len(lines(logs[0]))
        made = [
            guest.call(
                *("init", f"{log.suffix[1:]}.yaml", "--from-access-log", str(log), "--base", url)
            )
            for log in logs
        ]
        done = guest.run("log.yaml", "--set", "0.0.runner.speed=1000")
        wait_for(lambda: len(lines(logs[0])) >= 2 * before - 1)
        wanted = Counter(
            line.split('"')[1].rpartition(" ")[0] for line in lines(home / "access.log")[before:]
        )
        read = [ArrivalFile(guest.home / f"{log.suffix[1:]}.arrivals") for log in logs]

    assert [one.code for one in made] == [0, 0], made
    for one, form in zip(made, ("nginx or Apache (combined)", "JSON lines"), strict=True):
        assert f"{form}, {before} lines" in one.err
        assert "left out: POST, whose bodies are not in the log (1)" in one.err
    assert sorted(read[0].names) == sorted(read[1].names)
    assert done.code == 0, done.out + done.err
    (workload,) = done.printed["workloads"]
    assert checked(workload)["ok"] == read[0].count == before - 1
    assert wanted["GET /items/1"] == 20
    assert wanted["GET /list"] == 20
    assert wanted["GET /gone"] == wanted["HEAD /list"] == 1
    assert "geheim" not in str(wanted)


@pytest.fixture
def machine() -> Iterator[Machine]:
    """A machine with the samples and an empty folder to type in."""
    with folder() as home:
        desk = home / "desk"
        desk.mkdir()
        (desk / "samples").symlink_to(REPOSITORY / "samples")
        made = Machine(home, folder=desk, forked=True)
        with with_worker(made):
            yield made


def typed(text: str) -> Block:
    return Block(story="", server=False, text=text)


def test_the_log_of_the_guide_is_replayed(machine: Machine) -> None:
    (commands,) = blocks("access-log", "docs/replay.md")
    desk = machine.folder
    (desk / "access.log").write_text(files("docs/replay.md")["access.log"], "utf-8")
    address = machine.text("http://127.0.0.1:8080")

    with machine.running(typed("python samples/webservice.py --port 8080")) as server:
        machine.wait_for_port("8080", server)
        machine.run(typed(f"""curl --silent --data '{{"name": "lamp"}}' {address}/items"""))
        machine.run(commands)
        machine.run(typed("osbench-coord report last --json result.json"))

    (workload,) = json.loads((desk / "result.json").read_text("utf-8"))["workloads"]
    assert workload["accounting"]["ok"] == 4
    assert {name: one["ok"]["count"] for name, one in workload["actions"].items()} == {
        "GET /items": 2,
        "GET /items/[id]": 1,
        "GET /old": 1,
    }
