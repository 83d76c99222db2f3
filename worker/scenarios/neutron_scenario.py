"""Base of scenarios of Neutron."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from osbench.common.openstack import neutron
from osbench.common.plugin.atomic import ActionTimer
from osbench.worker.scenarios.openstack_scenario import OpenStackScenario

#: Attributes of an object in a task file.
Attributes: TypeAlias = dict[str, Any] | None

NEEDS: Mapping[str, Any] = MappingProxyType({"services": ("neutron",), "cleanup": ("neutron",)})
#: Kinds whose name in actions differs.
_IN_ACTIONS: Mapping[str, str] = MappingProxyType({"floatingip": "floating_ip"})
#: Arguments that count objects.
_COUNTS = ("subnets_per_network", "ports_per_network")


class NeutronScenario(OpenStackScenario):
    """Creates, lists, shows, changes and deletes objects, each in an action of Rally's name."""

    @classmethod
    def check_arguments(cls, method: str, args: Mapping[str, Any]) -> list[str]:
        """Refuse attributes by which osbench finds objects, counts below 1, and wrong ranges."""
        found = super().check_arguments(method, args)
        for name, value in args.items():
            if name in _COUNTS and not (isinstance(value, int) and value >= 1):
                found.append(f"{name} must be at least 1, got {value!r}")
            if name.endswith("_args") and isinstance(value, Mapping):
                found += _refused(name, value)
        return found + _misfit("subnet_cidr_start", args.get("subnet_cidr_start"))

    def create(self, kind: str, fields: Mapping[str, Any]) -> str:
        """Create an object with a name; return its id."""
        # floating IPs have no name
        named = "description" if kind == "floatingip" else "name"
        with self.action("create", kind):
            made = neutron.create(self.cloud, kind, {**fields, named: self.new_name()})
        return str(made["id"])

    def show(self, kind: str, identity: str) -> None:
        """Get an object."""
        with self.action("show", kind):
            self.cloud.document("GET", neutron.SERVICE, neutron.path_of(kind, identity))

    def update(self, kind: str, identity: str, fields: Mapping[str, Any]) -> None:
        """Change an object."""
        with self.action("update", kind):
            path = neutron.path_of(kind, identity)
            self.cloud.document("PUT", neutron.SERVICE, path, json={kind: dict(fields)})

    def delete(self, kind: str, identity: str) -> None:
        """Delete an object."""
        with self.action("delete", kind):
            self.cloud.request("DELETE", neutron.SERVICE, neutron.path_of(kind, identity))

    def list_with(self, kind: str, created: list[str]) -> None:
        """List all objects, and check that those created are among them."""
        with self.action("list", kind):
            found = {one["id"] for one in neutron.listed(self.cloud, kind)}
        missing = [identity for identity in created if identity not in found]
        self.checked(not missing, f"the list has no {kind} {', '.join(missing)}")

    def action(self, verb: str, kind: str) -> ActionTimer:
        """Return the action of Rally for a request."""
        several = "s" if verb == "list" else ""
        return ActionTimer(self, f"neutron.{verb}_{_IN_ACTIONS.get(kind, kind)}{several}")

    def own_network(self, network_create_args: Attributes) -> str:
        """Return the id of a network that contexts made or found, in turn, or of a new one."""
        networks = self.context.get(neutron.NETWORKS)
        if networks is None:
            return self.create("network", neutron.network_fields(network_create_args))
        mine = networks[self.cloud.project_id]
        return str(mine[self.context["iteration"] % len(mine)]["id"])

    def create_subnet(
        self,
        network: str,
        position: int = 0,
        count: int = 1,
        args: Attributes = None,
        first: str | None = None,
        router: str = "",
    ) -> str:
        """Create subnet `position` of the `count` of an iteration; return its id.

        Its address range follows `first`, unless `args` name one. It becomes an interface of
        `router`, if there is one.
        """
        number = self._range_number(position, count)
        fields = neutron.subnet_fields(network, args, number, first)
        with self.action("create", "subnet"):
            made = neutron.create(self.cloud, "subnet", {**fields, "name": self.new_name()})
            if router:
                self.change_interface("add", router, made["id"])
        return str(made["id"])

    def change_interface(self, change: str, router: str, subnet: str) -> None:
        """Make a subnet an interface of a router, or no longer: `add` or `remove`."""
        with ActionTimer(self, f"neutron.{change}_interface_router"):
            neutron.change_router(
                self.cloud, router, f"{change}_router_interface", subnet_id=subnet
            )

    def _range_number(self, position: int, count: int) -> int:
        """Return the range number for subnet `position` of the `count` of an iteration.

        No two subnets of a workload have the same, in whatever process they are created.
        """
        used, iteration = self.context.get(neutron.RANGES_USED, 0), self.context["iteration"]
        return int(used + (iteration - 1) * count + position)


def _refused(name: str, attributes: Mapping[str, Any]) -> list[str]:
    """Return problems of the attributes of an object."""
    if name.endswith("_update_args") and not attributes and "security" not in name:
        return [f"{name} must name at least one attribute to change"]
    reserved = [key for key in neutron.RESERVED if key in attributes]
    if name == "floating_ip_args" and "description" in attributes:
        reserved.append("description")
    found = [f"{name}: osbench sets {key} itself, to find the object again" for key in reserved]
    if name == "subnet_create_args":
        version = attributes.get("ip_version", 4)
        if version not in (4, 6):
            found.append(f"{name}: ip_version must be 4 or 6, got {version!r}")
        for key in ("cidr", "start_cidr"):
            found += _misfit(f"{name}: {key}", attributes.get(key))
    return found


def _misfit(place: str, addresses: Any) -> list[str]:
    """Return the problem of an address range; "" if it is valid."""
    try:
        if isinstance(addresses, str):
            neutron.version_of(addresses)
    except ValueError as error:
        return [f"{place}: {error}"]
    return []
