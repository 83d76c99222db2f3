"""Scenarios that run commands in servers: the server is this machine, by real SSH."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from helpers import beside_rally
from helpers.cloud_workload import PLUGINS, Workload, timed
from helpers.fake_cloud import ADMIN, FakeCloud, fake_cloud
from osbench.common.errors import DeploymentError
from osbench.edges.openstack.common.request_errors import NotReady, RequestFailed
from osbench.edges.openstack.scenarios import guest_shell, vm_tasks
from osbench.edges.openstack.scenarios.dd_script import DD_SCRIPT
from osbench.edges.openstack.scenarios.guest_command import (
    MOST_SCRIPT,
    GuestCommand,
    command_problems,
)
from osbench.edges.openstack.scenarios.guest_shell import GuestShell, Login
from servers.ssh_server import SshServer, key_pair, ssh_server

SERVER: dict[str, Any] = {"image": {"id": "i"}, "flavor": {"id": "f"}, "username": "guest"}
ECHO = {"interpreter": "/bin/sh", "script_inline": "echo hello; echo careful >&2"}
FLOATING = "127.0.2"
KEYS = key_pair()


@pytest.fixture
def cloud() -> Iterator[FakeCloud]:
    with fake_cloud() as server:
        server.absent.clear()
        server.floating_range = FLOATING
        server.fixed_addresses = {"net": [{"addr": "10.0.0.9"}]}
        server.make("network", {"name": "public", "router:external": True, "subnets": []})
        yield server


@pytest.fixture
def guest() -> Iterator[SshServer]:
    """The server with the first floating IP."""
    with ssh_server(f"{FLOATING}.1") as server:
        server.public_key = KEYS[1]
        yield server


def workload(
    cloud: FakeCloud, guest: SshServer, name: str = "boot_runcommand_delete", **args: Any
) -> Workload:
    """A scenario that logs in at the guest with the key of a context."""
    owner = cloud.find("users", ADMIN)["id"]
    keys = {owner: {"name": "pair", "private": KEYS[0], "public": "-"}}
    given = {**SERVER, "port": guest.port, "wait_for_ping": False, **args}
    return Workload(cloud, f"VMTasks.{name}", given, keypairs=keys)


def left(cloud: FakeCloud) -> list[str]:
    """The kinds of servers and addresses that are left."""
    return [kind for kind in ("servers", "floatingip") if cloud.objects.get(kind)]


def test_a_command_runs_in_the_server_and_everything_is_deleted(
    cloud: FakeCloud, guest: SshServer
) -> None:
    ready = workload(cloud, guest, command=ECHO)

    ready.run()

    outer = [name for name in timed(ready) if " > " not in name]
    assert outer == [
        "nova.boot_server",
        "neutron.create_floating_ip",
        "nova.associate_floating_ip",
        "vm.wait_for_ssh",
        "vm.run_command_over_ssh",
        "nova.dissociate_floating_ip",
        "neutron.delete_floating_ip",
        "nova.delete_server",
    ]
    assert guest.commands == ["/bin/sh"]
    (output,) = ready.last._outputs
    assert "hello" in str(output)
    assert "StdErr: careful" in str(output)
    assert left(cloud) == []
    sent = next(
        json.loads(body)
        for (method, path, _), body in zip(cloud.seen, cloud.bodies, strict=True)
        if (method, path) == ("POST", "/nova/servers")
    )
    assert sent["server"]["key_name"] == "pair"


@pytest.mark.parametrize("force", [False, True])
def test_requests_and_actions_are_rallys(cloud: FakeCloud, force: bool) -> None:
    pytest.importorskip("rally_openstack", reason="the extra osbench[rally] is not installed")
    from rally import plugins

    plugins.load()
    net = cloud.make("network", {"name": "private", "subnets": []})
    args = {"wait_for_ping": False, "command": ECHO, "force_delete": force}
    key = {"name": "pair", "private": KEYS[0], "public": "-"}
    given = {**SERVER, "image": "1" * 32, "flavor": "2" * 32, **args}
    with ssh_server(f"{FLOATING}.1") as guest:
        guest.public_key = KEYS[1]
        given |= {"port": guest.port, "nics": [{"net-id": net["id"]}]}
        beside_rally.clear(cloud)
        theirs = beside_rally.run_rally(
            cloud, "VMTasks.boot_runcommand_delete", given, {}, {}, 3, keypair=key
        )
        # osbench looks the network up before the load
        sent = [one for one in beside_rally.said(cloud) if "router%3Aexternal" not in one]
        ready = workload(cloud, guest, **given)
        beside_rally.clear(cloud)

        ready.run(3)

    assert beside_rally.said(cloud) == sent
    theirs.pop("neutron.create_floating_ip > neutron.list_networks")
    # the requests of an address are within the part of its acceptance
    mine = beside_rally.timed(ready.last)
    assert {name.replace(" > accepted", ""): number for name, number in mine.items()} == theirs


def test_a_server_that_refuses_its_key_at_first_is_awaited(
    cloud: FakeCloud, guest: SshServer
) -> None:
    guest.refusals = 2

    workload(cloud, guest, command=ECHO).run()

    assert guest.tries > 2


def test_a_server_that_never_answers_fails_with_the_end_of_its_console(
    cloud: FakeCloud, guest: SshServer
) -> None:
    guest.public_key = "another"
    ready = workload(cloud, guest, command=ECHO, timeouts={"vm_ssh_timeout": 0.0})

    with pytest.raises(NotReady) as caught:
        ready.run()

    assert f"SSH of {FLOATING}.1 is not ready after 0 s" in str(caught.value)
    assert "raise vm_ssh_timeout; end of its console: " in str(caught.value)
    assert left(cloud) == []


def test_a_console_that_is_refused_does_not_hide_the_reason(
    cloud: FakeCloud, guest: SshServer
) -> None:
    guest.public_key = "another"
    cloud.faults.append([r"POST /nova/servers/\w+/action", 403, 9])
    ready = workload(cloud, guest, command=ECHO, timeouts={"vm_ssh_timeout": 0.0})

    with pytest.raises(NotReady, match=r"SSH of .* is not ready.*console cannot be read"):
        ready.run()

    assert left(cloud) == []


def test_an_address_that_cannot_be_removed_does_not_keep_the_server(
    cloud: FakeCloud, guest: SshServer
) -> None:
    ready = workload(cloud, guest, command=ECHO)
    cloud.faults.append([r"DELETE /neutron/v2.0/floatingips/", 409, 9])

    with pytest.raises(RequestFailed):
        ready.run()

    assert left(cloud) == ["floatingip"]


def test_a_command_that_fails_fails_the_iteration_with_its_errors(
    cloud: FakeCloud, guest: SshServer
) -> None:
    broken = {"interpreter": ["/bin/sh", "-s"], "script_inline": "echo no disk >&2; exit 3"}

    with pytest.raises(AssertionError, match=r"ended with exit code 3: no disk"):
        workload(cloud, guest, command=broken).run()

    assert left(cloud) == []


def test_a_program_is_uploaded_and_gets_its_arguments(
    cloud: FakeCloud, guest: SshServer, tmp_path: Any
) -> None:
    program, there = tmp_path / "local", tmp_path / "remote"
    program.write_text('#!/bin/sh\necho "$GREETING $1"\n', "utf-8")
    command = {
        "local_path": str(program),
        "remote_path": ["GREETING=good evening", str(there)],
        "command_args": ["dear guest"],
    }

    # "NAME=value with blanks" is one word for the shell, and no assignment: as in Rally
    command["remote_path"][0] = "GREETING=good"
    ready = workload(cloud, guest, command=command)
    ready.run()

    assert "good dear guest" in str(ready.last._outputs)
    assert there.stat().st_mode & 0o777 == 0o755


def test_charts_of_a_command_become_outputs(cloud: FakeCloud, guest: SshServer) -> None:
    chart = {"title": "t", "chart_plugin": "Lines", "data": [["a", [[1, 2]]]]}
    charts = json.dumps({"additive": [chart], "complete": [chart, chart]})
    command = {"interpreter": "/bin/sh", "script_inline": f"cat <<'END'\n{charts}\nEND\n"}
    ready = workload(cloud, guest, command=command)

    ready.run()

    assert len(ready.last._outputs) == 3


def test_the_load_test_runs_its_own_script(
    cloud: FakeCloud, guest: SshServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = f"DD_SIZE_MB=1\nDD_PROCESSES=1\n{DD_SCRIPT}"
    monkeypatch.setattr(vm_tasks, "DD_SCRIPT", small)
    ready = workload(cloud, guest, "dd_load_test", interpreter="/bin/sh")

    ready.run()

    titles = str(ready.last._outputs)
    assert "Write, read and gzip of a file" in titles
    assert "Use of the server by number of processes" in titles
    assert left(cloud) == []


def test_a_fixed_address_needs_no_floating_ip_and_is_pinged(
    cloud: FakeCloud, guest: SshServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    pinged: list[str] = []
    monkeypatch.setattr(vm_tasks, "is_reachable", lambda one: pinged.append(one) or True)
    cloud.fixed_addresses = {"net": [{"addr": guest.host}]}
    ready = workload(cloud, guest, command=ECHO, use_floating_ip=False, wait_for_ping=True)

    ready.run()

    assert pinged == [guest.host]
    assert "neutron.create_floating_ip" not in timed(ready)


def test_a_volume_of_the_task_is_a_disk_of_the_server(cloud: FakeCloud, guest: SshServer) -> None:
    workload(cloud, guest, command=ECHO, volume_args={"size": 2}).run()

    sent = next(
        json.loads(body)["server"]
        for (method, path, _), body in zip(cloud.seen, cloud.bodies, strict=True)
        if (method, path) == ("POST", "/nova/servers")
    )
    kinds = [(one["source_type"], one["boot_index"]) for one in sent["block_device_mapping_v2"]]
    assert kinds == [("image", 0), ("volume", -1)]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("ls", "argument command: must be an object"),
        ({}, "has no program"),
        ({"script_inline": "ls"}, "has no program"),
        ({"interpreter": "sh", "skript": 1}, "unknown key skript"),
        ({"interpreter": 5}, "interpreter must be a string or a list"),
        ({"interpreter": "sh", "script_inline": "a", "script_file": "b"}, "give one script"),
        (
            {"interpreter": "sh", "script_file": "/no/such"},
            "argument command: cannot read /no/such: No such file; correct script_file",
        ),
        ({"interpreter": "sh", "local_path": "/bin/sh"}, "local_path needs remote_path"),
        (
            {"interpreter": "/tmp/a", "local_path": "/bin/sh", "remote_path": "/tmp/b"},
            "must be at remote_path, /tmp/a",
        ),
    ],
)
def test_commands_that_cannot_run_are_refused(command: Any, said: str) -> None:
    plugin = PLUGINS.scenario("VMTasks.boot_runcommand_delete@native")

    found = plugin.cls.check_arguments(plugin.method, {**SERVER, "command": command})

    assert any(said in one for one in found), found


def test_a_script_that_is_too_large_is_refused(tmp_path: Any) -> None:
    script = tmp_path / "large"
    script.write_bytes(b"#" * (MOST_SCRIPT + 1))

    (said,) = command_problems({"interpreter": "sh", "script_file": str(script)})

    assert "is larger than 1024 KiB; upload it as local_path" in said


@pytest.mark.parametrize(("port", "right"), [(22, True), (0, False), ("22", False), (True, False)])
def test_ports_are_checked(port: Any, right: bool) -> None:
    plugin = PLUGINS.scenario("VMTasks.dd_load_test@native")

    found = plugin.cls.check_arguments(plugin.method, {**SERVER, "port": port})

    assert (found == []) == right


def test_without_the_library_the_load_does_not_begin(
    cloud: FakeCloud, guest: SshServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(guest_shell.importlib, "import_module", missing)

    with pytest.raises(DeploymentError, match=r"pip install 'osbench\[ssh\]' on all hosts"):
        workload(cloud, guest, command=ECHO)


def test_much_output_and_much_input_do_not_block_each_other(guest: SshServer) -> None:
    shell = GuestShell(
        Login(host=guest.host, port=guest.port, username="guest", password=None, key=KEYS[0])
    )
    assert shell.connect()
    script = "#" * 300_000 + "\nhead -c 3000000 /dev/zero | tr '\\0' x\n"

    try:
        result = shell.run(GuestCommand(line="/bin/sh", script=script))
    finally:
        shell.close()

    assert result.code == 0
    assert len(result.output) == guest_shell.MOST_OUTPUT


def test_a_command_that_does_not_end_is_left(guest: SshServer) -> None:
    shell = GuestShell(
        Login(host=guest.host, port=guest.port, username="guest", password="right", key="")
    )
    assert shell.connect()

    try:
        with pytest.raises(TimeoutError, match=r"has not ended after 0.2 s"):
            shell.run(GuestCommand(line="exec sleep 5"), limit_s=0.2)
    finally:
        shell.close()
