"""Limits of waits: Rally's defaults, the timeouts of rally.conf, and those of a task."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from osbench.common.config import rally_conf
from osbench.common.errors import ConfigError
from osbench.common.plugin.plugins import Plugins
from osbench.edges.openstack.common import waits

BOOT = "nova_server_boot_timeout"
#: Waits whose prepoll_delay no code of Rally reads.
NEVER_PAUSED = {
    f"nova_server_{one}" for one in ("delete", "live_migrate", "migrate", "resize", "start", "stop")
}


@pytest.fixture
def rally_file(tmp_path, monkeypatch):
    """Returns a function that writes rally.conf."""
    file = tmp_path / "rally.conf"
    monkeypatch.setattr(rally_conf, "FILES", (tmp_path / "missing.conf", file))

    def write(text: str) -> Path:
        file.write_text(text)
        return file

    return write


#: Services with waits, and Rally's option for the pause before the first poll if its name differs.
SERVICES = (
    *("cinder", "glance", "heat", "ironic", "magnum", "manila", "mistral", "nova", "octavia"),
    "vm",
)
#: Waits for which Rally has values, and no options.
FIXED = ("nova_floating_ip", "vm_ssh")
BEFORE = {"ironic_node_create": "ironic_node_create_poll_interval"}


def test_defaults_are_rallys():
    cfg = pytest.importorskip("rally.common.cfg", reason="osbench[rally] is not installed")
    options: dict[str, Any] = {}
    for service in SERVICES:
        module = importlib.import_module(f"rally_openstack.common.cfg.{service}")
        options |= {one.name: one.default for one in module.OPTS["openstack"]}
    assert cfg.CONF is not None

    for name, wait in waits.WAITS.items():
        if name in FIXED:
            continue
        assert options[f"{name}_timeout"] == wait.timeout_s, name
        assert options.get(f"{name}_poll_interval", 1.0) == wait.poll_s, name
        unused = name in NEVER_PAUSED
        before = BEFORE.get(name, f"{name}_prepoll_delay")
        assert unused or options.get(before, 0.0) == wait.prepoll_s, name
        assert not unused or wait.prepoll_s == 0.0


def test_every_wait_is_of_a_scenario():
    plugins = Plugins()
    found = set()
    for name in plugins.scenario_names():
        plugin = plugins.scenario(f"{name}@native")
        needs = getattr(getattr(plugin.cls, plugin.method), "needs", None)
        found |= set(needs.waits if needs else ())

    assert found == set(waits.WAITS)


@pytest.mark.parametrize(
    ("text", "timeouts"),
    [
        ("", {}),
        (f"[openstack]\n{BOOT} = 4\n", {BOOT: 4.0}),
        (f"[openstack]\n{BOOT}: '4.5'\n", {BOOT: 4.5}),
        (f"[openstack]\n{BOOT} = 3\n{BOOT} = 4\n", {BOOT: 4.0}),
        (f"[benchmark]\n{BOOT} = 4\n", {BOOT: 4.0}),
        (f"[openstack]\n{BOOT} = 4\n[benchmark]\n{BOOT} = 5\n", {BOOT: 4.0}),
        (f"[DEFAULT]\n{BOOT} = 4\n", {}),
        (f"[DEFAULT]\n{BOOT} = 4\n[openstack]\n", {}),
        ("[openstack]\nnova_server_boot_poll_interval = 9\nwatcher_audit_launch_timeout = x\n", {}),
        (f"[database]\nconnection = sqlite:///%(x)s$y\n[openstack]\n{BOOT} = 0\n", {BOOT: 0.0}),
    ],
)
def test_timeouts_of_rally_conf(rally_file, text, timeouts):
    rally_file(text)

    assert waits.configured_timeouts() == timeouts


def test_without_rally_conf_nothing_is_configured(tmp_path, monkeypatch):
    monkeypatch.setattr(rally_conf, "FILES", (tmp_path / "missing.conf",))

    assert waits.configured_timeouts() == {}


@pytest.mark.parametrize("value", ["", "soon", "-1", "nan", "inf"])
def test_a_timeout_of_rally_conf_that_is_no_number_is_refused(rally_file, value):
    file = rally_file(f"[openstack]\n{BOOT} = {value}\n")

    with pytest.raises(ConfigError) as caught:
        waits.configured_timeouts()

    assert str(caught.value) == (
        f"{file}: {BOOT} must be a number of seconds from 0 on, got {value!r}"
    )


@pytest.mark.parametrize("text", ["no section = 1\n", "[openstack]\n  odd\n", "\udcff"])
def test_a_broken_rally_conf_is_refused(rally_file, text):
    file = rally_file("")
    file.write_bytes(text.encode("utf-8", "surrogateescape"))

    with pytest.raises(ConfigError, match="cannot read Rally's options in "):
        waits.configured_timeouts()


def test_a_broken_rally_conf_is_a_problem_of_scenarios_that_wait(rally_file):
    rally_file(f"[openstack]\n{BOOT} = soon\n")
    args = {"image": {"id": "i"}, "flavor": {"id": "f"}}

    (said,) = Plugins().scenario("NovaServers.boot_server@native").check_args(args)

    assert said.endswith(f"{BOOT} must be a number of seconds from 0 on, got 'soon'")
    assert Plugins().scenario("NovaServers.list_servers@native").check_args({}) == []


@pytest.mark.parametrize(
    ("timeouts", "said"),
    [
        ({BOOT: 4}, []),
        ({BOOT: 0.5}, []),
        (None, []),
        (
            4,
            [f"timeouts must be a mapping of options to seconds, such as {{{BOOT}: 60}}, got 4"],
        ),
        (
            {"nova_server_delete_timeout": 4},
            [f"timeouts: the scenario has no 'nova_server_delete_timeout'; it has {BOOT}"],
        ),
        ({BOOT: -1}, [f"timeouts: {BOOT} must be a number of seconds from 0 on, got -1"]),
        ({BOOT: "4"}, [f"timeouts: {BOOT} must be a number of seconds from 0 on, got '4'"]),
        ({BOOT: True}, [f"timeouts: {BOOT} must be a number of seconds from 0 on, got True"]),
    ],
)
def test_timeouts_of_a_task_are_checked(tmp_path, monkeypatch, timeouts, said):
    monkeypatch.setattr(rally_conf, "FILES", ())
    args = {"image": {"id": "i"}, "flavor": {"id": "f"}, "timeouts": timeouts}

    assert Plugins().scenario("NovaServers.boot_server@native").check_args(args) == said


def test_a_scenario_that_waits_for_nothing_has_no_timeouts():
    (said,) = Plugins().scenario("NovaServers.list_servers@native").check_args({"timeouts": {}})

    assert "timeouts" in said
