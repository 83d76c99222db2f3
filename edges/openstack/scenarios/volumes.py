"""Base of scenarios with volumes and snapshots of Cinder: creates and deletes them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from osbench.common.errors import DeploymentError
from osbench.common.plugin.atomic import ActionTimer, action_timer
from osbench.edges.openstack.common.cloud import Cloud
from osbench.edges.openstack.common.object_lists import id_of
from osbench.edges.openstack.scenarios.openstack_scenario import (
    ACCEPTED,
    further_arguments,
    without_none,
)
from osbench.edges.openstack.scenarios.resource_scenario import ResourceKind, ResourceScenario

VOLUME = ResourceKind(service="cinder", path="volumes", key="volume")
SNAPSHOT = ResourceKind(service="cinder", path="snapshots", key="snapshot")
BACKUP = ResourceKind(service="cinder", path="backups", key="backup")
#: Waits of `WAITS`, for volumes and snapshots.
CREATE, DELETE = "cinder_volume_create", "cinder_volume_delete"
RESTORE = "cinder_backup_restore"
_HINTS = "scheduler_hints"
#: Arguments for new volumes and snapshots: the arguments of Rally's services.
_VOLUME_ARGUMENTS = frozenset(
    (
        "availability_zone",
        "backup_id",
        "consistencygroup_id",
        "description",
        "imageRef",
        "metadata",
        _HINTS,
        "snapshot_id",
        "source_volid",
        "volume_type",
    )
)
_SNAPSHOT_ARGUMENTS = frozenset(("description", "metadata"))
_BACKUP_ARGUMENTS = frozenset(("container", "description", "force", "incremental", "snapshot_id"))
#: Arguments of scenarios that hold arguments for volumes or snapshots.
_NESTED: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "create_volume_kwargs": _VOLUME_ARGUMENTS,
        "create_volume_params": _VOLUME_ARGUMENTS,
        "create_snapshot_kwargs": _SNAPSHOT_ARGUMENTS | {"force"},
        "create_backup_kwargs": _BACKUP_ARGUMENTS,
    }
)
_FURTHER: Mapping[str, frozenset[str]] = MappingProxyType(
    {"volume_kwargs": _VOLUME_ARGUMENTS, "snapshot_kwargs": _SNAPSHOT_ARGUMENTS}
)


def _check(wanted: Mapping[str, Any], known: frozenset[str], place: str = "") -> None:
    for name in sorted(wanted.keys() - known):
        raise DeploymentError(
            f"{name}{f' in {place}' if place else ''}: unknown argument for volumes, snapshots or "
            f"backups; use only {', '.join(sorted(known))}"
        )


def drawn_size(size: Any) -> int:
    """Return `size` as an integer, GB; for `{min, max}` a random size between them, inclusive."""
    if isinstance(size, Mapping):
        return random.randint(size["min"], size["max"])  # noqa: S311 - load, not secrets
    return int(size)


class Volumes(ResourceScenario):
    """Base of scenarios that create volumes and snapshots of Cinder, await and delete them."""

    OBJECTS: ClassVar[Mapping[str, str]] = MappingProxyType({"volume_type": "volume type"})
    QUOTAS: ClassVar[Mapping[str, tuple[str, str]]] = MappingProxyType(
        {"size": ("cinder", "volumes")}
    )

    @classmethod
    def prepare(cls, context: dict[str, Any], cloud: Cloud) -> None:
        """Check the arguments for new volumes and snapshots, and that types of volumes exist.

        Raises DeploymentError if an argument is not supported or there is no such type.
        """
        super().prepare(context, cloud)
        args = context["args"]
        taking, further = further_arguments(cls.method(context), args)
        if taking in _FURTHER:
            _check(further, _FURTHER[taking])
        for name, known in _NESTED.items():
            _check(args.get(name) or {}, known, name)
        for where in (args, *(args.get(name) or {} for name in _NESTED)):
            if where.get("volume_type"):
                id_of(cloud, "volume type", where["volume_type"])

    def project_volume(self) -> dict[str, Any]:
        """Return a random volume of the project, made by the context `volumes`.

        It has `id` and `size`, in GB.
        """
        found = self.context["volumes"][self.cloud.project_id]
        return dict(random.choice(found))  # noqa: S311 - load, not secrets

    # atomic actions

    @action_timer("cinder_v3.create_volume")
    def create_one(self, size: Any, wanted: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Create a volume, wait until it is available, and return it as in the last response.

        `size` is in GB, as for `drawn_size`; `wanted` are further arguments, as in Rally's
        scenarios. Raises NotReady.
        """
        given = without_none(wanted or {})
        hints = given.pop(_HINTS, None)
        sent: dict[str, Any] = {
            "volume": {**given, "name": self.new_name(), "size": drawn_size(size)},
            **({"OS-SCH-HNT:scheduler_hints": hints} if hints else {}),
        }
        with ActionTimer(self, ACCEPTED):
            made = self.cloud.document("POST", "cinder", "volumes", json=sent)["volume"]
        return self.await_status(VOLUME, str(made["id"]), "available", wait=CREATE)

    def delete_one(self, volume: str) -> None:
        """Delete a volume, by its id, and wait until it is gone. Raises NotReady."""
        self.delete_and_wait("cinder_v3.delete_volume", VOLUME, volume, wait=DELETE)

    @action_timer("cinder_v3.create_snapshot")
    def create_snapshot(
        self, volume: str, force: bool = False, wanted: Mapping[str, Any] | None = None
    ) -> str:
        """Create a snapshot of a volume, wait until it is available, and return its id.

        `force` allows it for an attached volume; `wanted` may have `description` and `metadata`.
        Raises NotReady.
        """
        fields = {**without_none(wanted or {}), "volume_id": volume, "force": force}
        with ActionTimer(self, ACCEPTED):
            made = self.post(SNAPSHOT, fields)
        self.await_status(SNAPSHOT, str(made["id"]), "available", wait=CREATE)
        return str(made["id"])

    def delete_snapshot(self, snapshot: str) -> None:
        """Delete a snapshot, by its id, and wait until it is gone. Raises NotReady."""
        self.delete_and_wait("cinder_v3.delete_snapshot", SNAPSHOT, snapshot, wait=DELETE)

    # backups

    @action_timer("cinder_v3.create_backup")
    def back_up(self, volume: str, wanted: Mapping[str, Any] | None = None) -> str:
        """Create a backup of a volume, wait until it is available, and return its id.

        `wanted` are the arguments of cinderclient, such as `incremental`. Raises NotReady.
        """
        with ActionTimer(self, ACCEPTED):
            made = self.post(BACKUP, {**without_none(wanted or {}), "volume_id": volume})
        self.await_status(BACKUP, str(made["id"]), "available", wait=CREATE)
        return str(made["id"])

    @action_timer("cinder_v3.restore_backup")
    def restore(self, backup: str) -> None:
        """Restore a backup to a new volume, and wait until that is available. Raises NotReady."""
        with ActionTimer(self, ACCEPTED):
            path = f"{BACKUP.path}/{backup}/restore"
            # with a name the clean-up finds the volume; Cinder's own has the backup's id
            body = {"restore": {"name": self.new_name()}}
            made = self.cloud.document("POST", "cinder", path, json=body)["restore"]
        self.await_status(VOLUME, str(made["volume_id"]), "available", wait=RESTORE)

    def delete_backup(self, backup: str) -> None:
        """Delete a backup, by its id, and wait until it is gone. Raises NotReady."""
        self.delete_and_wait("cinder_v3.delete_backup", BACKUP, backup, wait=DELETE)
