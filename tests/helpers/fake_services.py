"""Barbican, Designate, Gnocchi, Ironic, Magnum and Manila of the small cloud.

They answer as their API references say, under paths of their names.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable
from typing import Any

from helpers.fake_compute import advance, change
from helpers.json_server import QuietHandler

#: Keys of one object of Manila, by path.
_SHARES = {
    "shares": "share",
    "share-networks": "share_network",
    "security-services": "security_service",
    "share-servers": "share_server",
}
#: Objects of Gnocchi that are found by their names.
_BY_NAME = ("archive_policy", "archive_policy_rule", "resource_type")


def _shown(one: dict[str, Any]) -> dict[str, Any]:
    """An object of Barbican as it is answered: its id is in the reference."""
    return {key: value for key, value in one.items() if key not in ("id", "made_at")}


class ServiceRoutes(QuietHandler):
    """Routes of a cloud's handler."""

    server: Any
    params: dict[str, str]
    _answer: Callable[..., None]
    _quotas: Callable[..., None]

    def _cut(self, found: list[dict[str, Any]], usual: int) -> list[dict[str, Any]]:
        """Cut a page out of a list, by number, or by the id of the last object before it."""
        size = min(int(self.params.get("limit", usual)), usual)
        begin = int(self.params.get("offset", 0))
        marker = self.params.get("marker")
        if marker is not None:
            begin = [one["id"] for one in found].index(marker) + 1
        return found[begin : begin + size]

    def _gone(self, kept: dict[str, Any], identity: str, status: int = 204) -> None:
        gone = kept.pop(identity, None)
        self._answer(status if gone else 404, None if gone else {"title": "Not found"})

    # Barbican

    def _barbican(self, rest: list[str], data: bytes, who: dict[str, str]) -> None:
        # the client writes ids with dashes
        _, kind, *more = (part.replace("-", "") for part in rest)
        kept, reference = self.server.objects.setdefault(kind, {}), f"{kind[:-1]}_ref"
        if self.command == "POST":
            made = self.server.make(kind, {**json.loads(data), "status": "ACTIVE"})
            made[reference] = f"{self.server.url}/barbican/v1/{kind}/{made['id']}"
            return self._answer(201, {reference: made[reference]})
        if not more:
            found = [_shown(one) for one in self._cut(list(kept.values()), 100)]
            return self._answer(200, {kind: found})
        if self.command == "DELETE":
            return self._gone(kept, more[0])
        return self._answer(200, _shown(kept[more[0]]))

    # Designate

    def _designate(self, rest: list[str], data: bytes, who: dict[str, str]) -> None:
        if rest[1] == "quotas":
            # of another project than one's own
            seen = self.server.seen[-1][2].get("x-auth-all-projects")
            refused = who["project"] != rest[2] and seen != "true"
            return self._answer(403, {}) if refused else self._quotas("designate", rest[2], data)
        kind = "recordsets" if "recordsets" in rest else "zones"
        more = rest[rest.index(kind) + 1 :]
        kept = self.server.objects.setdefault(kind, {})
        if self.command == "POST":
            names = {one["name"] for one in kept.values()}
            fields = json.loads(data)
            if fields["name"] in names:
                return self._answer(409, {"code": 409, "message": "Duplicate Zone"})
            zone = rest[2] if kind == "recordsets" else ""
            fields |= {"status": "ACTIVE", "zone_id": zone, "project_id": who["project"]}
            return self._answer(202, self.server.make(kind, fields))
        if not more:
            wanted = re.escape(self.params.get("name", "*")).replace(r"\*", ".*")
            mine = [one for one in kept.values() if one["project_id"] == who["project"]]
            found = [one for one in mine if re.fullmatch(wanted, one["name"])]
            page = self._cut(found, self.server.page or 20)
            links = {"self": self.path}
            if page and page[-1] is not found[-1]:
                links["next"] = f"{self.server.url}/designate/v2/{kind}?marker={page[-1]['id']}"
            return self._answer(200, {kind: page, "links": links})
        return self._gone(kept, more[0], 202)

    # Gnocchi

    def _gnocchi(self, rest: list[str], data: bytes, who: dict[str, str]) -> None:  # noqa: PLR0911 - one for each route
        _, kind, *more = rest
        if kind in ("status", "capabilities"):
            return self._answer(200, {"storage": {}, "aggregation_methods": ["mean"]})
        if kind == "resource" and more[2:3] == ["metric"]:
            kind, more = "metric", more[3:]
            kept = self.server.objects.setdefault(kind, {})
            if self.command == "POST":
                for name, fields in json.loads(data).items():
                    self.server.make(kind, {"name": name, **fields})
                return self._answer(201, [])
            return self._answer(200, self.server.find(kind, more[0]))
        more = more[1:] if kind == "resource" else more
        kept = self.server.objects.setdefault(kind, {})
        if self.command == "POST":
            fields = json.loads(data)
            named = {"id": fields["name"]} if kind in _BY_NAME else {}
            if kind == "resource":
                named = {"original_resource_id": fields.pop("id")}
            return self._answer(201, self.server.make(kind, {**fields, **named}))
        if not more:
            return self._answer(200, self._cut(list(kept.values()), 1000))
        there = kept.get(str(uuid.UUID(more[0]).hex) if kind == "metric" else more[0])
        if self.command == "GET":
            return self._answer(200 if there else 404, there or {})
        return self._gone(kept, there["id"] if there else "")

    # Ironic and Magnum

    def _ironic(self, rest: list[str], data: bytes, who: dict[str, str]) -> None:
        self._by_uuid(rest[1:], data, {"provision_state": "available"})

    def _magnum(self, rest: list[str], data: bytes, who: dict[str, str]) -> None:
        self._by_uuid(rest[1:], data, {"status": "CREATE_COMPLETE"})

    def _by_uuid(self, rest: list[str], data: bytes, more: dict[str, Any]) -> None:
        kind, *identity = rest
        kept = self.server.objects.setdefault(kind, {})
        if self.command == "POST":
            made = self.server.make(kind, {**json.loads(data), **more})
            made["uuid"] = made["id"]
            return self._answer(201, made)
        if not identity or identity == ["detail"]:
            return self._answer(200, {kind: self._cut(list(kept.values()), 1000)})
        if self.command == "DELETE":
            return self._gone(kept, identity[0])
        there = kept.get(identity[0])
        return self._answer(200 if there else 404, there or {})

    # Manila

    def _manila(self, rest: list[str], data: bytes, who: dict[str, str]) -> None:  # noqa: PLR0911 - one for each route
        _, kind, *more = rest
        if kind == "os-quota-sets":
            return self._quotas("manila", more[0], data)
        body, key = json.loads(data) if data else {}, _SHARES[kind]
        kept = self.server.objects.setdefault(kind, {})
        if self.command == "GET" and kind == "shares":
            advance(kept)
        if self.command == "POST" and not more:
            made = self.server.make(kind, {**body[key], "project_id": who["project"]})
            if kind == "shares":
                status = "error" if self.server.volumes_fail else "available"
                change(made, {"status": "creating"}, {"status": status})
            return self._answer(200, {key: made})
        if not more or more == ["detail"]:
            name = self.params.get("name")
            mine = [one for one in kept.values() if one["project_id"] == who["project"]]
            found = [one for one in mine if name in (None, one["name"])]
            return self._answer(200, {kind.replace("-", "_"): self._cut(found, 1000)})
        if more[1:] == ["action"]:
            return self._act_on_share(kept[more[0]], key, body)
        if more[1:2] == ["metadata"]:
            metadata = kept[more[0]].setdefault("metadata", {})
            if self.command == "DELETE":
                return self._gone(metadata, more[2], 202)
            metadata |= body["metadata"]
            return self._answer(200, {"metadata": metadata})
        if self.command == "DELETE":
            return self._gone(kept, more[0], 202)
        there = kept.get(more[0])
        missing = {"itemNotFound": {"code": 404, "message": f"{more[0]} could not be found."}}
        return self._answer(200 if there else 404, {key: there} if there else missing)

    def _act_on_share(self, found: dict[str, Any], key: str, body: dict[str, Any]) -> None:
        ((name, wanted),) = body.items()
        rules = found.setdefault("rules", {})
        if name == "add_security_service":
            return self._answer(200, {key: found})
        if name in ("os-extend", "os-shrink"):
            change(
                found,
                {"status": f"{name[3:]}ing"},
                {"status": "available", "size": wanted["new_size"]},
            )
            return self._answer(202, None)
        if name == "os-allow_access":
            rule = {"id": f"{len(rules) + 1:032x}", "state": "new", **wanted}
            rules[rule["id"]] = rule
            return self._answer(200, {"access": rule})
        if name == "os-deny_access":
            return self._gone(rules, wanted["access_id"], 202)
        shown = [dict(rule) for rule in rules.values()]
        for rule in rules.values():
            rule["state"] = "active"
        return self._answer(200, {"access_list": shown})
