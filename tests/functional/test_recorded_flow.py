"""A recording of a visit of the sample shop becomes a task that runs against the shop."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from helpers.machine import Machine, with_worker
from helpers.readme import REPOSITORY, Block, blocks
from helpers.recordings import shop, write_har
from servers import folder

pytestmark = pytest.mark.functional

DESCRIPTION = """
openapi: 3.1.0
servers: [{url: "http://127.0.0.1:8080"}]
paths:
  /items: {get: {responses: {"200": {description: ten items}}}}
  /orders: {post: {responses: {"201": {description: ordered}}}}
"""


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


def test_a_recorded_visit_runs_against_the_shop(machine: Machine) -> None:
    recorded, described = blocks("recorded-flow", "docs/flows.md")
    desk = machine.folder
    address = machine.text("http://127.0.0.1:8080")
    # an item that the shop does not have: the flow has to ask for one
    write_har(desk / "shop.har", shop(address, item=4711))

    with machine.running(typed("python samples/webservice.py --port 8080")) as server:
        machine.wait_for_port("8080", server)
        machine.run(typed(f"""curl --silent --data '{{"name": "lamp"}}' {address}/items"""))
        machine.run(recorded)
        machine.run(typed("osbench-coord report last --json result.json"))
    (desk / "shop-api.yaml").write_text(DESCRIPTION, encoding="utf-8")
    validated = machine.run(described)

    assert "OK, 1 subtask, 1 workload" in " ".join(validated.split())
    (workload,) = json.loads((desk / "result.json").read_text("utf-8"))["workloads"]
    assert workload["accounting"]["ok"] == 10
    assert set(workload["actions"]) == {
        *("GET /items", "POST /login", "GET /items/[id]", "POST /orders")
    }
    assert "secret-ann" not in (desk / "shop.yaml").read_text("utf-8")
