"""Scenarios of Octavia's load balancers, and of pools in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from osbench.common.errors import DeploymentError
from osbench.common.plugin.atomic import ActionTimer
from osbench.edges.openstack.common import neutron
from osbench.edges.openstack.common.cloud import Cloud
from osbench.edges.openstack.common.request_errors import NotReady
from osbench.edges.openstack.scenarios.openstack_scenario import (
    ACCEPTED,
    OpenStackScenario,
    openstack,
    waits,
    without_none,
)

_SCENARIO: Mapping[str, Any] = {"services": ("octavia",), "cleanup": ("octavia",)}
#: Rally has one wait for both.
_WAIT = "octavia_create_loadbalancer"
_BALANCER, _POOL = "loadbalancer", "pool"


class Octavia(OpenStackScenario):
    """Rally's `Octavia` scenarios: create, list, change and delete load balancers and pools.

    They create a load balancer, and a pool in it, for each subnet of the networks of the user's
    project, which the context `network` makes. Users need the role `load-balancer_member`.
    """

    @classmethod
    def prepare(cls, context: dict[str, Any], cloud: Cloud) -> None:
        """Raise DeploymentError unless a context gave each project a network with a subnet."""
        networks = context.get(neutron.NETWORKS)
        if not networks or not all(
            any(one["subnets"] for one in several) for several in networks.values()
        ):
            raise DeploymentError(
                "scenarios of Octavia need subnets: give the context network, or existing_network"
            )

    # the arguments of scenarios that create load balancers

    def _balancers(
        self,
        description: str | None = None,
        admin_state: bool = True,
        listeners: list[Any] | None = None,
        flavor_id: str | None = None,
        provider: str | None = None,
        vip_qos_policy_id: str | None = None,
    ) -> Iterator[str]:
        """Create a load balancer for each subnet of the project's networks; yield each once active.

        All are requested before the first is awaited.
        """
        fields = without_none(
            {
                "description": description,
                "admin_state_up": admin_state,
                "listeners": listeners,
                "flavor_id": flavor_id,
                "provider": provider,
                "vip_qos_policy_id": vip_qos_policy_id,
                "project_id": self.cloud.project_id,
            }
        )
        created = []
        for network in self.context[neutron.NETWORKS][self.cloud.project_id]:
            for subnet in network["subnets"]:
                with ActionTimer(self, "octavia.load_balancer_create"):
                    created.append(self._create(_BALANCER, {**fields, "vip_subnet_id": subnet}))
        for balancer in created:
            self._await_balancer(balancer)
            yield balancer

    def _await_balancer(self, balancer: str) -> None:
        with ActionTimer(self, "octavia.wait_for_loadbalancers"):
            self._await_active(_BALANCER, balancer)

    @openstack("Octavia.create_and_list_loadbalancers", takes=_balancers, **_SCENARIO)
    @waits(_WAIT)
    def create_and_list_loadbalancers(self, **kwargs: Any) -> None:
        """Create load balancers, one per subnet; list all and check that they are listed."""
        created = list(self._balancers(**kwargs))
        self._list_with("octavia.load_balancer_list", _BALANCER, created)

    @openstack("Octavia.create_and_delete_loadbalancers", takes=_balancers, **_SCENARIO)
    @waits(_WAIT)
    def create_and_delete_loadbalancers(self, **kwargs: Any) -> None:
        """Create load balancers and request the deletion of each, without waiting for it."""
        for balancer in self._balancers(**kwargs):
            with ActionTimer(self, "octavia.load_balancer_delete"):
                self.cloud.request("DELETE", "octavia", _path(_BALANCER, balancer))

    @openstack("Octavia.create_and_show_loadbalancers", takes=_balancers, **_SCENARIO)
    @waits(_WAIT)
    def create_and_show_loadbalancers(self, **kwargs: Any) -> None:
        """Create load balancers, one per subnet, and get each once it is active."""
        for balancer in self._balancers(**kwargs):
            with ActionTimer(self, "octavia.load_balancer_show"):
                self.cloud.document("GET", "octavia", _path(_BALANCER, balancer))

    @openstack("Octavia.create_and_stats_loadbalancers", takes=_balancers, **_SCENARIO)
    @waits(_WAIT)
    def create_and_stats_loadbalancers(self, **kwargs: Any) -> None:
        """Create load balancers, one per subnet; get the statistics of each once it is active."""
        for balancer in self._balancers(**kwargs):
            with ActionTimer(self, "octavia.load_balancer_stats_show"):
                self.cloud.document("GET", "octavia", f"{_path(_BALANCER, balancer)}/stats")

    @openstack("Octavia.create_and_update_loadbalancers", takes=_balancers, **_SCENARIO)
    @waits(_WAIT)
    def create_and_update_loadbalancers(self, **kwargs: Any) -> None:
        """Create load balancers, give each a new name, and wait until they are active again."""
        created = []
        for balancer in self._balancers(**kwargs):
            with ActionTimer(self, "octavia.load_balancer_set"):
                self._rename(_BALANCER, balancer)
            created.append(balancer)
        for balancer in created:
            self._await_balancer(balancer)

    # pools

    def _pools(self, protocol: str, lb_algorithm: str) -> Iterator[str]:
        """Yield the ids of new pools, one per new load balancer, each created on request."""
        for balancer in self._balancers():
            fields = {
                "loadbalancer_id": balancer,
                "protocol": protocol,
                "lb_algorithm": lb_algorithm,
                "admin_state_up": True,
            }
            with ActionTimer(self, "octavia.pool_create"):
                with ActionTimer(self, ACCEPTED):
                    pool = self._create(_POOL, fields)
                self._await_active(_POOL, pool)
            yield pool

    @openstack("Octavia.create_and_list_pools", takes=_pools, **_SCENARIO)
    @waits(_WAIT)
    def create_and_list_pools(self, **kwargs: Any) -> None:
        """Create load balancers with a pool each; list all pools and check that they are listed."""
        self._list_with("octavia.pool_list", _POOL, list(self._pools(**kwargs)))

    @openstack("Octavia.create_and_delete_pools", takes=_pools, **_SCENARIO)
    @waits(_WAIT)
    def create_and_delete_pools(self, **kwargs: Any) -> None:
        """Create load balancers with a pool each; request the deletion of each pool."""
        for pool in self._pools(**kwargs):
            with ActionTimer(self, "octavia.pool_delete"):
                self.cloud.request("DELETE", "octavia", _path(_POOL, pool))

    @openstack("Octavia.create_and_show_pools", takes=_pools, **_SCENARIO)
    @waits(_WAIT)
    def create_and_show_pools(self, **kwargs: Any) -> None:
        """Create load balancers with a pool each, and get each pool once it is active."""
        for pool in self._pools(**kwargs):
            with ActionTimer(self, "octavia.pool_show"):
                self.cloud.document("GET", "octavia", _path(_POOL, pool))

    @openstack("Octavia.create_and_update_pools", takes=_pools, **_SCENARIO)
    @waits(_WAIT)
    def create_and_update_pools(self, **kwargs: Any) -> None:
        """Create load balancers with a pool each; rename each pool, without waiting for it."""
        for pool in self._pools(**kwargs):
            with ActionTimer(self, "octavia.pool_set"):
                self._rename(_POOL, pool)

    # requests

    def _create(self, kind: str, fields: Mapping[str, Any]) -> str:
        body = {kind: {**fields, "name": self.new_name()}}
        return str(self.cloud.document("POST", "octavia", _path(kind), json=body)[kind]["id"])

    def _rename(self, kind: str, identity: str) -> None:
        body = {kind: {"name": self.new_name()}}
        self.cloud.document("PUT", "octavia", _path(kind, identity), json=body)

    def _await_active(self, kind: str, identity: str) -> None:
        def look() -> bool | None:
            path = _path(kind, identity)
            found = self.cloud.document("GET", "octavia", path, traced=False)[kind]
            if found["provisioning_status"] == "ERROR":
                raise NotReady(f"the {kind} is in ERROR; see the log of Octavia")
            return True if found["provisioning_status"] == "ACTIVE" else None

        self.wait_until(f"the {kind}", _WAIT, look)

    def _list_with(self, action: str, kind: str, created: list[str]) -> None:
        with ActionTimer(self, action):
            listed = neutron.pages(self.cloud, "octavia", _path(kind), f"{kind}s", {})
        found = {one["id"] for one in listed}
        missing = [identity for identity in created if identity not in found]
        self.checked(not missing, f"the list has no {kind} {', '.join(missing)}")


def _path(kind: str, identity: str = "") -> str:
    return f"lbaas/{neutron.path_of(kind, identity)}"
