"""`validate` asks Rally's validators about Rally's plug-ins, and the deployment there is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from osbench.common.plugin.plugin_names import RALLY
from osbench.common.plugin.plugins import Plugins
from osbench.coordinator.front.cli import main
from osbench.coordinator.front.cli.commands.plugin import scenario_text

pytest.importorskip("rally", reason="Rally is not installed: pip install osbench[rally]")

BOOT = """
version: 2
title: Servers
subtasks:
  - title: boot
    scenario:
      NovaServers.boot_server@rally: {image: {name: cirros}, flavor: {name: tiny}}
    contexts: {users: {tenants: 2}}
"""
OWN = "Dummy.dummy: [{}]"

#: A record that is complete but for an administrator, of a cloud that does not exist.
USERS = {
    "openstack": {
        "auth_url": "http://127.0.0.1:1/v3",
        "users": [{"username": "u", "password": "p", "project_name": "p"}],
    }
}


def coord(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def objects(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name, text in (("boot.yaml", BOOT), ("own.yaml", OWN)):
        (tmp_path / name).write_text(text)
    (tmp_path / "users.json").write_text(json.dumps(USERS))


@pytest.mark.parametrize("offline", [(), ("--offline",)])
def test_what_was_not_asked_is_named(offline):
    text = coord("validate", *offline, "boot.yaml")
    outcome = coord("validate", *offline, "--json", "boot.yaml", "own.yaml")

    assert text.exit_code == outcome.exit_code == 0, text.output
    assert "  not checked without a cloud: platform openstack, flavor" in text.stdout.replace(
        "image_valid_on_flavor", "flavor"
    )
    boot, own = objects(outcome)
    assert boot["not_checked"][0] == "platform openstack"
    assert "required_services" in boot["not_checked"]
    assert (boot["ok"], own["ok"], own["not_checked"]) == (True, True, [])


def test_every_fault_has_its_place_and_validators_are_named(tmp_path):
    bad = BOOT.replace("image: {name: cirros}, ", "sleep: 1, ").replace("tenants: 2", "tenants: 0")
    (tmp_path / "bad.yaml").write_text(bad)

    (outcome,) = objects(coord("validate", "--json", "bad.yaml"))

    problems = {problem["place"]: problem["message"] for problem in outcome["problems"]}
    args = problems["subtasks[0].scenario.NovaServers.boot_server@rally"]
    assert args.startswith("Argument(s) 'image' should be specified in task config.")
    assert args.endswith("(Rally's validator args-spec)")
    assert problems["subtasks[0].contexts.users.tenants"] == "must be at least 1, got 0"


def test_a_validator_that_raises_is_one_message(tmp_path):
    """Rally's own validator of `restricted_parameters` expects a mapping here."""
    bad = "NeutronNetworks.create_and_list_networks@rally: [{args: {network_create_args: 5}}]"
    (tmp_path / "bad.yaml").write_text(bad)

    result = coord("validate", "bad.yaml")

    assert result.exit_code == 2
    (line,) = result.stdout.splitlines()[1:]
    assert "cannot be checked: Rally's validator restricted_parameters raises TypeError" in line


def test_a_deployment_is_held_against_what_plugins_require(tmp_path):
    (tmp_path / "tenant.yaml").write_text("KeystoneBasic.create_tenant@rally: [{}]")
    created = coord("deployment", "create", "--name", "users", "--file", "users.json")

    with_it = coord("validate", "tenant.yaml")
    without = coord("validate", "--offline", "tenant.yaml")

    assert created.exit_code == 0, created.output
    assert with_it.exit_code == 2
    assert "No admin credentials for openstack" in with_it.stdout
    assert without.exit_code == 0


def test_a_cloud_that_does_not_answer_is_one_message():
    coord("deployment", "create", "--name", "users", "--file", "users.json")

    result = coord("validate", "boot.yaml")

    assert result.exit_code == 2
    assert "deployment users cannot be used: " in result.stdout


