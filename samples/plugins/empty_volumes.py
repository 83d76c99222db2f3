"""A context: volumes of Cinder in each project of a cloud."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, ClassVar

from osbench.plugin.cloud import Cloud, PerProjectContext
from osbench.plugin.errors import ContextError

#: Longest wait until a volume is available, and time between two requests for its status, seconds.
WAIT_S, POLL_S = 300.0, 0.5


class EmptyVolumes(PerProjectContext):
    """Makes empty volumes in each project of the workload, and removes them after the load."""

    NAME: ClassVar[str] = "empty_volumes"
    #: After the context `users`, which has 100.
    ORDER: ClassVar[int] = 425
    SERVICE: ClassVar[str] = "cinder"
    KEY: ClassVar[str] = "empty_volumes"
    COUNT: ClassVar[str] = "volumes_per_tenant"
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "size": {"type": "integer", "minimum": 1, "description": "GB; 1 by default"},
            "volumes_per_tenant": {
                "type": "integer",
                "minimum": 1,
                "description": "volumes in each project; 1 by default",
            },
        },
        "examples": [{"size": 1, "volumes_per_tenant": 10}],
        "additionalProperties": False,
    }

    def setup(self) -> None:
        """Make the volumes."""
        self.make_all()

    def make(self, cloud: Cloud, name: str) -> str:
        """Make a volume; returns its id."""
        # an earlier try, whose response was lost, may have made it
        found = cloud.document("GET", "cinder", "volumes", params={"name": name})["volumes"]
        if found:
            return self._available(cloud, found[0]["id"])
        wanted = {"name": name, "size": self.config.get("size", 1)}
        made = cloud.document("POST", "cinder", "volumes", json={"volume": wanted})
        return self._available(cloud, made["volume"]["id"])

    def _available(self, cloud: Cloud, identity: str) -> str:
        until = time.monotonic() + WAIT_S
        while True:
            volume = cloud.document("GET", "cinder", f"volumes/{identity}")["volume"]
            if volume["status"] == "available":
                return identity
            if volume["status"] == "error" or time.monotonic() > until:
                raise ContextError(f"volume {identity} has the status {volume['status']}")
            time.sleep(POLL_S)
