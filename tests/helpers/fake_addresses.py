"""Floating IPs and security groups of the small cloud's Neutron: under /neutron."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from helpers.json_server import QuietHandler


class AddressRoutes(QuietHandler):
    """Routes of a cloud's handler."""

    server: Any
    params: dict[str, str]
    _answer: Callable[..., None]

    def _neutron(self, rest: list[str], data: bytes, who: dict[str, str]) -> None:  # noqa: PLR0911 - one for each route
        body = json.loads(data) if data else {}
        _, path, *more = rest
        kind = path.replace("-", "_")
        key = kind[:-1]
        kept = self.server.objects.setdefault(kind, {})
        if kind == "extensions":
            return self._answer(200 if more[0] in self.server.extensions else 404, {})
        if kind == "ports":
            servers = self.server.objects.get("servers", {})
            there = self.params["device_id"] in servers and self.server.has_ports
            return self._answer(200, {"ports": [{"id": self.params["device_id"]}] if there else []})
        if self.command == "POST":
            number = len(kept) + 1
            usual = {"floating_ip_address": f"192.0.2.{number}", "name": "", "port_id": None}
            made = self.server.make(kind, {**usual, **body[key]})
            return self._answer(201, {key: made})
        if not more:
            marker = self.params.get("marker", "")
            name = self.params.get("name")
            found = [
                one for one in kept.values() if one["id"] > marker and name in (None, one["name"])
            ]
            return self._answer(200, {kind: sorted(found, key=lambda one: str(one["id"]))})
        if more[0] not in kept:
            return self._answer(404, {"NeutronError": {"message": f"{more[0]} is not there"}})
        if self.command == "DELETE":
            del kept[more[0]]
            return self._answer(204, None)
        kept[more[0]] |= body[key]
        self._show_address(kept[more[0]])
        return self._answer(200, {key: kept[more[0]]})

    def _show_address(self, floating_ip: dict[str, Any]) -> None:
        """Show the address of a floating IP at the server of its port."""
        for server in self.server.objects.get("servers", {}).values():
            has = server["id"] == floating_ip["port_id"]
            address = {"addr": floating_ip["floating_ip_address"]}
            server["addresses"] = {"net": [address]} if has else {}
