"""The context `servers`: servers of Nova."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from osbench.plugin.cloud import Cloud, CloudAccess, PerProjectContext, sought

_NAMED = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}


class ProjectServers(PerProjectContext):
    """Boots `servers_per_tenant` servers (default 5) in every project; waits until they run."""

    NAME: ClassVar[str] = "servers"
    ORDER: ClassVar[int] = 430
    SERVICE: ClassVar[str] = "nova"
    KEY: ClassVar[str] = "servers"
    COUNT: ClassVar[str] = "servers_per_tenant"
    KINDS: ClassVar[tuple[str, ...]] = ("nova.servers",)
    USUAL_COUNT: ClassVar[int] = 5
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "image": {**_NAMED, "description": "image of the servers"},
            "flavor": {**_NAMED, "description": "flavor of the servers"},
            "servers_per_tenant": {
                "type": "integer",
                "minimum": 1,
                "description": "servers in each project; 5 by default",
            },
            "auto_assign_nic": {
                "type": "boolean",
                "description": "use networks of the context `network`, one after another",
            },
            "nics": {
                "type": "array",
                "description": "networks: ids, or `{net-id: ID}`",
                "items": {
                    "anyOf": [
                        {
                            "type": "object",
                            "properties": {"net-id": {"type": "string"}},
                            "required": ["net-id"],
                            "additionalProperties": False,
                        },
                        {"type": "string"},
                    ]
                },
                "minItems": 1,
            },
        },
        "required": ["image", "flavor"],
        "additionalProperties": False,
        "examples": [
            {"image": {"name": "cirros"}, "flavor": {"name": "m1.tiny"}, "servers_per_tenant": 2}
        ],
    }

    def setup(self) -> None:
        """Look up image and flavor by name, boot the servers and wait until all are active.

        Stores their ids by project id. Raises DeploymentError if image or flavor does not exist,
        ContextError if a server fails or is not active in time.
        """
        cloud = CloudAccess(self.surroundings, self.NAME).projects[0]
        self._image = sought(cloud, "image", self.config["image"])
        self._flavor = sought(cloud, "flavor", self.config["flavor"])
        self.make_all()

    def make(self, cloud: Cloud, name: str) -> str:
        """Boot a server named `name` and wait until it is active; return its id.

        If an earlier attempt has booted it, only waits. Raises ContextError if it fails or takes
        longer than the timeout.
        """
        params = {"name": f"^{name}$"}
        there = cloud.document("GET", "nova", "servers", params=params)["servers"]
        if there:
            # a try whose response was lost has booted it
            identity = str(there[0]["id"])
        else:
            wanted = {"name": name, "imageRef": self._image, "flavorRef": self._flavor}
            networks = self._networks(cloud, name)
            if networks:
                wanted["networks"] = networks
            made = cloud.document("POST", "nova", "servers", json={"server": wanted})
            identity = str(made["server"]["id"])
        self.await_ready(cloud, f"servers/{identity}", "server", "ACTIVE", "nova_server_boot")
        return identity

    def _networks(self, cloud: Cloud, name: str) -> Any:
        given = self.config.get("nics")
        if given:
            return [{"uuid": one if isinstance(one, str) else one["net-id"]} for one in given]
        own = self.surroundings.context.get("networks", {}).get(cloud.project_id)
        if not own or not self.config.get("auto_assign_nic"):
            return None
        number = int(name.rpartition("-")[2])
        return [{"uuid": own[number % len(own)]["id"]}]
