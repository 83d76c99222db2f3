"""Scenarios of Designate: zones, and the record sets in them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from osbench.common.plugin.atomic import ActionTimer, action_timer
from osbench.edges.openstack.common import neutron
from osbench.edges.openstack.scenarios.openstack_scenario import (
    OpenStackScenario,
    count_problems,
    openstack,
)

_SCENARIO: Mapping[str, Any] = {"services": ("designate",), "cleanup": ("designate",)}
_IN_ZONES: Mapping[str, Any] = {**_SCENARIO, "requires": ("zones",)}


class DesignateBasic(OpenStackScenario):
    """Rally's `DesignateBasic` scenarios: create, list and delete zones, and record sets in them.

    Record sets are created in a random zone of the context `zones`.
    """

    @classmethod
    def check_arguments(cls, method: str, args: Mapping[str, Any]) -> list[str]:
        """Return messages of the base class, and one on a wrong `recordsets_per_zone`."""
        found = super().check_arguments(method, args)
        return found + count_problems(args, "recordsets_per_zone")

    @openstack("DesignateBasic.create_and_list_zones", **_SCENARIO)
    def create_and_list_zones(self) -> None:
        """Create a primary zone, list all zones, and check that it is among them."""
        zone = self._create_zone()
        found = {one["id"] for one in self._list("designate.list_zones", "zones")}
        self.checked(zone in found, "the zone that was created is not in the list")

    @openstack("DesignateBasic.list_zones", services=("designate",))
    def list_zones(self) -> None:
        """List all zones of the project."""
        self._list("designate.list_zones", "zones")

    @openstack("DesignateBasic.create_and_delete_zone", **_SCENARIO)
    def create_and_delete_zone(self) -> None:
        """Create a primary zone and request its deletion."""
        zone = self._create_zone()
        with ActionTimer(self, "designate.delete_zone"):
            self.cloud.request("DELETE", "designate", f"zones/{zone}")

    @openstack("DesignateBasic.list_recordsets", services=("designate",))
    def list_recordsets(self, zone_id: str) -> None:
        """List all record sets of the zone with the id `zone_id`."""
        self._list("designate.list_recordsets", f"zones/{zone_id}/recordsets")

    @openstack("DesignateBasic.create_and_delete_recordsets", **_IN_ZONES)
    def create_and_delete_recordsets(self, recordsets_per_zone: int = 5) -> None:
        """Create record sets in a zone, then request the deletion of each."""
        zone, created = self._create_recordsets(recordsets_per_zone)
        for one in created:
            with ActionTimer(self, "designate.delete_recordset"):
                self.cloud.request("DELETE", "designate", f"zones/{zone}/recordsets/{one}")

    @openstack("DesignateBasic.create_and_list_recordsets", **_IN_ZONES)
    def create_and_list_recordsets(self, recordsets_per_zone: int = 5) -> None:
        """Create record sets in a zone, list all of the zone, and check that it has them."""
        zone, created = self._create_recordsets(recordsets_per_zone)
        listed = self._list("designate.list_recordsets", f"zones/{zone}/recordsets")
        missing = set(created) - {one["id"] for one in listed}
        self.checked(not missing, f"the list has no record set {', '.join(sorted(missing))}")

    @action_timer("designate.create_zone")
    def _create_zone(self) -> str:
        # the domain and the address are Rally's
        name = f"{self.new_name()}.name."
        wanted = {"name": name, "type": "PRIMARY", "email": "root@random.name"}
        return str(self.cloud.document("POST", "designate", "zones", json=wanted)["id"])

    def _create_recordsets(self, count: int) -> tuple[str, list[str]]:
        """Create `count` record sets of type A; return the ids of their zone and of each."""
        zones = self.context["zones"][self.cloud.project_id]
        zone = random.choice(zones)  # noqa: S311 - load, not secrets
        created = []
        for _ in range(count):
            name = f"{self.new_name()}.{zone['name']}"
            wanted = {"name": name, "type": "A", "records": ["10.0.0.1"]}
            with ActionTimer(self, "designate.create_recordset"):
                path = f"zones/{zone['id']}/recordsets"
                made = self.cloud.document("POST", "designate", path, json=wanted)
            created.append(str(made["id"]))
        return str(zone["id"]), created

    def _list(self, action: str, path: str) -> list[dict[str, Any]]:
        with ActionTimer(self, action):
            key = path.rpartition("/")[2]
            return neutron.pages(self.cloud, "designate", path, key, {})
