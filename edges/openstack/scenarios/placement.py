"""Scenarios of Placement's resource providers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from osbench.common.plugin.atomic import ActionTimer, action_timer
from osbench.edges.openstack.scenarios.openstack_scenario import OpenStackScenario, openstack

_ADMIN: Mapping[str, Any] = {"services": ("placement",), "admin": True, "users": False}
_PROVIDERS: Mapping[str, Any] = {**_ADMIN, "cleanup": ("placement",)}


class Placement(OpenStackScenario):
    """Scenarios of Placement's resource providers, as the administrator; Rally has none."""

    @openstack("Placement.list_resource_providers", **_ADMIN)
    def list_resource_providers(self) -> None:
        """List all resource providers."""
        with ActionTimer(self, "placement.list_resource_providers"):
            self.admin.document("GET", "placement", "resource_providers")

    @openstack("Placement.create_resource_provider", **_PROVIDERS)
    def create_resource_provider(self) -> None:
        """Create a resource provider, as the administrator."""
        self._create()

    @openstack("Placement.create_and_delete_resource_provider", **_PROVIDERS)
    def create_and_delete_resource_provider(self) -> None:
        """Create a resource provider and delete it."""
        provider = self._create()
        with ActionTimer(self, "placement.delete_resource_provider"):
            self.admin.request("DELETE", "placement", f"resource_providers/{provider}")

    @action_timer("placement.create_resource_provider")
    def _create(self) -> str:
        # from this version on the response has a body
        made = self.admin.document(
            "POST",
            "placement",
            "resource_providers",
            json={"name": self.new_name()},
            microversion="1.20",
        )
        return str(made["uuid"])
