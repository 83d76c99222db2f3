"""Cinder of the small cloud, answering as its API reference says: under /cinder."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from helpers.fake_compute import advance, change
from helpers.json_server import QuietHandler

#: Kinds that are there at once, with the keys of one and of several.
_DEFINED = {
    "types": ("volume_type", "volume_types"),
    "qos-specs": ("qos_specs", "qos_specs"),
    "os-volume-transfer": ("transfer", "transfers"),
}


class VolumeRoutes(QuietHandler):
    """Routes of a cloud's handler."""

    server: Any
    params: dict[str, str]
    _answer: Callable[..., None]

    def _cinder(self, rest: list[str], data: bytes, who: dict[str, str]) -> None:  # noqa: PLR0911 - one for each route
        body = json.loads(data) if data else {}
        kind, *more = rest
        if kind in _DEFINED:
            return self._defined(kind, more, body)
        kept = self.server.objects.setdefault(kind, {})
        key = kind[:-1]
        if self.command == "GET":
            advance(kept)
        if self.command == "POST" and not more:
            return self._create_volume(kind, key, body[key], who)
        if not more or more == ["detail"]:
            return self._volume_page(kind, list(kept.values()), who)
        if more[0] not in kept:
            return self._answer(404, {"itemNotFound": {"message": f"{key} could not be found."}})
        found = kept[more[0]]
        if more[1:] == ["action"]:
            return self._change_volume(found, body)
        if more[1:] == ["restore"]:
            fields = {"name": body["restore"]["name"] or "restored", "size": 1}
            made = self.server.make("volumes", {**fields, "project": who["project"]})
            change(made, {"status": "restoring-backup"}, {"status": "available"})
            return self._answer(202, {"restore": {"volume_id": made["id"]}})
        if more[1:2] == ["metadata"]:
            return self._answer(200, body or None)
        if self.command == "DELETE":
            return self._remove_volume(kind, found)
        if self.command == "PUT":
            found |= body[key]
        return self._answer(200, {key: found})

    def _defined(self, kind: str, more: list[str], body: dict[str, Any]) -> None:  # noqa: PLR0911 - one for each route
        """Types of volumes, QoS specs and transfers, and what is below them."""
        kept, (key, several) = self.server.objects.setdefault(kind, {}), _DEFINED[kind]
        if not more or more == ["detail"]:
            if self.command == "POST":
                more = {"os-volume-transfer": {"auth_key": "k"}, "qos-specs": {"specs": {}}}
                if kind == "types" and self.server.find(kind, body[key]["name"]):
                    return self._answer(409, {"conflictingRequest": {"message": "it exists"}})
                made = self.server.make(kind, body[key])
                return self._answer(200, {key: {**made, **more.get(kind, {})}})
            return self._answer(200, {several: list(kept.values())})
        if more[0] not in kept:
            return self._answer(404, {"itemNotFound": {"message": f"{key} could not be found."}})
        if more[1:2] == ["encryption"]:
            found = {**body.get("encryption", {}), "volume_type_id": more[0], "encryption_id": "e"}
            flat = self.command == "GET"
            return self._answer(
                202 if self.command == "DELETE" else 200, found if flat else {"encryption": found}
            )
        if self.command == "DELETE" or more[1:] == ["accept"]:
            del kept[more[0]]
            return self._answer(202, body or None)
        if more[1:]:
            return self._answer(202 if more[1] == "action" else 200, body or {"access": []})
        if self.command == "PUT":
            kept[more[0]] |= body[key]
        return self._answer(200, {key: kept[more[0]]})

    def _volume_page(self, kind: str, found: list[dict[str, Any]], who: dict[str, str]) -> None:
        own = [one for one in found if one.get("project") in (None, who["project"])]
        name = self.params.get("name")
        ordered = sorted((one for one in own if name in (None, one["name"])), key=lambda x: x["id"])
        after = [one for one in ordered if one["id"] > self.params.get("marker", "")]
        size = min(int(self.params.get("limit", 1000)), self.server.volumes_page)
        answer: dict[str, Any] = {kind: after[:size]}
        if after[size:]:
            answer[f"{kind}_links"] = [{"rel": "next", "href": ""}]
        self._answer(200, answer)

    def _create_volume(
        self, kind: str, key: str, fields: dict[str, Any], who: dict[str, str]
    ) -> None:
        status = "error" if self.server.volumes_fail else "available"
        made = self.server.make(kind, {"size": 1, **fields, "project": who["project"]})
        change(made, {"status": "creating"}, {"status": status})
        self._answer(202, {key: made})

    def _change_volume(self, volume: dict[str, Any], body: dict[str, Any]) -> None:
        ((action, wanted),) = body.items()
        if volume["status"] not in ("available", "in-use"):
            said = f"Invalid volume: status is {volume['status']}."
            return self._answer(400, {"badRequest": {"message": said}})
        if action == "os-update_readonly_flag":
            return self._answer(202, None)
        if action == "os-extend":
            size = {"size": wanted["new_size"]}
            change(volume, {"status": "extending"}, {"status": volume["status"], **size})
            return self._answer(202, None)
        image = self.server.make("images", {"name": wanted["image_name"], "status": "active"})
        change(volume, {"status": "uploading"}, {"status": "available"})
        return self._answer(202, {action: {**wanted, "image_id": image["id"]}})

    def _remove_volume(self, kind: str, found: dict[str, Any]) -> None:
        if self.server.undeletable:
            found["status"] = "error_deleting"
            return self._answer(202, None)
        snapshots = self.server.objects.get("snapshots", {}).values()
        used = any(one["volume_id"] == found["id"] for one in snapshots)
        free = ("available", "error", "error_deleting")
        if found["status"] not in free or (kind == "volumes" and used):
            said = (
                "Invalid volume: Volume status must be available or error and must not be "
                "attached or have snapshots."
            )
            return self._answer(400, {"badRequest": {"message": said}})
        volumes = self.server.objects.get("volumes", {}).values()
        if kind == "snapshots" and any(one.get("snapshot_id") == found["id"] for one in volumes):
            # as a back end whose volumes share data with the snapshots that they were made from
            change(found, {"status": "deleting"}, {"status": "available"})
            return self._answer(202, None)
        change(found, {"status": "deleting"}, None)
        return self._answer(202, None)
