"""Base of the scenarios of Neutron: actions on its objects."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from osbench.edges.openstack.common import neutron
from osbench.edges.openstack.scenarios.network_maker import NetworkMaker

NEEDS: Mapping[str, Any] = MappingProxyType({"services": ("neutron",), "cleanup": ("neutron",)})


class NeutronScenario(NetworkMaker):
    """Base class that creates, lists, gets, changes and deletes objects of Neutron as the user.

    Each request is an atomic action with the name that it has in Rally.
    """

    def show(self, kind: str, identity: str) -> None:
        """Get an object by its id, as an action; the response is discarded."""
        with self.action("show", kind):
            self.cloud.document("GET", neutron.SERVICE, neutron.path_of(kind, identity))

    def update(self, kind: str, identity: str, fields: Mapping[str, Any]) -> None:
        """Change the attributes `fields` of an object by its id, as an action."""
        with self.action("update", kind):
            path = neutron.path_of(kind, identity)
            self.cloud.document("PUT", neutron.SERVICE, path, json={kind: dict(fields)})

    def delete(self, kind: str, identity: str) -> None:
        """Delete an object by its id, as an action; does not check that it is gone."""
        with self.action("delete", kind):
            self.cloud.request("DELETE", neutron.SERVICE, neutron.path_of(kind, identity))

    def list_with(self, kind: str, created: list[str]) -> None:
        """List all objects of a kind; fail the iteration if an id of `created` is missing."""
        with self.action("list", kind):
            found = {one["id"] for one in neutron.listed(self.cloud, kind)}
        missing = [identity for identity in created if identity not in found]
        self.checked(not missing, f"the list has no {kind} {', '.join(missing)}")
