"""Scenarios of Nova's servers: they boot, list, change, move and delete servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from osbench.common.plugin.atomic import ActionTimer
from osbench.edges.openstack.common import neutron
from osbench.edges.openstack.common.cloud import Cloud
from osbench.edges.openstack.scenarios.openstack_scenario import openstack, waits, without_none
from osbench.edges.openstack.scenarios.server_changes import (
    BOUNCE_WAITS,
    ServerChanges,
    bounce_problem,
)
from osbench.edges.openstack.scenarios.servers import SERVER, Servers
from osbench.edges.openstack.scenarios.volumes import Volumes

_SCENARIO: Mapping[str, Any] = {"services": ("nova",), "cleanup": ("nova.servers",)}
_BOOTED: Mapping[str, Any] = {**_SCENARIO, "takes": Servers.boot}
_MOVED: Mapping[str, Any] = {**_BOOTED, "admin": True}
_IMAGED: Mapping[str, Any] = {
    "services": ("nova", "glance"),
    "cleanup": ("nova.servers", "glance"),
}
_FROM_VOLUME: Mapping[str, Any] = {
    "services": ("nova", "cinder"),
    "cleanup": ("nova.servers", "cinder"),
}
_ADDRESSED: Mapping[str, Any] = {
    "takes": Servers.boot,
    "services": ("nova", "neutron"),
    "cleanup": ("nova.servers", "neutron.floating_ips"),
}
#: The first microversion in which servers have descriptions.
_DESCRIBED = "2.19"


class NovaServers(ServerChanges, Volumes):
    """Rally's `NovaServers` scenarios: boot, list, change, move and delete servers.

    `image` and `flavor` are `{id: ...}` or `{name: ...}`, a name or a regular expression that
    matches one. `nics` is `none`, `auto` or a list of `{net-id: ...}`; further arguments are
    novaclient's for new servers. `auto_assign_nic` needs `nics`, or networks of a context.
    """

    @classmethod
    def check_arguments(cls, method: str, args: Mapping[str, Any]) -> list[str]:
        """Return a message for each problem of the arguments; else an empty list.

        Checks `retries`, and the `actions` of `boot_and_bounce_server`.
        """
        found = super().check_arguments(method, args)
        if method == "boot_and_bounce_server" and args.get("actions"):
            said = bounce_problem(args["actions"])
            found += [f"actions: {said}"] if said else []
        return found

    @classmethod
    def prepare(cls, context: dict[str, Any], cloud: Cloud) -> None:
        """Check the arguments before the load; look up images and flavors.

        For floating IPs also the external network. Stores ids in `context`. Raises DeploymentError
        if an argument is wrong or an object does not exist.
        """
        super().prepare(context, cloud)
        args = context["args"]
        if "floating_network" in cls.method(context).__annotations__:
            older = args.get("create_floating_ip_args") or {}
            given = args.get("floating_network") or older.get("ext_network")
            given = given or older.get("floating_network")
            context["floating_network"] = neutron.floating_network(cloud, given)

    @openstack("NovaServers.boot_server", **_BOOTED)
    @waits("nova_server_boot")
    def boot_server(self, **server_kwargs: Any) -> None:
        """Boot a server and wait until it is active."""
        self.boot(**server_kwargs)

    @openstack("NovaServers.boot_and_list_server", **_BOOTED)
    @waits("nova_server_boot")
    def boot_and_list_server(self, detailed: bool = True, **server_kwargs: Any) -> None:
        """Boot a server, list all servers, and check that it is among them."""
        server = self.boot(**server_kwargs)
        found = {one["id"] for one in self.list_all(detailed)}
        self.checked(server in found, "the server that was booted is not in the list")

    @openstack("NovaServers.list_servers", services=("nova",))
    def list_servers(self, detailed: bool = True) -> None:
        """List all servers of the user's project, with all fields if `detailed`."""
        self.list_all(detailed)

    @openstack("NovaServers.boot_and_show_server", **_BOOTED)
    @waits("nova_server_boot")
    def boot_and_show_server(self, **server_kwargs: Any) -> None:
        """Boot a server, wait until it is active, and get it."""
        server = self.boot(**server_kwargs)
        with ActionTimer(self, "nova.show_server"):
            self.show(SERVER, server)

    @openstack("NovaServers.boot_and_update_server", **_BOOTED)
    @waits("nova_server_boot")
    def boot_and_update_server(self, description: str | None = None, **server_kwargs: Any) -> None:
        """Boot a server; change its name, and its description if `description` is given."""
        server = self.boot(**server_kwargs)
        wanted = {"name": self.new_name(), "description": description or None}
        with ActionTimer(self, "nova.update_server"):
            self.cloud.document(
                "PUT",
                "nova",
                f"servers/{server}",
                json={"server": without_none(wanted)},
                microversion=_DESCRIBED if description else "",
            )

    @openstack("NovaServers.boot_and_get_console_output", **_BOOTED)
    @waits("nova_server_boot")
    def boot_and_get_console_output(self, length: int | None = None, **server_kwargs: Any) -> None:
        """Boot a server and get the last `length` lines of its console; all if null."""
        server = self.boot(**server_kwargs)
        with ActionTimer(self, "nova.get_console_output_server"):
            self.send_action(SERVER, server, {"os-getConsoleOutput": {"length": length}})

    # servers that are deleted

    @openstack("NovaServers.boot_and_delete_server", **_BOOTED)
    @waits("nova_server_boot", "nova_server_delete")
    def boot_and_delete_server(
        self,
        min_sleep: float = 0,
        max_sleep: float = 0,
        force_delete: bool = False,
        **server_kwargs: Any,
    ) -> None:
        """Boot a server, pause from `min_sleep` to `max_sleep` seconds, and delete it."""
        server = self.boot(**server_kwargs)
        self.sleep_between(min_sleep, max_sleep)
        self.delete_server(server, force_delete)

    @openstack("NovaServers.boot_and_delete_multiple_servers", **_SCENARIO)
    @waits("nova_server_boot", "nova_server_delete")
    def boot_and_delete_multiple_servers(
        self,
        image: dict[str, Any],
        flavor: dict[str, Any],
        count: int = 2,
        min_sleep: float = 0,
        max_sleep: float = 0,
        force_delete: bool = False,
        **server_kwargs: Any,
    ) -> None:
        """Boot `count` servers by one request, pause, and delete them."""
        servers = self.boot_together(self.context["image"], count, server_kwargs)
        self.sleep_between(min_sleep, max_sleep)
        self.delete_servers(servers, force_delete)

    # servers from volumes

    @openstack("NovaServers.boot_server_from_volume", **_FROM_VOLUME)
    @waits("cinder_volume_create", "nova_server_boot")
    def boot_server_from_volume(
        self,
        image: dict[str, Any],
        flavor: dict[str, Any],
        volume_size: Any,
        volume_type: str | None = None,
        auto_assign_nic: bool = False,
        create_volume_kwargs: dict[str, Any] | None = None,
        boot_server_kwargs: dict[str, Any] | None = None,
        **server_kwargs: Any,
    ) -> None:
        """Create a volume from an image, and boot a server from the volume."""
        wanted = {**(boot_server_kwargs or server_kwargs), "auto_assign_nic": auto_assign_nic}
        self._boot_from_volume(volume_size, volume_type, create_volume_kwargs, wanted)

    @openstack("NovaServers.boot_server_from_volume_and_delete", **_FROM_VOLUME)
    @waits("cinder_volume_create", "nova_server_boot", "nova_server_delete")
    def boot_server_from_volume_and_delete(  # noqa: PLR0913 - they are Rally's
        self,
        image: dict[str, Any],
        flavor: dict[str, Any],
        volume_size: Any,
        volume_type: str | None = None,
        min_sleep: float = 0,
        max_sleep: float = 0,
        force_delete: bool = False,
        create_volume_kwargs: dict[str, Any] | None = None,
        boot_server_kwargs: dict[str, Any] | None = None,
        **server_kwargs: Any,
    ) -> None:
        """Create a volume from an image, boot a server from it, pause, and delete the server."""
        server = self._boot_from_volume(
            volume_size, volume_type, create_volume_kwargs, boot_server_kwargs or server_kwargs
        )
        self.sleep_between(min_sleep, max_sleep)
        self.delete_server(server, force_delete)

    def _boot_from_volume(
        self,
        size: Any,
        volume_type: str | None,
        volume_kwargs: Mapping[str, Any] | None,
        server_kwargs: Mapping[str, Any],
    ) -> str:
        image = self.context["image"]
        wanted = {"imageRef": image, "volume_type": volume_type, **(volume_kwargs or {})}
        disk = {
            "uuid": self.create_one(size, wanted)["id"],
            "source_type": "volume",
            "destination_type": "volume",
            "boot_index": 0,
            "delete_on_termination": False,
        }
        others = server_kwargs.get("block_device_mapping_v2") or ()
        return self.booted("", {**server_kwargs, "block_device_mapping_v2": [disk, *others]})

    # states

    @openstack("NovaServers.boot_and_bounce_server", **_BOOTED)
    @waits("nova_server_boot", "nova_server_delete", *BOUNCE_WAITS)
    def boot_and_bounce_server(
        self,
        force_delete: bool = False,
        actions: list[dict[str, int]] | None = None,
        **server_kwargs: Any,
    ) -> None:
        """Boot a server, do `actions` (`[{hard_reboot: 1}, {stop_start: 2}]`), and delete it.

        Each action is done as often as its number says.
        """
        server = self.boot(**server_kwargs)
        for one in actions or ():
            for name, times in one.items():
                for _ in range(times):
                    self.bounce(name, server)
        self.delete_server(server, force_delete)

    @openstack("NovaServers.boot_lock_unlock_and_delete", **_BOOTED)
    @waits("nova_server_boot", "nova_server_delete")
    def boot_lock_unlock_and_delete(
        self,
        min_sleep: float = 0,
        max_sleep: float = 0,
        force_delete: bool = False,
        **server_kwargs: Any,
    ) -> None:
        """Boot a server, lock it, pause, unlock and delete it."""
        server = self.boot(**server_kwargs)
        self.change("lock_server", server)
        self.sleep_between(min_sleep, max_sleep)
        self.change("unlock_server", server)
        self.delete_server(server, force_delete)

    @openstack("NovaServers.pause_and_unpause_server", **_BOOTED)
    @waits("nova_server_boot", "nova_server_pause", "nova_server_unpause", "nova_server_delete")
    def pause_and_unpause_server(self, force_delete: bool = False, **server_kwargs: Any) -> None:
        """Boot a server, pause and unpause it, and delete it."""
        self._boot_and_change(("pause_server", "unpause_server"), force_delete, server_kwargs)

    @openstack("NovaServers.suspend_and_resume_server", **_BOOTED)
    @waits("nova_server_boot", "nova_server_suspend", "nova_server_resume", "nova_server_delete")
    def suspend_and_resume_server(self, force_delete: bool = False, **server_kwargs: Any) -> None:
        """Boot a server, suspend and resume it, and delete it."""
        self._boot_and_change(("suspend_server", "resume_server"), force_delete, server_kwargs)

    @openstack("NovaServers.shelve_and_unshelve_server", **_BOOTED)
    @waits("nova_server_boot", "nova_server_shelve", "nova_server_unshelve", "nova_server_delete")
    def shelve_and_unshelve_server(self, force_delete: bool = False, **server_kwargs: Any) -> None:
        """Boot a server, shelve and unshelve it, and delete it."""
        self._boot_and_change(("shelve_server", "unshelve_server"), force_delete, server_kwargs)

    def _boot_and_change(
        self, changes: tuple[str, ...], force_delete: bool, server_kwargs: Mapping[str, Any]
    ) -> None:
        server = self.boot(**server_kwargs)
        for change in changes:
            self.change(change, server)
        self.delete_server(server, force_delete)

    # images, sizes and hosts

    @openstack("NovaServers.snapshot_server", takes=Servers.boot, **_IMAGED)
    @waits(
        "nova_server_boot",
        "nova_server_image_create",
        "nova_server_delete",
        "nova_server_image_delete",
    )
    def snapshot_server(self, force_delete: bool = False, **server_kwargs: Any) -> None:
        """Boot a server, make an image of it, delete it, and boot another server from the image.

        Then the second server and the image are deleted.
        """
        server = self.boot(**server_kwargs)
        image = self.snapshot(server)
        self.delete_server(server, force_delete)
        wanted = {key: one for key, one in server_kwargs.items() if key not in ("image", "flavor")}
        server = self.booted(image, wanted)
        self.delete_server(server, force_delete)
        self.delete_snapshot_image(image)

    @openstack("NovaServers.boot_and_rebuild_server", **_SCENARIO)
    @waits("nova_server_boot", "nova_server_rebuild", "nova_server_delete")
    def boot_and_rebuild_server(
        self,
        from_image: dict[str, Any],
        to_image: dict[str, Any],
        flavor: dict[str, Any],
        **server_kwargs: Any,
    ) -> None:
        """Boot a server from an image, rebuild it from another, and delete it."""
        server = self.booted(self.context["from_image"], server_kwargs)
        wanted = {"rebuild": {"imageRef": self.context["to_image"]}}
        self.change_server("rebuild_server", server, wanted, "ACTIVE", wait="nova_server_rebuild")
        self.delete_server(server)

    @openstack("NovaServers.resize_server", **_BOOTED)
    @waits(
        "nova_server_boot",
        "nova_server_resize",
        "nova_server_resize_confirm",
        "nova_server_delete",
        "nova_server_resize_revert",
    )
    def resize_server(
        self,
        to_flavor: dict[str, Any],
        confirm: bool = True,
        force_delete: bool = False,
        **server_kwargs: Any,
    ) -> None:
        """Boot a server, resize it to `to_flavor`, confirm or revert that, and delete it."""
        server = self.boot(**server_kwargs)
        wanted = {"resize": {"flavorRef": self.context["to_flavor"]}}
        self.change_server("resize", server, wanted, "VERIFY_RESIZE", wait="nova_server_resize")
        self.confirm(server, confirm)
        self.delete_server(server, force_delete)

    @openstack("NovaServers.boot_and_migrate_server", **_MOVED)
    @waits(
        "nova_server_boot",
        "nova_server_migrate",
        "nova_server_resize_confirm",
        "nova_server_delete",
        "nova_server_resize_revert",
    )
    def boot_and_migrate_server(self, confirm: bool = True, **server_kwargs: Any) -> None:
        """Boot a server, migrate it, confirm or revert that, and delete it."""
        server = self.boot(**server_kwargs)
        self.migrate(server)
        self.confirm(server, confirm)
        self.delete_server(server)

    @openstack("NovaServers.boot_and_live_migrate_server", **_MOVED)
    @waits("nova_server_boot", "nova_server_live_migrate", "nova_server_delete")
    def boot_and_live_migrate_server(
        self,
        block_migration: bool = False,
        disk_over_commit: bool = False,
        min_sleep: float = 0,
        max_sleep: float = 0,
        **server_kwargs: Any,
    ) -> None:
        """Boot a server, pause, migrate it to another host while it runs, and delete it."""
        server = self.boot(**server_kwargs)
        self.sleep_between(min_sleep, max_sleep)
        self.live_migrate(server, block_migration, disk_over_commit)
        self.delete_server(server)

    # addresses

    @openstack("NovaServers.boot_and_associate_floating_ip", **_ADDRESSED)
    @waits("nova_server_boot", "nova_floating_ip")
    def boot_and_associate_floating_ip(
        self,
        floating_network: str | None = None,
        create_floating_ip_args: dict[str, Any] | None = None,
        **server_kwargs: Any,
    ) -> None:
        """Boot a server, create a floating IP, and associate it with the server."""
        server = self.boot(**server_kwargs)
        self.associate(server, self.create_floating_ip(self.context["floating_network"]))

    @openstack("NovaServers.boot_server_associate_and_dissociate_floating_ip", **_ADDRESSED)
    @waits("nova_server_boot", "nova_floating_ip")
    def boot_server_associate_and_dissociate_floating_ip(
        self,
        floating_network: str | None = None,
        create_floating_ip_args: dict[str, Any] | None = None,
        **server_kwargs: Any,
    ) -> None:
        """Boot a server, create a floating IP, associate it with the server and dissociate it."""
        server = self.boot(**server_kwargs)
        floating_ip = self.create_floating_ip(self.context["floating_network"])
        self.associate(server, floating_ip)
        self.dissociate(server, floating_ip)
