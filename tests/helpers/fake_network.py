"""Neutron, Octavia and quotas of the small cloud, answering as their API references say.

Neutron is under /neutron/v2.0, Octavia under /octavia/v2.0/lbaas.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable
from typing import Any

from helpers.json_server import QuietHandler

#: Objects that a page of a list has at most; a test may set a lower number.
PAGE = 500
INTERFACE = "network:router_interface"
#: Fields by which lists are filtered.
_FILTERS = ("name", "id", "device_id", "router:external", "alive")
#: Quotas of a project of whose quotas none was set.
DEFAULT_QUOTA = 10
_QUOTAS = {
    "nova": (
        *("metadata_items", "key_pairs", "injected_file_content_bytes", "injected_files", "ram"),
        *("injected_file_path_bytes", "instances", "cores"),
    ),
    "cinder": ("volumes", "snapshots", "gigabytes"),
    "neutron": (
        *("network", "subnet", "port", "router", "floatingip", "security_group"),
        "security_group_rule",
    ),
    "manila": ("shares", "gigabytes", "share_networks"),
    "designate": ("zones", "zone_records"),
}
#: Keys of their documents; "" where the quotas are the document.
_QUOTA_KEYS = {"neutron": "quota", "designate": ""}


class NetworkRoutes(QuietHandler):
    """Routes of a cloud's handler."""

    server: Any
    params: dict[str, str]
    _answer: Callable[..., None]

    # Neutron

    def _neutron(self, rest: list[str], data: bytes, who: dict[str, str]) -> None:  # noqa: PLR0911 - one for each route
        _, kinds, *more = rest
        if kinds in ("bgpvpn", "fwaas"):
            kinds, *more = more
        if kinds == "quotas":
            return self._quotas("neutron", more[0], data)
        if kinds == "extensions":
            known = more[0] in self.server.extensions
            return self._answer(200 if known else 404, {"extension": {"alias": more[0]}})
        kind = re.sub(r"ies$|s$", lambda end: "y" * (end[0] == "ies"), kinds.replace("-", "_"))
        body = json.loads(data) if data else {}
        if more[1:] and kind in ("trunk", "firewall_policy"):
            return self._answer(200, {**self.server.objects[kind][more[0]], **body})
        if more[1:] and kind == "bgpvpn":
            return self._kept(more[1].removesuffix("s"), more[2:], body, who)
        if more[1:]:
            return self._interface(more[0], more[1], body)
        refused = self._refused(kind, more[0] if more else "", body.get(kind, {}))
        if refused:
            return self._answer(refused[0], {"NeutronError": {"message": refused[1]}})
        return self._kept(kind, more, body, who)

    def _refused(self, kind: str, identity: str, fields: dict[str, Any]) -> tuple[int, str] | None:
        if self.command == "POST" and kind == "subnet":
            return self._overlapping(fields)
        if self.command == "DELETE":
            ports = [one for one in self._all("port") if identity in _uses(one)]
            others = [
                one
                for of in ("subnet", "floatingip")
                for one in self._all(of)
                if one.get("network_id") == identity
            ]
            interfaces = [one for one in ports if one["device_owner"] == INTERFACE]
            in_use = interfaces if kind == "router" else ports + others
            if kind in ("network", "subnet", "router") and in_use:
                return 409, f"{kind} {identity} is in use"
        if kind == "router" and fields.get("external_gateway_info"):
            network = fields["external_gateway_info"]["network_id"]
            there = self.server.objects.get("network", {}).get(network, {})
            if not there.get("router:external"):
                return 400, f"Network {network} is not an external network"
        return None

    def _overlapping(self, fields: dict[str, Any]) -> tuple[int, str] | None:
        wanted = ipaddress.ip_network(fields["cidr"])
        for one in self._all("subnet"):
            there = ipaddress.ip_network(one["cidr"])
            same = one["network_id"] == fields["network_id"] and there.version == wanted.version
            if same and wanted.overlaps(there):  # type: ignore[arg-type] # of one version
                return 400, f"Requested subnet with cidr {wanted} overlaps with another subnet"
        return None

    def _all(self, kind: str) -> list[dict[str, Any]]:
        return list(self.server.objects.get(kind, {}).values())

    def _interface(self, router: str, change: str, body: dict[str, Any]) -> None:
        if change == "add_router_interface":
            made = self.server.make(
                "port",
                {
                    "name": "",
                    "device_id": router,
                    "device_owner": INTERFACE,
                    "fixed_ips": [{"subnet_id": body["subnet_id"]}],
                    "network_id": self.server.objects["subnet"][body["subnet_id"]]["network_id"],
                    "project_id": self.server.objects["router"][router]["project_id"],
                },
            )
            return self._answer(200, {"port_id": made["id"], "id": router})
        for port in self._all("port"):
            if port["device_id"] == router and set(body.values()) & _uses(port):
                del self.server.objects["port"][port["id"]]
                return self._answer(200, {"id": router})
        return self._answer(404, {"NeutronError": {"message": "Router has no such interface"}})

    # Octavia

    def _octavia(self, rest: list[str], data: bytes, who: dict[str, str]) -> None:
        _, _, kinds, *more = rest
        kind, body = kinds[:-1], json.loads(data) if data else {}
        if more[1:] == ["stats"]:
            return self._answer(200, {"stats": {"active_connections": 0}})
        there = self.server.objects.get(kind, {}).get(more[0]) if more else None
        if there is not None and self.command == "GET" and there["looks"]:
            there["looks"] -= 1
            there["provisioning_status"] = "PENDING_CREATE" if there["looks"] else "ACTIVE"
        if there is not None and self.command in ("PUT", "DELETE"):
            if there["provisioning_status"].startswith("PENDING"):
                said = f"{kind} {more[0]} is immutable and cannot be updated."
                return self._answer(409, {"faultstring": said, "debuginfo": None})
            if self.command == "DELETE" and kind == "loadbalancer":
                pools = [one for one in self._all("pool") if one["loadbalancer_id"] == more[0]]
                if pools and self.params.get("cascade") != "true":
                    return self._answer(400, {"faultstring": "it has children"})
                for pool in pools:
                    del self.server.objects["pool"][pool["id"]]
        if self.command == "POST":
            fails = self.server.balancers_fail
            status = "ERROR" if fails else "PENDING_CREATE"
            body[kind] |= {"looks": 0 if fails else 2, "provisioning_status": status}
        return self._kept(kind, more, body, who)

    # what both have

    def _kept(self, kind: str, more: list[str], body: dict[str, Any], who: dict[str, str]) -> None:
        """Make, list, get, change and delete objects of a kind."""
        kept = self.server.objects.setdefault(kind, {})
        if self.command == "POST":
            fields = {
                "project_id": who["project"],
                "device_owner": "",
                "device_id": "",
                **body[kind],
            }
            fields.setdefault("name", "")
            fields.setdefault("fixed_ips", [])
            if kind == "floatingip":
                fields.setdefault("port_id", None)
                fields["floating_ip_address"] = f"{self.server.floating_range}.{len(kept) + 1}"
            made = self.server.make(kind, fields)
            if kind == "subnet":
                self.server.objects["network"][made["network_id"]]["subnets"].append(made["id"])
            elif kind == "network":
                made.setdefault("subnets", [])
            return self._answer(201, {kind: made})
        if not more:
            return self._listed(kind, list(kept.values()))
        if more[0] not in kept:
            return self._answer(404, {"NeutronError": {"message": f"{more[0]} could not be found"}})
        if self.command == "DELETE":
            gone = kept.pop(more[0])
            if kind == "subnet":
                self.server.objects["network"][gone["network_id"]]["subnets"].remove(more[0])
            return self._answer(204, None)
        if self.command == "PUT":
            kept[more[0]] |= body[kind]
            if kind == "floatingip":
                self._show_address(kept[more[0]])
        return self._answer(200, {kind: kept[more[0]]})

    def _show_address(self, floating_ip: dict[str, Any]) -> None:
        """Show the address of a floating IP at the server of its port."""
        for server in self.server.objects.get("servers", {}).values():
            has = server["id"] == floating_ip["port_id"]
            address = {"addr": floating_ip["floating_ip_address"]}
            fixed = self.server.fixed_addresses
            server["addresses"] = {"net": [*fixed.get("net", ()), address]} if has else fixed

    def _listed(self, kind: str, found: list[dict[str, Any]]) -> None:
        wanted = {name: self.params[name] for name in _FILTERS if name in self.params}
        project = self.params.get("project_id")
        device = self.params.get("device_id")
        if kind == "port" and device in self.server.objects.get("servers", {}):
            # a port of a server has the server's id
            has = [{"id": device, "device_id": device}]
            found = [*found, *(has if self.server.has_ports else ())]
        fitting = sorted(
            (
                one
                for one in found
                if all(str(one.get(name, False)) == value for name, value in wanted.items())
                and project in (None, one.get("project_id"))
            ),
            key=lambda one: str(one["id"]),
        )
        size = min(int(self.params.get("limit", PAGE)), self.server.page or PAGE)
        after = [one for one in fitting if str(one["id"]) > self.params.get("marker", "")]
        several = f"{kind}s".replace("policys", "policies")
        answer: dict[str, Any] = {several: after[:size]}
        if after[size:]:
            path = self.path.partition("?")[0]
            href = f"{self.server.url}{path}?limit={size}&marker={after[size - 1]['id']}"
            answer[f"{several}_links"] = [{"rel": "next", "href": href}]
        return self._answer(200, answer)

    # quotas of Nova, Cinder and Neutron

    def _quota_sets(self, rest: list[str], data: bytes, who: dict[str, str]) -> None:
        self._quotas(self.path.split("/")[1], rest[1], data)

    def _quotas(self, service: str, project: str, data: bytes) -> None:
        kept = self.server.quotas
        key = _QUOTA_KEYS.get(service, "quota_set")
        if self.command == "DELETE":
            kept.pop((service, project), None)
            return self._answer(204 if service == "neutron" else 202, None)
        found = dict.fromkeys(_QUOTAS[service], DEFAULT_QUOTA) | kept.get((service, project), {})
        if self.command in ("PUT", "PATCH"):
            sent = json.loads(data)
            wanted = sent[key] if key else sent
            unknown = wanted.keys() - found.keys() - {"tenant_id"}
            if unknown:
                return self._answer(400, {"badRequest": {"message": f"no quota {unknown}"}})
            kept[service, project] = found | wanted
            found = kept[service, project]
        return self._answer(200, {key: found} if key else found)


def _uses(port: dict[str, Any]) -> set[str]:
    """The network, the subnets and the device of a port, and its own id."""
    subnets = {address["subnet_id"] for address in port["fixed_ips"]}
    return {port["network_id"], port["id"], port["device_id"], *subnets}


def is_quota_path(path: str) -> bool:
    """Whether a path is that of quotas of Nova or Cinder."""
    return re.fullmatch(r"/(nova|cinder)/os-quota-sets/[^/]+(/defaults)?", path) is not None
