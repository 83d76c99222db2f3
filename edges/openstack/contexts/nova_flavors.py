"""The context `flavors`: flavors of Nova."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, ClassVar

from osbench.plugin import context
from osbench.plugin.cloud import CloudAccess

_DEFAULTS = {"vcpus": 1, "disk": 0, "swap": 0, "ephemeral": 0}


class FlavorsByName(context.Context):
    """Creates flavors, as the admin. A flavor whose name exists is used, and not removed."""

    NAME: ClassVar[str] = "flavors"
    ORDER: ClassVar[int] = 340
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "array",
        "description": "flavors, each with a name",
        "items": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "ram": {"type": "integer", "minimum": 1, "description": "MB"},
                "vcpus": {"type": "integer", "minimum": 1, "description": "1 by default"},
                "disk": {"type": "integer", "minimum": 0, "description": "GB; 0 by default"},
                "swap": {"type": "integer", "minimum": 0, "description": "MB; 0 by default"},
                "ephemeral": {"type": "integer", "minimum": 0, "description": "GB; 0 by default"},
                "extra_specs": {"type": "object", "additionalProperties": {"type": "string"}},
            },
            "additionalProperties": False,
            "required": ["name", "ram"],
        },
        "examples": [[{"name": "tiny", "ram": 64, "extra_specs": {"hw:cpu_policy": "shared"}}]],
    }

    def setup(self) -> None:
        """Create the configured flavors with their extra specs, several at the same time.

        Before the first request stores their ids, which contain the run. If another flavor has the
        name, none is created: iterations use that one.
        """
        access = CloudAccess(self.surroundings, self.NAME)
        # names are the task's: flavors of this run are known by their ids
        self.made["flavor_ids"] = self._ids(access)
        self.keep()
        planned = list(zip(self.config, self.made["flavor_ids"], strict=True))
        access.each("flavors made", planned, lambda one: self._make(access, *one))

    def cleanup(self) -> None:
        """Delete the flavors that setup has created, by id; missing ones count as deleted."""
        ids = self.made.get("flavor_ids")
        if not ids:
            return
        access = CloudAccess(self.surroundings, self.NAME)
        admin = access.admin
        access.each(
            "flavors removed",
            ids,
            lambda one: admin.request("DELETE", "nova", f"flavors/{one}", expected=(202, 204, 404)),
        )

    def _ids(self, access: CloudAccess) -> list[str]:
        return [f"{access.beginning}-{self.NAME}-{number}" for number in range(len(self.config))]

    def _make(self, access: CloudAccess, config: Mapping[str, Any], identity: str) -> None:
        given = {**_DEFAULTS, **config}
        specs = given.pop("extra_specs", None)
        ephemeral = given.pop("ephemeral")
        wanted = {**given, "OS-FLV-EXT-DATA:ephemeral": ephemeral, "id": identity}
        admin = access.admin
        response = admin.request(
            "POST", "nova", "flavors", json={"flavor": wanted}, expected=(200, 201, 409)
        )
        if response.status_code == HTTPStatus.CONFLICT:
            own = admin.request("GET", "nova", f"flavors/{identity}", expected=(200, 404))
            if own.status_code == HTTPStatus.NOT_FOUND:
                # there is another of this name
                return
        if specs:
            path = f"flavors/{identity}/os-extra_specs"
            admin.request("POST", "nova", path, json={"extra_specs": dict(specs)})
