"""Kinds of a seed in Neutron: networks, subnets, ports, routers and security groups."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from osbench.common.errors import Problem
from osbench.edges.openstack.common import neutron
from osbench.edges.openstack.seeding.seed_maker import SeedEntry, SeedMaker, SeedObject

#: Address range of the first subnet; each has as many addresses.
_FIRST_RANGE = "10.2.0.0/20"
#: Addresses of a subnet that no port gets: network, broadcast, gateway, DHCP.
_TAKEN = 4


class SeedNetworks(SeedMaker):
    """Networks of the project; `fields` such as `mtu` or `provider:network_type`."""

    WORD: ClassVar[str] = "networks"
    GROUP: ClassVar[str] = "network"
    KIND: ClassVar[str] = "neutron.networks"
    KEY: ClassVar[str] = "network"
    QUOTA: ClassVar[str] = "network"


class SeedSubnets(SeedMaker):
    """Subnets of networks of the seed, in turn; their address ranges do not overlap."""

    WORD: ClassVar[str] = "subnets"
    GROUP: ClassVar[str] = "subnet"
    KIND: ClassVar[str] = "neutron.subnets"
    KEY: ClassVar[str] = "subnet"
    PARENTS: ClassVar[tuple[str, ...]] = ("networks",)
    NEEDS_PARENT: ClassVar[bool] = True
    ONE_EACH: ClassVar[bool] = True
    PROPERTIES: ClassVar[Mapping[str, Any]] = {"start_cidr": {"type": "string"}}
    RESERVED: ClassVar[tuple[str, ...]] = (*neutron.RESERVED, "network_id", "cidr")
    QUOTA: ClassVar[str] = "subnet"

    @classmethod
    def problems(cls, entry: SeedEntry, entries: Sequence[SeedEntry]) -> list[Problem]:
        """Return a problem also for a malformed address range."""
        found = super().problems(entry, entries)
        try:
            neutron.version_of(_first_range(entry))
        except ValueError as error:
            where = f"{entry.place}.start_cidr"
            found.append(Problem(where, f"{error}; give a range such as {_FIRST_RANGE}"))
        return found

    def fields(self, one: SeedObject) -> dict[str, Any]:
        """Return network, address range and name servers."""
        given = self.option.get("fields")
        return neutron.subnet_fields(one.parent, given, one.number - 1, _first_range(self.entry))


class SeedPorts(SeedMaker):
    """Ports in networks of the seed, in turn."""

    WORD: ClassVar[str] = "ports"
    GROUP: ClassVar[str] = "port"
    KIND: ClassVar[str] = "neutron.ports"
    KEY: ClassVar[str] = "port"
    PARENTS: ClassVar[tuple[str, ...]] = ("networks",)
    NEEDS_PARENT: ClassVar[bool] = True
    RESERVED: ClassVar[tuple[str, ...]] = (*neutron.RESERVED, "network_id")
    QUOTA: ClassVar[str] = "port"

    @classmethod
    def problems(cls, entry: SeedEntry, entries: Sequence[SeedEntry]) -> list[Problem]:
        """Return a problem also if the subnets of a network have too few addresses."""
        found = super().problems(entry, entries)
        networks = next((one.count for one in entries if one.group == entry.of), 0)
        if not networks or "fixed_ips" in entry.options.get("fields", {}):
            return found
        inside = [one for one in entries if one.of == entry.of]
        ports = sum(-(-one.count // networks) for one in inside if one.word == cls.WORD)
        # a network without subnet has ports without address
        room = sum(one.count // networks * _room(one) for one in inside if one.word == "subnets")
        if room and ports > room:
            message = (
                f"{ports:,} ports in each network need as many addresses, and its subnets have "
                f"{room:,}: give the subnets a larger start_cidr, such as 10.0.0.0/16, or make "
                "more networks"
            )
            found.append(Problem(entry.place, message))
        return found

    def fields(self, one: SeedObject) -> dict[str, Any]:
        """Return the network."""
        return {"network_id": one.parent}


class SeedRouters(SeedMaker):
    """Routers of the project, without interfaces."""

    WORD: ClassVar[str] = "routers"
    GROUP: ClassVar[str] = "router"
    KIND: ClassVar[str] = "neutron.routers"
    KEY: ClassVar[str] = "router"
    QUOTA: ClassVar[str] = "router"


class SeedSecurityGroups(SeedMaker):
    """Security groups of the project, with the rules that Neutron gives each."""

    WORD: ClassVar[str] = "security_groups"
    GROUP: ClassVar[str] = "security_group"
    KIND: ClassVar[str] = "neutron.security_groups"
    KEY: ClassVar[str] = "security_group"
    QUOTA: ClassVar[str] = "security_group"


def _first_range(entry: SeedEntry) -> str:
    return str(entry.options.get("start_cidr", _FIRST_RANGE))


def _room(subnets: SeedEntry) -> int:
    """Return how many ports get an address in each of the subnets; 0 for a malformed range."""
    try:
        size = ipaddress.ip_network(_first_range(subnets), strict=False).num_addresses
    except ValueError:
        return 0
    return max(1, size - _TAKEN)
