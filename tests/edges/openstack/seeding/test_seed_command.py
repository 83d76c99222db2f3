"""The command `seed`: options, output, exit codes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from helpers.commands import call
from helpers.fake_cloud import FakeCloud, fake_cloud

SEED = """
name: full
resources:
  - networks: 2
  - ports: {{ population }}
"""
USERS = """
name: many
resources:
  - projects: 1
  - users: {count: 2, of: projects, password: a-password}
"""

Command = Callable[..., subprocess.CompletedProcess[str]]


def store(home: Path, name: str, spec: Mapping[str, Any]) -> None:
    """Make a deployment record."""
    path = home / f"{name}.json"
    path.write_text(json.dumps(spec))
    done = call(home, "deployment", "create", "--name", name, "--file", str(path))
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def server():
    with fake_cloud() as found:
        yield found


@pytest.fixture
def cloud(server: FakeCloud) -> FakeCloud:
    server.absent.clear()
    for objects in (server.faults, server.quotas, server.assigned):
        objects.clear()
    for kind in ("network", "port"):
        server.objects.pop(kind, None)
    return server


@pytest.fixture
def command(cloud: FakeCloud, tmp_path: Path) -> Command:
    """`seed` in a home with a record of the cloud and the files above."""
    store(tmp_path, "lab", cloud.deployment())
    (tmp_path / "seed.yaml").write_text(SEED)
    (tmp_path / "users.yaml").write_text(USERS)
    return lambda *arguments: call(tmp_path, "seed", *arguments)


def test_the_document_of_other_programs(command, cloud):
    """`grow` calls it so, and reads exit code and document."""
    options = ("seed.yaml", "--deployment", "lab", "--population", "5", "--json", "--quiet")

    done, again = command(*options), command(*options)

    document = json.loads(done.stdout)
    _, ports = document["resources"]
    assert (done.returncode, done.stderr) == (0, "")
    assert (document["exit_code"], document["complete"], document["problems"]) == (0, True, [])
    assert (document["seed"], document["deployment"]) == ("full", "lab")
    assert ports == {
        "kind": "ports",
        "group": "port",
        "first": "osb-seed-full-port-1",
        "last": "osb-seed-full-port-5",
        "planned": 5,
        "existing": 0,
        "made": 5,
        "failed": 0,
        "not_tried": 0,
        "beyond": 0,
        "doubles_removed": 0,
        "errors": [],
    }
    assert (again.returncode, [one["made"] for one in json.loads(again.stdout)["resources"]]) == (
        0,
        [0, 0],
    )


def test_people_read_a_table_and_how_to_go_on(command, cloud):
    cloud.faults.append(["POST /neutron/v2.0/ports$", 400, 1])

    done = command("seed.yaml", "--population", "3", "--quiet")
    again = command("seed.yaml", "--population", "1", "--quiet")

    assert done.returncode == 1
    assert "ports     osb-seed-full-port-1 ... 3" in done.stdout
    assert "seed full in lab: 5 planned = 0 existing + 4 made + 1 failed, in" in done.stdout
    assert "port: POST http://127.0.0.1" in done.stderr
    assert "400 Bad Request: as the test says" in done.stderr
    assert "incomplete: give the same command again to continue" in done.stderr
    assert again.returncode == 0, again.stderr


def test_a_dry_run_makes_nothing(command, cloud):
    done = command("seed.yaml", "--population", "3", "--dry-run", "--quiet")

    assert (done.returncode, done.stderr) == (0, "")
    assert "5 planned = 0 existing + 5 to make, in" in done.stdout
    assert cloud.named("network") == []


def test_a_removal_asks_and_takes_everything(command, cloud):
    command("seed.yaml", "--population", "3", "--quiet")

    shown = command("--remove", "--name", "full", "--dry-run")
    # nobody answers
    asked = command("seed.yaml", "--remove")
    before = cloud.named("port")
    done = command("seed.yaml", "--remove", "--yes", "--json", "--quiet")
    again = command("seed.yaml", "--remove")

    assert "seed full in lab: 3 ports, 2 networks would be removed" in shown.stdout
    assert (asked.returncode, len(before)) == (130, 3)
    assert "remove 5 resources of seed full?" in asked.stderr
    assert json.loads(done.stdout)["removed"] == {"ports": 3, "networks": 2}
    assert done.returncode == 0
    assert cloud.named("port") == cloud.named("network") == []
    assert (again.returncode, again.stdout) == (0, "seed full in lab: nothing removed\n")


def test_a_removal_that_leaves_something_is_code_5(command, cloud, virtual_time):
    command("seed.yaml", "--population", "1", "--quiet")
    cloud.faults.append(["DELETE /neutron/v2.0/networks", 403, 1000])

    done = command("seed.yaml", "--remove", "--yes", "--quiet")

    assert done.returncode == 5
    assert "2 networks are left: DELETE" in done.stderr
    assert "give the same command again" in done.stderr


def test_a_record_has_the_users_of_a_seed(command, cloud, tmp_path):
    first = command("users.yaml", "--record", "many", "--quiet")
    again = command("users.yaml", "--record", "many", "--quiet")
    taken = command("users.yaml", "--record", "lab", "--quiet")
    useless = command("seed.yaml", "--population", "1", "--record", "other")

    shown = json.loads(call(tmp_path, "deployment", "show", "many", "--json").stdout)
    assert (first.returncode, again.returncode) == (0, 0), first.stderr + again.stderr
    assert [one["username"] for one in shown["spec"]["openstack"]["users"]] == [
        "osb-seed-many-user-1",
        "osb-seed-many-user-2",
    ]
    assert "a-password" not in first.stdout + first.stderr + json.dumps(shown)
    assert taken.returncode == useless.returncode == 2
    assert "--record: deployment lab exists, with other users" in taken.stderr
    assert "has no users who can log in: write users:" in useless.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "no seed is given: give FILE or --remove"),
        (("--remove",), "no seed is given: give its file, or its name by --name"),
        (("--remove", "--name", "A"), "--name: must be 1 to 24 small letters"),
        (("seed.yaml", "--yes"), "--yes needs --remove"),
        (("seed.yaml",), "the template needs the task argument population"),
        (("none.yaml",), "none.yaml: 1 problem"),
        (("seed.yaml", "--population", "11"), "port of neutron: 10, and the seed needs 11"),
        (("seed.yaml", "--population", "1", "--deployment", "none"), "no deployment has the name"),
        (("seed.yaml", "--task-args", "populaton=1"), "did you mean population?"),
        (("users.yaml", "--population", "1"), "has no argument 'population'"),
        (("seed.yaml", "--population", "-1"), "-1 is not in the range"),
        (("seed.yaml", "--population", "1", "--at-once", "0"), "0 is not in the range"),
    ],
)
def test_bad_usage_is_one_message_and_code_2(command, cloud, arguments, said):
    done = command(*arguments)

    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert cloud.named("network") == []


def test_a_cloud_that_refuses_or_is_away_is_one_message(command, cloud, tmp_path):
    spec = cloud.deployment()
    spec["openstack"]["auth_url"] = "http://127.0.0.1:1/v3"
    store(tmp_path, "away", spec)
    store(tmp_path, "shop", {"osbench": {"services": {"shop": "http://127.0.0.1:8080"}}})
    cloud.faults.append(["GET /neutron/v2.0/networks$", 403, 1])
    options = ("seed.yaml", "--population", "1", "--json", "--quiet")

    refused = command(*options)
    away = command("--remove", "--name", "full", "--deployment", "away")
    other = command(*options, "--deployment", "shop")

    assert [one.returncode for one in (refused, away, other)] == [2, 2, 2]
    assert "403 Forbidden: as the test says" in json.loads(refused.stdout)["error"]["message"]
    assert "deployment away: http://127.0.0.1:1/v3" in away.stderr
    assert "the command seed needs a deployment of OpenStack" in other.stdout
