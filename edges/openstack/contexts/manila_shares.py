"""The contexts of Manila: security services, share networks and shares."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, ClassVar

from osbench.plugin.cloud import Cloud, PerProjectContext, manila_api, neutron
from osbench.plugin.errors import ContextError

_COUNT: Mapping[str, Any] = {"type": "integer", "minimum": 1}


class ProjectSecurityServices(PerProjectContext):
    """Creates security services in every project, one for each entry of `security_services`.

    The share networks of the context `manila_share_networks` get them.
    """

    NAME: ClassVar[str] = manila_api.SECURITY_SERVICES
    ORDER: ClassVar[int] = 445
    SERVICE: ClassVar[str] = manila_api.SERVICE
    KEY: ClassVar[str] = manila_api.SECURITY_SERVICES
    KINDS: ClassVar[tuple[str, ...]] = ("manila.security_services",)
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "security_services": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"type": {"enum": ["active_directory", "kerberos", "ldap"]}},
                    "required": ["type"],
                },
                "description": "fields of each service: `type`, and `dns_ip`, `server`, `domain`, "
                "`user` or `password`",
            },
        },
        "additionalProperties": False,
        "examples": [{"security_services": [{"type": "ldap", "dns_ip": "10.0.0.53"}]}],
    }

    def setup(self) -> None:
        """Create the security services; store their ids by project id."""
        self.make_all()

    def count(self, cloud: Cloud) -> int:
        """Return the number of entries of `security_services`, for each project."""
        return len(self.config.get("security_services") or ())

    def make(self, cloud: Cloud, name: str) -> str:
        """Create a security service named `name`, by the entry of its number; return its id."""
        number = int(name.rpartition("-")[2])
        fields = {**self.config["security_services"][number], "name": name}
        return manila_api.create_once(cloud, "security-services", "security_service", fields)


class ProjectShareNetworks(PerProjectContext):
    """Creates share networks in every project, one for each network of the context `network`.

    Without such networks it is one without network data. It makes none unless
    `use_share_networks` is true.
    """

    NAME: ClassVar[str] = manila_api.SHARE_NETWORKS
    ORDER: ClassVar[int] = 450
    SERVICE: ClassVar[str] = manila_api.SERVICE
    KEY: ClassVar[str] = manila_api.SHARE_NETWORKS
    KINDS: ClassVar[tuple[str, ...]] = ("manila.share_networks",)
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "use_share_networks": {
                "type": "boolean",
                "description": "whether shares are in share networks; false by default",
            },
            "share_networks": {"type": "object", "description": "only in Rally"},
        },
        "additionalProperties": False,
        "examples": [{"use_share_networks": True}],
    }

    @classmethod
    def check_config(cls, config: Any) -> list[str]:
        """Return a message if share networks are named, which only Rally takes; else []."""
        if config.get("share_networks"):
            return ["share_networks is only in Rally; name the context manila_share_networks@rally"]
        return []

    def setup(self) -> None:
        """Create the share networks with their security services; store their ids by project id."""
        if self.config.get("use_share_networks"):
            self.make_all()

    def count(self, cloud: Cloud) -> int:
        """Return the number of networks that a context gave the project, at least one."""
        return max(1, len(self._networks(cloud)))

    def make(self, cloud: Cloud, name: str) -> str:
        """Create a share network named `name` in the network of its number; return its id.

        Security services of the context `manila_security_services` are added to it.
        """
        networks = self._networks(cloud)
        fields: dict[str, Any] = {"name": name}
        if networks:
            network = networks[int(name.rpartition("-")[2])]
            # Manila takes both or neither
            if network.get("subnets"):
                fields["neutron_net_id"] = network["id"]
                fields["neutron_subnet_id"] = network["subnets"][0]
        made = manila_api.create_once(cloud, "share-networks", "share_network", fields)
        services = self.surroundings.context.get(manila_api.SECURITY_SERVICES) or {}
        for service in services.get(cloud.project_id, ()):
            body = {"add_security_service": {"security_service_id": service}}
            path = f"share-networks/{made}/action"
            response = cloud.request(
                "POST", manila_api.SERVICE, path, json=body, expected=(200, 202, 409)
            )
            if response.status_code == HTTPStatus.CONFLICT:
                self._refuse_second(cloud, made, service)
        return made

    def _refuse_second(self, cloud: Cloud, network: str, service: str) -> None:
        """Raise ContextError unless a share network already has the security service."""
        params = {"share_network_id": network}
        found = cloud.document("GET", manila_api.SERVICE, "security-services", params=params)
        if service not in {one["id"] for one in found["security_services"]}:
            raise ContextError(
                "a share network takes one security service of each type; give the context "
                "manila_security_services each type once"
            )

    def _networks(self, cloud: Cloud) -> list[dict[str, Any]]:
        networks = self.surroundings.context.get(neutron.NETWORKS) or {}
        return list(networks.get(cloud.project_id, ()))


class ProjectShares(PerProjectContext):
    """Creates shares in every project, by default a share of 1 GiB; iterations take them in turn.

    They are in the share networks of the context `manila_share_networks`, in turn.
    """

    NAME: ClassVar[str] = "manila_shares"
    ORDER: ClassVar[int] = 455
    SERVICE: ClassVar[str] = manila_api.SERVICE
    KEY: ClassVar[str] = "manila_shares"
    COUNT: ClassVar[str] = "shares_per_tenant"
    KINDS: ClassVar[tuple[str, ...]] = ("manila.shares",)
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "shares_per_tenant": {**_COUNT, "description": "shares in each project; 1 by default"},
            "size": {**_COUNT, "description": "GiB of each; 1 by default"},
            "share_proto": {"type": "string", "description": "protocol; NFS by default"},
            "share_type": {"type": "string", "description": "type; Manila's default by default"},
        },
        "additionalProperties": False,
        "examples": [{"shares_per_tenant": 2, "size": 1}],
    }

    def setup(self) -> None:
        """Create shares, await that they are available; store their ids by project id.

        Raises ContextError if a share fails or takes longer than the timeout.
        """
        self.make_all()

    def make(self, cloud: Cloud, name: str) -> str:
        """Create a share named `name`, await that it is available; return its id.

        Raises ContextError if it fails or takes longer than the timeout.
        """
        fields: dict[str, Any] = {
            "name": name,
            "size": self.config.get("size", 1),
            "share_proto": self.config.get("share_proto", "NFS"),
        }
        if self.config.get("share_type"):
            fields["share_type"] = self.config["share_type"]
        networks = self.surroundings.context.get(manila_api.SHARE_NETWORKS) or {}
        mine = networks.get(cloud.project_id)
        if mine:
            fields["share_network_id"] = mine[int(name.rpartition("-")[2]) % len(mine)]
        share = manila_api.create_once(cloud, "shares", "share", fields)
        self.await_ready(cloud, f"shares/{share}", "share", "available", "manila_share_create")
        return share
