"""Scenarios of Cinder's volume types and QoS, which administrators define."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from osbench.common.plugin.atomic import ActionTimer, action_timer
from osbench.edges.openstack.scenarios.openstack_scenario import openstack, without_none
from osbench.edges.openstack.scenarios.resource_scenario import ResourceKind, ResourceScenario

_TYPE = ResourceKind(service="cinder", path="types", key="volume_type")
_QOS = ResourceKind(service="cinder", path="qos-specs", key="qos_specs")

_ADMIN: Mapping[str, Any] = MappingProxyType({"services": ("cinder",), "admin": True})
_TYPES: Mapping[str, Any] = {**_ADMIN, "users": False, "cleanup": ("cinder_admin.volume_types",)}
_SPECS: Mapping[str, Any] = {**_ADMIN, "users": False, "cleanup": ("cinder_admin.qos_specs",)}


class CinderVolumeTypes(ResourceScenario):
    """Rally's `CinderVolumeTypes` scenarios that need no context, as the administrator."""

    @action_timer("cinder_v3.create_volume_type")
    def _create(self, description: str | None = None, is_public: bool = True) -> str:
        fields = {"description": description, "os-volume-type-access:is_public": is_public}
        return str(self.post(_TYPE, without_none(fields), cloud=self.admin)["id"])

    @openstack("CinderVolumeTypes.create_and_delete_volume_type", takes=_create, **_TYPES)
    def create_and_delete_volume_type(self, **kwargs: Any) -> None:
        """Create a type of volumes and delete it."""
        made = self._create(**kwargs)
        with ActionTimer(self, "cinder_v3.delete_volume_type"):
            self.delete(_TYPE, made, cloud=self.admin)

    @openstack("CinderVolumeTypes.create_and_get_volume_type", takes=_create, **_TYPES)
    def create_and_get_volume_type(self, **kwargs: Any) -> None:
        """Create a type of volumes and get it."""
        made = self._create(**kwargs)
        with ActionTimer(self, "cinder_v3.get_volume_type"):
            self.show(_TYPE, made, cloud=self.admin)

    @openstack("CinderVolumeTypes.create_and_list_volume_types", takes=_create, **_TYPES)
    def create_and_list_volume_types(self, **kwargs: Any) -> None:
        """Create a type of volumes, list all, and check that it is among them."""
        made = self._create(**kwargs)
        with ActionTimer(self, "cinder_v3.list_types"):
            path = f"{_TYPE.path}?is_public=None"
            found = self.admin.document("GET", "cinder", path)["volume_types"]
        self.checked(made in {one["id"] for one in found}, "the new type is not in the list")

    @openstack("CinderVolumeTypes.create_and_update_volume_type", takes=_create, **_TYPES)
    def create_and_update_volume_type(
        self,
        update_name: bool = False,
        update_description: str | None = None,
        update_is_public: bool | None = None,
        **kwargs: Any,
    ) -> None:
        """Create a type of volumes; change its name, its description, or whether it is public.

        Without any of these, its name is changed. `update_is_public` reverses `is_public`.
        """
        made = self._create(**kwargs)
        public = kwargs.get("is_public", True)
        changes = {
            "name": self.new_name() if update_name else None,
            "description": update_description,
            "is_public": (not public) if update_is_public else None,
        }
        # as Rally's: an update of nothing sends the name that it has
        sent = without_none(changes) or {"name": self.new_name()}
        with ActionTimer(self, "cinder_v3.update_volume_type"):
            path = f"{_TYPE.path}/{made}"
            self.admin.document("PUT", "cinder", path, json={"volume_type": sent})

    @openstack("CinderVolumeTypes.create_and_set_volume_type_keys", takes=_create, **_TYPES)
    def create_and_set_volume_type_keys(
        self, volume_type_key: dict[str, Any], **kwargs: Any
    ) -> None:
        """Create a type of volumes and set its extra specs."""
        made = self._create(**kwargs)
        with ActionTimer(self, "cinder_v3.set_volume_type_keys"):
            path = f"{_TYPE.path}/{made}/extra_specs"
            self.admin.document("POST", "cinder", path, json={"extra_specs": volume_type_key})

    @openstack("CinderVolumeTypes.create_volume_type_and_encryption_type", takes=_create, **_TYPES)
    def create_volume_type_and_encryption_type(
        self,
        create_specs: dict[str, Any] | None = None,
        provider: str | None = None,
        cipher: str | None = None,
        key_size: int | None = None,
        control_location: str = "front-end",
        **kwargs: Any,
    ) -> None:
        """Create a type of volumes, and set the encryption of its volumes.

        `create_specs` replaces all further arguments of the encryption.
        """
        given = {
            "provider": provider,
            "cipher": cipher,
            "key_size": key_size,
            "control_location": control_location,
        }
        made = self._create(**kwargs)
        with ActionTimer(self, "cinder_v3.create_encryption_type"):
            path = f"{_TYPE.path}/{made}/encryption"
            self.admin.document("POST", "cinder", path, json={"encryption": create_specs or given})

    @openstack(
        "CinderVolumeTypes.create_volume_type_add_and_list_type_access",
        **{**_TYPES, "users": True},
    )
    def create_volume_type_add_and_list_type_access(
        self, description: str | None = None, is_public: bool = False
    ) -> None:
        """Create a type of volumes, give the user's project access, and list who has access."""
        made = self._create(description, is_public)
        with ActionTimer(self, "cinder_v3.add_type_access"):
            body = {"addProjectAccess": {"project": self.cloud.project_id}}
            self.send_action(_TYPE, made, body, cloud=self.admin)
        with ActionTimer(self, "cinder_v3.list_type_access"):
            path = f"{_TYPE.path}/{made}/os-volume-type-access"
            self.admin.document("GET", "cinder", path)


