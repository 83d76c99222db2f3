"""Networks and routers that contexts make, and what iterations leave in networks."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest

from helpers.context_chain import Chain, made_by
from helpers.fake_cloud import FakeCloud, fake_cloud
from helpers.fake_network import DEFAULT_QUOTA, INTERFACE
from osbench.common.errors import ContextError
from osbench.edges.openstack.common.request_errors import RequestFailed
from osbench.edges.openstack.contexts.cleanup import Cleanup
from osbench.edges.openstack.contexts.existing_network import ExistingNetwork
from osbench.edges.openstack.contexts.project_networks import ProjectNetworks
from osbench.edges.openstack.contexts.project_routers import ProjectRouters
from osbench.edges.openstack.contexts.quotas import Quotas
from osbench.edges.openstack.contexts.restored_quotas import RestoredQuotas
from osbench.edges.openstack.contexts.users import Users

KINDS = ("network", "subnet", "port", "router", "floatingip", "security_group", "loadbalancer")


@pytest.fixture
def cloud(virtual_time, monkeypatch):
    monkeypatch.setattr("osbench.edges.openstack.coordinator.cloud_access.PAUSES_S", (0.0,) * 4)
    with fake_cloud() as server:
        server.absent -= {"network", "load-balancer"}
        yield server


def external(cloud: FakeCloud) -> str:
    """An external network."""
    fields = {"name": "public", "project_id": "theirs", "router:external": True, "subnets": []}
    return str(cloud.make("network", fields)["id"])


def counts(cloud: FakeCloud) -> dict[str, int]:
    return {kind: len(found) for kind in KINDS if (found := cloud.objects.get(kind))}


# the context network


def test_a_network_with_a_subnet_and_a_router_is_the_default(cloud):
    gateway = external(cloud)
    chain = Chain(cloud)
    chain.set_up(Users, {"tenants": 2})

    made = chain.set_up(ProjectNetworks)

    assert len(made["networks"]) == 2
    assert made["network_ranges_used"] == 2
    for project, (network,) in made["networks"].items():
        (subnet,) = network["subnets"]
        assert cloud.objects["network"][network["id"]]["project_id"] == project
        assert cloud.objects["subnet"][subnet]["network_id"] == network["id"]
        router = cloud.objects["router"][network["router_id"]]
        assert router["external_gateway_info"] == {"network_id": gateway}
    ranges = sorted(one["cidr"] for one in cloud.objects["subnet"].values())
    assert ranges == ["10.2.0.0/24", "10.2.1.0/24"]
    assert counts(cloud) == {"network": 3, "subnet": 2, "port": 2, "router": 2}
    assert ("networks made", 2, 2) in chain.progress
    chain.undo()
    assert counts(cloud) == {"network": 1}


def test_networks_are_made_as_the_task_says(cloud):
    external(cloud)
    chain = Chain(cloud)
    chain.set_up(Users)
    config = {
        "start_cidr": "20.0.0.0/28",
        "networks_per_tenant": 2,
        "subnets_per_network": 3,
        "network_create_args": {"mtu": 1400, "provider_network_type": "vlan"},
        "dns_nameservers": ["9.9.9.9"],
        "router": {"external": False},
    }

    made = chain.set_up(ProjectNetworks, config)

    ((first, second),) = made["networks"].values()
    assert [len(one["subnets"]) for one in (first, second)] == [3, 3]
    assert made["network_ranges_used"] == 6
    networks = [one for one in cloud.objects["network"].values() if one["name"] != "public"]
    assert all((one["mtu"], one["provider:network_type"]) == (1400, "vlan") for one in networks)
    subnets = cloud.objects["subnet"].values()
    assert all(one["dns_nameservers"] == ["9.9.9.9"] for one in subnets)
    assert len({ipaddress.ip_network(one["cidr"]) for one in subnets}) == 6
    assert all("external_gateway_info" not in one for one in cloud.objects["router"].values())


def test_subnets_of_both_versions_alternate(cloud):
    chain = Chain(cloud)
    chain.set_up(Users)
    config = {"subnets_per_network": 3, "dualstack": True, "start_cidr": "20.0.0.0/28"}

    made = chain.set_up(ProjectNetworks, {**config, "router": {}})

    ((network,),) = made["networks"].values()
    found = [cloud.objects["subnet"][one] for one in network["subnets"]]
    assert [one["ip_version"] for one in found] == [4, 6, 4]
    # as in Rally, start_cidr is for networks of one version
    assert [one["cidr"] for one in found] == ["10.2.0.0/24", "dead:beaf:0:1::/64", "10.2.2.0/24"]
    assert (network["router_id"], counts(cloud)) == (None, {"network": 1, "subnet": 3})


@pytest.mark.parametrize(
    "lost",
    [
        r"POST /neutron/v2.0/networks",
        r"POST /neutron/v2.0/subnets",
        r"POST /neutron/v2.0/routers",
        r"PUT /neutron/.*/add_router_interface",
    ],
)
def test_what_was_made_although_the_answer_was_lost_is_not_made_twice(cloud, lost):
    chain = Chain(cloud)
    chain.set_up(Users)
    cloud.lost.append([lost, 2])

    chain.set_up(ProjectNetworks, {"subnets_per_network": 2})

    assert counts(cloud) == {"network": 1, "subnet": 2, "port": 2, "router": 1}
    chain.undo()
    assert counts(cloud) == {}


@pytest.mark.parametrize("nth", range(4))
def test_networks_half_made_are_removed_by_their_names(cloud, nth):
    step = ("networks", "routers", "subnets", "routers/[^/]*/add_router_interface")[nth]
    chain = Chain(cloud)
    chain.set_up(Users, {"tenants": 2})
    cloud.faults.append([rf"(POST|PUT) /neutron/v2.0/{step}$", 403, 1])

    with pytest.raises(RequestFailed, match="403 Forbidden: as the test says"):
        chain.set_up(ProjectNetworks, {"networks_per_tenant": 2})
    assert chain.kept[-1]["networks"] == {}
    chain.undo()

    assert counts(cloud) == {}


def test_networks_much_like_those_of_the_context_stay(cloud):
    chain = Chain(cloud)
    chain.set_up(Users)
    made = chain.set_up(ProjectNetworks)
    ((project, (network,)),) = made["networks"].items()
    theirs = [f"{network['name']}-x", network["name"].replace("-network-", "-other-")]
    for name in theirs:
        cloud.make("network", {"name": name, "project_id": project, "subnets": []})
        cloud.make("router", {"name": name, "project_id": project})

    chain.undo()

    assert cloud.named("network") == cloud.named("router") == sorted(theirs)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (
            {"start_cidr": "10.2.0.0"},
            [],
        ),
        (
            {"start_cidr": "ten"},
            ["start_cidr: 'ten' does not appear to be an IPv4 or IPv6 network"],
        ),
        (
            {"network_create_args": {"name": "n"}},
            ["network_create_args: osbench sets name itself, to find the network again"],
        ),
    ],
)
def test_a_configuration_that_cannot_work_is_refused(config, said):
    assert ProjectNetworks.check_config(config) == said


# other contexts


def test_routers_are_made_in_every_project(cloud):
    gateway = external(cloud)
    chain = Chain(cloud)
    chain.set_up(Users, {"tenants": 2})
    address = {"subnet_id": "s"}
    config = {
        "routers_per_tenant": 2,
        "network_id": gateway,
        "external_fixed_ips": [address],
        "admin_state_up": False,
    }

    made = chain.set_up(ProjectRouters, config)

    assert [len(several) for several in made["routers"].values()] == [2, 2]
    for router in cloud.objects["router"].values():
        info = {"network_id": gateway, "external_fixed_ips": [address]}
        assert (router["external_gateway_info"], router["admin_state_up"]) == (info, False)
    chain.undo()
    assert counts(cloud) == {"network": 1}


def test_addresses_of_a_gateway_need_its_network():
    (said,) = ProjectRouters.check_config({"external_fixed_ips": []})

    assert said == "external_fixed_ips needs network_id, the external network of the gateway"
    assert ProjectRouters.check_config({"external_gateway_info": {"network_id": "n"}}) == []


def test_existing_networks_are_those_that_users_can_use(cloud):
    external(cloud)
    chain = Chain(cloud)
    (user,) = chain.set_up(Users)["users"]
    project = user["project_id"]
    cloud.make("network", {"name": "mine", "project_id": project, "subnets": ["s"]})
    cloud.make("network", {"name": "shared", "project_id": "x", "shared": True, "subnets": []})
    cloud.make("network", {"name": "theirs", "project_id": "x", "subnets": []})

    made = chain.set_up(ExistingNetwork)

    found = {one["name"]: one["subnets"] for one in made["networks"][project]}
    assert found == {"mine": ["s"], "shared": []}
    chain.undo()
    assert cloud.named("network") == ["mine", "public", "shared", "theirs"]


def test_a_project_without_networks_has_no_existing_ones(cloud):
    external(cloud)
    chain = Chain(cloud)
    chain.set_up(Users)

    with pytest.raises(ContextError, match="has no network, except external ones; use the context"):
        chain.set_up(ExistingNetwork)


@pytest.mark.parametrize("service", ["nova", "neutron"])
def test_quotas_that_iterations_change_are_restored(cloud, service):
    name = "instances" if service == "nova" else "network"
    project = cloud.find("projects", "admin")["id"]
    chain = Chain(cloud)
    chain.set_up(RestoredQuotas, {service: [name]})
    cloud.quotas[service, project] = {name: 7}

    chain.undo()

    assert cloud.quotas[service, project][name] == DEFAULT_QUOTA


@pytest.mark.parametrize(
    ("service", "name"),
    [("neutron", "network"), ("nova", "cores"), ("manila", "shares"), ("designate", "zones")],
)
def test_quotas_of_a_project_that_goes_are_set_and_deleted(cloud, service, name):
    cloud.absent.clear()
    chain = Chain(cloud)
    (user,) = chain.set_up(Users)["users"]
    chain.set_up(Quotas, {service: {name: 50}})
    chain.set_up(RestoredQuotas, {service: [name]})
    assert cloud.quotas[service, user["project_id"]][name] == 50
    cloud.quotas[service, user["project_id"]][name] = 7

    chain.undo()

    assert cloud.quotas == {}


# what iterations leave


def left(cloud: FakeCloud, chain: Chain, project: str, *, ours: bool = True) -> dict[str, Any]:
    """A router between an external network and a port with a floating IP, and a load balancer."""

    def name(number: int) -> str:
        return made_by(chain, number) if ours else f"theirs-{number}"

    def make(kind: str, number: int, **fields: Any) -> str:
        common = {"name": name(number), "project_id": project}
        usual = {"device_owner": "", "device_id": "", "fixed_ips": [], "subnets": []}
        return str(cloud.make(kind, {**common, **usual, **fields})["id"])

    network = make("network", 1)
    subnet = make("subnet", 2, network_id=network)
    cloud.objects["network"][network]["subnets"].append(subnet)
    port = make("port", 3, network_id=network, fixed_ips=[{"subnet_id": subnet}])
    router = make("router", 4)
    interface = {"device_id": router, "device_owner": INTERFACE, "name": ""}
    make("port", 5, network_id=network, fixed_ips=[{"subnet_id": subnet}], **interface)
    make("floatingip", 6, name="", description=name(6), port_id=port)
    group = make("security_group", 7)
    make("security_group_rule", 8, name="", security_group_id=group)
    balancer = make("loadbalancer", 9, provisioning_status="ACTIVE", looks=0)
    make("pool", 10, loadbalancer_id=balancer, provisioning_status="ACTIVE", looks=0)
    return {"network": network, "router": router}


def test_all_that_iterations_left_is_removed_in_an_order_that_neutron_allows(cloud):
    project = cloud.find("projects", "admin")["id"]
    chain = Chain(cloud)
    chain.set_up(Cleanup, ["neutron", "octavia"])
    left(cloud, chain, project)
    left(cloud, chain, project)
    theirs = left(cloud, chain, project, ours=False)
    cloud.page = 1

    chain.undo()

    assert counts(cloud) == dict.fromkeys(KINDS, 1) | {"port": 2}
    assert theirs["router"] in cloud.objects["router"]
    assert len(cloud.objects["pool"]) == 1


def test_what_is_left_in_other_projects_is_not_looked_for(cloud):
    chain = Chain(cloud)
    chain.set_up(Cleanup, ["neutron"])
    left(cloud, chain, "theirs")
    before = counts(cloud)

    chain.undo()

    assert counts(cloud) == before


def test_a_network_in_use_by_others_is_named_as_left(cloud):
    project = cloud.find("projects", "admin")["id"]
    chain = Chain(cloud)
    chain.set_up(Cleanup, ["neutron"])
    mine = left(cloud, chain, project)
    foreign = {"name": "boot", "device_owner": "compute:nova", "device_id": "s", "fixed_ips": []}
    cloud.make("port", {**foreign, "network_id": mine["network"], "project_id": project})

    with pytest.raises(ContextError, match=r"1 networks are left: DELETE .*409 Conflict.*in use"):
        chain.undo()

    assert counts(cloud) == {"network": 1, "port": 1, "loadbalancer": 1}


@pytest.mark.parametrize("kind", ["routers", "floatingips", "security-groups"])
def test_a_neutron_that_lacks_a_kind_is_cleaned_of_the_others(cloud, kind):
    project = cloud.find("projects", "admin")["id"]
    cloud.faults.append([rf"GET /neutron/v2.0/{kind}", 404, 10_000])
    chain = Chain(cloud)
    chain.set_up(Cleanup, ["neutron"])
    cloud.make("network", {"name": made_by(chain, 1), "project_id": project, "subnets": []})

    chain.undo()

    assert counts(cloud) == {}


def test_a_neutron_without_networks_is_refused_before_the_load(cloud):
    cloud.faults.append([r"GET /neutron/v2.0/networks", 404, 10_000])

    with pytest.raises(RequestFailed, match="404"):
        Chain(cloud).set_up(Cleanup, ["neutron"])
