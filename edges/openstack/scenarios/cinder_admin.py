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
#: Types of the context, whose removal takes their encryption with it.
_TYPED: Mapping[str, Any] = {**_ADMIN, "users": False, "requires": ("volume_types",)}
_ASSOCIATED: Mapping[str, Any] = {**_SPECS, "requires": ("volume_types",)}
#: Scenarios of whose encryption Rally requires a provider.
_NEED_PROVIDER = ("create_and_list_encryption_type", "create_and_delete_encryption_type")


class CinderVolumeTypes(ResourceScenario):
    """Rally's `CinderVolumeTypes` scenarios, as the administrator.

    Scenarios that only create the encryption of a type take the types of the context
    `volume_types` in turn. A type has one encryption at most: for scenarios that do not delete it
    give as many types as iterations.
    """

    @classmethod
    def check_arguments(cls, method: str, args: Mapping[str, Any]) -> list[str]:
        """Return messages of the base class, and one if an encryption gets no `provider`."""
        found = super().check_arguments(method, args)
        if method in _NEED_PROVIDER and not (args.get("provider") or args.get("create_specs")):
            found.append("give provider, or create_specs")
        return found

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
        given = _encryption_specs(provider, cipher, key_size, control_location)
        made = self._create(**kwargs)
        with ActionTimer(self, "cinder_v3.create_encryption_type"):
            path = f"{_TYPE.path}/{made}/encryption"
            self.admin.document("POST", "cinder", path, json={"encryption": create_specs or given})

    def _encryption(
        self,
        create_specs: dict[str, Any] | None = None,
        provider: str | None = None,
        cipher: str | None = None,
        key_size: int | None = None,
        control_location: str = "front-end",
    ) -> str:
        """Create the encryption of a type of the context; return its path.

        `create_specs` replaces the other arguments.
        """
        given = _encryption_specs(provider, cipher, key_size, control_location)
        types = self.context["volume_types"]
        path = f"{_TYPE.path}/{types[self.context['iteration'] % len(types)]['id']}/encryption"
        with ActionTimer(self, "cinder_v3.create_encryption_type"):
            self.admin.document("POST", "cinder", path, json={"encryption": create_specs or given})
        return path

    @openstack("CinderVolumeTypes.create_and_list_encryption_type", takes=_encryption, **_TYPED)
    def create_and_list_encryption_type(
        self, search_opts: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """Create the encryption of a type; list all types, and get the encryption of each."""
        self._encryption(**kwargs)
        with ActionTimer(self, "cinder_v3.list_encryption_type"):
            params = {"is_public": "None", **without_none(search_opts or {})}
            found = self.admin.document("GET", "cinder", _TYPE.path, params=params)["volume_types"]
            for one in found:
                path = f"{_TYPE.path}/{one['id']}/encryption"
                self.admin.document("GET", "cinder", path)

    @openstack("CinderVolumeTypes.create_get_and_delete_encryption_type", **_TYPED)
    def create_get_and_delete_encryption_type(
        self,
        provider: str | None = None,
        cipher: str | None = None,
        key_size: int | None = None,
        control_location: str = "front-end",
    ) -> None:
        """Create the encryption of a type, get it and delete it."""
        path = self._encryption(None, provider, cipher, key_size, control_location)
        with ActionTimer(self, "cinder_v3.get_encryption_type"):
            self.admin.document("GET", "cinder", path)
        self._delete_encryption(path)

    @openstack("CinderVolumeTypes.create_and_delete_encryption_type", takes=_encryption, **_TYPED)
    def create_and_delete_encryption_type(self, **kwargs: Any) -> None:
        """Create the encryption of a type and delete it."""
        self._delete_encryption(self._encryption(**kwargs))

    @openstack("CinderVolumeTypes.create_and_update_encryption_type", **_TYPED)
    def create_and_update_encryption_type(
        self,
        create_provider: str | None = None,
        create_cipher: str | None = None,
        create_key_size: int | None = None,
        create_control_location: str = "front-end",
        update_provider: str | None = None,
        update_cipher: str | None = None,
        update_key_size: int | None = None,
        update_control_location: str | None = None,
    ) -> None:
        """Create the encryption of a type, and change it to the arguments `update_...`."""
        path = self._encryption(
            None, create_provider, create_cipher, create_key_size, create_control_location
        )
        changes = _encryption_specs(
            update_provider, update_cipher, update_key_size, update_control_location
        )
        with ActionTimer(self, "cinder_v3.update_encryption_type"):
            sent = {"encryption": changes}
            self.admin.document("PUT", "cinder", f"{path}/provider", json=sent)

    def _delete_encryption(self, path: str) -> None:
        with ActionTimer(self, "cinder_v3.delete_encryption_type"):
            self.admin.request("DELETE", "cinder", f"{path}/provider")

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
    """Rally's `CinderQos` scenarios, as the administrator."""

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

    @openstack("CinderQos.create_qos_associate_and_disassociate_type", takes=_create, **_ASSOCIATED)
    def create_qos_associate_and_disassociate_type(self, **kwargs: Any) -> None:
        """Create QoS specs, associate a type of the context with them, and dissociate it."""
        made = self._create(**kwargs)
        types = self.context["volume_types"]
        params = {"vol_type_id": types[self.context["iteration"] % len(types)]["id"]}
        for change in ("associate", "disassociate"):
            with ActionTimer(self, f"cinder_v3.qos_{change}_type"):
                path = f"{_QOS.path}/{made}/{change}"
                self.admin.request("GET", "cinder", path, params=params)


def _encryption_specs(
    provider: str | None, cipher: str | None, key_size: int | None, control_location: str | None
) -> dict[str, Any]:
    return {
        "provider": provider,
        "cipher": cipher,
        "key_size": key_size,
        "control_location": control_location,
    }


def _specs(consumer: str, write_iops_sec: str, read_iops_sec: str) -> dict[str, Any]:
    return {
        "consumer": consumer,
        "write_iops_sec": write_iops_sec,
        "read_iops_sec": read_iops_sec,
    }