class CinderQos(ResourceScenario):
    """Rally's `CinderQos` scenarios that need no context, as the administrator."""

    @action_timer("cinder_v3.create_qos")
    def _create(self, consumer: str, write_iops_sec: str, read_iops_sec: str) -> str:
        fields = _specs(consumer, write_iops_sec, read_iops_sec)
        return str(self.post(_QOS, fields, cloud=self.admin)["id"])

    @openstack("CinderQos.create_and_get_qos", takes=_create, **_SPECS)
    def create_and_get_qos(self, **kwargs: Any) -> None:
        """Create QoS specs and get them."""
        made = self._create(**kwargs)
        with ActionTimer(self, "cinder_v3.get_qos"):
            self.show(_QOS, made, cloud=self.admin)

    @openstack("CinderQos.create_and_list_qos", takes=_create, **_SPECS)
    def create_and_list_qos(self, **kwargs: Any) -> None:
        """Create QoS specs, list all, and check that they are among them."""
        made = self._create(**kwargs)
        with ActionTimer(self, "cinder_v3.list_qos"):
            found = self.admin.document("GET", "cinder", _QOS.path)["qos_specs"]
        self.checked(made in {one["id"] for one in found}, "the new QoS specs are not in the list")

    @openstack("CinderQos.create_and_set_qos", takes=_create, **_SPECS)
    def create_and_set_qos(
        self, set_consumer: str, set_write_iops_sec: str, set_read_iops_sec: str, **kwargs: Any
    ) -> None:
        """Create QoS specs and change all of their values, to the arguments `set_...`."""
        made = self._create(**kwargs)
        sent = _specs(set_consumer, set_write_iops_sec, set_read_iops_sec)
        with ActionTimer(self, "cinder_v3.set_qos"):
            path = f"{_QOS.path}/{made}"
            self.admin.document("PUT", "cinder", path, json={"qos_specs": sent})


def _specs(consumer: str, write_iops_sec: str, read_iops_sec: str) -> dict[str, Any]:
    return {
        "consumer": consumer,
        "write_iops_sec": write_iops_sec,
        "read_iops_sec": read_iops_sec,
    }
