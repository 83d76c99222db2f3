"""The context `volumes`: volumes of Cinder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from osbench.plugin.cloud import Cloud, PerProjectContext


class ProjectVolumes(PerProjectContext):
    """Creates volumes in every project; iterations use a random volume.

    `volumes_per_tenant` in each, by default one.
    """

    NAME: ClassVar[str] = "volumes"
    ORDER: ClassVar[int] = 420
    SERVICE: ClassVar[str] = "cinder"
    KEY: ClassVar[str] = "volumes"
    COUNT: ClassVar[str] = "volumes_per_tenant"
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "size": {"type": "integer", "minimum": 1, "description": "GB"},
            "type": {
                "anyOf": [{"type": "string"}, {"type": "null"}],
                "description": "type of the volumes; Cinder's default one by default",
            },
            "volumes_per_tenant": {
                "type": "integer",
                "minimum": 1,
                "description": "volumes in each project; 1 by default",
            },
        },
        "required": ["size"],
        "additionalProperties": False,
        "examples": [{"size": 1, "volumes_per_tenant": 2}],
    }

    def setup(self) -> None:
        """Create volumes, await that they are available; store ids and sizes (GB) by project id.

        Raises ContextError if a volume fails or takes longer than the timeout.
        """
        self.make_all()

    def make(self, cloud: Cloud, name: str) -> dict[str, Any]:
        """Create a volume named `name`, await that it is available; return `id` and `size`, GB.

        If an earlier attempt has created it, only waits. Raises ContextError if it fails or takes
        longer than the timeout.
        """
        there = cloud.document("GET", "cinder", "volumes", params={"name": name})["volumes"]
        if there:
            # a try whose response was lost has created it
            identity = there[0]["id"]
        else:
            wanted = {"name": name, "size": self.config["size"]}
            if self.config.get("type"):
                wanted["volume_type"] = self.config["type"]
            made = cloud.document("POST", "cinder", "volumes", json={"volume": wanted})
            identity = made["volume"]["id"]
        path, wait = f"volumes/{identity}", "cinder_volume_create"
        found = self.await_ready(cloud, path, "volume", "available", wait)
        return {"id": str(identity), "size": found["size"]}
