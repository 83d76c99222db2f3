"""The context `zones`: zones of Designate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from osbench.plugin.cloud import Cloud, CloudAccess, PerProjectContext, neutron
from osbench.plugin.errors import ContextError


class DnsZones(PerProjectContext):
    """Creates zones in every project, one by default; iterations use a random zone.

    They are primary zones in the top-level domain `name.`, as Rally's.
    """

    NAME: ClassVar[str] = "zones"
    ORDER: ClassVar[int] = 600
    SERVICE: ClassVar[str] = "designate"
    KEY: ClassVar[str] = "zones"
    COUNT: ClassVar[str] = "zones_per_tenant"
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "zones_per_tenant": {
                "type": "integer",
                "minimum": 1,
                "description": "zones in each project; 1 by default",
            },
            "set_zone_in_network": {
                "type": "boolean",
                "description": "whether the first network of each project gets its first zone; "
                "false by default",
            },
        },
        "additionalProperties": False,
        "examples": [{"zones_per_tenant": 2}],
    }

    def setup(self) -> None:
        """Create the zones; store their ids and names by project id.

        With `set_zone_in_network` names in the first network of a project are of its first zone.
        Raises ContextError if then a project has no network of a context.
        """
        self.make_all()
        if self.config.get("set_zone_in_network"):
            access = CloudAccess(self.surroundings, self.NAME)
            access.each("zones set in networks", access.projects, self._set_in_network)

    def _set_in_network(self, cloud: Cloud) -> None:
        networks = (self.surroundings.context.get(neutron.NETWORKS) or {}).get(cloud.project_id)
        if not networks:
            raise ContextError("set_zone_in_network needs the context network")
        path = neutron.path_of("network", networks[0]["id"])
        zone = self.made[self.KEY][cloud.project_id][0]
        body = {"network": {"dns_domain": zone["name"]}}
        cloud.request("PUT", neutron.SERVICE, path, json=body)

    def make(self, cloud: Cloud, name: str) -> dict[str, Any]:
        """Create the zone `name` with a domain; return its `id` and `name`.

        A zone of that name counts as created by an earlier attempt. Raises ContextError if it is
        refused as existing and is not in the project.
        """
        wanted = {"name": f"{name}.name.", "type": "PRIMARY", "email": "root@random.name"}
        response = cloud.request(
            "POST", "designate", "zones", json=wanted, expected=(200, 201, 202, 409)
        )
        found = response.json()
        if response.status_code == 409:
            params = {"name": wanted["name"]}
            there = cloud.document("GET", "designate", "zones", params=params)["zones"]
            if not there:
                raise ContextError(f"a zone {wanted['name']} exists in another project")
            found = there[0]
        return {"id": str(found["id"]), "name": wanted["name"]}
