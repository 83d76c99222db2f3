"""Requests to Neutron shared by contexts and scenarios: lists, subnets, external networks.

Kinds are named as in bodies of requests: `network`, `floatingip`, `security_group_rule`. Functions
that send requests raise the errors of `Cloud.document`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qs, urlsplit

from osbench.common.errors import DeploymentError
from osbench.edges.openstack.common.cloud import Cloud
from osbench.edges.openstack.common.object_lists import identities

SERVICE = "neutron"
#: Key of networks for iterations in what contexts make: a list for each project's id.
NETWORKS = "networks"
#: Key of the number of address ranges that contexts have used.
RANGES_USED = "network_ranges_used"

#: First address range, and name servers of a subnet, by IP version; as in Rally.
_FIRST_RANGES: Mapping[int, str] = MappingProxyType({4: "10.2.0.0/24", 6: "dead:beaf::/64"})
_NAME_SERVERS: Mapping[int, tuple[str, ...]] = MappingProxyType(
    {4: ("8.8.8.8", "8.8.4.4"), 6: ("dead:beaf::1", "dead:beaf::2")}
)
#: Names of attributes in Rally's arguments that Neutron calls otherwise.
_RENAMED: Mapping[str, str] = MappingProxyType(
    {
        "provider_network_type": "provider:network_type",
        "provider_physical_network": "provider:physical_network",
        "provider_segmentation_id": "provider:segmentation_id",
        "router_external": "router:external",
    }
)
#: Folders of extensions, and the beginning of the kinds in them.
_FOLDERS: Mapping[str, str] = MappingProxyType({"bgpvpn": "bgpvpn", "fwaas": "firewall_"})
#: Attributes by which osbench finds what it has created: the name, and the project.
RESERVED = ("name", "project_id", "tenant_id")


def plural(kind: str) -> str:
    """Return the key of a list of a kind, such as "firewall_policies"."""
    return f"{kind.removesuffix('y')}ies" if kind.endswith("cy") else f"{kind}s"


def path_of(kind: str, identity: str = "") -> str:
    """Return the path of a kind's list, such as "security-group-rules", or of an object by id."""
    folder = next((one for one, kinds in _FOLDERS.items() if kind.startswith(kinds)), "")
    # paths of extensions with a folder have underscores
    listed_at = f"{folder}/{plural(kind)}" if folder else plural(kind).replace("_", "-")
    return f"{listed_at}/{identity}" if identity else listed_at


def listed(cloud: Cloud, kind: str, **filters: Any) -> list[dict[str, Any]]:
    """Return all objects of a kind that match `filters`, query parameters; reads all pages."""
    return pages(cloud, SERVICE, path_of(kind), plural(kind), filters)


