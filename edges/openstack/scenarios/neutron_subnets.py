"""The scenario that deletes subnets of Neutron which the context `network` has made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from osbench.common.errors import DeploymentError
from osbench.edges.openstack.common import neutron
from osbench.edges.openstack.common.cloud import Cloud
from osbench.edges.openstack.common.cloud_users import USERS
from osbench.edges.openstack.scenarios.neutron_scenario import NEEDS, NeutronScenario
from osbench.edges.openstack.scenarios.openstack_scenario import openstack


class NeutronSubnets(NeutronScenario):
    """Rally's scenario that deletes subnets of the context `network`."""

    @classmethod
    def prepare(cls, context: dict[str, Any], cloud: Cloud) -> None:
        """Check before the load that each user of a project has a subnet to delete in each network.

        Raises DeploymentError if not, or without the context `network`.
        """
        if neutron.RANGES_USED not in context:
            raise DeploymentError(
                "NeutronSubnets.delete_subnets needs the context network, whose subnets it deletes"
            )
        users = max(map(len, _users_by_project(context).values()), default=1)
        subnets = min(len(one["subnets"]) for one in _all_networks(context))
        if users > subnets:
            raise DeploymentError(
                f"{users} users of a project would delete {subnets} subnets of each network, each "
                f"another one; set subnets_per_network of the context network to {users}"
            )

    @openstack("NeutronSubnets.delete_subnets", **NEEDS)
    def delete_subnets(self) -> None:
        """Delete one subnet of each network of the project; each user of it deletes another one."""
        project = self.cloud.project_id
        users = _users_by_project(self.context).get(project, [])
        user = self.cloud.user_id
        position = users.index(user) if user in users else 0
        for network in self.context[neutron.NETWORKS][project]:
            self.delete("subnet", network["subnets"][position])


def _users_by_project(context: Mapping[str, Any]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for user in context.get(USERS, ()):
        found.setdefault(user["project_id"], []).append(user["id"])
    return found


def _all_networks(context: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [one for several in context[neutron.NETWORKS].values() for one in several]
