"""The context `existing_network`: the networks that projects have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from osbench.plugin import context
from osbench.plugin.cloud import Cloud, CloudAccess, neutron
from osbench.plugin.errors import ContextError


class ExistingNetwork(context.Context):
    """Looks up the networks of every project, for scenarios that create objects in them.

    A project has its own networks and shared ones. External networks are left out, because users
    may not create ports in them.
    """

    NAME: ClassVar[str] = "existing_network"
    ORDER: ClassVar[int] = 349
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "additionalProperties": False,
        "examples": [{}],
    }

    def setup(self) -> None:
        """Look up the networks of each project; store them in `made` by project id.

        Raises ContextError if a project has neither an own network nor a shared one.
        """
        access = CloudAccess(self.surroundings, self.NAME)
        found = access.each("networks looked up", access.projects, _networks)
        self.made[neutron.NETWORKS] = {
            cloud.project_id: networks
            for cloud, networks in zip(access.projects, found, strict=True)
        }

    def cleanup(self) -> None:
        """Do nothing: this context makes no resources."""


def _networks(cloud: Cloud) -> list[dict[str, Any]]:
    found = [
        {"id": one["id"], "name": one["name"], "subnets": one["subnets"], "router_id": None}
        for one in neutron.listed(cloud, "network")
        if not one.get("router:external")
        # administrators see the networks of all projects
        and (one["project_id"] == cloud.project_id or one.get("shared"))
    ]
    if not found:
        raise ContextError(
            f"project {cloud.project_id} has no network, except external ones; use the context "
            "network, which makes some"
        )
    return found
