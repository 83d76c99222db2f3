"""Scenarios that authenticate against Keystone, or have services validate a token."""

from __future__ import annotations

from typing import Any

from osbench.common.plugin.atomic import ActionTimer, action_timer
from osbench.edges.openstack.scenarios.openstack_scenario import OpenStackScenario, openstack
from osbench.edges.openstack.worker.user_selector import UserSelector

#: Name of an image that does not exist, for a short response.
MISSING_IMAGE = "__intentionally_non_existent_image___"


class Authenticate(OpenStackScenario):
    """Rally's `Authenticate` scenarios: get a token, or make services validate the user's token."""

    @openstack("Authenticate.keystone", warm=False, less="asks Keystone for its versions first")
    @action_timer("authenticate.keystone")
    def keystone(self) -> None:
        """Get a new token from Keystone as the iteration's user."""
        selector: UserSelector = self.context["user_selector"]
        selector.sessions.authenticate(self.cloud.account.credential)

    @openstack("Authenticate.validate_glance", services=("glance",))
    def validate_glance(self, repetitions: int) -> None:
        """Make Glance validate the token, `repetitions` times, with a search that finds nothing."""
        self._ask("glance", "images", repetitions, {"name": MISSING_IMAGE, "limit": 20})

    @openstack("Authenticate.validate_nova", services=("nova",))
    def validate_nova(self, repetitions: int) -> None:
        """Make Nova validate the token, `repetitions` times, by listing flavors."""
        self._ask("nova", "flavors/detail", repetitions)

    @openstack("Authenticate.validate_ceilometer", services=("ceilometer",))
    def validate_ceilometer(self, repetitions: int) -> None:
        """Make Ceilometer validate the token, `repetitions` times, by listing meters."""
        self._ask("ceilometer", "v2/meters", repetitions)

    @openstack("Authenticate.validate_cinder", services=("cinder",))
    def validate_cinder(self, repetitions: int) -> None:
        """Make Cinder validate the token, `repetitions` times, by listing volume types."""
        self._ask("cinder", "types", repetitions)

    @openstack("Authenticate.validate_neutron", services=("neutron",))
    def validate_neutron(self, repetitions: int) -> None:
        """Make Neutron validate the token, `repetitions` times, by listing networks."""
        self._ask("neutron", "networks", repetitions)

    @openstack("Authenticate.validate_octavia", services=("octavia",))
    def validate_octavia(self, repetitions: int) -> None:
        """Make Octavia validate the token, `repetitions` times, by listing load balancers."""
        self._ask("octavia", "lbaas/loadbalancers", repetitions)

    @openstack("Authenticate.validate_heat", services=("heat",))
    def validate_heat(self, repetitions: int) -> None:
        """Make Heat validate the token, `repetitions` times, by listing no stacks (limit 0)."""
        self._ask("heat", "stacks", repetitions, {"limit": 0})

    def _ask(
        self, service: str, path: str, repetitions: int, params: dict[str, Any] | None = None
    ) -> None:
        with ActionTimer(self, f"authenticate.validate_{service}"):
            for _ in range(repetitions):
                self.cloud.request("GET", service, path, params=params)
