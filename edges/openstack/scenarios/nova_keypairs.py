"""Scenarios of Nova's key pairs and server groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from osbench.common.errors import DeploymentError
from osbench.common.plugin.atomic import ActionTimer, action_timer
from osbench.edges.openstack.common.cloud import Cloud
from osbench.edges.openstack.scenarios.openstack_scenario import (
    further_arguments,
    openstack,
    waits,
    without_none,
)
from osbench.edges.openstack.scenarios.resource_scenario import ResourceKind, ResourceScenario
from osbench.edges.openstack.scenarios.servers import Servers
from osbench.edges.openstack.worker.user_selector import UserSelector

_KEYPAIR = ResourceKind(service="nova", path="os-keypairs", key="keypair")
_GROUP = ResourceKind(service="nova", path="os-server-groups", key="server_group")
_KEYPAIRS: Mapping[str, Any] = {"services": ("nova",), "cleanup": ("nova.keypairs",)}
_GROUPS: Mapping[str, Any] = {"services": ("nova",), "cleanup": ("nova.server_groups",)}
#: Arguments of a key pair, with their names in Nova's API, and the microversion of the type.
_RENAMED: Mapping[str, str] = {"public_key": "public_key", "key_type": "type"}
_TYPED = "2.2"


class NovaKeypair(Servers):
    """Rally's `NovaKeypair` scenarios: create, list and delete key pairs.

    `public_key` and `key_type` are arguments of a key pair.
    """

    @classmethod
    def prepare(cls, context: dict[str, Any], cloud: Cloud) -> None:
        """Check the arguments before the load; look up image and flavor.

        Raises DeploymentError for an unknown argument, or if an object does not exist.
        """
        super().prepare(context, cloud)
        _, further = further_arguments(cls.method(context), context["args"])
        for name in sorted(further.keys() - _RENAMED.keys()):
            raise DeploymentError(
                f"{name}: unknown argument for key pairs; use only {', '.join(sorted(_RENAMED))}"
            )

    @openstack("NovaKeypair.create_and_list_keypairs", **_KEYPAIRS)
    def create_and_list_keypairs(self, **keypair_kwargs: Any) -> None:
        """Create a key pair, list all of the user, and check that it is among them."""
        name = self._create(keypair_kwargs)
        with ActionTimer(self, "nova.list_keypairs"):
            found = self.cloud.document("GET", "nova", _KEYPAIR.path)["keypairs"]
        names = {one["keypair"]["name"] for one in found}
        self.checked(name in names, "the key pair that was created is not in the list")

    @openstack("NovaKeypair.create_and_delete_keypair", **_KEYPAIRS)
    def create_and_delete_keypair(self, **keypair_kwargs: Any) -> None:
        """Create a key pair and delete it."""
        self._delete(self._create(keypair_kwargs))

    @openstack("NovaKeypair.create_and_get_keypair", **_KEYPAIRS)
    def create_and_get_keypair(self, **keypair_kwargs: Any) -> None:
        """Create a key pair and get it."""
        name = self._create(keypair_kwargs)
        with ActionTimer(self, "nova.get_keypair"):
            self.show(_KEYPAIR, name)

    @openstack(
        "NovaKeypair.boot_and_delete_server_with_keypair",
        services=("nova",),
        cleanup=("nova.servers", "nova.keypairs"),
    )
    @waits("nova_server_boot", "nova_server_delete")
    def boot_and_delete_server_with_keypair(
        self,
        image: dict[str, Any],
        flavor: dict[str, Any],
        boot_server_kwargs: dict[str, Any] | None = None,
        **keypair_kwargs: Any,
    ) -> None:
        """Create a key pair, boot a server with it, and delete both."""
        name = self._create(keypair_kwargs)
        wanted = {"key_name": name, **(boot_server_kwargs or {})}
        self.delete_server(self.booted(self.context["image"], wanted))
        self._delete(name)

    @action_timer("nova.create_keypair")
    def _create(self, wanted: Mapping[str, Any]) -> str:
        fields = without_none({_RENAMED[key]: value for key, value in wanted.items()})
        sent = {"keypair": {"name": self.new_name(), **fields}}
        version = _TYPED if "type" in fields else ""
        made = self.cloud.document("POST", "nova", _KEYPAIR.path, json=sent, microversion=version)
        return str(made["keypair"]["name"])

    @action_timer("nova.delete_keypair")
    def _delete(self, name: str) -> None:
        self.delete(_KEYPAIR, name)


class NovaServerGroups(ResourceScenario):
    """Rally's `NovaServerGroups` scenarios: create, list, get and delete server groups.

    `policies` is a policy, or a list of one.
    """

    @classmethod
    def prepare(cls, context: dict[str, Any], cloud: Cloud) -> None:
        """Raise DeploymentError without a policy; with `all_projects` log the administrator in."""
        args = context["args"]
        if not (args.get("policies") or (args.get("kwargs") or {}).get("policies")):
            raise DeploymentError("policies must be given, such as `policies: [anti-affinity]`")
        if args.get("all_projects"):
            selector: UserSelector = context["user_selector"]
            selector.sessions.warm(selector.admin)

    @openstack("NovaServerGroups.create_and_list_server_groups", **_GROUPS)
    def create_and_list_server_groups(
        self,
        policies: Any = None,
        all_projects: bool = False,
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        """Create a server group, list all, and check that it is among them.

        With `all_projects` the administrator lists the groups of all projects.
        """
        group = self._create(policies, kwargs)
        with ActionTimer(self, "nova.list_server_groups"):
            cloud = self.as_administrator() if all_projects else self.cloud
            params = {"all_projects": "True"} if all_projects else {}
            found = cloud.document("GET", "nova", _GROUP.path, params=params)["server_groups"]
        ids = {one["id"] for one in found}
        self.checked(group in ids, "the server group that was created is not in the list")

    @openstack("NovaServerGroups.create_and_get_server_group", **_GROUPS)
    def create_and_get_server_group(
        self, policies: Any = None, kwargs: dict[str, Any] | None = None
    ) -> None:
        """Create a server group and get it."""
        group = self._create(policies, kwargs)
        with ActionTimer(self, "nova.get_server_group"):
            found = self.show(_GROUP, group)
        self.checked(found["id"] == group, "another server group was returned")

    @openstack("NovaServerGroups.create_and_delete_server_group", **_GROUPS)
    def create_and_delete_server_group(
        self, policies: Any = None, kwargs: dict[str, Any] | None = None
    ) -> None:
        """Create a server group and delete it."""
        group = self._create(policies, kwargs)
        with ActionTimer(self, "nova.delete_server_group"):
            self.delete(_GROUP, group)

    @action_timer("nova.create_server_group")
    def _create(self, policies: Any, kwargs: Mapping[str, Any] | None) -> str:
        given = (kwargs or {}).get("policies", policies)
        wanted = given if isinstance(given, list) else [given]
        return str(self.post(_GROUP, {"policies": wanted})["id"])
