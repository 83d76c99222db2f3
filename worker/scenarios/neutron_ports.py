"""Scenarios of Neutron's ports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from osbench.common.errors import DeploymentError
from osbench.common.openstack import neutron
from osbench.common.openstack.cloud import Cloud
from osbench.common.plugin.atomic import ActionTimer
from osbench.worker.openstack.user_selector import UserSelector
from osbench.worker.scenarios.neutron_scenario import NEEDS, Attributes, NeutronScenario
from osbench.worker.scenarios.openstack_scenario import openstack

#: Agents to whose hosts ports are bound.
_BINDING_AGENTS = ("Open vSwitch agent", "Linux bridge agent")
#: The server that ports are bound for; Neutron does not look it up.
_SERVER = "6d1f3e52-9d3c-4c7b-8f64-0a5a6d0f9b7e"


class NetworkPorts(NeutronScenario):
    """Rally's `NeutronNetworks` scenarios that are about ports.

    Ports are in the networks of the context `network` or `existing_network`, else in a new one.
    """

    @classmethod
    def prepare(cls, context: dict[str, Any], cloud: Cloud) -> None:
        """Look up the host that ports are bound to."""
        if cls.method(context).needs.admin:
            selector: UserSelector = context["user_selector"]
            admin = Cloud(selector.admin, selector.sessions.session, selector.versions)
            context["host"] = _host(admin)

    # the arguments of scenarios with ports in one network

    def _ports(
        self,
        network_create_args: Attributes = None,
        port_create_args: Attributes = None,
        ports_per_network: int = 1,
    ) -> Iterator[str]:
        """Ports one after another, each created when it is asked for."""
        network = self.own_network(network_create_args)
        for _ in range(ports_per_network):
            yield self.create("port", {"network_id": network, **(port_create_args or {})})

    @openstack("NeutronNetworks.create_and_list_ports", takes=_ports, **NEEDS)
    def create_and_list_ports(self, **kwargs: Any) -> None:
        """Create ports, and list all ports."""
        self.list_with("port", list(self._ports(**kwargs)))

    @openstack("NeutronNetworks.create_and_show_ports", takes=_ports, **NEEDS)
    def create_and_show_ports(self, **kwargs: Any) -> None:
        """Create ports, and get each at once."""
        for port in self._ports(**kwargs):
            self.show("port", port)

    @openstack("NeutronNetworks.create_and_update_ports", takes=_ports, **NEEDS)
    def create_and_update_ports(self, port_update_args: dict[str, Any], **kwargs: Any) -> None:
        """Create ports, and change each at once."""
        for port in self._ports(**kwargs):
            self.update("port", port, port_update_args)

    @openstack("NeutronNetworks.create_and_delete_ports", takes=_ports, **NEEDS)
    def create_and_delete_ports(self, **kwargs: Any) -> None:
        """Create ports, and delete each at once."""
        for port in self._ports(**kwargs):
            self.delete("port", port)

    @openstack(
        "NeutronNetworks.create_and_bind_ports", admin=True, contexts={"network": {}}, **NEEDS
    )
    def create_and_bind_ports(self, ports_per_network: int = 1) -> None:
        """Create two subnets in each network of the project, and ports that the admin binds."""
        for network in self.context[neutron.NETWORKS][self.cloud.project_id]:
            for version in (4, 6):
                self.create_subnet(network["id"], args={"ip_version": version})
            for _ in range(ports_per_network):
                port = self.create("port", {"network_id": network["id"]})
                self._bind(port)

    def _bind(self, port: str) -> None:
        fields = {
            "device_owner": "compute:nova",
            "device_id": _SERVER,
            "binding:host_id": self.context["host"],
        }
        with ActionTimer(self, "neutron.update_port"):
            path = neutron.path_of("port", port)
            self.admin.document("PUT", neutron.SERVICE, path, json={"port": fields})


def _host(admin: Cloud) -> str:
    """The host of a live agent. Raises DeploymentError if there is none."""
    hosts = [
        str(one["host"])
        for one in neutron.listed(admin, "agent")
        if one["admin_state_up"] and one["alive"] and one["agent_type"] in _BINDING_AGENTS
    ]
    if not hosts:
        raise DeploymentError(
            f"there is no live agent to bind ports to: no {' and no '.join(_BINDING_AGENTS)}"
        )
    return hosts[-1]
