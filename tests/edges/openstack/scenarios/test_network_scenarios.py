"""Scenarios of Neutron, Octavia and quotas: their requests, actions and refusals.

No service of the lab can run Octavia's, nor bind ports: here they get recorded answers.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Any

import pytest

from helpers.cloud_workload import RUN, Workload, requests
from helpers.fake_cloud import FakeCloud, fake_cloud
from osbench.common.errors import DeploymentError
from osbench.common.plugin.plugins import Plugins
from osbench.edges.openstack.common import neutron, resource_names
from osbench.edges.openstack.common.request_errors import NotReady, RequestFailed

READY = "ready (polled: at most 10 % or 0.1 s late)"
PLUGINS = Plugins()
HOST = {"agent_type": "Open vSwitch agent", "alive": True, "admin_state_up": True, "host": "h1"}


@pytest.fixture
def cloud(monkeypatch):
    monkeypatch.setattr("osbench.edges.openstack.scenarios.openstack_scenario.POLL_S", 0.001)
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


@pytest.mark.parametrize(
    ("name", "service", "methods", "actions"),
    [
        ("nova_update", "nova", ["PUT"], {"quotas.update_quotas": 1}),
        (
            "nova_update_and_delete",
            "nova",
            ["PUT", "DELETE"],
            {"quotas.update_quotas": 1, "quotas.delete_quotas": 1},
        ),
        ("nova_get", "nova", ["GET"], {"quotas.get_quotas": 1}),
        ("cinder_update", "cinder", ["PUT"], {"quotas.update_quotas": 1}),
        (
            "cinder_update_and_delete",
            "cinder",
            ["PUT", "DELETE"],
            {"quotas.update_quotas": 1, "quotas.delete_quotas": 1},
        ),
        ("cinder_get", "cinder", ["GET"], {"quotas.get_quotas": 1}),
        ("neutron_update", "neutron", ["PUT"], {"quotas.update_quotas": 1}),
    ],
)
def test_scenarios_of_quotas_act_on_the_users_project(cloud, name, service, methods, actions):
    project = cloud.find("projects", "admin")["id"]
    workload = prepared(cloud, f"Quotas.{name}")

    found = workload.run()

    path = f"/neutron/v2.0/quotas/{project}"
    path = path if service == "neutron" else f"/{service}/os-quota-sets/{project}"
    assert requests(cloud) == [f"{method} {path}" for method in methods]
    assert found == actions


def test_quotas_are_within_their_bound(cloud):
    project = cloud.find("projects", "admin")["id"]
    workload = prepared(cloud, "Quotas.nova_update", {"max_quota": 1})

    workload.run()

    assert set(cloud.quotas["nova", project].values()) <= {-1, 0, 1}


# what they create


def test_everything_that_an_iteration_creates_has_a_name_by_which_it_is_found(cloud):
    prepared(cloud, "NeutronNetworks.associate_and_dissociate_floating_ips").run(12)
    prepared(cloud, "NeutronSecurityGroup.create_and_update_security_groups").run(12)
    prepared(cloud, "Octavia.create_and_update_pools", BALANCING, **network_of_context(cloud)).run(
        12
    )

    beginning = resource_names.of_iterations(RUN, 0) + "12-"
    for kind in ("network", "subnet", "router", "security_group", "loadbalancer", "pool"):
        names = [one["name"] for one in cloud.objects[kind].values()]
        ours = [name for name in names if name.startswith(beginning)]
        assert (
            len(set(ours))
            == len(ours)
            == len(names) - names.count("s") - sum(name in ("public", "net") for name in names)
        ), kind
    (address,) = cloud.objects["floatingip"].values()
    assert address["description"].startswith(beginning)
    assert address["floating_network_id"] == "ext"
    assert address["port_id"] is None
    ports = [one["name"] for one in cloud.objects["port"].values()]
    # the interface of the router goes with the router
    assert sorted(name[: len(beginning)] for name in ports) == ["", beginning]


BALANCING = {"protocol": "HTTP", "lb_algorithm": "ROUND_ROBIN"}


def test_subnets_of_all_iterations_in_one_network_do_not_overlap(cloud):
    context = network_of_context(cloud)
    workload = prepared(
        cloud, "NeutronNetworks.create_and_show_subnets", {"subnets_per_network": 3}, **context
    )

    for iteration in (1, 3, 2):
        workload.run(iteration)

    ranges = [ipaddress.ip_network(one["cidr"]) for one in cloud.objects["subnet"].values()]
    assert len(set(ranges)) == 2 + 9
    assert {one["network_id"] for one in cloud.objects["subnet"].values()} == {"net"}


@pytest.mark.parametrize(
    ("number", "first", "version", "found"),
    [
        (0, None, 4, "10.2.0.0/24"),
        (256, None, 4, "10.3.0.0/24"),
        (1, None, 6, "dead:beaf:0:1::/64"),
        (2, "1.1.0.0/30", 4, "1.1.0.8/30"),
        (1, "192.168.0.7/28", 4, "192.168.0.16/28"),
        # starts again at the end of all addresses
        (2, "255.255.254.0/24", 4, "255.255.254.0/24"),
        (1, "::/64", 6, "0:0:0:1::/64"),
    ],
)
def test_address_ranges_follow_each_other(number, first, version, found):
    assert neutron.address_range(number, first, version) == found


@pytest.mark.parametrize(
    ("args", "sent"),
    [
        ({}, {"cidr": "10.2.2.0/24", "ip_version": 4, "dns_nameservers": ["8.8.8.8", "8.8.4.4"]}),
        (
            {"ip_version": 6},
            {
                "cidr": "dead:beaf:0:2::/64",
                "ip_version": 6,
                "dns_nameservers": ["dead:beaf::1", "dead:beaf::2"],
            },
        ),
        (
            {"cidr": "fd00::/64", "dns_nameservers": [], "enable_dhcp": False},
            {"cidr": "fd00::/64", "ip_version": 6, "dns_nameservers": [], "enable_dhcp": False},
        ),
        (
            {"start_cidr": "20.0.0.0/8"},
            {"cidr": "22.0.0.0/8", "ip_version": 4, "dns_nameservers": ["8.8.8.8", "8.8.4.4"]},
        ),
    ],
)
def test_subnets_have_the_attributes_that_rally_gives_them(args, sent):
    assert neutron.subnet_fields("n", args, 2) == {"network_id": "n", **sent}


def test_a_gateway_is_discovered_for_routers_that_ask_for_one(cloud):
    args = {"router_create_args": {"discover_external_gw": True, "enable_snat": True}}
    workload = prepared(cloud, "NeutronNetworks.create_and_show_routers", args)

    workload.run()

    (router,) = cloud.objects["router"].values()
    assert router["external_gateway_info"] == {"network_id": "ext", "enable_snat": True}
    assert "discover_external_gw" not in router


@pytest.mark.parametrize(
    ("known", "enable", "sent"),
    [(True, True, {"enable_snat": True}), (False, True, {}), (True, None, {})],
)
def test_snat_is_chosen_where_neutron_lets_it_be_chosen(cloud, monkeypatch, known, enable, sent):
    cloud.extensions = {"ext-gw-mode"} if known else set()
    gateways = []
    workload = prepared(
        cloud,
        "NeutronNetworks.set_and_clear_router_gateway",
        {"enable_snat": enable, "network_create_args": {"router:external": True}},
    )
    monkeypatch.setattr(
        workload.plugin.cls, "_gateway", lambda self, change, router, info: gateways.append(info)
    )

    workload.run()

    (network,) = (one["id"] for one in cloud.objects["network"].values() if one["id"] != "ext")
    assert gateways == [{"network_id": network, **sent}, {}]


# lists


def test_lists_are_read_page_by_page(cloud):
    cloud.page = 2
    for number in range(5):
        cloud.make("network", {"name": f"n{number}", "subnets": []})

    workload = prepared(cloud, "NeutronNetworks.create_and_list_networks")
    workload.run()

    # five, the external one, and that of the iteration
    assert len(requests(cloud)) == 1 + 4


def test_a_list_without_what_was_created_fails_the_iteration(cloud, monkeypatch):
    monkeypatch.setattr(neutron, "listed", lambda *_, **__: [])
    workload = prepared(cloud, "NeutronNetworks.create_and_list_networks")

    with pytest.raises(AssertionError, match=r"the list has no network [0-9a-f]{32}"):
        workload.run()


# contexts


def test_iterations_use_the_networks_of_their_project_in_turn(cloud):
    context = network_of_context(cloud)
    (networks,) = context["networks"].values()
    cloud.make("network", {"id": "net2", "name": "net2", "subnets": []})
    networks.append({"id": "net2", "subnets": []})
    workload = prepared(cloud, "NeutronNetworks.create_and_list_ports", **context)

    for iteration in (1, 2, 3):
        workload.run(iteration)

    assert [one["network_id"] for one in cloud.objects["port"].values()] == ["net2", "net", "net2"]


def test_ports_are_bound_by_the_administrator_to_the_host_of_a_live_agent(cloud):
    cloud.make("agent", {**HOST, "host": "dead", "alive": False})
    cloud.make("agent", {**HOST, "host": "dhcp", "agent_type": "DHCP agent"})
    cloud.make("agent", HOST)
    workload = prepared(
        cloud,
        "NeutronNetworks.create_and_bind_ports",
        {"ports_per_network": 2},
        **network_of_context(cloud),
    )

    found = workload.run()

    assert asked(cloud) == f"{SUBNET}; {SUBNET}; {PORT}; PUT /ports/ID; {PORT}; PUT /ports/ID"
    assert found == {SUB: 2, "neutron.create_port": 2, "neutron.update_port": 2}
    for port in cloud.objects["port"].values():
        assert (port["binding:host_id"], port["device_owner"]) == ("h1", "compute:nova")


def test_each_user_of_a_project_deletes_another_subnet(cloud):
    context = network_of_context(cloud)
    subnets = list(cloud.objects["subnet"])
    workload = prepared(cloud, "NeutronSubnets.delete_subnets", **context)

    found = workload.run()

    assert found == {"neutron.delete_subnet": 1}
    assert list(cloud.objects["subnet"]) == subnets[1:]


def users(cloud: FakeCloud, count: int) -> list[dict[str, Any]]:
    """Users of one project, as the context `users` makes them."""
    project = cloud.find("projects", "admin")["id"]
    domains = {"user_domain_name": "Default", "project_domain_name": "Default"}
    found = []
    for number in range(count):
        fields = {"id": f"u{number}", "name": f"u{number}", "password": "p"}
        cloud.make("users", {**fields, "domain_id": "default"})
        user = {"username": f"u{number}", "password": "p", "project_name": "admin", **domains}
        more = {"id": f"u{number}", "project_id": project, "state": "", "temporary": True}
        found.append({**user, **more})
    return found


def test_users_of_a_project_delete_its_subnets_between_them(cloud):
    context = network_of_context(cloud)
    given = {"users": users(cloud, 2), "user_choice_method": "round_robin"}
    workload = prepared(cloud, "NeutronSubnets.delete_subnets", **context, **given)

    workload.run(1)
    workload.run(2)

    assert cloud.objects["subnet"] == {}


# refusals


@pytest.mark.parametrize(
    ("name", "args", "said"),
    [
        (
            "NeutronNetworks.create_and_list_networks",
            {"network_create_args": {"name": "mine"}},
            "network_create_args: osbench sets name itself, to find the object again",
        ),
        (
            "NeutronNetworks.create_and_list_ports",
            {"port_create_args": {"tenant_id": "t"}},
            "port_create_args: osbench sets tenant_id itself, to find the object again",
        ),
        (
            "NeutronNetworks.create_and_list_floating_ips",
            {"floating_ip_args": {"description": "d"}},
            "floating_ip_args: osbench sets description itself, to find the object again",
        ),
        (
            "NeutronNetworks.create_and_update_networks",
            {"network_update_args": {}},
            "network_update_args must name at least one attribute to change",
        ),
        (
            "NeutronNetworks.create_and_list_subnets",
            {"subnets_per_network": 0},
            "subnets_per_network must be an integer from 1 on, got 0",
        ),
        (
            "NeutronNetworks.create_and_list_subnets",
            {"subnet_cidr_start": "10.2.0.0/64"},
            "subnet_cidr_start: '10.2.0.0/64' does not appear to be an IPv4 or IPv6 network",
        ),
        (
            "NeutronNetworks.create_and_list_subnets",
            {"subnet_create_args": {"ip_version": 5}},
            "subnet_create_args: ip_version must be 4 or 6, got 5",
        ),
        (
            "NeutronNetworks.create_and_list_subnets",
            {"subnet_create_args": {"cidr": "x"}},
            "subnet_create_args: cidr: 'x' does not appear to be an IPv4 or IPv6 network",
        ),
        (
            "NeutronSecurityGroup.create_and_list_security_groups",
            {"security_group_create_args": {"name": "n"}},
            "security_group_create_args: osbench sets name itself, to find the object again",
        ),
        ("Quotas.nova_update", {"max_quota": -2}, "max_quota must be at least -1, got -2"),
        ("Quotas.nova_get", {"retries": -1}, "retries must be an integer from 0 on, got -1"),
    ],
)
def test_arguments_that_cannot_work_are_refused_before_the_load(name, args, said):
    assert PLUGINS.scenario(f"{name}@native").check_args(args) == [said]


@pytest.mark.parametrize(
    ("name", "args", "said"),
    [
        (
            "NeutronNetworks.create_and_list_floating_ips",
            {"floating_network": "private"},
            "there is no external network 'private'; choose from public",
        ),
        (
            "NeutronSubnets.delete_subnets",
            {},
            "NeutronSubnets.delete_subnets needs the context network, whose subnets it deletes",
        ),
        (
            "Octavia.create_and_list_loadbalancers",
            {},
            "scenarios of Octavia need subnets: give the context network, or existing_network",
        ),
        (
            "NeutronNetworks.create_and_bind_ports",
            {},
            "no live agent can bind ports; start one: Open vSwitch agent or Linux bridge agent",
        ),
    ],
)
def test_what_the_cloud_lacks_is_said_before_the_load(cloud, name, args, said):
    with pytest.raises(DeploymentError, match=re.escape(said)):
        Workload(cloud, name, args)


def test_a_cloud_without_external_networks_has_no_floating_ips(cloud):
    cloud.objects["network"].clear()

    with pytest.raises(DeploymentError, match="there is no external network for floating IPs"):
        Workload(cloud, "NeutronNetworks.create_and_list_floating_ips")


def test_more_users_than_subnets_are_refused(cloud):
    context = network_of_context(cloud)

    with pytest.raises(DeploymentError, match="3 users of a project would delete 2 subnets of"):
        Workload(cloud, "NeutronSubnets.delete_subnets", users=users(cloud, 3), **context)


# failures


def test_what_neutron_says_is_the_error_of_the_iteration(cloud):
    workload = prepared(
        cloud,
        "NeutronNetworks.set_and_clear_router_gateway",
    )

    with pytest.raises(RequestFailed, match=r"400 Bad Request: Network \w+ is not an external"):
        workload.run()


@pytest.mark.parametrize("name", ["create_and_list_loadbalancers", "create_and_list_pools"])
def test_a_load_balancer_in_an_error_fails_the_iteration(cloud, name):
    cloud.balancers_fail = True
    args = BALANCING if "pool" in name else {}
    workload = prepared(cloud, f"Octavia.{name}", args, **network_of_context(cloud))

    with pytest.raises(NotReady, match="the loadbalancer is in ERROR"):
        workload.run()


def test_a_load_balancer_has_the_attributes_of_the_task(cloud):
    args = {"admin_state": False, "provider": "amphora", "flavor_id": "f"}
    workload = prepared(
        cloud, "Octavia.create_and_show_loadbalancers", args, **network_of_context(cloud, 1)
    )

    workload.run()

    (made,) = cloud.objects["loadbalancer"].values()
    (subnet,) = cloud.objects["subnet"]
    sent = {"admin_state_up": False, "provider": "amphora", "flavor_id": "f"}
    assert made.items() >= {**sent, "vip_subnet_id": subnet}.items()
    assert "description" not in made
