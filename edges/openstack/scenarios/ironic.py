"""Scenarios of Ironic: nodes, as the administrator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from osbench.common.plugin.atomic import ActionTimer, action_timer
from osbench.edges.openstack.scenarios.openstack_scenario import (
    ACCEPTED,
    openstack,
    waits,
    without_none,
)
from osbench.edges.openstack.scenarios.resource_scenario import ResourceKind, ResourceScenario

_NODE = ResourceKind(
    service="ironic", path="nodes", key="node", status="provision_state", reason="last_error"
)
_SCENARIO: Mapping[str, Any] = {
    "services": ("ironic",),
    "admin": True,
    "users": False,
    "cleanup": ("ironic",),
}
_CREATE, _DELETE = "ironic_node_create", "ironic_node_delete"


class IronicNodes(ResourceScenario):
    """Rally's `IronicNodes` scenarios: create, list and delete nodes, as the administrator.

    New nodes are available at once, in microversion 1.9; the context `api_versions` may give
    another one, up to 1.10.
    """

    @classmethod
    def check_arguments(cls, method: str, args: Mapping[str, Any]) -> list[str]:
        """Return messages of the base class, and one on `name`, which osbench sets itself."""
        found = super().check_arguments(method, args)
        if "name" in args:
            found.append("osbench sets name itself, to find the node again")
        return found

    @openstack("IronicNodes.create_and_list_node", **_SCENARIO)
    @waits(_CREATE)
    def create_and_list_node(  # noqa: PLR0913 - they are Rally's
        self,
        driver: str,
        properties: dict[str, Any] | None = None,
        associated: bool | None = None,
        maintenance: bool | None = None,
        detail: bool = False,
        sort_dir: str | None = None,
        marker: str | None = None,
        limit: int | None = None,
        sort_key: str | None = None,
        **node_kwargs: Any,
    ) -> None:
        """Create a node, list the nodes, and check that it is among them.

        The list has the nodes that are `associated` with a server (or not) and in `maintenance` (or
        not), with all fields if `detail`, in the direction `sort_dir`. `marker`, `limit` and
        `sort_key` have no effect, as in Rally. Further arguments are fields of the node.
        """
        node = self._create(driver, properties, node_kwargs)
        params = {"associated": associated, "maintenance": maintenance, "sort_dir": sort_dir}
        path = f"{_NODE.path}/detail" if detail else _NODE.path
        with ActionTimer(self, "ironic.list_nodes"):
            found = self.admin.document("GET", "ironic", path, params=without_none(params))["nodes"]
        self.checked(node in {one["uuid"] for one in found}, "the new node is not in the list")

    @openstack("IronicNodes.create_and_delete_node", **_SCENARIO)
    @waits(_CREATE, _DELETE)
    def create_and_delete_node(
        self, driver: str, properties: dict[str, Any] | None = None, **node_kwargs: Any
    ) -> None:
        """Create a node, delete it, and wait until it is gone."""
        node = self._create(driver, properties, node_kwargs)
        with ActionTimer(self, "ironic.delete_node"):
            with ActionTimer(self, ACCEPTED):
                self.delete(_NODE, node, cloud=self.admin)
            self.await_end(_NODE, node, wait=_DELETE, cloud=self.admin)

    @action_timer("ironic.create_node")
    def _create(
        self, driver: str, properties: Mapping[str, Any] | None, fields: Mapping[str, Any]
    ) -> str:
        """Create a node, and wait until it is available; return its id. Raises NotReady."""
        wanted = {**fields, "driver": driver, "properties": properties, "name": self.new_name()}
        with ActionTimer(self, ACCEPTED):
            made = self.admin.document("POST", "ironic", _NODE.path, json=without_none(wanted))
        node = str(made["uuid"])
        self.await_status(_NODE, node, "available", wait=_CREATE, cloud=self.admin)
        return node
