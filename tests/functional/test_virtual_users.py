"""Virtual users with accounts of their own, in real workers, against the shop of the samples."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from helpers.machine import Machine, with_worker
from helpers.readme import REPOSITORY, Block
from servers import folder

pytestmark = pytest.mark.functional

PLUGIN = """
from osbench.plugin import scenario


class Buyer(scenario.Scenario):
    {a}def on_start(self):
        mine = self.user.data
        {w}self.http.post("/login", json={{"name": mine["name"], "password": mine["password"]}})
        self.user.bought = 0

    @scenario.configure(name="Buyer.buy")
    {a}def buy(self):
        (item, *_) = ({w}self.http.get("/items")).json()
        {w}self.think(0.1)
        who = self.user.data["name"]
        {w}self.http.post(
            "/orders", json={{"item": item["id"]}}, expect=201, check={{"$.by": who}},
            verify={{"$.item": 0}},
        )
        self.user.bought += 1
        self.verify("bought one each time", self.user.bought >= 1)

    {a}def on_stop(self):
        {w}self.http.get("/items", name="goodbye")
        if self.user.number == 2:
            raise RuntimeError(f"user {{self.user.number}} forgot the bag")
"""

#: Words of the plug-in for each kind of scenario.
KINDS = {"threads": {"a": "", "w": ""}, "coroutines": {"a": "async ", "w": "await "}}

TASK = """
version: 2
title: buyers
subtasks:
  - title: closed
    scenario: {Buyer.buy: {}}
    runner: {constant: {times: 60, concurrency: 5, timeout: 20}}
    http: {base: "%(shop)s"}
    users: {data: {file: accounts.csv}}
    sla: {checks: {min_percent: 100, name: bought one each time}}
  - title: open
    scenario: {Buyer.buy: {}}
    runner: {rps: {rps: 10, times: 20, max_concurrency: 5, timeout: 20}}
    http: {base: "%(shop)s"}
    users: {data: {file: accounts.csv}}
    sla: {checks: {min_percent: 100, name: bought one each time}}
"""


PACED = """
version: 2
title: paced
subtasks:
  - title: closed
    scenario: {Dummy.dummy: {}}
    runner: {constant_for_duration: {duration: 2s, concurrency: 10, timeout: 20}}
    users: {max_rate: 20, start_rate: 5}
"""


def typed(text: str) -> Block:
    return Block(story="", server=False, text=text)


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    with folder() as home:
        desk = home / "desk"
        desk.mkdir()
        (desk / "samples").symlink_to(REPOSITORY / "samples")
        (desk / "plugins").mkdir()
        for kind, words in KINDS.items():
            text = PLUGIN.format(**words).replace("Buyer.buy", f"Buyer.{kind}")
            (desk / "plugins" / f"{kind}.py").write_text(text, encoding="utf-8")
        made = Machine(home, folder=desk, forked=True)
        shop = typed("python samples/webservice.py --port 8080")
        with (
            made.running(shop) as server,
            with_worker(made, "osbench-worker --processes 1 --plugin-path plugins"),
        ):
            made.wait_for_port("8080", server)
            yield made


@pytest.mark.parametrize("kind", KINDS)
def test_users_log_in_once_and_buy_as_themselves(machine: Machine, kind: str) -> None:
    desk = machine.folder
    names = ["ann", "bob", "eve", "joe", "wrong"]
    rows = [
        f"{name},secret-{name}x" if name == "wrong" else f"{name},secret-{name}" for name in names
    ]
    (desk / "accounts.csv").write_text("name,password\n" + "\n".join(rows), encoding="utf-8")

    address = machine.text("http://127.0.0.1:8080")
    machine.run(typed(f"""curl --silent --data '{{"name": "lamp"}}' {address}/items"""))
    text = (TASK % {"shop": address}).replace("Buyer.buy", f"Buyer.{kind}")
    (desk / "task.yaml").write_text(text, encoding="utf-8")
    text = machine.run(
        typed(
            "osbench-coord run task.yaml --plugin-path plugins || true\n"
            "osbench-coord report last --json result.json"
        )
    )

    assert "1 failed to stop" in " ".join(text.split())
    result = json.loads((desk / "result.json").read_text("utf-8"))
    closed, opened = result["workloads"]
    for workload, planned in ((closed, 60), (opened, 20)):
        # a busy machine may have no user free when an arrival is due
        ok = planned - workload["accounting"]["dropped"]
        assert workload["accounting"]["ok"] == ok > 0
        users = workload["users"]
        # the account with the wrong password never gets in, and the others do its work
        assert users["started"] == 4
        assert users["start_failures"] >= 1
        assert users["stopped"] + users["stop_failures"] == 4
        first = next(one for one in users["errors"] if one["what"] == "on_start")
        assert first["type"] == "UnexpectedStatus"
        assert "POST /login answered 401, expected less than 400" in first["message"]
        forgot = [one for one in users["errors"] if one["what"] == "on_stop"]
        assert [one["message"] for one in forgot] == ["user 2 forgot the bag"], forgot
        assert workload["checks"]["bought one each time"] == {"held": ok, "failed": 0}
        assert workload["checks"]["POST /orders: $.item"] == {"held": 0, "failed": ok}
        assert set(workload["actions"]) == {"GET /items", "POST /orders"}
        # think time is in neither
        latency = workload["latency"]
        means = [latency[one]["ok"]["mean"] for one in ("service", "response")]
        assert workload["sla"][0]["success"]
        assert all(means)
    logs = json.dumps(result)
    assert "secret-ann" not in logs


def paced(machine: Machine) -> dict[str, Any]:
    (machine.folder / "paced.yaml").write_text(PACED, encoding="utf-8")
    machine.run(
        typed("osbench-coord run paced.yaml || true\nosbench-coord report last --json paced.json")
    )
    (workload,) = json.loads((machine.folder / "paced.json").read_text("utf-8"))["workloads"]
    return dict(workload)


def test_a_closed_load_keeps_to_its_greatest_rate(machine: Machine) -> None:
    workload = paced(machine)

    # a turn each 50 ms from the start on, and one that each worker begins with
    assert 1 <= workload["accounting"]["ok"] <= 2 + 2 * 20


@pytest.mark.timing
def test_users_that_wait_for_their_turn_are_not_missing_on_an_idle_machine(
    machine: Machine,
) -> None:
    workload = paced(machine)

    assert workload["offered"]["waited_s"] < 2


RISING = """
version: 2
title: rising
subtasks:
  - title: rising
    scenario: {Dummy.dummy: {sleep: 0.02}}
    runner: {constant_for_duration: {duration: 4, concurrency: 4, timeout: 20}}
    users: {start_rate: 1}
"""


@pytest.mark.timing
def test_users_that_are_not_due_yet_are_not_missing_on_an_idle_machine(machine: Machine) -> None:
    (machine.folder / "rising.yaml").write_text(RISING, encoding="utf-8")

    machine.run(
        typed("osbench-coord run rising.yaml || true\nosbench-coord report last --json rising.json")
    )

    (workload,) = json.loads((machine.folder / "rising.json").read_text("utf-8"))["workloads"]
    # 10 of 16 user-seconds: those that were not due would leave 62 %
    assert workload["offered"]["concurrency_held"] > 0.75