def test_a_run_that_needs_a_cloud_says_what_to_give():
    result = coord("run", "boot.yaml")

    assert result.exit_code == 2
    assert "no deployment is in use: give --deployment" in result.output


def test_templates_with_macros_and_includes(tmp_path):
    (tmp_path / "macros.yaml").write_text(
        "{% macro users(tenants=1) %}\n"
        "contexts: {users: {tenants: {{ tenants }}, users_per_tenant: 2}}\n"
        "{% endmacro %}\n"
    )
    (tmp_path / "nova.yaml").write_text(
        "- title: boot\n"
        "  scenario: {NovaServers.boot_server: {image: {name: {{ image }} }, flavor: {name: t}}}\n"
        "  {{ macros.users(3) | indent(2) }}\n"
    )
    (tmp_path / "task.yaml").write_text(
        "{% import 'macros.yaml' as macros with context %}\n"
        "version: 2\n"
        "title: Certification\n"
        "subtasks:\n"
        "{% include 'nova.yaml' %}\n"
    )

    without = coord("validate", "task.yaml")
    given = coord("validate", "task.yaml", "--task-args", "image: cirros")

    assert "needs the task argument image" in without.stdout
    assert given.exit_code == 0, given.output


def test_version_1_with_plugins_of_older_releases(tmp_path):
    old = {
        "NovaServers.boot_server": [
            {
                "args": {"image": {"name": "i"}, "flavor": {"name": "f"}},
                "runner": {"type": "constant", "times": 2, "concurrency": 1},
                "context": {"users": {"tenants": 1}, "sahara_image": {}},
                "sla": {"failure_rate": {"max": 0}},
            }
        ],
        "MuranoPackages.import_and_list_packages": [{"args": {"package": "p"}}],
    }
    (tmp_path / "old.json").write_text(json.dumps(old))

    (outcome,) = objects(coord("validate", "--json", "old.json"))

    assert [(problem["place"], problem["message"]) for problem in outcome["problems"]] == [
        (
            "NovaServers.boot_server[0].context.sahara_image",
            "context 'sahara_image' was removed from Rally in rally-openstack 4.0.0",
        ),
        (
            "MuranoPackages.import_and_list_packages[0]",
            "scenario 'MuranoPackages.import_and_list_packages' was removed from Rally"
            " in rally-openstack 4.0.0",
        ),
    ]


def test_a_part_of_a_file_is_checked_alone(tmp_path):
    both = BOOT + "  - title: broken\n    scenario: {Dummy.nothing: {}}\n"
    (tmp_path / "both.yaml").write_text(both)

    all_of_it = coord("validate", "both.yaml")
    part = coord("validate", "both.yaml", "--subtask", "boot", "--workload", "0")

    assert (all_of_it.exit_code, part.exit_code) == (2, 0)
    assert "both.yaml: OK, 1 subtask, 1 workload" in part.stdout


def test_plugins_of_rally_are_listed_and_shown():
    listed = coord("plugin", "list", "scenario", "--rally").stdout
    preferred = coord("plugin", "list", "scenario", "--prefer", "rally").stdout
    shown = coord("plugin", "show", "scenario", "Dummy.dummy@rally").stdout
    context = coord("plugin", "show", "context", "servers").stdout

    rows = {line.split()[1]: line.split()[2] for line in listed.splitlines()[1:]}
    assert rows["Dummy.dummy"] == "native"
    assert rows["Dummy.dummy@rally"] == rows["HeatStacks.create_stack_and_scale"] == "rally"
    rows = {line.split()[1]: line.split()[2] for line in preferred.splitlines()[1:]}
    assert (rows["Dummy.dummy"], rows["Dummy.dummy@native"]) == ("rally", "native")
    assert shown.startswith("scenario Dummy.dummy@rally (Rally's)")
    assert "sleep: " in shown
    assert '"servers_per_tenant"' in context


def test_every_scenario_of_rally_can_be_shown():
    plugins = Plugins(prefer=RALLY)

    for name in plugins.source(RALLY).titles("scenario"):
        assert scenario_text(plugins, name).startswith(f"scenario {name} (Rally's)")
