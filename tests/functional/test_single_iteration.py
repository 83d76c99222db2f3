"""`run --once`: one iteration in the foreground, with all that can be seen of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from helpers.commands import coord
from helpers.json_server import LoopbackServer, QuietHandler, serving
from helpers.runs import site
from osbench.coordinator.results.storage.run_directory import RunDirectory
from servers import redis_server

pytestmark = pytest.mark.functional

SHOP = """
import logging

import requests

from osbench.plugin import atomic, scenario

LOG = logging.getLogger(__name__)


class Shop(scenario.Scenario):
    @scenario.configure(name="Shop.buy")
    def buy(self, url):
        LOG.info("told at INFO")
        LOG.debug("told at DEBUG")
        with atomic.ActionTimer(self, "login"):
            account = {"user": "joe", "password": "planted-sent"}
            requests.post(url + "/login", json=account, timeout=9)
        with atomic.ActionTimer(self, "pay"):
            print("paying")
            raise RuntimeError("sold out")
"""


class Handler(QuietHandler):
    def do_POST(self) -> None:
        self.sent_body()
        cookie = {"Set-Cookie": "sid=planted-cookie"}
        self.answer(200, {"token": "planted-got", "balance": 12}, **cookie)


@pytest.fixture
def url() -> Iterator[str]:
    with serving(LoopbackServer(Handler)) as server:
        yield server.url


def write_task(home: Path, url: str, **more: Any) -> None:
    request = {
        "url": f"{url}/stock?api_key=planted-query",
        "method": "POST",
        "status_code": 200,
        "json": {"item": 3, "secret": "planted-json"},
        "headers": {"Authorization": "Bearer planted-bearer", "X-Shop": "north"},
    }
    runner = {"constant_for_duration": {"duration": 600, "concurrency": 8}}
    workloads = [
        {"scenario": {"HttpRequests.check_request": request}, "runner": runner},
        {
            "scenario": {"Shop.buy": {"url": url}},
            "runner": runner,
            "sla": {"max_avg_duration": 0.001},
        },
    ]
    subtask = {"title": "Shop", "run_in_parallel": True, "workloads": workloads, **more}
    task = {"version": 2, "title": "Shop", "subtasks": [subtask]}
    (home / "task.yaml").write_text(yaml.safe_dump(task), encoding="utf-8")
    (home / "shop.py").write_text(SHOP, encoding="utf-8")


def test_one_iteration_of_each_workload_is_shown_with_its_requests(
    tmp_path: Path, url: str
) -> None:
    write_task(tmp_path, url)

    done = coord(
        tmp_path,
        *("run", "task.yaml", "--plugin-path", "shop.py", "--once", "--export", "junit=j.xml"),
    )

    assert done.returncode == 1, done.stderr
    text = done.stdout
    assert "/stock?api_key=*** -> 200 OK in " in text
    assert '> {"item": 3, "secret": "***"}' in text
    assert '< {"token": "***", "balance": 12}' in text
    assert '> {"user": "joe", "password": "***"}' in text
    assert "stdout    paying" in text
    assert "told at INFO" in text and "told at DEBUG" not in text
    assert "X-Shop" not in text
    assert "0. HttpRequests.check_request  iteration 1: ok after " in text
    assert "1. Shop.buy  iteration 1: failed after " in text
    assert "actions   login  " in text and "pay  " in text
    assert 'raise RuntimeError("sold out")' in text
    assert "Exit code 1" in text
    suite = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert suite.get("failures") == "1"
    (directory,) = RunDirectory.all(str(tmp_path / ".osbench"))
    for shown in (text, done.stderr, str(list(directory.blocks()))):
        assert "planted" not in shown


def test_verbose_shows_header_fields_and_what_is_logged_at_debug(tmp_path: Path, url: str) -> None:
    write_task(tmp_path, url)

    done = coord(tmp_path, "run", "task.yaml", "--plugin-path", "shop.py", "--once", "--verbose")
    found = json.loads(coord(tmp_path, "results", "--iteration", "1", "--json").stdout)

    assert done.returncode == 1, done.stderr
    assert "> Content-Type: application/json" in done.stdout
    assert "< Set-Cookie: ***" in done.stdout
    assert "told at DEBUG" in done.stdout
    one, other = found["iterations"]
    (entry,) = [entry["text"] for entry in one["log"] if entry["source"] == "request"]
    assert "> Authorization: ***" in entry
    assert "> X-Shop: north" in entry
    assert (one["outcome"], other["outcome"]) == ("ok", "failed")
    assert "planted" not in done.stdout + str(found)


def test_the_spans_of_a_traced_iteration_are_shown_as_a_tree() -> None:
    with redis_server() as store, site() as here:
        record = {
            "services": {},
            "profiler_hmac_key": "planted-key",
            "profiler_conn_str": store.url,
        }
        here.deployment({"osbench": {**record, "profiler_conn_str": store.url}})
        done = here.coord("run", "--scenario", "Dummy.dummy_timed_atomic_actions", "--once")

    assert done.code == 0, done.err
    assert "0. Dummy.dummy_timed_atomic_actions  iteration 1: ok after " in done.out
    assert "Exit code 0" in done.out
    assert "trace     osbench-coord trace show " in done.out
    assert ", iteration 1 of " in done.out
    assert "osbench.iteration" in done.out
    assert "planted" not in done.out + done.err


LOCKED = """
from osbench.plugin import scenario


class Locked(scenario.Scenario):
    def on_start(self):
        print("knocking")
        raise PermissionError("no key")

    @scenario.configure(name="Locked.enter")
    def enter(self):
        pass
"""


def test_a_virtual_user_that_cannot_start_ends_the_run(tmp_path: Path) -> None:
    (tmp_path / "locked.py").write_text(LOCKED, encoding="utf-8")
    options = ("--scenario", "Locked.enter", "--plugin-path", "locked.py")

    done = coord(tmp_path, "run", *options, "--once")

    assert done.returncode == 1, done.stderr
    assert "stdout    knocking" in done.stdout
    assert "PermissionError in on_start: no key" in done.stdout
    assert 'raise PermissionError("no key")' in done.stdout
    assert "Exit code 1: a virtual user failed to start" in done.stdout
