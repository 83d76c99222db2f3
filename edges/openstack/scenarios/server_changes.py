"""Base of scenarios that change servers of Nova: their states, hosts, sizes and addresses."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from osbench.common.plugin.atomic import ActionTimer, action_timer
from osbench.edges.openstack.scenarios.image_scenario import GOING, IMAGE, ImageScenario
from osbench.edges.openstack.scenarios.openstack_scenario import ACCEPTED
from osbench.edges.openstack.scenarios.resource_scenario import ResourceKind
from osbench.edges.openstack.scenarios.servers import SERVER, Servers

#: Field of a server that is None while Nova does nothing with it.
TASK_STATE = "OS-EXT-STS:task_state"
_HOST = "OS-EXT-SRV-ATTR:host"
_HYPERVISOR = ResourceKind(service="nova", path="os-hypervisors", key="hypervisor")
_FLOATING_IP = ResourceKind(service="neutron", path="floatingips", key="floatingip")

#: Changes by Rally's name of their action: the request, and the state that they lead to.
_CHANGES: Mapping[str, tuple[Mapping[str, Any], str]] = MappingProxyType(
    {
        "soft_reboot_server": ({"reboot": {"type": "SOFT"}}, "ACTIVE"),
        "reboot_server": ({"reboot": {"type": "HARD"}}, "ACTIVE"),
        "start_server": ({"os-start": None}, "ACTIVE"),
        "stop_server": ({"os-stop": None}, "SHUTOFF"),
        "rescue_server": ({"rescue": {}}, "RESCUE"),
        "unrescue_server": ({"unrescue": None}, "ACTIVE"),
        "suspend_server": ({"suspend": None}, "SUSPENDED"),
        "resume_server": ({"resume": None}, "ACTIVE"),
        "pause_server": ({"pause": None}, "PAUSED"),
        "unpause_server": ({"unpause": None}, "ACTIVE"),
        "shelve_server": ({"shelve": None}, "SHELVED_OFFLOADED"),
        "unshelve_server": ({"unshelve": None}, "ACTIVE"),
        # these two are done when the response arrives
        "lock_server": ({"lock": None}, ""),
        "unlock_server": ({"unlock": None}, ""),
    }
)
#: Changes that belong together, by the name that a task gives a bounce.
BOUNCES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "hard_reboot": ("reboot_server",),
        "soft_reboot": ("soft_reboot_server",),
        "stop_start": ("stop_server", "start_server"),
        "rescue_unrescue": ("rescue_server", "unrescue_server"),
        "pause_unpause": ("pause_server", "unpause_server"),
        "suspend_resume": ("suspend_server", "resume_server"),
        "lock_unlock": ("lock_server", "unlock_server"),
        "shelve_unshelve": ("shelve_server", "unshelve_server"),
    }
)


def _wait_of(change: str) -> str:
    """Return the key of `WAITS` for a change; Rally has one for both kinds of reboots."""
    return f"nova_server_{change.removeprefix('soft_').removesuffix('_server')}"


#: Keys of `WAITS` for all bounces.
BOUNCE_WAITS = tuple(sorted({_wait_of(change) for change, (_, to) in _CHANGES.items() if to}))


def bounce_problem(actions: Any) -> str:
    """Return the first problem of the actions of a bounce, such as an unknown one; "" if none.

    A bounce is a list of mappings of one action to how often it is done.
    """
    for one in actions if isinstance(actions, list) else [actions]:
        if not isinstance(one, Mapping) or len(one) != 1:
            return f"expected a mapping with one action, such as {{hard_reboot: 1}}, got {one!r}"
        ((name, times),) = one.items()
        if name not in BOUNCES:
            return f"unknown action {name!r}; osbench knows {', '.join(sorted(BOUNCES))}"
        if not isinstance(times, int) or isinstance(times, bool) or times < 1:
            return f"{name} must be an integer from 1 on, got {times!r}"
    return ""


class ServerChanges(Servers, ImageScenario):
    """Base of scenarios that change servers of Nova: state, size, host, image, floating IP.

    Each change is an atomic action, and waits for its result.
    """

    def change(self, action: str, server: str) -> None:
        """Change the state of a server and wait for the new state, as an action.

        `action` is a key of `_CHANGES`, such as "pause_server". Locks need no waiting. Raises
        NotReady if the server fails, or at the timeout.
        """
        body, status = _CHANGES[action]
        if status:
            # a shelved server is offloaded before Nova is done with it
            idle = {TASK_STATE: None} if action == "shelve_server" else {}
            wait = _wait_of(action)
            self.change_server(action, server, body, status, wait=wait, **idle)
            return
        with ActionTimer(self, f"nova.{action}"):
            self.send_action(SERVER, server, body)

    def bounce(self, name: str, server: str) -> None:
        """Do the changes of a bounce once, such as stop and start, and wait for each.

        `name` is a key of `BOUNCES`. Two changes are enclosed in one action. Raises NotReady.
        """
        several = BOUNCES[name]
        if len(several) == 1:
            self.change(several[0], server)
            return
        with ActionTimer(self, f"nova.{name.replace('_', '_and_')}_server"):
            for action in several:
                self.change(action, server)

    def resize(self, server: str) -> None:
        """Resize a server to the task's `to_flavor`, and wait for it; the caller confirms it.

        Raises NotReady.
        """
        wanted = {"resize": {"flavorRef": self.context["to_flavor"]}}
        self.change_server("resize", server, wanted, "VERIFY_RESIZE", wait="nova_server_resize")

    def confirm(self, server: str, confirm: bool, status: str = "ACTIVE") -> None:
        """Confirm a server's new size or host, or else revert it; wait until it is in `status`.

        Raises NotReady.
        """
        action = "confirm" if confirm else "revert"
        body, wait = {f"{action}Resize": None}, f"nova_server_resize_{action}"
        self.change_server(f"resize_{action}", server, body, status, wait=wait)

    # hosts

    @action_timer("nova.migrate")
    def migrate(self, server: str) -> None:
        """Migrate a server to another host, as the administrator, and wait for it.

        The caller has to confirm it. Fails the iteration with fewer than two hypervisors, or if the
        host is the same. Raises NotReady.
        """
        before = self._host_before(server)
        with ActionTimer(self, ACCEPTED):
            self.send_action(SERVER, server, {"migrate": None}, cloud=self.admin)
        self.await_status(SERVER, server, "VERIFY_RESIZE", wait="nova_server_migrate")
        after = self.show(SERVER, server, cloud=self.admin)[_HOST]
        self.checked(after != before, f"the server was migrated, and its host is still {before}")

    @action_timer("nova.live_migrate")
    def live_migrate(self, server: str, block_migration: bool, disk_over_commit: bool) -> None:
        """Migrate a running server, as the administrator, and wait until it is on another host.

        Fails the iteration with fewer than two hypervisors. Raises NotReady if the server fails, or
        at the timeout.
        """
        before = self._host_before(server)
        wanted = {
            "host": None,
            "block_migration": block_migration,
            "disk_over_commit": disk_over_commit,
        }
        with ActionTimer(self, ACCEPTED):
            self.send_action(SERVER, server, {"os-migrateLive": wanted}, cloud=self.admin)

        def look() -> bool | None:
            found = self.show(SERVER, server, cloud=self.admin, traced=False)
            SERVER.refuse_failed(found)
            return True if found["status"] == "ACTIVE" and found[_HOST] != before else None

        what = f"the server on another host than {before}"
        self.wait_until(what, "nova_server_live_migrate", look)

    def _host_before(self, server: str) -> str:
        with ActionTimer(self, "nova.list_hypervisors"):
            count = len(self.list_pages(_HYPERVISOR, "os-hypervisors/detail", cloud=self.admin))
        self.checked(count > 1, f"a migration needs two hypervisors; this cloud has {count}")
        return str(self.show(SERVER, server, cloud=self.admin)[_HOST])

    # images

    @action_timer("nova.snapshot_server")
    def snapshot(self, server: str) -> str:
        """Create an image of a server and wait until both are ready; return the image's id.

        Raises NotReady.
        """
        wanted = {"createImage": {"name": self.new_name(), "metadata": {}}}
        with ActionTimer(self, ACCEPTED):
            path = f"{SERVER.path}/{server}/action"
            response = self.cloud.request("POST", "nova", path, json=wanted)
            image = response.headers.get("Location", "").rpartition("/")[2]
            if not image:
                # from microversion 2.45 on
                image = str(response.json()["image_id"])
        wait = "nova_server_image_create"
        with ActionTimer(self, "glance.wait_for_image"):
            self.await_image(image, wait)
        with ActionTimer(self, "nova.wait_for_server"):
            self.await_status(SERVER, server, "ACTIVE", wait=wait, **{TASK_STATE: None})
        return image

    @action_timer("nova.delete_image")
    def delete_snapshot_image(self, image: str) -> None:
        """Delete an image by its id and wait until it is gone, as an action. Raises NotReady."""
        self.delete_image(image)
        with ActionTimer(self, "glance.wait_for_delete"):
            self.await_end(IMAGE, image, wait="nova_server_image_delete", gone=GOING)

    # addresses

    @action_timer("neutron.create_floating_ip")
    def create_floating_ip(self, network: str) -> dict[str, Any]:
        """Create a floating IP in the network with id `network`; return it as in the response.

        Its description is a unique name, by which the clean-up finds it.
        """
        wanted = {"floating_network_id": network, "description": self.new_name()}
        body = {"floatingip": wanted}
        document = self.cloud.document("POST", "neutron", _FLOATING_IP.path, json=body)
        return dict(document["floatingip"])

    @action_timer("nova.associate_floating_ip")
    def associate(
        self, server: str, floating_ip: Mapping[str, Any], fixed_address: str = ""
    ) -> None:
        """Associate a floating IP with a server's first port; wait until the server has it.

        `floating_ip` is as returned by `create_floating_ip`; `fixed_address` is an address of the
        port, "" for its only one. Fails the iteration if the server has no port. Raises
        NotReady.
        """
        with ActionTimer(self, ACCEPTED), ActionTimer(self, "neutron.associate_floating_ip"):
            with ActionTimer(self, "neutron.list_ports"):
                path = f"ports?device_id={server}"
                ports = self.cloud.document("GET", "neutron", path)["ports"]
            self.checked(bool(ports), "the server has no port to associate a floating IP with")
            fixed = {"fixed_ip_address": fixed_address} if fixed_address else {}
            self._set_port(floating_ip, ports[0]["id"], **fixed)
        self._await_address(server, floating_ip, there=True)

    @action_timer("nova.dissociate_floating_ip")
    def dissociate(self, server: str, floating_ip: Mapping[str, Any]) -> None:
        """Dissociate a floating IP from its server, and wait until the server lacks it.

        Raises NotReady.
        """
        with ActionTimer(self, ACCEPTED), ActionTimer(self, "neutron.dissociate_floating_ip"):
            self._set_port(floating_ip, None)
        self._await_address(server, floating_ip, there=False)

    def _set_port(self, floating_ip: Mapping[str, Any], port: str | None, **fixed: str) -> None:
        with ActionTimer(self, "neutron.update_floating_ip"):
            path = f"{_FLOATING_IP.path}/{floating_ip['id']}"
            body = {"floatingip": {"port_id": port, **fixed}}
            self.cloud.request("PUT", "neutron", path, json=body)

    def _await_address(self, server: str, floating_ip: Mapping[str, Any], *, there: bool) -> None:
        address = floating_ip["floating_ip_address"]

        def look() -> bool | None:
            found = self.show(SERVER, server, traced=False)
            SERVER.refuse_failed(found)
            has = {one["addr"] for several in found["addresses"].values() for one in several}
            return True if (address in has) == there else None

        self.wait_until("the address of the server", "nova_floating_ip", look)
