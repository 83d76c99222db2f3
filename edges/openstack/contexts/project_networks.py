"""The context `network`: networks with subnets and a router in each project."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from osbench.plugin import context
from osbench.plugin.cloud import SETTLE_LATE_S, Cloud, CloudAccess, neutron, remove_resources

#: Kinds of what it makes, in the order in which they are removed.
_KINDS = ("neutron.routers", "neutron.subnets", "neutron.networks")
_NUMBER = {"type": "integer", "minimum": 1}


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """A network that setup will create."""

    cloud: Cloud
    name: str
    #: Number of the address range of its first subnet.
    first: int


class ProjectNetworks(context.Context):
    """Makes networks in every project, each with its own subnets and a router that connects them.

    `router: {}` makes no routers. Without `router`, or with `external: true` in it, each router
    gets the first external network as gateway, if there is one.
    """

    NAME: ClassVar[str] = "network"
    ORDER: ClassVar[int] = 350
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "start_cidr": {
                "type": "string",
                "description": "first address range of subnets; 10.2.0.0/24 by default",
            },
            "networks_per_tenant": _NUMBER
            | {"description": "networks in each project; 1 by default"},
            "subnets_per_network": _NUMBER | {"description": "subnets of each; 1 by default"},
            "network_create_args": {
                "type": "object",
                "description": "further attributes of networks",
            },
            "dns_nameservers": {
                "type": "array",
                "items": {"type": "string"},
                "uniqueItems": True,
                "description": "name servers of subnets",
            },
            "dualstack": {
                "type": "boolean",
                "description": "subnets of IPv4 and IPv6 in turn; false by default",
            },
            "router": {
                "type": "object",
                "description": "attributes of routers; `{external: true}` by default",
                "properties": {
                    "external": {"type": "boolean"},
                    "enable_snat": {"type": "boolean"},
                    "external_gateway_info": {
                        "type": "object",
                        "properties": {
                            "network_id": {"type": "string"},
                            "enable_snat": {"type": "boolean"},
                        },
                        "additionalProperties": False,
                    },
                },
                "additionalProperties": False,
            },
        },
        "additionalProperties": False,
        "examples": [{"networks_per_tenant": 2, "subnets_per_network": 2, "dualstack": True}],
    }

    @classmethod
    def check_config(cls, config: Any) -> list[str]:
        """Return messages on an invalid `start_cidr`, and on attributes that only osbench may set.

        These are attributes by which osbench finds the network again. Empty without problems.
        """
        found = []
        try:
            neutron.version_of(config.get("start_cidr", "10.2.0.0/24"))
        except ValueError as error:
            found.append(f"start_cidr: {error}")
        given = config.get("network_create_args", {})
        return found + [
            f"network_create_args: osbench sets {key} itself, to find the network again"
            for key in neutron.RESERVED
            if key in given
        ]

    def setup(self) -> None:
        """Create the networks with subnets and routers, several networks at the same time.

        Stores their ids in `made` by project id. Raises DeploymentError if the cloud has no
        Neutron.
        """
        access = CloudAccess(self.surroundings, self.NAME)
        access.projects[0].address(neutron.SERVICE)
        planned = self._planned(access)
        self.made[neutron.NETWORKS] = {}
        self.made[neutron.RANGES_USED] = len(planned) * self._subnets
        # stored before the first request
        self.keep()
        gateways = self._gateways(access)
        made = access.each("networks made", planned, lambda plan: self._make(plan, gateways))
        found: dict[str, list[Any]] = {}
        for plan, network in zip(planned, made, strict=True):
            found.setdefault(plan.cloud.project_id, []).append(network)
        self.made[neutron.NETWORKS] = found

    def cleanup(self) -> None:
        """Delete the routers, subnets and networks of setup by their names.

        Raises ContextError if some remain. Does nothing if setup ended before it created any.
        """
        if neutron.NETWORKS not in self.made:
            return
        access = CloudAccess(self.surroundings, self.NAME)
        settle_s = SETTLE_LATE_S if self.surroundings.crashed else 0.0
        networks = [plan.name for plan in self._planned(access)]
        subnets = [f"{name}-{number}" for name in networks for number in range(self._subnets)]
        names = {*networks, *subnets}
        remove_resources(access, _KINDS, access.beginning, names.__contains__, settle_s=settle_s)

    @property
    def _subnets(self) -> int:
        return int(self.config.get("subnets_per_network", 1))

    def _planned(self, access: CloudAccess) -> list[_Plan]:
        clouds = [
            (cloud, f"{access.beginning}-{self.NAME}-{project}-{number}")
            for project, cloud in enumerate(access.projects)
            for number in range(self.config.get("networks_per_tenant", 1))
        ]
        return [
            _Plan(cloud=cloud, name=name, first=number * self._subnets)
            for number, (cloud, name) in enumerate(clouds)
        ]

    def _gateways(self, access: CloudAccess) -> dict[Cloud, str]:
        """Return the external network for routers, by client; "" if there is none to use."""
        if not self._router.get("external"):
            return dict.fromkeys(access.projects, "")
        found = access.each(
            "external networks looked up", access.projects, neutron.external_network
        )
        return dict(zip(access.projects, found, strict=True))

    @property
    def _router(self) -> Mapping[str, Any]:
        router: Mapping[str, Any] = self.config.get("router", {"external": True})
        return router

    def _make(self, plan: _Plan, gateways: Mapping[Cloud, str]) -> dict[str, Any]:
        """Create a network with its subnets and router; objects of an earlier attempt are used."""
        cloud, router = plan.cloud, None
        fields = neutron.network_fields(self.config.get("network_create_args"))
        network = neutron.create_once(cloud, "network", {**fields, "name": plan.name})
        if self._router:
            args = dict(self._router)
            args["discover_external_gw"] = args.pop("external", False)
            fields = neutron.router_fields(args, gateways[cloud])
            router = neutron.create_once(cloud, "router", {**fields, "name": plan.name})["id"]
        subnets = [
            self._make_subnet(plan, number, network["id"]) for number in range(self._subnets)
        ]
        if router is not None:
            _connect(cloud, router, subnets)
        return {
            "id": network["id"],
            "name": network["name"],
            "subnets": subnets,
            "router_id": router,
        }

    def _make_subnet(self, plan: _Plan, number: int, network: str) -> str:
        dualstack = self.config.get("dualstack", False)
        args: dict[str, Any] = {}
        if dualstack:
            args["ip_version"] = 6 if number % 2 else 4
        if "dns_nameservers" in self.config:
            args["dns_nameservers"] = self.config["dns_nameservers"]
        first = None if dualstack else self.config.get("start_cidr")
        fields = neutron.subnet_fields(network, args, plan.first + number, first)
        fields["name"] = f"{plan.name}-{number}"
        return str(neutron.create_once(plan.cloud, "subnet", fields)["id"])


def _connect(cloud: Cloud, router: str, subnets: list[str]) -> None:
    ports = neutron.listed(cloud, "port", device_id=router)
    there = {address["subnet_id"] for port in ports for address in port["fixed_ips"]}
    for subnet in subnets:
        if subnet not in there:
            neutron.change_router(cloud, router, "add_router_interface", subnet_id=subnet)
