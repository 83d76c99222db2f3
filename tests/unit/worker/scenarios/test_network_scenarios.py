"""Scenarios of Neutron, Octavia and quotas: their requests, actions and refusals.

No service of the lab can run Octavia's, nor bind ports: here they get recorded answers.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from helpers.fake_cloud import FakeCloud, fake_cloud
from helpers.iterations import Workload, requests
from osbench.common.plugin.plugins import Plugins

READY = "ready (polled: at most 10 % or 0.1 s late)"
PLUGINS = Plugins()
HOST = {"agent_type": "Open vSwitch agent", "alive": True, "admin_state_up": True, "host": "h1"}


@pytest.fixture
def cloud(monkeypatch):
    monkeypatch.setattr("osbench.worker.scenarios.openstack_scenario.POLL_S", 0.001)
    with fake_cloud() as server:
        server.absent -= {"network", "load-balancer", "block-storage"}
        server.make(
            "network", {"id": "ext", "name": "public", "subnets": [], "router:external": True}
        )
        yield server


def prepared(cloud: FakeCloud, name: str, args: Any = None, **context: Any) -> Workload:
    """A scenario that is ready, before its first request."""
    workload = Workload(cloud, name, args, **context)
    cloud.seen.clear()
    return workload


def network_of_context(cloud: FakeCloud, subnets: int = 2) -> dict[str, Any]:
    """A network that the context `network` has made for the administrator."""
    project = cloud.find("projects", "admin")["id"]
    made = cloud.make("network", {"id": "net", "name": "net", "project_id": project})
    made["subnets"] = [
        cloud.make("subnet", {"name": "s", "network_id": "net", "cidr": f"10.2.{number}.0/24"})[
            "id"
        ]
        for number in range(subnets)
    ]
    networks = [{"id": "net", "name": "net", "subnets": list(made["subnets"])}]
    return {"networks": {project: networks}, "network_ranges_used": subnets}


def asked(cloud: FakeCloud) -> str:
    """The requests, without address, ids and repeated polls."""
    found: list[str] = []
    for line in requests(cloud):
        short = re.sub(r"/(neutron|octavia)/v2\.0", "", line)
        short = re.sub(r"[0-9a-f]{32}", "ID", short)
        if not (found and found[-1] == short and short.startswith("GET")):
            found.append(short)
    return "; ".join(found)


NETWORK, SUBNET, ROUTER = "POST /networks", "POST /subnets", "POST /routers"
PORT, ADDRESS, GROUP = "POST /ports", "POST /floatingips", "POST /security-groups"
RULE = "POST /security-group-rules"
CONNECTED = f"{SUBNET}; PUT /routers/ID/add_router_interface"
TOPOLOGY = f"{NETWORK}; {ROUTER}; {ROUTER}; {CONNECTED}; {CONNECTED}"
BALANCER = "POST /lbaas/loadbalancers"
READ_BALANCER, READ_POOL = "GET /lbaas/loadbalancers/ID", "GET /lbaas/pools/ID"
NET, SUB, ROUT = ("neutron.create_network", "neutron.create_subnet", "neutron.create_router")
INTERFACE = f"{SUB} > neutron.add_interface_router"
ROUTED = {NET: 1, ROUT: 2, SUB: 2, INTERFACE: 2}
LB, WAIT = "octavia.load_balancer_create", "octavia.wait_for_loadbalancers"
BALANCED = {LB: 2, WAIT: 2, f"{WAIT} > {READY}": 2}
POOL = "octavia.pool_create"
POOLED = {**BALANCED, POOL: 2, f"{POOL} > accepted": 2, f"{POOL} > {READY}": 2}
POOLS = f"{BALANCER}; {BALANCER}; {READ_BALANCER}; POST /lbaas/pools; {READ_POOL}"
TWO = {"subnets_per_network": 2}

#: Scenario, arguments, requests in their order, actions with their number.
NETWORKS = [
    ("create_and_list_networks", {}, f"{NETWORK}; GET /networks", {NET: 1, "list_networks": 1}),
    ("create_and_show_network", {}, f"{NETWORK}; GET /networks/ID", {NET: 1, "show_network": 1}),
    (
        "create_and_update_networks",
        {"network_update_args": {"admin_state_up": False}},
        f"{NETWORK}; PUT /networks/ID",
        {NET: 1, "update_network": 1},
    ),
    (
        "create_and_delete_networks",
        {"network_create_args": {"mtu": 1400}},
        f"{NETWORK}; DELETE /networks/ID",
        {NET: 1, "delete_network": 1},
    ),
    (
        "create_and_list_subnets",
        TWO,
        f"{NETWORK}; {SUBNET}; {SUBNET}; GET /subnets",
        {NET: 1, SUB: 2, "list_subnets": 1},
    ),
    (
        "create_and_update_subnets",
        {**TWO, "subnet_update_args": {"enable_dhcp": False}},
        f"{NETWORK}; {SUBNET}; {SUBNET}; PUT /subnets/ID; PUT /subnets/ID",
        {NET: 1, SUB: 2, "update_subnet": 2},
    ),
    (
        "create_and_show_subnets",
        {},
        f"{NETWORK}; {SUBNET}; GET /subnets/ID",
        {NET: 1, SUB: 1, "show_subnet": 1},
    ),
    (
        "create_and_delete_subnets",
        TWO,
        f"{NETWORK}; {SUBNET}; {SUBNET}; DELETE /subnets/ID; DELETE /subnets/ID",
        {NET: 1, SUB: 2, "delete_subnet": 2},
    ),
    (
        "create_and_list_routers",
        TWO,
        f"{TOPOLOGY}; GET /routers",
        {**ROUTED, "list_routers": 1},
    ),
    (
        "create_and_show_routers",
        TWO,
        f"{TOPOLOGY}; GET /routers/ID",
        {**ROUTED, "show_router": 2},
    ),
    (
        "create_and_update_routers",
        {**TWO, "router_update_args": {"admin_state_up": False}},
        f"{TOPOLOGY}; PUT /routers/ID; PUT /routers/ID",
        {**ROUTED, "update_router": 2},
    ),
    (
        "create_and_delete_routers",
        {},
        f"{NETWORK}; {ROUTER}; {CONNECTED}; PUT /routers/ID/remove_router_interface; "
        "DELETE /routers/ID",
        {NET: 1, ROUT: 1, SUB: 1, INTERFACE: 1, "remove_interface_router": 1, "delete_router": 1},
    ),
    (
        "set_and_clear_router_gateway",
        {"network_create_args": {"router_external": True}},
        f"{NETWORK}; {ROUTER}; PUT /routers/ID; PUT /routers/ID",
        {NET: 1, ROUT: 1, "add_gateway_router": 1, "remove_gateway_router": 1},
    ),
    (
        "create_and_list_ports",
        {"ports_per_network": 2},
        f"{NETWORK}; {PORT}; {PORT}; GET /ports",
        {NET: 1, "create_port": 2, "list_ports": 1},
    ),
    (
        "create_and_show_ports",
        {"ports_per_network": 2},
        f"{NETWORK}; {PORT}; GET /ports/ID; {PORT}; GET /ports/ID",
        {NET: 1, "create_port": 2, "show_port": 2},
    ),
    (
        "create_and_update_ports",
        {"port_update_args": {"admin_state_up": False}},
        f"{NETWORK}; {PORT}; PUT /ports/ID",
        {NET: 1, "create_port": 1, "update_port": 1},
    ),
    (
        "create_and_delete_ports",
        {},
        f"{NETWORK}; {PORT}; DELETE /ports/ID",
        {NET: 1, "create_port": 1, "delete_port": 1},
    ),
    (
        "create_and_list_floating_ips",
        {},
        f"{ADDRESS}; GET /floatingips",
        {"create_floating_ip": 1, "list_floating_ips": 1},
    ),
    (
        "create_and_delete_floating_ips",
        {"floating_network": "public"},
        f"{ADDRESS}; DELETE /floatingips/ID",
        {"create_floating_ip": 1, "delete_floating_ip": 1},
    ),
    (
        "associate_and_dissociate_floating_ips",
        {"floating_network": "ext"},
        f"{ADDRESS}; {NETWORK}; {SUBNET}; {PORT}; {ROUTER}; PUT /routers/ID; "
        "PUT /routers/ID/add_router_interface; PUT /floatingips/ID; PUT /floatingips/ID",
        {
            "create_floating_ip": 1,
            NET: 1,
            SUB: 1,
            "create_port": 1,
            ROUT: 1,
            "add_gateway_router": 1,
            "add_interface_router": 1,
            "associate_floating_ip": 1,
            "associate_floating_ip > neutron.update_floating_ip": 1,
            "dissociate_floating_ip": 1,
            "dissociate_floating_ip > neutron.update_floating_ip": 1,
        },
    ),
    ("list_agents", {"agent_args": {"alive": True}}, "GET /agents?alive=True", {"list_agents": 1}),
]

GROUPS = [
    (
        "create_and_list_security_groups",
        {"security_group_create_args": {"description": "d"}},
        f"{GROUP}; GET /security-groups",
        {"create_security_group": 1, "list_security_groups": 1},
    ),
    (
        "create_and_show_security_group",
        {},
        f"{GROUP}; GET /security-groups/ID",
        {"create_security_group": 1, "show_security_group": 1},
    ),
    (
        "create_and_delete_security_groups",
        {},
        f"{GROUP}; DELETE /security-groups/ID",
        {"create_security_group": 1, "delete_security_group": 1},
    ),
    (
        "create_and_update_security_groups",
        {"security_group_update_args": {}},
        f"{GROUP}; PUT /security-groups/ID",
        {"create_security_group": 1, "update_security_group": 1},
    ),
    (
        "create_and_list_security_group_rules",
        {"security_group_rules_count": 2},
        f"{GROUP}; {RULE}; {RULE}; GET /security-group-rules",
        {
            "create_security_group": 1,
            "create_security_group_rule": 2,
            "list_security_group_rules": 1,
        },
    ),
    (
        "create_and_show_security_group_rule",
        {},
        f"{GROUP}; {RULE}; GET /security-group-rules/ID",
        {
            "create_security_group": 1,
            "create_security_group_rule": 1,
            "show_security_group_rule": 1,
        },
    ),
    (
        "create_and_delete_security_group_rule",
        {},
        f"{GROUP}; {RULE}; DELETE /security-group-rules/ID; DELETE /security-groups/ID",
        {
            "create_security_group": 1,
            "create_security_group_rule": 1,
            "delete_security_group_rule": 1,
            "delete_security_group": 1,
        },
    ),
]

#: The context has one network with two subnets.
BALANCERS = [
    (
        "create_and_list_loadbalancers",
        {},
        f"{BALANCER}; {BALANCER}; {READ_BALANCER}; GET /lbaas/loadbalancers",
        {**BALANCED, "octavia.load_balancer_list": 1},
    ),
    (
        "create_and_delete_loadbalancers",
        {},
        f"{BALANCER}; {BALANCER}; {READ_BALANCER}; DELETE /lbaas/loadbalancers/ID; "
        f"{READ_BALANCER}; DELETE /lbaas/loadbalancers/ID",
        {**BALANCED, "octavia.load_balancer_delete": 2},
    ),
    (
        "create_and_show_loadbalancers",
        {},
        f"{BALANCER}; {BALANCER}; {READ_BALANCER}",
        {**BALANCED, "octavia.load_balancer_show": 2},
    ),
    (
        "create_and_stats_loadbalancers",
        {},
        f"{BALANCER}; {BALANCER}; {READ_BALANCER}; {READ_BALANCER}/stats; {READ_BALANCER}; "
        f"{READ_BALANCER}/stats",
        {**BALANCED, "octavia.load_balancer_stats_show": 2},
    ),
    (
        "create_and_update_loadbalancers",
        {},
        f"{BALANCER}; {BALANCER}; {READ_BALANCER}; PUT /lbaas/loadbalancers/ID; "
        f"{READ_BALANCER}; PUT /lbaas/loadbalancers/ID; {READ_BALANCER}",
        {LB: 2, WAIT: 4, f"{WAIT} > {READY}": 4, "octavia.load_balancer_set": 2},
    ),
    (
        "create_and_list_pools",
        {},
        f"{POOLS}; {READ_BALANCER}; POST /lbaas/pools; {READ_POOL}; GET /lbaas/pools",
        {**POOLED, "octavia.pool_list": 1},
    ),
    (
        "create_and_delete_pools",
        {},
        f"{POOLS}; DELETE /lbaas/pools/ID; {READ_BALANCER}; POST /lbaas/pools; {READ_POOL}; "
        "DELETE /lbaas/pools/ID",
        {**POOLED, "octavia.pool_delete": 2},
    ),
    (
        "create_and_show_pools",
        {},
        f"{POOLS}; {READ_BALANCER}; POST /lbaas/pools; {READ_POOL}",
        {**POOLED, "octavia.pool_show": 2},
    ),
    (
        "create_and_update_pools",
        {},
        f"{POOLS}; PUT /lbaas/pools/ID; {READ_BALANCER}; POST /lbaas/pools; {READ_POOL}; "
        "PUT /lbaas/pools/ID",
        {**POOLED, "octavia.pool_set": 2},
    ),
]


@pytest.mark.parametrize(
    ("name", "args", "expected", "actions"),
    [
        *((f"NeutronNetworks.{row[0]}", *row[1:]) for row in NETWORKS),
        *((f"NeutronSecurityGroup.{row[0]}", *row[1:]) for row in GROUPS),
    ],
)
def test_scenarios_of_neutron_send_rallys_requests_in_its_actions(
    cloud, name, args, expected, actions
):
    workload = prepared(cloud, name, args)

    found = workload.run(3)

    assert asked(cloud) == expected
    assert found == {
        key if key.startswith("neutron.") else f"neutron.{key}": count
        for key, count in actions.items()
    }


@pytest.mark.parametrize(("name", "args", "expected", "actions"), BALANCERS)
def test_scenarios_of_octavia_send_rallys_requests_in_its_actions(
    cloud, name, args, expected, actions
):
    pools = {"protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN"} if "pool" in name else {}
    workload = prepared(cloud, f"Octavia.{name}", {**pools, **args}, **network_of_context(cloud))

    found = workload.run()

    assert asked(cloud) == expected
    assert found == actions