def pages(
    cloud: Cloud, service: str, path: str, key: str, params: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return all objects of a list, from all pages, by the links of the service.

    Links of Neutron and Octavia are a list, Designate's a mapping. `key`: the key of the list in
    each document. `params`: the query of the first page. Ends at a page without a new object.
    """
    found: list[dict[str, Any]] = []
    known: set[str] = set()
    while True:
        document = cloud.document("GET", service, path, params=params)
        fresh = identities(document[key]) - known
        if not fresh:
            return found
        known |= fresh
        found += document[key]
        following = [
            link["href"] for link in document.get(f"{key}_links") or () if link["rel"] == "next"
        ]
        links = document.get("links") or {}
        following += [links["next"]] if links.get("next") else []
        if not following:
            return found
        params = parse_qs(urlsplit(following[0]).query)


def create(cloud: Cloud, kind: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Create an object with the attributes `fields`; return it as Neutron's response has it."""
    document = cloud.document("POST", SERVICE, path_of(kind), json={kind: dict(fields)})
    made: dict[str, Any] = document[kind]
    return made


def create_once(cloud: Cloud, kind: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object named `fields["name"]`; create it with `fields` if there is none.

    A retry thus does not create a second object.
    """
    found = listed(cloud, kind, name=fields["name"])
    return found[0] if found else create(cloud, kind, fields)


def change_router(cloud: Cloud, router: str, change: str, **fields: Any) -> None:
    """Add an interface to a router, or remove it.

    `router`: its id. `change`: `add_router_interface` or `remove_router_interface`. `fields`:
    `subnet_id` or `port_id`.
    """
    cloud.request("PUT", SERVICE, f"{path_of('router', router)}/{change}", json=fields)


def remove_security_groups(admin: Cloud, project: str) -> None:
    """Delete all security groups of `project` (an id): the default one does not go with it."""
    for group in listed(admin, "security_group", project_id=project):
        # a service may ignore parameters
        if group.get("project_id", project) == project:
            path = path_of("security_group", group["id"])
            admin.request("DELETE", SERVICE, path, expected=(204, 404))


def network_fields(args: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a new dict of Rally's network arguments with Neutron's names; {} for None."""
    return {_RENAMED.get(key, key): value for key, value in (args or {}).items()}


def router_fields(args: Mapping[str, Any] | None, external: str) -> dict[str, Any]:
    """Return a new dict of Neutron's router attributes from Rally's arguments; {} for None.

    `external`: the id of an external network, or "". With `discover_external_gw` it becomes the
    gateway, with SNAT if `enable_snat` is true, unless `args` have `external_gateway_info`.
    """
    fields = dict(args or {})
    discover = fields.pop("discover_external_gw", False)
    snat = fields.pop("enable_snat", None)
    if discover and external and "external_gateway_info" not in fields:
        fields["external_gateway_info"] = {"network_id": external}
        if snat:
            fields["external_gateway_info"]["enable_snat"] = True
    return fields


def subnet_fields(
    network: str, args: Mapping[str, Any] | None, number: int, first: str | None = None
) -> dict[str, Any]:
    """Return a new dict of Neutron's subnet attributes for the network id `network`.

    `args`: Rally's arguments. Without `cidr` it gets address range `number`, counted from the range
    `start_cidr`, else `first`, else a default. Adds name servers if `args` have none. Raises
    ValueError for a malformed range.
    """
    fields = {"network_id": network, **(args or {})}
    first = fields.pop("start_cidr", None) or first
    if "cidr" not in fields:
        fields["cidr"] = address_range(number, first, fields.get("ip_version", 4))
        fields["ip_version"] = version_of(fields["cidr"])
    fields.setdefault("ip_version", version_of(fields["cidr"]))
    fields.setdefault("dns_nameservers", list(_NAME_SERVERS[fields["ip_version"]]))
    return fields


def version_of(addresses: str) -> int:
    """Return the IP version, 4 or 6, of an address range. Raises ValueError if it is malformed."""
    return ipaddress.ip_network(addresses, strict=False).version


def address_range(number: int, first: str | None = None, version: int = 4) -> str:
    """Return address range `number` in CIDR notation; the range `first` is number 0.

    All ranges have the size of `first`; if None, a default range of the IP `version`. After the
    last address of the IP version, numbering starts again at `first`. Raises ValueError if `first`
    is malformed.
    """
    start = ipaddress.ip_network(first or _FIRST_RANGES[version], strict=False)
    begin, size = int(start.network_address), start.num_addresses
    count = (2**start.max_prefixlen - begin) // size
    # the class says the version: small numbers would be taken for IPv4
    address = type(start.network_address)(begin + number % count * size)
    return f"{address}/{start.prefixlen}"


def external_network(cloud: Cloud, wanted: str | None = None) -> str:
    """Return the id of the external network with the name or id `wanted`; None: the first one.

    "" if `wanted` is None and there is none. Raises DeploymentError if `wanted` does not exist or
    is not external.
    """
    found = listed(cloud, "network", **{"router:external": True})
    fitting = [one for one in found if wanted in (None, one["name"], one["id"])]
    if wanted is not None and not fitting:
        there = ", ".join(sorted(str(one["name"]) for one in found)[:10])
        raise DeploymentError(
            f"there is no external network {wanted!r}; "
            f"{f'choose from {there}' if there else 'create one'}"
        )
    return str(fitting[0]["id"]) if fitting else ""


def floating_network(cloud: Cloud, wanted: str | None = None) -> str:
    """Return the id of the external network for floating IPs: `wanted`, or the first for None.

    Raises DeploymentError if there is none, or `wanted` is not one.
    """
    found = external_network(cloud, wanted)
    if not found:
        raise DeploymentError(
            "there is no external network for floating IPs: create one (router:external), or "
            "leave floating IPs out"
        )
    return found
