"""A seed outlives its command: killed and interrupted half way it goes on, and runs use it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from helpers.fake_cloud import FakeCloud, fake_cloud
from helpers.machine import Machine
from helpers.readme import Block, blocks, files
from helpers.runs import Site
from servers import folder

pytestmark = pytest.mark.functional

PORTS = 600
SEED = f"""
name: full
quotas: unlimited
resources:
  - networks: 3
  - ports: {PORTS}
"""
USERS = """
name: few
resources:
  - projects: 2
  - users: {count: 4, of: projects, password: "{{ env('SEED_PASSWORD') }}"}
"""


@pytest.fixture
def cloud() -> Iterator[FakeCloud]:
    with fake_cloud() as found:
        found.absent.discard("network")
        yield found


def account(document: dict[str, Any]) -> tuple[int, int]:
    """Existing and made ports; all parts sum to the plan."""
    ports = document["resources"][1]
    parts = [ports[word] for word in ("existing", "made", "failed", "not_tried")]
    assert sum(parts) == ports["planned"] == PORTS
    return parts[0], parts[1]


def test_interrupted_and_killed_half_way_it_goes_on_and_doubles_nothing(
    guest: Site, cloud: FakeCloud
) -> None:
    guest.deployment(cloud.deployment(), "cloud")
    guest.write("seed.yaml", SEED)
    command = ("osbench-coord", "seed", "seed.yaml", "--json", "--quiet")

    first = guest.begin(*command)
    first.wait_for(lambda: len(cloud.named("port")) > 40)
    first.interrupt()
    stopped = first.finish()
    before = len(cloud.named("port"))
    second = guest.begin(*command)
    second.wait_for(lambda: len(cloud.named("port")) > before + 40)
    # requests that nobody waits for any more are served after the kill
    with cloud.lock:
        os.kill(second.process.pid, signal.SIGKILL)
        second.process.wait()
    third = guest.coord(*command[1:])
    fourth = guest.coord(*command[1:])

    interrupted, finished = json.loads(stopped.out), json.loads(third.out)
    assert (stopped.code, interrupted["exit_code"], interrupted["interrupted"]) == (130, 130, True)
    assert 40 < account(interrupted)[1] <= before < PORTS
    assert third.code == fourth.code == 0, third.err
    existing, made = account(finished)
    assert before + 40 < existing < PORTS
    assert made == PORTS - existing
    assert account(json.loads(fourth.out)) == (PORTS, 0)
    assert cloud.named("port") == sorted(f"osb-seed-full-port-{n}" for n in range(1, PORTS + 1))
    assert len(cloud.named("network")) == 3


def test_runs_act_as_the_users_of_a_seed_and_leave_it(guest: Site, cloud: FakeCloud) -> None:
    guest.deployment(cloud.deployment(), "cloud")
    guest.write("seed.yaml", USERS)
    guest.variables["SEED_PASSWORD"] = "a-password"
    task = guest.task(
        {
            "scenario": {"ZaqarBasic.create_queue": {}},
            "contexts": {"users": {"user_choice_method": "round_robin"}},
            "runner": {"constant": {"times": 8, "concurrency": 2}},
        }
    )

    made = guest.coord("seed", "seed.yaml", "--record", "few", "--quiet")
    done = guest.run(task, "--deployment", "few")
    cleaned = guest.coord("cleanup", "--orphans", "--deployment", "few", "--older", "0s", "--yes")

    assert made.code == 0, made.err
    assert done.code == 0, done.err
    assert done.sums["ok"] == 8
    users = {one["id"]: one["name"] for one in cloud.objects["users"].values()}
    acting = {users[one["user"]] for one in cloud.tokens.values()}
    assert acting == {"admin", *(f"osb-seed-few-user-{n}" for n in (1, 2, 3, 4))}
    assert cleaned.code == 0, cleaned.err
    assert "no resources to remove" in cleaned.err
    assert len(cloud.named("users")) == 5


def test_the_commands_of_the_page_make_use_and_remove_a_seed(cloud: FakeCloud) -> None:
    page = "docs/seed.md"
    cloud.absent.clear()
    with folder() as home:
        desk = home / "desk"
        desk.mkdir()
        for path, body in files(page).items():
            (desk / path).write_text(body, "utf-8")
        (desk / "mycloud.json").write_text(json.dumps(cloud.deployment()), "utf-8")
        machine = Machine(home, folder=desk, forked=True)
        machine.run(
            Block(
                story="seed",
                server=False,
                text="osbench-coord deployment create --name mycloud --file mycloud.json",
            )
        )

        made, used, removed = map(machine.run, blocks("seed", page))

    assert "181 planned = 0 existing + 181 to make" in made
    assert "181 planned = 0 existing + 181 made" in made
    assert "201 planned = 181 existing + 20 made" in made
    assert "40 planned = 40 ok" in " ".join(used.split())
    assert "120 ports" in removed
    assert "removed" in removed
    left = [name for kind in cloud.objects for name in cloud.named(kind) if "osb-" in name]
    assert left == []
