"""Scenarios of Neutron's BGP VPNs, and of networks and routers that are associated with them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from osbench.common.errors import DeploymentError
from osbench.common.plugin.atomic import ActionTimer
from osbench.edges.openstack.common import neutron
from osbench.edges.openstack.common.cloud import Cloud
from osbench.edges.openstack.scenarios.openstack_scenario import (
    OpenStackScenario,
    openstack,
    without_none,
)

_SCENARIO: Mapping[str, Any] = {
    "services": ("neutron",),
    "admin": True,
    "users": False,
    "cleanup": ("neutron_admin.bgpvpns",),
}
_ASSOCIATED: Mapping[str, Any] = {**_SCENARIO, "users": True}
_VPN = "bgpvpn"


class NeutronBGPVPN(OpenStackScenario):
    """Rally's `NeutronBGPVPN` scenarios: the administrator's VPNs, users' associations with them.

    Associations are with the first network of the user's project, or its router, which the context
    `network` makes.
    """

    @classmethod
    def check_arguments(cls, method: str, args: Mapping[str, Any]) -> list[str]:
        """Return messages of the base class, and one for an unknown `bgpvpn_type`."""
        found = super().check_arguments(method, args)
        kind = args.get("bgpvpn_type", "l3")
        if kind not in ("l2", "l3"):
            found.append(f"bgpvpn_type must be l2 or l3, got {kind!r}")
        return found

    @classmethod
    def prepare(cls, context: dict[str, Any], cloud: Cloud) -> None:
        """Raise DeploymentError if a scenario with associations lacks networks or routers."""
        if not cls.method(context).needs.users:
            return
        networks = context.get(neutron.NETWORKS)
        if not networks or not all(networks.values()):
            raise DeploymentError("needs a network in each project: give the context network")
        routed = "router" in context["scenario"]
        if routed and not all(several[0].get("router_id") for several in networks.values()):
            raise DeploymentError(
                "needs a router in each project: give the context network without `router: null`"
            )

    def _fields(
        self,
        route_targets: list[str] | None = None,
        import_targets: list[str] | None = None,
        export_targets: list[str] | None = None,
        route_distinguishers: list[str] | None = None,
        bgpvpn_type: str = "l3",
    ) -> dict[str, Any]:
        """Return the fields of a VPN in Neutron's form, without None."""
        fields = {
            "route_targets": route_targets,
            "import_targets": import_targets,
            "export_targets": export_targets,
            "route_distinguishers": route_distinguishers,
            "type": bgpvpn_type,
        }
        return without_none(fields)

    def _create(self, fields: Mapping[str, Any]) -> str:
        """Create a VPN as the administrator; return its id."""
        sent = {"bgpvpn": {**fields, "name": self.new_name()}}
        with ActionTimer(self, "neutron.create_bgpvpn"):
            made = self.admin.document("POST", "neutron", neutron.path_of(_VPN), json=sent)
        return str(made["bgpvpn"]["id"])

    @openstack("NeutronBGPVPN.create_and_delete_bgpvpns", takes=_fields, **_SCENARIO)
    def create_and_delete_bgpvpns(self, **kwargs: Any) -> None:
        """Create a BGP VPN and delete it."""
        made = self._create(self._fields(**kwargs))
        with ActionTimer(self, "neutron.delete_bgpvpn"):
            self.admin.request("DELETE", "neutron", neutron.path_of(_VPN, made))

    @openstack("NeutronBGPVPN.create_and_list_bgpvpns", takes=_fields, **_SCENARIO)
    def create_and_list_bgpvpns(self, **kwargs: Any) -> None:
        """Create a BGP VPN, list all, and check that it is among them."""
        made = self._create(self._fields(**kwargs))
        with ActionTimer(self, "neutron.list_bgpvpns"):
            found = neutron.pages(self.admin, "neutron", neutron.path_of(_VPN), "bgpvpns", {})
        self.checked(made in {one["id"] for one in found}, "the new BGP VPN is not in the list")

    @openstack("NeutronBGPVPN.create_and_update_bgpvpns", takes=_fields, **_SCENARIO)
    def create_and_update_bgpvpns(
        self,
        update_name: bool = False,
        updated_route_targets: list[str] | None = None,
        updated_import_targets: list[str] | None = None,
        updated_export_targets: list[str] | None = None,
        updated_route_distinguishers: list[str] | None = None,
        **kwargs: Any,
    ) -> None:
        """Create a BGP VPN; change targets and distinguishers, and its name if `update_name`."""
        made = self._create(self._fields(**kwargs))
        changes = {
            "route_targets": updated_route_targets,
            "import_targets": updated_import_targets,
            "export_targets": updated_export_targets,
            "route_distinguishers": updated_route_distinguishers,
            **({"name": self.new_name()} if update_name else {}),
        }
        with ActionTimer(self, "neutron.update_bgpvpn"):
            # with null for what is not given, as Rally
            sent = {"bgpvpn": changes}
            self.admin.document("PUT", "neutron", neutron.path_of(_VPN, made), json=sent)

    @openstack("NeutronBGPVPN.create_bgpvpn_assoc_disassoc_networks", takes=_fields, **_ASSOCIATED)
    def create_bgpvpn_assoc_disassoc_networks(self, **kwargs: Any) -> None:
        """Create a BGP VPN, associate a network with it, and end the association."""
        self._associate_and_end("network", kwargs)

    @openstack("NeutronBGPVPN.create_bgpvpn_assoc_disassoc_routers", takes=_fields, **_ASSOCIATED)
    def create_bgpvpn_assoc_disassoc_routers(self, **kwargs: Any) -> None:
        """Create a BGP VPN, associate a router with it, and end the association."""
        self._associate_and_end("router", kwargs)

    @openstack("NeutronBGPVPN.create_and_list_networks_associations", takes=_fields, **_ASSOCIATED)
    def create_and_list_networks_associations(self, **kwargs: Any) -> None:
        """Create a BGP VPN, associate a network with it, and check that the list has it."""
        self._associate_and_list("network", kwargs)

    @openstack("NeutronBGPVPN.create_and_list_routers_associations", takes=_fields, **_ASSOCIATED)
    def create_and_list_routers_associations(self, **kwargs: Any) -> None:
        """Create a BGP VPN, associate a router with it, and check that the list has it."""
        self._associate_and_list("router", kwargs)

    def _associate(self, kind: str, kwargs: Mapping[str, Any]) -> tuple[str, str, str]:
        """Associate a network or router; return path of associations, its id, the association's."""
        network = self.context[neutron.NETWORKS][self.cloud.project_id][0]
        target = str(network["id" if kind == "network" else "router_id"])
        fields = self._fields(**kwargs)
        # as Rally: random ones, so that VPNs differ
        fields["route_targets"] = fields.get("route_targets") or [_random_target()]
        made = self._create({**fields, "tenant_id": self.cloud.project_id})
        path = f"{neutron.path_of(_VPN, made)}/{kind}_associations"
        with ActionTimer(self, f"neutron.create_bgpvpn_{kind}_assoc"):
            body = {f"{kind}_association": {f"{kind}_id": target}}
            found = self.cloud.document("POST", "neutron", path, json=body)
        return path, target, str(found[f"{kind}_association"]["id"])

    def _associate_and_end(self, kind: str, kwargs: Mapping[str, Any]) -> None:
        path, _, association = self._associate(kind, kwargs)
        with ActionTimer(self, f"neutron.delete_bgpvpn_{kind}_assoc"):
            self.cloud.request("DELETE", "neutron", f"{path}/{association}")

    def _associate_and_list(self, kind: str, kwargs: Mapping[str, Any]) -> None:
        path, target, _ = self._associate(kind, kwargs)
        with ActionTimer(self, f"neutron.list_bgpvpn_{kind}_assocs"):
            found = neutron.pages(self.cloud, "neutron", path, f"{kind}_associations", {})
        there = {one[f"{kind}_id"] for one in found}
        self.checked(target in there, f"the {kind} is not in the list of associations")


def _random_target() -> str:
    return f"{random.randrange(1 << 16)}:{random.randrange(1 << 32)}"  # noqa: S311 - load
