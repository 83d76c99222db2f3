"""Scenarios of Nova's servers: they boot, list, change, move and delete servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from osbench.common.errors import DeploymentError
from osbench.common.plugin.atomic import ActionTimer
from osbench.edges.openstack.common import neutron
from osbench.edges.openstack.common.cloud import Cloud
from osbench.edges.openstack.scenarios.attached_volumes import ATTACH, DETACH, AttachedVolumes
from osbench.edges.openstack.scenarios.network_maker import NetworkMaker
from osbench.edges.openstack.scenarios.openstack_scenario import (
    count_problems,
    openstack,
    waits,
    without_none,
)
from osbench.edges.openstack.scenarios.server_changes import (
    BOUNCE_WAITS,
    ServerChanges,
    bounce_problem,
)
from osbench.edges.openstack.scenarios.servers import SERVER, Servers

_SCENARIO: Mapping[str, Any] = {"services": ("nova",), "cleanup": ("nova.servers",)}
_BOOTED: Mapping[str, Any] = {**_SCENARIO, "takes": Servers.boot}
_MOVED: Mapping[str, Any] = {**_BOOTED, "admin": True}
_IMAGED: Mapping[str, Any] = {
    "services": ("nova", "glance"),
    "cleanup": ("nova.servers", "glance"),
}
_ADDRESSED: Mapping[str, Any] = {
    "takes": Servers.boot,
    "services": ("nova", "neutron"),
    "cleanup": ("nova.servers", "neutron.floating_ips"),
}
_FROM_VOLUME: Mapping[str, Any] = {
    "services": ("nova", "cinder"),
    # an attached volume cannot be deleted
    "cleanup": ("nova.servers", "cinder"),
}
_VOLUME_MOVED: Mapping[str, Any] = {**_FROM_VOLUME, "admin": True}
_CONNECTED: Mapping[str, Any] = {
    "services": ("nova", "neutron"),
    "cleanup": ("nova.servers", "neutron"),
}
_RESIZED = ("nova_server_resize", "nova_server_resize_confirm", "nova_server_resize_revert")
#: The first microversion in which servers have descriptions, and that in which consoles have a
#: list.
_DESCRIBED = "2.19"
_CONSOLES = (2, 6)
#: The first microversion with consoles of the type webmks.
_MKS = "2.8"
#: Consoles by their protocol; before `_CONSOLES` the names of the actions that get their URL.
_PROTOCOLS: Mapping[str, tuple[str, str]] = {
    "novnc": ("vnc", "os-getVNCConsole"),
    "xvpvnc": ("vnc", "os-getVNCConsole"),
    "spice-html5": ("spice", "os-getSPICEConsole"),
    "rdp-html5": ("rdp", "os-getRDPConsole"),
    "serial": ("serial", "os-getSerialConsole"),
    "webmks": ("mks", ""),
}


class NovaServers(AttachedVolumes, ServerChanges, NetworkMaker):
    """Rally's `NovaServers` scenarios: boot, list, change, move and delete servers.

    `image` and `flavor` are `{id: ...}` or `{name: ...}`, a name or a regular expression that
    matches one. `nics` is `none`, `auto` or a list of `{net-id: ...}`; further arguments are
    novaclient's for new servers. `auto_assign_nic` needs `nics`, or networks of a context.
    """

    @classmethod
    def check_arguments(cls, method: str, args: Mapping[str, Any]) -> list[str]:
        """Return a message for each problem of the arguments; else an empty list.

        Checks also the `actions` of `boot_and_bounce_server`, and `console_type`.
        """
        found = super().check_arguments(method, args)
        found += count_problems(args, "volume_num")
        console = args.get("console_type")
        if console is not None and console not in _PROTOCOLS:
            found.append(f"console_type must be one of {', '.join(_PROTOCOLS)}, got {console!r}")
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
        if args.get("console_type") == "webmks" and (2, 0) < cloud.microversion_of("nova") < (2, 8):
            raise DeploymentError(
                f"console_type webmks needs the microversion {_MKS} of Nova or a later one; give "
                "that in the context api_versions"
            )

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

    @openstack("NovaServers.boot_server_from_volume_snapshot", **_FROM_VOLUME)
    @waits("cinder_volume_create", "nova_server_boot")
    def boot_server_from_volume_snapshot(
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
        """Create a volume from an image, a snapshot of it, and boot a server from the snapshot."""
        volume = self._from_image(volume_size, volume_type, create_volume_kwargs)
        wanted = {**(boot_server_kwargs or server_kwargs), "auto_assign_nic": auto_assign_nic}
        disk = {"uuid": self.create_snapshot(volume), "source_type": "snapshot"}
        # the volume that Nova makes of it goes with the server
        self._boot_from_disk({**disk, "delete_on_termination": True}, wanted)

    @openstack("NovaServers.boot_server_from_volume_and_resize", **_FROM_VOLUME)
    @waits("cinder_volume_create", "nova_server_boot", *_RESIZED, "nova_server_delete")
    def boot_server_from_volume_and_resize(  # noqa: PLR0913 - they are Rally's
        self,
        image: dict[str, Any],
        flavor: dict[str, Any],
        to_flavor: dict[str, Any],
        volume_size: Any,
        min_sleep: float = 0,
        max_sleep: float = 0,
        force_delete: bool = False,
        confirm: bool = True,
        do_delete: bool = True,
        boot_server_kwargs: dict[str, Any] | None = None,
        create_volume_kwargs: dict[str, Any] | None = None,
    ) -> None:
        """Boot a server from a new volume, pause, resize it, confirm or revert, and delete it."""
        server = self._boot_from_volume(
            volume_size, None, create_volume_kwargs, boot_server_kwargs or {}
        )
        self.sleep_between(min_sleep, max_sleep)
        self.resize(server)
        self.confirm(server, confirm)
        if do_delete:
            self.delete_server(server, force_delete)

    @openstack("NovaServers.boot_server_from_volume_and_live_migrate", **_VOLUME_MOVED)
    @waits(
        "cinder_volume_create", "nova_server_boot", "nova_server_live_migrate", "nova_server_delete"
    )
    def boot_server_from_volume_and_live_migrate(  # noqa: PLR0913 - they are Rally's
        self,
        image: dict[str, Any],
        flavor: dict[str, Any],
        volume_size: Any,
        volume_type: str | None = None,
        block_migration: bool = False,
        disk_over_commit: bool = False,
        force_delete: bool = False,
        min_sleep: float = 0,
        max_sleep: float = 0,
        create_volume_kwargs: dict[str, Any] | None = None,
        boot_server_kwargs: dict[str, Any] | None = None,
        **server_kwargs: Any,
    ) -> None:
        """Boot a server from a new volume, pause, migrate it while it runs, and delete it."""
        server = self._boot_from_volume(
            volume_size, volume_type, create_volume_kwargs, boot_server_kwargs or server_kwargs
        )
        self.sleep_between(min_sleep, max_sleep)
        self.live_migrate(server, block_migration, disk_over_commit)
        self.delete_server(server, force_delete)

    # servers with an attached volume

    @openstack("NovaServers.boot_server_attach_created_volume_and_resize", **_FROM_VOLUME)
    @waits(
        *("nova_server_boot", "cinder_volume_create", ATTACH, *_RESIZED[:2]),
        *(DETACH, "cinder_volume_delete", "nova_server_delete"),
    )
    def boot_server_attach_created_volume_and_resize(  # noqa: PLR0913 - they are Rally's
        self,
        image: dict[str, Any],
        flavor: dict[str, Any],
        to_flavor: dict[str, Any],
        volume_size: Any,
        min_sleep: float = 0,
        max_sleep: float = 0,
        force_delete: bool = False,
        confirm: bool = True,
        do_delete: bool = True,
        boot_server_kwargs: dict[str, Any] | None = None,
        create_volume_kwargs: dict[str, Any] | None = None,
    ) -> None:
        """Boot a server, attach a new volume, pause, resize the server; delete both."""
        server, volume = self._with_volume(volume_size, boot_server_kwargs, create_volume_kwargs)
        self.sleep_between(min_sleep, max_sleep)
        self.resize(server)
        self.confirm(server, confirm)
        if do_delete:
            self._delete_both(server, volume, force_delete)

    @openstack("NovaServers.boot_server_attach_created_volume_and_extend", **_FROM_VOLUME)
    @waits(
        *("nova_server_boot", "cinder_volume_create", ATTACH),
        *(DETACH, "cinder_volume_delete", "nova_server_delete"),
    )
    def boot_server_attach_created_volume_and_extend(  # noqa: PLR0913 - they are Rally's
        self,
        image: dict[str, Any],
        flavor: dict[str, Any],
        volume_size: Any,
        new_volume_size: Any,
        min_sleep: float = 0,
        max_sleep: float = 0,
        force_delete: bool = False,
        do_delete: bool = True,
        boot_server_kwargs: dict[str, Any] | None = None,
        create_volume_kwargs: dict[str, Any] | None = None,
    ) -> None:
        """Boot a server, attach a new volume, pause, extend the volume; delete both."""
        server, volume = self._with_volume(volume_size, boot_server_kwargs, create_volume_kwargs)
        self.sleep_between(min_sleep, max_sleep)
        self.extend(volume, new_volume_size)
        if do_delete:
            self._delete_both(server, volume, force_delete)

    @openstack("NovaServers.boot_server_attach_created_volume_and_live_migrate", **_VOLUME_MOVED)
    @waits(
        *("nova_server_boot", "cinder_volume_create", ATTACH, "nova_server_live_migrate"),
        *(DETACH, "cinder_volume_delete", "nova_server_delete"),
    )
    def boot_server_attach_created_volume_and_live_migrate(  # noqa: PLR0913 - they are Rally's
        self,
        image: dict[str, Any],
        flavor: dict[str, Any],
        size: Any,
        block_migration: bool = False,
        disk_over_commit: bool = False,
        boot_server_kwargs: dict[str, Any] | None = None,
        create_volume_kwargs: dict[str, Any] | None = None,
        min_sleep: float = 0,
        max_sleep: float = 0,
    ) -> None:
        """Boot a server, attach a new volume, pause, migrate the server; delete both."""
        server, volume = self._with_volume(size, boot_server_kwargs, create_volume_kwargs)
        self.sleep_between(min_sleep, max_sleep)
        self.live_migrate(server, block_migration, disk_over_commit)
        self._delete_both(server, volume)

    @openstack("NovaServers.boot_server_attach_volume_and_list_attachments", **_FROM_VOLUME)
    @waits("nova_server_boot", "cinder_volume_create", ATTACH)
    def boot_server_attach_volume_and_list_attachments(
        self,
        image: dict[str, Any],
        flavor: dict[str, Any],
        volume_size: Any = 1,
        volume_num: int = 2,
        boot_server_kwargs: dict[str, Any] | None = None,
        create_volume_kwargs: dict[str, Any] | None = None,
    ) -> None:
        """Boot a server, attach `volume_num` new volumes, and check that the server has them."""
        server = self.booted(self.context["image"], boot_server_kwargs or {})
        volumes = set()
        for _ in range(volume_num):
            volume = self.create_one(volume_size, create_volume_kwargs)["id"]
            self.attach(server, volume)
            volumes.add(volume)
        missing = volumes - self.attached_to(server)
        self.checked(not missing, f"the server has no volume {', '.join(sorted(missing))}")

    def _with_volume(
        self,
        size: Any,
        server_kwargs: Mapping[str, Any] | None,
        volume_kwargs: Mapping[str, Any] | None,
    ) -> tuple[str, str]:
        """Boot a server and attach a new volume to it; return the ids of both."""
        server = self.booted(self.context["image"], server_kwargs or {})
        volume = self.create_one(size, volume_kwargs)["id"]
        self.attach(server, volume)
        return server, volume

    def _delete_both(self, server: str, volume: str, force: bool = False) -> None:
        self.detach(server, volume)
        self.delete_one(volume)
        self.delete_server(server, force)

    def _from_image(
        self, size: Any, volume_type: str | None, volume_kwargs: Mapping[str, Any] | None
    ) -> str:
        """Create a volume from the task's image; return its id."""
        image = self.context["image"]
        wanted = {"imageRef": image, "volume_type": volume_type, **(volume_kwargs or {})}
        return str(self.create_one(size, wanted)["id"])

    def _boot_from_volume(
        self,
        size: Any,
        volume_type: str | None,
        volume_kwargs: Mapping[str, Any] | None,
        server_kwargs: Mapping[str, Any],
    ) -> str:
        volume = self._from_image(size, volume_type, volume_kwargs)
        disk = {"uuid": volume, "source_type": "volume", "delete_on_termination": False}
        return self._boot_from_disk(disk, server_kwargs)

    def _boot_from_disk(self, disk: Mapping[str, Any], server_kwargs: Mapping[str, Any]) -> str:
        """Boot a server from a block device; it is the first of its devices. Returns its id."""
        first = {**disk, "destination_type": "volume", "boot_index": 0}
        others = server_kwargs.get("block_device_mapping_v2") or ()
        return self.booted("", {**server_kwargs, "block_device_mapping_v2": [first, *others]})

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
        self.resize(server)
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

    @openstack("NovaServers.resize_shutoff_server", **_BOOTED)
    @waits(
        "nova_server_boot",
        "nova_server_stop",
        "nova_server_resize",
        "nova_server_resize_confirm",
        "nova_server_resize_revert",
        "nova_server_delete",
    )
    def resize_shutoff_server(
        self,
        to_flavor: dict[str, Any],
        confirm: bool = True,
        force_delete: bool = False,
        **server_kwargs: Any,
    ) -> None:
        """Boot a server, stop it, resize it, confirm or revert that, and delete it."""
        server = self.boot(**server_kwargs)
        self.change("stop_server", server)
        self.resize(server)
        self.confirm(server, confirm, "SHUTOFF")
        self.delete_server(server, force_delete)

    # consoles and interfaces

    @openstack("NovaServers.boot_and_get_console_url", **_BOOTED)
    @waits("nova_server_boot")
    def boot_and_get_console_url(self, console_type: str, **server_kwargs: Any) -> None:
        """Boot a server and get the URL of its console, such as `novnc`, as `console_type` says."""
        server = self.boot(**server_kwargs)
        protocol, action = _PROTOCOLS[console_type]
        with ActionTimer(self, "nova.get_console_url_server"):
            if action and self.cloud.microversion_of("nova") < _CONSOLES:
                self.send_action(SERVER, server, {action: {"type": console_type}})
                return
            body = {"remote_console": {"protocol": protocol, "type": console_type}}
            path = f"{SERVER.path}/{server}/remote-consoles"
            self.cloud.document("POST", "nova", path, json=body, microversion=_MKS)

    @openstack("NovaServers.boot_server_and_list_interfaces", requires=("network",), **_BOOTED)
    @waits("nova_server_boot")
    def boot_server_and_list_interfaces(self, **server_kwargs: Any) -> None:
        """Boot a server and list its interfaces."""
        server = self.boot(**server_kwargs)
        with ActionTimer(self, "nova.list_interfaces"):
            self.cloud.document("GET", "nova", f"{SERVER.path}/{server}/os-interface")

    @openstack("NovaServers.boot_server_and_attach_interface", **_CONNECTED)
    @waits("nova_server_boot")
    def boot_server_and_attach_interface(
        self,
        image: dict[str, Any],
        flavor: dict[str, Any],
        network_create_args: dict[str, Any] | None = None,
        subnet_create_args: dict[str, Any] | None = None,
        subnet_cidr_start: str | None = None,
        boot_server_args: dict[str, Any] | None = None,
    ) -> None:
        """Create a subnet, boot a server, and attach an interface in the subnet's network.

        The network is from the context `network` or `existing_network`, else new.
        """
        network = self.own_network(network_create_args)
        self.create_subnet(network, 0, 1, subnet_create_args, subnet_cidr_start)
        server = self.booted(self.context["image"], boot_server_args or {})
        with ActionTimer(self, "nova.attach_interface"):
            body = {"interfaceAttachment": {"net_id": network}}
            path = f"{SERVER.path}/{server}/os-interface"
            self.cloud.document("POST", "nova", path, json=body)

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
