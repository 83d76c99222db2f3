"""Rally's validators look into a real cloud, with users that are gone afterwards."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from osbench.coordinator.front.cli import main
from services.catalogue import admin
from services.lab import Lab

pytest.importorskip("rally_openstack", reason="the extra osbench[rally] is not installed")

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]

TASKS = {
    "keystone": "KeystoneBasic.create_user@rally: [{}]",
    "nova": "NovaServers.boot_server@rally:"
    " [{args: {image: {name: cirros}, flavor: {name: tiny}}, context: {users: {}}}]",
    "dummy": "Dummy.openstack: [{context: {users: {}}}]",
}


def test_the_cloud_is_asked_and_left_as_it_was(keystone: Lab, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name, text in TASKS.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    (tmp_path / "cloud.json").write_text(json.dumps(keystone.deployment()))
    before = held(keystone)

    created = coord("deployment", "create", "--name", "lab", "--file", "cloud.json")
    asked = coord("validate", "--json", *(f"{name}.yaml" for name in TASKS))
    offline = coord("validate", "--offline", "--json", "nova.yaml")

    assert created.exit_code == 0, created.output
    results = [json.loads(line) for line in asked.stdout.splitlines()]
    assert [one["ok"] for one in results] == [True, False, True], results
    said = " ".join(problem["message"] for problem in results[1]["problems"])
    assert "'nova' service is not available" in said.replace("Nova", "nova")
    assert offline.exit_code == 0
    assert held(keystone) == before


def coord(*arguments: str):
    return CliRunner().invoke(main, arguments)


def held(lab: Lab) -> dict[str, int]:
    """How many users and projects there are."""
    session = admin(lab)
    counts = {}
    for what in ("users", "projects"):
        answer = session.get(f"/{what}", endpoint_filter={"service_type": "identity"})
        counts[what] = len(answer.json()[what])
    return counts
