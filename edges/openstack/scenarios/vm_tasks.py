"""Scenarios that boot a server, log in by SSH, and run a command in it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from osbench.common.errors import DeploymentError
from osbench.common.plugin.atomic import ActionTimer, action_timer
from osbench.edges.openstack.common import neutron
from osbench.edges.openstack.common.cloud import Cloud
from osbench.edges.openstack.common.request_errors import NotReady, RequestFailed
from osbench.edges.openstack.scenarios.attached_volumes import AttachedVolumes
from osbench.edges.openstack.scenarios.dd_script import DD_SCRIPT
from osbench.edges.openstack.scenarios.guest_command import GuestCommand, command_problems
from osbench.edges.openstack.scenarios.guest_shell import (
    CommandResult,
    GuestShell,
    Login,
    is_reachable,
    load_library,
)
from osbench.edges.openstack.scenarios.openstack_scenario import openstack, waits
from osbench.edges.openstack.scenarios.server_changes import ServerChanges
from osbench.edges.openstack.scenarios.servers import SERVER

_SCENARIO: Mapping[str, Any] = {
    "services": ("nova", "neutron"),
    "cleanup": ("nova.servers", "neutron.floating_ips", "cinder"),
    "contexts": {"keypair": {}, "allow_ssh": {}},
}
_WAITS = (
    "cinder_volume_create",
    "nova_server_boot",
    "nova_floating_ip",
    "vm_ping",
    "vm_ssh",
    "nova_server_delete",
)
#: Characters of a console's end that a failure shows.
_CONSOLE = 1000


@dataclass(frozen=True, kw_only=True)
class _Address:
    """The address of a server for SSH, and its floating IP; None for a fixed address."""

    ip: str
    floating_ip: Mapping[str, Any] | None


class VMTasks(AttachedVolumes, ServerChanges):
    """Rally's `VMTasks` scenarios: boot a server, wait for SSH, and run a command in it.

    The context `keypair` gives the key. Workers must reach the address of the server, and need
    paramiko: `pip install 'osbench[ssh]'`.
    """

    @classmethod
    def check_arguments(cls, method: str, args: Mapping[str, Any]) -> list[str]:
        """Return a message for each problem of the arguments, also of `command` and `port`."""
        found = super().check_arguments(method, args)
        if method == "boot_runcommand_delete" and args.get("command") is not None:
            found += command_problems(args["command"])
        port = args.get("port", 22)
        if port is not None and not (type(port) is int and 1 <= port <= 65535):
            found.append(f"port must be an integer from 1 to 65535, got {port!r}")
        return found

    @classmethod
    def prepare(cls, context: dict[str, Any], cloud: Cloud) -> None:
        """Look up image, flavor and external network; read the script of the command.

        Raises DeploymentError if an argument is wrong, an object does not exist, or paramiko is
        missing.
        """
        load_library()
        super().prepare(context, cloud)
        args = context["args"]
        if not args.get("image"):
            raise DeploymentError(
                "VMTasks need the argument image; images that the context"
                " image_command_customizer makes are for Rally's plug-ins: --prefer rally"
            )
        if args.get("use_floating_ip", True):
            given = args.get("floating_network")
            context["floating_network"] = neutron.floating_network(cloud, given)
        if args.get("command", {}) and cls.method(context).__name__ == "boot_runcommand_delete":
            try:
                command = GuestCommand.of(args["command"])
            except OSError as error:
                raise DeploymentError(f"argument command: {error}") from None
            context["guest_command"] = vars(command)

    # the arguments of both scenarios

    def _run_in_server(  # noqa: PLR0913 - Rally's arguments
        self,
        command: GuestCommand,
        flavor: dict[str, Any],
        username: str,
        password: str | None = None,
        image: dict[str, Any] | None = None,
        volume_args: dict[str, Any] | None = None,
        floating_network: str | None = None,
        port: int = 22,
        use_floating_ip: bool = True,
        force_delete: bool = False,
        wait_for_ping: bool = True,
        max_log_length: int | None = None,
        **server_kwargs: Any,
    ) -> None:
        """Boot a server, run a command in it, and delete it; its output becomes outputs.

        `image`, `flavor` and `floating_network` are ignored: their ids are in the context.
        """
        wanted = dict(server_kwargs)
        if volume_args:
            with ActionTimer(self, "cinder_v3.create_volume"):
                volume = self.create_one(volume_args["size"])
            others = wanted.get("block_device_mapping_v2") or ()
            wanted["block_device_mapping_v2"] = [_disk(str(volume["id"])), *others]
        with self._server(wanted, use_floating_ip, force_delete) as (server, address):
            try:
                if wait_for_ping:
                    self._await_ping(address.ip)
                login = Login(
                    host=address.ip,
                    port=port,
                    username=username,
                    password=password,
                    key=str(self._keypair()["private"]),
                )
                result = self._run_command(login, command)
            except (NotReady, TimeoutError) as error:
                raise self._with_console(error, server, max_log_length) from None
        self._add_result(result)

    # scenarios

    @openstack("VMTasks.boot_runcommand_delete", takes=_run_in_server, **_SCENARIO)
    @waits(*_WAITS)
    def boot_runcommand_delete(
        self, command: dict[str, Any] | None = None, **vm_kwargs: Any
    ) -> None:
        """Boot a server, run a command in it by SSH, and delete it.

        `command` has `interpreter` with `script_inline` or `script_file`, or `remote_path`, which
        `local_path` is uploaded to before. Output in JSON with the keys `additive` and `complete`
        gives charts.
        """
        self.checked("guest_command" in self.context, "the argument command is missing")
        self._run_in_server(GuestCommand(**self.context["guest_command"]), **vm_kwargs)

    @openstack("VMTasks.dd_load_test", takes=_run_in_server, **_SCENARIO)
    @waits(*_WAITS)
    def dd_load_test(
        self,
        command: dict[str, Any] | None = None,
        interpreter: str = "/bin/sh",
        **vm_kwargs: Any,
    ) -> None:
        """Boot a server, measure writing, reading and compressing in it, and delete it.

        The script writes a file with `dd`, reads and compresses it, and then starts more and more
        processes that compress. `interpreter` runs it.
        """
        given = (command or {}).get("interpreter") or interpreter
        script = GuestCommand.of({"interpreter": given, "script_inline": DD_SCRIPT})
        self._run_in_server(script, **vm_kwargs)

    # atomic actions

    @contextlib.contextmanager
    def _server(
        self, wanted: Mapping[str, Any], use_floating_ip: bool, force_delete: bool
    ) -> Iterator[tuple[str, _Address]]:
        """Boot a server with an address; delete both at the end, also after a failure."""
        keyed = {**wanted, "auto_assign_nic": True, "key_name": self._keypair()["name"]}
        server = self.booted(self.context["image"], keyed)
        address = None
        try:
            address = self._address(server, use_floating_ip)
            yield server, address
        finally:
            try:
                if address is not None and address.floating_ip is not None:
                    self._delete_address(server, address.floating_ip)
            finally:
                self.delete_server(server, force_delete)

    def _delete_address(self, server: str, floating_ip: Mapping[str, Any]) -> None:
        self.dissociate(server, floating_ip)
        with ActionTimer(self, "neutron.delete_floating_ip"):
            self.cloud.request("DELETE", "neutron", f"floatingips/{floating_ip['id']}")

    def _address(self, server: str, use_floating_ip: bool) -> _Address:
        networks = self.show(SERVER, server, traced=False).get("addresses") or {}
        found = [one["addr"] for several in networks.values() for one in several]
        self.checked(bool(found), "the server has no address: give nics, or the context network")
        if not use_floating_ip:
            return _Address(ip=found[0], floating_ip=None)
        made = self.create_floating_ip(self.context["floating_network"])
        self.associate(server, made, found[0])
        return _Address(ip=made["floating_ip_address"], floating_ip=made)

    @action_timer("vm.wait_for_ping")
    def _await_ping(self, address: str) -> None:
        self.wait_until(f"{address} (ping)", "vm_ping", lambda: is_reachable(address))

    def _run_command(self, login: Login, command: GuestCommand) -> CommandResult:
        shell = GuestShell(login)
        try:
            with ActionTimer(self, "vm.wait_for_ssh"):
                self.wait_until(
                    f"SSH of {login.host}", "vm_ssh", lambda: True if shell.connect() else None
                )
            with ActionTimer(self, "vm.run_command_over_ssh"):
                result = shell.run(command)
        finally:
            shell.close()
        self.checked(
            result.code == 0,
            f"the command ended with exit code {result.code}: {result.errors[-_CONSOLE:].strip()}",
        )
        return result

    def _with_console(
        self, error: NotReady | TimeoutError, server: str, length: int | None
    ) -> NotReady:
        """Return the error with the end of the server's console, which often shows the reason."""
        try:
            with ActionTimer(self, "nova.get_console_output_server"):
                body = {"os-getConsoleOutput": {"length": length}}
                found = self.send_action(SERVER, server, body)
        except (RequestFailed, OSError) as refused:
            return NotReady(f"{error}; its console cannot be read: {refused}")
        console = str((found or {}).get("output", ""))[-_CONSOLE:].strip()
        return NotReady(f"{error}; end of its console: {console or 'empty'}")

    def _keypair(self) -> Mapping[str, Any]:
        made: Mapping[str, Any] = self.context.get("keypairs", {}).get(self.cloud.user_id, {})
        self.checked(bool(made), "the user has no key pair: the task needs the context keypair")
        return made

    def _add_result(self, result: CommandResult) -> None:
        """Add the output of a command as charts, or as text."""
        try:
            charts = json.loads(result.output)
        except ValueError:
            charts = None
        if isinstance(charts, dict) and charts.keys() == {"additive", "complete"}:
            for kind in ("additive", "complete"):
                for chart in charts[kind]:
                    self.add_output(**{kind: chart})
            return
        text = [f"StdErr: {result.errors or '(none)'}", "StdOut:", *result.output.split("\n")]
        self.add_output(
            complete={"title": "Script Output", "chart_plugin": "TextArea", "data": text}
        )


def _disk(volume: str) -> dict[str, Any]:
    """Return the device of a server for an additional volume, which ends with the server."""
    return {
        "uuid": volume,
        "source_type": "volume",
        "destination_type": "volume",
        "boot_index": -1,
        "delete_on_termination": True,
    }
