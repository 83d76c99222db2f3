"""Base of scenarios that create objects of Neutron: networks of an iteration, argument checks."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from osbench.common.plugin.atomic import ActionTimer
from osbench.edges.openstack.common import neutron
from osbench.edges.openstack.scenarios.openstack_scenario import OpenStackScenario, count_problems

#: Attributes of an object in a task file.
Attributes: TypeAlias = dict[str, Any] | None

#: Kinds whose name in actions differs.
_IN_ACTIONS: Mapping[str, str] = MappingProxyType({"floatingip": "floating_ip"})
#: Arguments that count objects.
_COUNTS = (
    *("subnets_per_network", "ports_per_network", "subport_count", "subports_per_batch"),
    "batches",
)


class NetworkMaker(OpenStackScenario):
    """Base of scenarios that create networks, subnets, ports and routers of Neutron as the user.

    Each request is an atomic action with the name that it has in Rally.
    """

    @classmethod
    def check_arguments(cls, method: str, args: Mapping[str, Any]) -> list[str]:
        """Return messages on arguments that cannot work; empty without problems.

        In addition to the checks of the base class: counts below 1, invalid address ranges and IP
        versions, attributes that osbench sets itself, such as `name`, and updates without
        attributes, except of objects that get a new name.
        """
        found = super().check_arguments(method, args)
        found += count_problems(args, *_COUNTS)
        for name, value in args.items():
            if name.endswith("_args") and isinstance(value, Mapping):
                found += _attribute_problems(name, value)
        return found + _misfit("subnet_cidr_start", args.get("subnet_cidr_start"))

    def create(self, kind: str, fields: Mapping[str, Any]) -> str:
        """Create an object of a kind, such as "network", with a unique name; return its id.

        `fields` are its other attributes. A floating IP has the name as its description.
        """
        # floating IPs have no name
        named = "description" if kind == "floatingip" else "name"
        with self.action("create", kind):
            made = neutron.create(self.cloud, kind, {**fields, named: self.new_name()})
        return str(made["id"])

    def action(self, verb: str, kind: str) -> ActionTimer:
        """Return a timer of the action of a verb and a kind, such as `neutron.create_network`."""
        name = _IN_ACTIONS.get(kind, kind)
        return ActionTimer(
            self, f"neutron.{verb}_{neutron.plural(name) if verb == 'list' else name}"
        )

    def own_network(self, network_create_args: Attributes) -> str:
        """Return the id of a network of the project: an existing one, or a new one.

        Iterations take the networks of the contexts `network` and `existing_network` in turn.
        Without these contexts a network is created with the arguments given.
        """
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
        """Create subnet number `position` (from 0) of the `count` of an iteration; return its id.

        Its address range is unique in the load, counted from `first` (CIDR; None: the default),
        unless `args`, the task's attributes, name one. If `router` is not "", the subnet becomes an
        interface of it, within the action.
        """
        number = self._range_number(position, count)
        fields = neutron.subnet_fields(network, args, number, first)
        with self.action("create", "subnet"):
            made = neutron.create(self.cloud, "subnet", {**fields, "name": self.new_name()})
            if router:
                self.change_interface("add", router, made["id"])
        return str(made["id"])

    def change_interface(self, change: str, router: str, subnet: str) -> None:
        """Add a subnet as an interface of a router, or remove it; `change` is `add` or `remove`."""
        with ActionTimer(self, f"neutron.{change}_interface_router"):
            neutron.change_router(
                self.cloud, router, f"{change}_router_interface", subnet_id=subnet
            )

    def _range_number(self, position: int, count: int) -> int:
        """Return the number of a subnet's address range, which no other subnet of the workload has.

        `position`: from 0, of the `count` subnets of an iteration. Holds across processes.
        """
        used, iteration = self.context.get(neutron.RANGES_USED, 0), self.context["iteration"]
        return int(used + (iteration - 1) * count + position)


def _attribute_problems(name: str, attributes: Mapping[str, Any]) -> list[str]:
    renamed = "security" in name or "firewall" in name
    if name.endswith("_update_args") and not attributes and not renamed:
        return [f"{name} must name at least one attribute to change"]
    reserved = [key for key in neutron.RESERVED if key in attributes]
    if name == "floating_ip_args" and "description" in attributes:
        reserved.append("description")
    problems = [f"{name}: osbench sets {key} itself, to find the object again" for key in reserved]
    if name == "subnet_create_args":
        version = attributes.get("ip_version", 4)
        if version not in (4, 6):
            problems.append(f"{name}: ip_version must be 4 or 6, got {version!r}")
        for key in ("cidr", "start_cidr"):
            problems += _misfit(f"{name}: {key}", attributes.get(key))
    return problems


def _misfit(place: str, addresses: Any) -> list[str]:
    """Return the problem of an address range (CIDR) at `place`; empty if valid or not a string."""
    try:
        if isinstance(addresses, str):
            neutron.version_of(addresses)
    except ValueError as error:
        return [f"{place}: {error}"]
    return []
