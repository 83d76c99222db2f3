"""Scenarios of Cinder's volumes: they create, list, attach, snapshot and delete volumes."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from osbench.common.errors import DeploymentError
from osbench.common.plugin.atomic import ActionTimer, action_timer
from osbench.edges.openstack.common.cloud import Cloud
from osbench.edges.openstack.scenarios.attached_volumes import ATTACH, DETACH, AttachedVolumes
from osbench.edges.openstack.scenarios.image_scenario import ImageScenario
from osbench.edges.openstack.scenarios.openstack_scenario import (
    ACCEPTED,
    count_problems,
    openstack,
    waits,
    without_none,
)
from osbench.edges.openstack.scenarios.resource_scenario import ResourceKind
from osbench.edges.openstack.scenarios.volumes import (
    BACKUP,
    CREATE,
    DELETE,
    SNAPSHOT,
    VOLUME,
    Volumes,
    drawn_size,
)

_SCENARIO: Mapping[str, Any] = {"services": ("cinder",), "cleanup": ("cinder",)}
_OF_PROJECT: Mapping[str, Any] = {**_SCENARIO, "requires": ("volumes",)}
_WITH_SERVERS: Mapping[str, Any] = {
    "services": ("cinder", "nova"),
    # an attached volume cannot be deleted
    "cleanup": ("nova.servers", "cinder"),
}
_TRANSFER = ResourceKind(service="cinder", path="os-volume-transfer", key="transfer")
_UPDATES = ("update_name", "description")
#: Sizes in GB of a volume that the task gives no size.
_SIZES: Mapping[str, int] = {"min": 1, "max": 5}


class CinderVolumes(AttachedVolumes, ImageScenario):
    """Rally's `CinderVolumes` scenarios: create, list, change, attach, snapshot, delete volumes.

    `size` is in GB, or `{min, max}` for a random size. Pauses are random, from `min_sleep` to
    `max_sleep` seconds.
    """

    @classmethod
    def check_arguments(cls, method: str, args: Mapping[str, Any]) -> list[str]:
        """Return messages of the base class, and on wrong counts of metadata and snapshots."""
        found = super().check_arguments(method, args)
        counts = ("sets", "set_size", "deletes", "delete_size")
        found += count_problems(args, *counts, least=0) + count_problems(args, "nested_level")
        if method == "modify_volume_metadata" and not found:
            found += _metadata_problem(args)
        return found

    @classmethod
    def prepare(cls, context: dict[str, Any], cloud: Cloud) -> None:
        """Check the arguments before the load; look up image, flavor and volume type by `cloud`.

        Stores the ids of image and flavor in `context`. Raises DeploymentError if an argument is
        not supported or an object does not exist.
        """
        super().prepare(context, cloud)
        args = context["args"]
        if "update_volume_kwargs" not in cls.method(context).__annotations__:
            return
        changes = args.get("update_volume_kwargs") or {}
        if not any(changes.get(name) for name in _UPDATES) or changes.keys() - set(_UPDATES):
            raise DeploymentError(
                f"update_volume_kwargs must have only {' or '.join(_UPDATES)}; got "
                f"{', '.join(sorted(changes)) or 'nothing'}"
            )

    # the arguments of scenarios that create a volume

    def _create(
        self, size: Any, image: dict[str, Any] | None = None, **volume_kwargs: Any
    ) -> dict[str, Any]:
        return self.create_one(size, self._from_image(volume_kwargs))

    # scenarios

    @openstack("CinderVolumes.create_volume", takes=_create, **_SCENARIO)
    @waits("cinder_volume_create")
    def create_volume(self, **volume_kwargs: Any) -> None:
        """Create a volume and wait until it is available."""
        self._create(**volume_kwargs)

    @openstack("CinderVolumes.create_and_delete_volume", takes=_create, **_SCENARIO)
    @waits("cinder_volume_create", "cinder_volume_delete")
    def create_and_delete_volume(
        self, min_sleep: float = 0, max_sleep: float = 0, **volume_kwargs: Any
    ) -> None:
        """Create a volume, pause, delete it, and wait until it is gone."""
        volume = self._create(**volume_kwargs)
        self.sleep_between(min_sleep, max_sleep)
        self.delete_one(volume["id"])

    @openstack("CinderVolumes.create_and_get_volume", takes=_create, **_SCENARIO)
    @waits("cinder_volume_create")
    def create_and_get_volume(self, **volume_kwargs: Any) -> None:
        """Create a volume, wait until it is available, and get it."""
        volume = self._create(**volume_kwargs)
        with ActionTimer(self, "cinder_v3.get_volume"):
            self.show(VOLUME, volume["id"])

    @openstack("CinderVolumes.create_and_list_volume", takes=_create, **_SCENARIO)
    @waits("cinder_volume_create")
    def create_and_list_volume(self, detailed: bool = True, **volume_kwargs: Any) -> None:
        """Create a volume, list all volumes, and check that it is among them."""
        volume = self._create(**volume_kwargs)
        found = {one["id"] for one in self._list(detailed, {})}
        self.checked(volume["id"] in found, "the volume that was created is not in the list")

    @openstack("CinderVolumes.list_volumes", services=("cinder",))
    def list_volumes(
        self,
        detailed: bool = True,
        search_opts: dict[str, Any] | None = None,
        marker: str | None = None,
        limit: int | None = None,
        sort: str | None = None,
    ) -> None:
        """List volumes, with all fields if `detailed`: all, page by page, or a page of `limit`."""
        asked = {**(search_opts or {}), "marker": marker, "limit": limit, "sort": sort}
        self._list(detailed, {key: value for key, value in asked.items() if value is not None})

    @openstack("CinderVolumes.create_and_update_volume", **_SCENARIO)
    @waits("cinder_volume_create")
    def create_and_update_volume(
        self,
        size: Any,
        image: dict[str, Any] | None = None,
        create_volume_kwargs: dict[str, Any] | None = None,
        update_volume_kwargs: dict[str, Any] | None = None,
    ) -> None:
        """Create a volume and change its name (`update_name: true`), its `description`, or both."""
        volume = self.create_one(size, self._from_image(create_volume_kwargs or {}))
        changes = dict(update_volume_kwargs or {})
        if changes.pop("update_name", False):
            changes["name"] = self.new_name()
        with ActionTimer(self, "cinder_v3.update_volume"):
            self.cloud.document(
                "PUT", "cinder", f"volumes/{volume['id']}", json={"volume": changes}
            )

    @openstack("CinderVolumes.create_and_extend_volume", **_SCENARIO)
    @waits("cinder_volume_create", "cinder_volume_delete")
    def create_and_extend_volume(
        self,
        size: Any,
        new_size: Any,
        min_sleep: float = 0,
        max_sleep: float = 0,
        **volume_kwargs: Any,
    ) -> None:
        """Create a volume, extend it to `new_size` (GB, as `size`), pause, and delete it."""
        volume = self.create_one(size, volume_kwargs)["id"]
        self.extend(volume, new_size)
        self.sleep_between(min_sleep, max_sleep)
        self.delete_one(volume)

    @openstack("CinderVolumes.create_from_volume_and_delete_volume", **_OF_PROJECT)
    @waits("cinder_volume_create", "cinder_volume_delete")
    def create_from_volume_and_delete_volume(
        self, size: Any, min_sleep: float = 0, max_sleep: float = 0, **volume_kwargs: Any
    ) -> None:
        """Create a volume from a volume of the context `volumes`, pause, delete the new volume."""
        source = self.project_volume()["id"]
        volume = self.create_one(size, {**volume_kwargs, "source_volid": source})
        self.sleep_between(min_sleep, max_sleep)
        self.delete_one(volume["id"])

    @openstack("CinderVolumes.create_volume_and_clone", takes=_create, **_SCENARIO)
    @waits("cinder_volume_create")
    def create_volume_and_clone(self, nested_level: int = 1, **volume_kwargs: Any) -> None:
        """Create a volume, then `nested_level` clones, each of the volume created before it."""
        volume = self._create(**volume_kwargs)
        wanted = {key: one for key, one in volume_kwargs.items() if key not in ("size", "image")}
        for _ in range(nested_level):
            with ActionTimer(self, "cinder.clone_volume"):
                volume = self.create_one(volume["size"], {**wanted, "source_volid": volume["id"]})

    @openstack("CinderVolumes.create_and_delete_snapshot", **_OF_PROJECT)
    @waits("cinder_volume_create", "cinder_volume_delete")
    def create_and_delete_snapshot(
        self,
        force: bool = False,
        min_sleep: float = 0,
        max_sleep: float = 0,
        **snapshot_kwargs: Any,
    ) -> None:
        """Create a snapshot of a volume of the context `volumes`, pause, delete the snapshot."""
        snapshot = self.create_snapshot(self.project_volume()["id"], force, snapshot_kwargs)
        self.sleep_between(min_sleep, max_sleep)
        self.delete_snapshot(snapshot)

    @openstack("CinderVolumes.create_and_list_snapshots", **_OF_PROJECT)
    @waits("cinder_volume_create")
    def create_and_list_snapshots(
        self, force: bool = False, detailed: bool = True, **snapshot_kwargs: Any
    ) -> None:
        """Create a snapshot of a volume of the context `volumes`; check that the list has it."""
        snapshot = self.create_snapshot(self.project_volume()["id"], force, snapshot_kwargs)
        with ActionTimer(self, "cinder_v3.list_snapshots"):
            path = "snapshots/detail" if detailed else "snapshots"
            found = {one["id"] for one in self.list_pages(SNAPSHOT, path)}
        self.checked(snapshot in found, "the snapshot that was created is not in the list")

    @openstack("CinderVolumes.create_volume_from_snapshot", **_OF_PROJECT)
    @waits("cinder_volume_create", "cinder_volume_delete")
    def create_volume_from_snapshot(
        self,
        do_delete: bool = True,
        create_snapshot_kwargs: dict[str, Any] | None = None,
        **volume_kwargs: Any,
    ) -> None:
        """Create a snapshot of a volume of the context `volumes`, and a volume from it.

        Both are deleted if `do_delete`; else the clean-up does it after the load.
        """
        source = self.project_volume()
        wanted = dict(create_snapshot_kwargs or {})
        snapshot = self.create_snapshot(source["id"], wanted.pop("force", False), wanted)
        volume = self.create_one(source["size"], {**volume_kwargs, "snapshot_id": snapshot})
        if do_delete:
            self.delete_one(volume["id"])
            self.delete_snapshot(snapshot)

    @openstack(
        "CinderVolumes.create_and_upload_volume_to_image",
        takes=_create,
        services=("cinder", "glance"),
        cleanup=("cinder", "glance"),
    )
    @waits("cinder_volume_create", "glance_image_create", "cinder_volume_delete")
    def create_and_upload_volume_to_image(
        self,
        force: bool = False,
        container_format: str = "bare",
        disk_format: str = "raw",
        do_delete: bool = True,
        **volume_kwargs: Any,
    ) -> None:
        """Create a volume and upload it to Glance as an image; delete both if `do_delete`."""
        volume = self._create(**volume_kwargs)["id"]
        wanted = {
            "force": force,
            "image_name": self.new_name(),
            "container_format": container_format,
            "disk_format": disk_format,
        }
        image = self._upload(volume, wanted)
        if do_delete:
            self.delete_one(volume)
            self.delete_image(image)

    @openstack("CinderVolumes.create_volume_and_update_readonly_flag", takes=_create, **_SCENARIO)
    @waits("cinder_volume_create")
    def create_volume_and_update_readonly_flag(
        self, read_only: bool = True, **volume_kwargs: Any
    ) -> None:
        """Create a volume, and make it read-only, or writable if `read_only` is false."""
        volume = self._create(**volume_kwargs)["id"]
        with ActionTimer(self, "cinder_v3.update_readonly_flag"):
            self.send_action(VOLUME, volume, {"os-update_readonly_flag": {"readonly": read_only}})

    @openstack(
        "CinderVolumes.create_and_accept_transfer",
        takes=_create,
        services=("cinder",),
        cleanup=("cinder",),
    )
    @waits("cinder_volume_create")
    def create_and_accept_transfer(self, **volume_kwargs: Any) -> None:
        """Create a volume, offer it for transfer, and accept the transfer as the same project."""
        volume = self._create(**volume_kwargs)["id"]
        with ActionTimer(self, "cinder_v3.transfer_create"):
            made = self.post(_TRANSFER, {"volume_id": volume})
        with ActionTimer(self, "cinder_v3.transfer_accept"):
            path = f"{_TRANSFER.path}/{made['id']}/accept"
            body = {"accept": {"auth_key": made["auth_key"]}}
            self.cloud.document("POST", "cinder", path, json=body)

    @openstack("CinderVolumes.list_transfers", services=("cinder",))
    def list_transfers(
        self, detailed: bool = True, search_opts: dict[str, Any] | None = None
    ) -> None:
        """List transfers of volumes, with details if `detailed`; `search_opts` are filters."""
        path = f"{_TRANSFER.path}/detail" if detailed else _TRANSFER.path
        with ActionTimer(self, "cinder_v3.list_transfers"):
            self.cloud.document("GET", "cinder", path, params=without_none(search_opts or {}))

    @openstack("CinderVolumes.list_types", services=("cinder",))
    def list_types(
        self, search_opts: dict[str, Any] | None = None, is_public: bool | None = None
    ) -> None:
        """List types of volumes: public (true), private (false) or all (null), by `is_public`."""
        params = without_none(search_opts or {})
        if not is_public:
            params["is_public"] = str(is_public)
        with ActionTimer(self, "cinder_v3.list_types"):
            self.cloud.document("GET", "cinder", "types", params=params)

    @openstack("CinderVolumes.create_and_attach_volume", **_WITH_SERVERS)
    @waits(
        "nova_server_boot",
        "cinder_volume_create",
        "nova_server_resize_revert",
        "nova_detach_volume",
        "cinder_volume_delete",
        "nova_server_delete",
    )
    def create_and_attach_volume(
        self,
        size: Any,
        image: dict[str, Any],
        flavor: dict[str, Any],
        create_volume_params: dict[str, Any] | None = None,
        force_delete: bool = False,
        create_vm_params: dict[str, Any] | None = None,
        **server_kwargs: Any,
    ) -> None:
        """Boot a server, create a volume, attach and detach the volume, and delete both."""
        server = self.booted(self.context["image"], create_vm_params or server_kwargs)
        volume = self.create_one(size, create_volume_params)["id"]
        self.attach(server, volume)
        self.detach(server, volume)
        self.delete_one(volume)
        self.delete_server(server, force_delete)

    @openstack("CinderVolumes.create_snapshot_and_attach_volume", **_WITH_SERVERS)
    @waits(
        "cinder_volume_create",
        "nova_server_boot",
        "nova_server_resize_revert",
        "nova_detach_volume",
        "cinder_volume_delete",
        "nova_server_delete",
    )
    def create_snapshot_and_attach_volume(
        self,
        image: dict[str, Any],
        flavor: dict[str, Any],
        volume_type: str | None = None,
        size: Any = None,
        create_vm_params: dict[str, Any] | None = None,
        **snapshot_kwargs: Any,
    ) -> None:
        """Create volume, snapshot and server; attach and detach the volume; delete all.

        Without `size` the volume has 1 to 5 GB.
        """
        volume = self.create_one(size or _SIZES, {"volume_type": volume_type})["id"]
        snapshot = self.create_snapshot(volume, wanted=snapshot_kwargs)
        server = self.booted(self.context["image"], create_vm_params or {})
        self.attach(server, volume)
        self.detach(server, volume)
        self.delete_snapshot(snapshot)
        self.delete_one(volume)
        self.delete_server(server)

    @openstack("CinderVolumes.create_nested_snapshots_and_attach_volume", **_WITH_SERVERS)
    @waits(
        "nova_server_boot",
        "cinder_volume_create",
        ATTACH,
        DETACH,
        "cinder_volume_delete",
        "nova_server_delete",
    )
    def create_nested_snapshots_and_attach_volume(
        self,
        image: dict[str, Any],
        flavor: dict[str, Any],
        size: Any = None,
        nested_level: int = 1,
        create_volume_kwargs: dict[str, Any] | None = None,
        create_snapshot_kwargs: dict[str, Any] | None = None,
        create_vm_params: dict[str, Any] | None = None,
    ) -> None:
        """Attach `nested_level` volumes to a server, each from a snapshot of the one before it.

        Then all are detached and deleted, the last one first, and the server. Without `size` the
        volumes have 1 to 5 GB.
        """
        server = self.booted(self.context["image"], create_vm_params or {})
        wanted = dict(create_snapshot_kwargs or {})
        size = drawn_size(size or _SIZES)
        nested: list[tuple[str, str]] = []
        for _ in range(nested_level):
            source = {"snapshot_id": nested[-1][1]} if nested else create_volume_kwargs
            volume = self.create_one(size, source)["id"]
            nested.append((volume, self.create_snapshot(volume, wanted=wanted)))
            self.attach(server, volume)
        for volume, snapshot in reversed(nested):
            self.detach(server, volume)
            self.delete_snapshot(snapshot)
            self.delete_one(volume)
        self.delete_server(server)

    @openstack("CinderVolumes.modify_volume_metadata", **_OF_PROJECT)
    def modify_volume_metadata(
        self, sets: int = 10, set_size: int = 3, deletes: int = 5, delete_size: int = 3
    ) -> None:
        """Set keys of a volume's metadata `sets` times, and delete keys `deletes` times.

        The volume is of the context `volumes`. A request sets `set_size` keys, and deletes one:
        `deletes * delete_size` requests, for keys that were set.
        """
        path = f"{VOLUME.path}/{self.project_volume()['id']}/metadata"
        keys: list[str] = []
        with ActionTimer(self, f"cinder_v3.set_{set_size}_metadatas_{sets}_times"):
            for _ in range(sets):
                some = {self.new_name(): self.new_name() for _ in range(set_size)}
                self.cloud.document("POST", "cinder", path, json={"metadata": some})
                keys += some
        doomed = random.sample(keys, deletes * delete_size)
        with ActionTimer(self, f"cinder_v3.delete_{delete_size}_metadatas_{deletes}_times"):
            for key in doomed:
                self.cloud.request("DELETE", "cinder", f"{path}/{key}")

    # backups

    @openstack("CinderVolumes.create_volume_backup", **_SCENARIO)
    @waits(CREATE, DELETE)
    def create_volume_backup(
        self,
        size: Any,
        do_delete: bool = True,
        create_volume_kwargs: dict[str, Any] | None = None,
        create_backup_kwargs: dict[str, Any] | None = None,
    ) -> None:
        """Create a volume and a backup of it; delete both if `do_delete`."""
        volume = self.create_one(size, create_volume_kwargs)["id"]
        self._delete_backed_up(do_delete, volume, self.back_up(volume, create_backup_kwargs))

    @openstack("CinderVolumes.create_and_restore_volume_backup", **_SCENARIO)
    @waits(CREATE, DELETE, "cinder_backup_restore")
    def create_and_restore_volume_backup(
        self,
        size: Any,
        do_delete: bool = True,
        create_volume_kwargs: dict[str, Any] | None = None,
        create_backup_kwargs: dict[str, Any] | None = None,
    ) -> None:
        """Create a volume and a backup, restore that to a new volume; delete the first two.

        Only if `do_delete`. The clean-up removes the new volume.
        """
        volume = self.create_one(size, create_volume_kwargs)["id"]
        backup = self.back_up(volume, create_backup_kwargs)
        self.restore(backup)
        self._delete_backed_up(do_delete, volume, backup)

    @openstack("CinderVolumes.create_and_list_volume_backups", **_SCENARIO)
    @waits(CREATE, DELETE)
    def create_and_list_volume_backups(
        self,
        size: Any,
        detailed: bool = True,
        do_delete: bool = True,
        create_volume_kwargs: dict[str, Any] | None = None,
        create_backup_kwargs: dict[str, Any] | None = None,
    ) -> None:
        """Create a volume and a backup, check that the list of backups has it; delete both.

        Only if `do_delete`.
        """
        volume = self.create_one(size, create_volume_kwargs)["id"]
        backup = self.back_up(volume, create_backup_kwargs)
        with ActionTimer(self, "cinder_v3.list_backups"):
            path = f"{BACKUP.path}/detail" if detailed else BACKUP.path
            found = {one["id"] for one in self.list_pages(BACKUP, path)}
        self.checked(backup in found, "the backup that was created is not in the list")
        self._delete_backed_up(do_delete, volume, backup)

    def _delete_backed_up(self, wanted: bool, volume: str, backup: str) -> None:
        if wanted:
            self.delete_one(volume)
            self.delete_backup(backup)

    # atomic actions

    def _from_image(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        image = self.context["image"]
        return {**wanted, "imageRef": image} if image else dict(wanted)

    @action_timer("cinder_v3.list_volumes")
    def _list(self, detailed: bool, params: Mapping[str, Any]) -> list[dict[str, Any]]:
        return self.list_pages(VOLUME, "volumes/detail" if detailed else "volumes", params)

    @action_timer("cinder_v3.upload_volume_to_image")
    def _upload(self, volume: str, wanted: Mapping[str, Any]) -> str:
        with ActionTimer(self, ACCEPTED):
            document = self.send_action(VOLUME, volume, {"os-volume_upload_image": wanted})
        image = str(document["os-volume_upload_image"]["image_id"])
        self.await_status(VOLUME, volume, "available", "in-use", wait=CREATE)
        self.await_image(image)
        return image


class CinderVolumeBackups(Volumes):
    """Rally's `CinderVolumeBackups` scenario: an incremental backup of a volume."""

    @openstack("CinderVolumeBackups.create_incremental_volume_backup", **_SCENARIO)
    @waits(CREATE, DELETE)
    def create_incremental_volume_backup(
        self,
        size: Any,
        do_delete: bool = True,
        create_volume_kwargs: dict[str, Any] | None = None,
        create_backup_kwargs: dict[str, Any] | None = None,
    ) -> None:
        """Create a volume, a full and an incremental backup; delete all if `do_delete`."""
        volume = self.create_one(size, create_volume_kwargs)["id"]
        backups = [
            self.back_up(volume, wanted) for wanted in (create_backup_kwargs, {"incremental": True})
        ]
        if do_delete:
            for backup in reversed(backups):
                self.delete_backup(backup)
            self.delete_one(volume)


def _metadata_problem(args: Mapping[str, Any]) -> list[str]:
    """Return a message if a task has more keys of metadata deleted than it sets; else []."""
    created = args.get("sets", 10) * args.get("set_size", 3)
    deleted = args.get("deletes", 5) * args.get("delete_size", 3)
    if created >= deleted:
        return []
    return [
        f"sets * set_size is {created}, and deletes * delete_size is {deleted}: set at least as "
        "many keys as are deleted"
    ]
