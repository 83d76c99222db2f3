"""Scenarios of Neutron's networks, subnets, ports, routers, floating IPs and agents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from osbench.common.errors import DeploymentError
from osbench.common.plugin.atomic import ActionTimer
from osbench.common.plugin.signature import signature_of
from osbench.edges.openstack.common import neutron
from osbench.edges.openstack.common.cloud import Cloud
from osbench.edges.openstack.scenarios.network_maker import Attributes
from osbench.edges.openstack.scenarios.neutron_scenario import NEEDS, NeutronScenario
from osbench.edges.openstack.scenarios.openstack_scenario import openstack
from osbench.edges.openstack.worker.user_selector import UserSelector

#: Agents to whose hosts ports are bound.
_BINDING_AGENTS = ("Open vSwitch agent", "Linux bridge agent")
#: The server that ports are bound for; Neutron does not look it up.
_SERVER = "6d1f3e52-9d3c-4c7b-8f64-0a5a6d0f9b7e"


class NeutronNetworks(NeutronScenario):
    """Rally's `NeutronNetworks` scenarios: networks, subnets, routers, ports and floating IPs.

    Ports, and subnets that are shown or deleted, are in the networks of the context `network` or
    `existing_network`, else in a new one. Address ranges of subnets count up from
    `subnet_cidr_start` (10.2.0.0/24) without overlap in all of the load. `floating_network` is the
    name or id of an external network; the first one by default.
    """

    @classmethod
    def prepare(cls, context: dict[str, Any], cloud: Cloud) -> None:
        """Look up external network, SNAT extension and host for ports, if the scenario needs them.

        Stores them in `context` (`external`, `snat`, `host`). Raises DeploymentError without an
        external network for floating IPs, or without a live agent to bind ports.
        """
        args = context["args"]
        parameters = signature_of(cls.method(context)).parameters
        floating = "floating_network" in parameters
        context["external"] = ""
        if floating:
            context["external"] = neutron.floating_network(cloud, args.get("floating_network"))
        elif (args.get("router_create_args") or {}).get("discover_external_gw"):
            context["external"] = neutron.external_network(cloud)
        if "enable_snat" in parameters:
            path = "extensions/ext-gw-mode"
            response = cloud.request("GET", neutron.SERVICE, path, expected=(200, 404))
            context["snat"] = response.status_code == 200
        if cls.method(context).needs.admin:
            selector: UserSelector = context["user_selector"]
            admin = Cloud(selector.admin, selector.sessions.session, selector.versions)
            context["host"] = _host(admin)

    # networks

    @openstack("NeutronNetworks.create_and_list_networks", **NEEDS)
    def create_and_list_networks(self, network_create_args: Attributes = None) -> None:
        """Create a network, list all networks, and check that it is among them."""
        self.list_with("network", [self._network(network_create_args)])

    @openstack("NeutronNetworks.create_and_show_network", **NEEDS)
    def create_and_show_network(self, network_create_args: Attributes = None) -> None:
        """Create a network and get it."""
        self.show("network", self._network(network_create_args))

    @openstack("NeutronNetworks.create_and_update_networks", **NEEDS)
    def create_and_update_networks(
        self, network_update_args: dict[str, Any], network_create_args: Attributes = None
    ) -> None:
        """Create a network and change its attributes `network_update_args`."""
        network = self._network(network_create_args)
        self.update("network", network, neutron.network_fields(network_update_args))

    @openstack("NeutronNetworks.create_and_delete_networks", **NEEDS)
    def create_and_delete_networks(self, network_create_args: Attributes = None) -> None:
        """Create a network and delete it."""
        self.delete("network", self._network(network_create_args))

    def _network(self, network_create_args: Attributes = None) -> str:
        return self.create("network", neutron.network_fields(network_create_args))

    # subnets: the arguments of scenarios with subnets in a new network

    def _new_subnets(
        self,
        network_create_args: Attributes = None,
        subnet_create_args: Attributes = None,
        subnet_cidr_start: str | None = None,
        subnets_per_network: int = 1,
    ) -> list[str]:
        network = self._network(network_create_args)
        return self._subnets(network, subnets_per_network, subnet_create_args, subnet_cidr_start)

    def _own_subnets(
        self,
        network_create_args: Attributes = None,
        subnet_create_args: Attributes = None,
        subnet_cidr_start: str | None = None,
        subnets_per_network: int = 1,
    ) -> list[str]:
        network = self.own_network(network_create_args)
        return self._subnets(network, subnets_per_network, subnet_create_args, subnet_cidr_start)

    def _subnets(self, network: str, count: int, args: Attributes, first: str | None) -> list[str]:
        return [
            self.create_subnet(network, position, count, args, first) for position in range(count)
        ]

    @openstack("NeutronNetworks.create_and_list_subnets", takes=_new_subnets, **NEEDS)
    def create_and_list_subnets(self, **kwargs: Any) -> None:
        """Create subnets in a new network, list all subnets, and check that they are among them."""
        self.list_with("subnet", self._new_subnets(**kwargs))

    @openstack("NeutronNetworks.create_and_update_subnets", takes=_new_subnets, **NEEDS)
    def create_and_update_subnets(self, subnet_update_args: dict[str, Any], **kwargs: Any) -> None:
        """Create subnets in a new network, and change each by `subnet_update_args`."""
        for subnet in self._new_subnets(**kwargs):
            self.update("subnet", subnet, subnet_update_args)

    @openstack("NeutronNetworks.create_and_show_subnets", takes=_own_subnets, **NEEDS)
    def create_and_show_subnets(self, **kwargs: Any) -> None:
        """Create subnets in a network of the project, and get each."""
        for subnet in self._own_subnets(**kwargs):
            self.show("subnet", subnet)

    @openstack("NeutronNetworks.create_and_delete_subnets", takes=_own_subnets, **NEEDS)
    def create_and_delete_subnets(self, **kwargs: Any) -> None:
        """Create subnets in a network of the project, and delete each."""
        for subnet in self._own_subnets(**kwargs):
            self.delete("subnet", subnet)

    # routers: the arguments of scenarios with one router for each subnet of a new network

    def _routers(
        self,
        network_create_args: Attributes = None,
        subnet_create_args: Attributes = None,
        subnet_cidr_start: str | None = None,
        subnets_per_network: int = 1,
        router_create_args: Attributes = None,
    ) -> list[tuple[str, str]]:
        """Create routers with a subnet each; return pairs (router id, subnet id)."""
        network, count = self._network(network_create_args), subnets_per_network
        routers = [self._router(router_create_args) for _ in range(count)]
        return [
            (
                router,
                self.create_subnet(
                    network, position, count, subnet_create_args, subnet_cidr_start, router
                ),
            )
            for position, router in enumerate(routers)
        ]

    def _router(self, router_create_args: Attributes = None) -> str:
        fields = neutron.router_fields(router_create_args, self.context["external"])
        return self.create("router", fields)

    def _gateway(self, change: str, router: str, gateway: dict[str, Any]) -> None:
        with ActionTimer(self, f"neutron.{change}_gateway_router"):
            fields = {"external_gateway_info": gateway}
            path = neutron.path_of("router", router)
            self.cloud.document("PUT", neutron.SERVICE, path, json={"router": fields})

    @openstack("NeutronNetworks.create_and_list_routers", takes=_routers, **NEEDS)
    def create_and_list_routers(self, **kwargs: Any) -> None:
        """Create routers with a subnet each, list all routers, and check that they are in it."""
        self.list_with("router", [router for router, _ in self._routers(**kwargs)])

    @openstack("NeutronNetworks.create_and_show_routers", takes=_routers, **NEEDS)
    def create_and_show_routers(self, **kwargs: Any) -> None:
        """Create routers with a subnet each, and get each."""
        for router, _ in self._routers(**kwargs):
            self.show("router", router)

    @openstack("NeutronNetworks.create_and_update_routers", takes=_routers, **NEEDS)
    def create_and_update_routers(self, router_update_args: dict[str, Any], **kwargs: Any) -> None:
        """Create routers with a subnet each, and change each router by `router_update_args`."""
        for router, _ in self._routers(**kwargs):
            self.update("router", router, router_update_args)

    @openstack("NeutronNetworks.create_and_delete_routers", takes=_routers, **NEEDS)
    def create_and_delete_routers(self, **kwargs: Any) -> None:
        """Create routers with a subnet each; detach each subnet and delete its router."""
        for router, subnet in self._routers(**kwargs):
            self.change_interface("remove", router, subnet)
            self.delete("router", router)

    @openstack("NeutronNetworks.set_and_clear_router_gateway", **NEEDS)
    def set_and_clear_router_gateway(
        self,
        enable_snat: bool | None = True,
        network_create_args: Attributes = None,
        router_create_args: Attributes = None,
    ) -> None:
        """Create a network and a router, set the network as the router's gateway, and clear it.

        The network has to be external: `network_create_args: {"router:external": true}`.
        """
        network = self._network(network_create_args)
        router = self._router(router_create_args)
        snat = enable_snat is not None and self.context["snat"]
        gateway = {"network_id": network, **({"enable_snat": enable_snat} if snat else {})}
        self._gateway("add", router, gateway)
        self._gateway("remove", router, {})

    # ports: the arguments of scenarios with ports in one network

    def _ports(
        self,
        network_create_args: Attributes = None,
        port_create_args: Attributes = None,
        ports_per_network: int = 1,
    ) -> Iterator[str]:
        """Yield the ids of new ports of one network; a port is created when its id is requested."""
        network = self.own_network(network_create_args)
        for _ in range(ports_per_network):
            yield self.create("port", {"network_id": network, **(port_create_args or {})})

    @openstack("NeutronNetworks.create_and_list_ports", takes=_ports, **NEEDS)
    def create_and_list_ports(self, **kwargs: Any) -> None:
        """Create ports in a network of the project, list all, and check that they are listed."""
        self.list_with("port", list(self._ports(**kwargs)))

    @openstack("NeutronNetworks.create_and_show_ports", takes=_ports, **NEEDS)
    def create_and_show_ports(self, **kwargs: Any) -> None:
        """Create ports one after another, and get each before the next is created."""
        for port in self._ports(**kwargs):
            self.show("port", port)

    @openstack("NeutronNetworks.create_and_update_ports", takes=_ports, **NEEDS)
    def create_and_update_ports(self, port_update_args: dict[str, Any], **kwargs: Any) -> None:
        """Create ports one after another, and change each before the next is created."""
        for port in self._ports(**kwargs):
            self.update("port", port, port_update_args)

    @openstack("NeutronNetworks.create_and_delete_ports", takes=_ports, **NEEDS)
    def create_and_delete_ports(self, **kwargs: Any) -> None:
        """Create ports one after another, and delete each before the next is created."""
        for port in self._ports(**kwargs):
            self.delete("port", port)

    @openstack(
        "NeutronNetworks.create_and_bind_ports", admin=True, contexts={"network": {}}, **NEEDS
    )
    def create_and_bind_ports(self, ports_per_network: int = 1) -> None:
        """Create two subnets (IPv4, IPv6) and ports in each network of the project.

        The administrator binds each port to the host of a live agent.
        """
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

    # floating IPs

    def _floating_ip(self, floating_ip_args: Attributes = None) -> str:
        fields = {"floating_network_id": self.context["external"], **(floating_ip_args or {})}
        return self.create("floatingip", fields)

    @openstack("NeutronNetworks.create_and_list_floating_ips", **NEEDS)
    def create_and_list_floating_ips(
        self, floating_network: str | None = None, floating_ip_args: Attributes = None
    ) -> None:
        """Create a floating IP, list all floating IPs, and check that it is among them."""
        self.list_with("floatingip", [self._floating_ip(floating_ip_args)])

    @openstack("NeutronNetworks.create_and_delete_floating_ips", **NEEDS)
    def create_and_delete_floating_ips(
        self, floating_network: str | None = None, floating_ip_args: Attributes = None
    ) -> None:
        """Create a floating IP and delete it."""
        self.delete("floatingip", self._floating_ip(floating_ip_args))

    @openstack("NeutronNetworks.associate_and_dissociate_floating_ips", **NEEDS)
    def associate_and_dissociate_floating_ips(self, floating_network: str | None = None) -> None:
        """Create a floating IP and a routed port, associate them, and dissociate them."""
        address = self._floating_ip()
        network = self._network()
        subnet = self.create_subnet(network)
        port = self.create("port", {"network_id": network})
        router = self._router()
        self._gateway("add", router, {"network_id": self.context["external"]})
        self.change_interface("add", router, subnet)
        with ActionTimer(self, "neutron.associate_floating_ip"):
            self.update("floatingip", address, {"port_id": port})
        with ActionTimer(self, "neutron.dissociate_floating_ip"):
            self.update("floatingip", address, {"port_id": None})

    # agents

    @openstack("NeutronNetworks.list_agents", services=("neutron",))
    def list_agents(self, agent_args: Attributes = None) -> None:
        """List Neutron's agents that fit the filters `agent_args`; users need a role for that."""
        with self.action("list", "agent"):
            neutron.listed(self.cloud, "agent", **(agent_args or {}))


def _host(admin: Cloud) -> str:
    """Return the host of the last live agent that can bind ports. Raises DeploymentError."""
    hosts = [
        str(one["host"])
        for one in neutron.listed(admin, "agent")
        if one["admin_state_up"] and one["alive"] and one["agent_type"] in _BINDING_AGENTS
    ]
    if not hosts:
        raise DeploymentError(
            f"no live agent can bind ports; start one: {' or '.join(_BINDING_AGENTS)}"
        )
    return hosts[-1]
