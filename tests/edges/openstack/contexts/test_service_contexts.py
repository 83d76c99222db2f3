"""Contexts of Designate, Manila and Cinder's types; what iterations leave in further services."""

from __future__ import annotations

from typing import Any

import pytest

from helpers.cloud_workload import Workload
from helpers.context_chain import Chain, made_by
from helpers.fake_cloud import ADMIN, FakeCloud
from osbench.common.errors import ContextError
from osbench.common.plugin.plugins import Plugins
from osbench.edges.openstack.common.request_errors import RequestFailed
from osbench.edges.openstack.contexts.cleanup import Cleanup
from osbench.edges.openstack.contexts.cluster_templates import ClusterTemplates
from osbench.edges.openstack.contexts.dns_zones import DnsZones
from osbench.edges.openstack.contexts.manila_shares import (
    ProjectSecurityServices,
    ProjectShareNetworks,
    ProjectShares,
)
from osbench.edges.openstack.contexts.users import Users
from osbench.edges.openstack.contexts.volume_types import VolumeTypes

LDAP = {"security_services": [{"type": "ldap"}, {"type": "kerberos", "domain": "d"}]}


def names(cloud: FakeCloud, kind: str) -> list[str]:
    return [str(one.get("name") or one.get("meta")) for one in cloud.objects.get(kind, {}).values()]


# contexts


def test_zones_are_made_once_in_every_project(cloud):
    chain = Chain(cloud)
    chain.set_up(Users, {"tenants": 2})
    cloud.lost.append(["POST /designate/v2/zones", 1])

    made = chain.set_up(DnsZones, {"zones_per_tenant": 30})

    assert [len(several) for several in made["zones"].values()] == [30, 30]
    zones = cloud.objects["zones"]
    assert len(zones) == 60
    for several in made["zones"].values():
        assert all(zones[one["id"]]["name"] == one["name"] for one in several)
        assert all(one["name"].endswith(".name.") for one in several)
    chain.undo()
    assert names(cloud, "zones") == []


def test_a_network_gets_the_domain_of_a_zone(cloud):
    project = cloud.find("projects", ADMIN)["id"]
    cloud.make("network", {"id": "n1", "name": "net", "project_id": project})
    chain = Chain(cloud)
    chain.made.append((Cleanup, [], {"networks": {project: [{"id": "n1"}]}}))

    made = chain.set_up(DnsZones, {"set_zone_in_network": True})

    assert cloud.objects["network"]["n1"]["dns_domain"] == made["zones"][project][0]["name"]
    chain.made[0] = (Cleanup, [], {})
    with pytest.raises(ContextError, match="set_zone_in_network needs the context network"):
        chain.set_up(DnsZones, {"set_zone_in_network": True})


def test_a_zone_of_another_project_is_told(cloud):
    chain = Chain(cloud)
    chain.set_up(Users)
    chain.set_up(DnsZones)
    for zone in cloud.objects["zones"].values():
        zone["project_id"] = "theirs"
    chain.made.pop()

    with pytest.raises(ContextError, match=r"a zone osb-.*\.name\. exists in another project"):
        chain.set_up(DnsZones)


def test_shares_are_in_share_networks_with_security_services(cloud):
    project = cloud.find("projects", ADMIN)["id"]
    chain = Chain(cloud)
    chain.made.append(
        (Users, {}, {"networks": {project: [{"id": "n1", "subnets": ["s1"]}, {"id": "n2"}]}})
    )
    # not of the actions, which threads may send before the next network
    cloud.lost += [["POST /manila/v2/share-networks$", 1], ["POST /manila/v2/shares$", 1]]

    services = chain.set_up(ProjectSecurityServices, LDAP)["manila_security_services"]
    networks = chain.set_up(ProjectShareNetworks, {"use_share_networks": True})
    shares = chain.set_up(ProjectShares, {"shares_per_tenant": 3, "size": 2})["manila_shares"]

    ids = networks["manila_share_networks"][project]
    there = cloud.objects
    assert [there["security-services"][one]["type"] for one in services[project]] == [
        "ldap",
        "kerberos",
    ]
    # Manila takes a network with a subnet only
    assert [there["share-networks"][one].get("neutron_net_id") for one in ids] == ["n1", None]
    assert there["share-networks"][ids[0]]["neutron_subnet_id"] == "s1"
    created = [there["shares"][one] for one in shares[project]]
    assert [one["share_network_id"] for one in created] == [ids[0], ids[1], ids[0]]
    assert {one["status"] for one in created} == {"available"}
    assert len(there["shares"]) == 3
    added = [path for method, path, _ in cloud.seen if path.endswith("/action")]
    assert len(added) == 4
    for kind, config, made in reversed(chain.made[1:]):
        kind(config, chain.environment(1), made).cleanup()
    assert not any(names(cloud, one) for one in ("shares", "share-networks", "security-services"))


@pytest.mark.parametrize("attached", [True, False])
def test_a_security_service_that_is_refused_must_be_there(cloud, attached):
    chain = Chain(cloud)
    chain.set_up(Users)
    chain.set_up(ProjectSecurityServices, {"security_services": [{"type": "ldap"}]})
    (service,) = cloud.objects["security-services"].values()
    if not attached:
        # another one, of the same type, is there instead
        service["project_id"] = "other"
    cloud.faults.append(["POST /manila/v2/share-networks/.*/action", 409, 1])

    if attached:
        chain.set_up(ProjectShareNetworks, {"use_share_networks": True})
    else:
        with pytest.raises(ContextError, match=r"one security service of each type"):
            chain.set_up(ProjectShareNetworks, {"use_share_networks": True})


def test_share_networks_are_not_made_unless_asked_for(cloud):
    chain = Chain(cloud)
    chain.set_up(Users)

    made = chain.set_up(ProjectShareNetworks, {})
    chain.set_up(ProjectShares, {})

    assert made == {}
    (share,) = cloud.objects["shares"].values()
    assert (share["size"], share["share_proto"]) == (1, "NFS")
    assert "share_network_id" not in share
    chain.undo()
    assert names(cloud, "shares") == []


def test_a_share_that_fails_is_told_and_goes(cloud):
    cloud.volumes_fail = True
    chain = Chain(cloud)
    chain.set_up(Users)

    with pytest.raises(ContextError, match=r"^a share is in error instead of available; see"):
        chain.set_up(ProjectShares, {})
    chain.undo()

    assert names(cloud, "shares") == []


def test_a_template_of_clusters_is_in_every_project(cloud):
    chain = Chain(cloud)
    chain.set_up(Users, {"tenants": 2})
    cloud.lost.append(["POST /magnum/v1/clustertemplates", 1])
    config = {"image_id": "i", "external_network_id": "e", "coe": "k", "labels": "a=1, b=x=y"}

    made = chain.set_up(ClusterTemplates, config)["cluster_templates"]

    there = cloud.objects["clustertemplates"]
    assert [len(several) for several in made.values()] == [1, 1]
    assert sorted(there) == sorted(one for several in made.values() for one in several)
    assert all(one["labels"] == {"a": "1", "b": "x=y"} for one in there.values())
    assert {one["coe"] for one in there.values()} == {"k"}
    chain.undo()
    assert names(cloud, "clustertemplates") == []


def test_types_of_volumes_have_the_names_of_the_task(cloud):
    theirs = cloud.make("types", {"name": "lvm", "description": "theirs"})
    chain = Chain(cloud)
    cloud.lost.append(["POST /cinder/types", 1])

    made = chain.set_up(VolumeTypes, ["fast", "slow"])["volume_types"]

    assert [one["name"] for one in made] == ["fast", "slow"]
    assert [cloud.objects["types"][one["id"]]["name"] for one in made] == ["fast", "slow"]
    chain.undo()
    assert list(cloud.objects["types"]) == [theirs["id"]]


def test_a_type_of_volumes_that_exists_is_refused_and_stays(cloud):
    theirs = cloud.make("types", {"name": "lvm", "description": "theirs"})
    chain = Chain(cloud)

    with pytest.raises(ContextError, match=r"^there is a type of volumes 'lvm' already: choose a"):
        chain.set_up(VolumeTypes, ["lvm"])
    chain.undo()

    assert list(cloud.objects["types"]) == [theirs["id"]]


@pytest.mark.parametrize(
    ("name", "config", "said"),
    [
        ("manila_share_networks", {"share_networks": {"t": ["n"]}}, "manila_share_networks@rally"),
        ("cluster_templates", {"labels": "a=1,b"}, "labels must be NAME=VALUE,..., got 'b'"),
        ("cluster_templates", {"labels": "a=1,b="}, ""),
        ("cluster_templates", {"public": True}, "cluster_templates@rally"),
        ("zones", {"zones_per_tenant": 2, "set_zone_in_network": True}, ""),
        ("manila_share_networks", {"use_share_networks": True}, ""),
    ],
)
def test_keys_that_cannot_work_are_told_before_the_run(name, config, said):
    found = Plugins().get("context", name).check_config(config)

    assert (said in found[0]) if said else found == []


# what iterations leave

SHARE = {"share_proto": "NFS"}
BOOTED = {"image": {"id": "i"}, "flavor": {"id": "f"}}
#: Scenarios, the request at which their iterations stop, and the kinds of objects there are then.
HALF_DONE: list[tuple[str, dict[str, Any], str, set[str]]] = [
    ("DesignateBasic.create_and_delete_zone", {}, "DELETE /designate", {"zones"}),
    ("BarbicanSecrets.create_and_delete", {}, "DELETE /barbican", {"secrets"}),
    ("BarbicanContainers.create_and_add", {}, "DELETE /barbican", {"secrets", "containers"}),
    ("BarbicanOrders.create_key_and_delete", {}, "DELETE /barbican", {"orders"}),
    ("ManilaShares.create_and_delete_share", SHARE, "DELETE /manila", {"shares"}),
    ("ManilaShares.create_share_network_and_delete", {}, "DELETE /manila", {"share-networks"}),
    (
        "ManilaShares.attach_security_service_to_share_network",
        {},
        "POST /manila/.*/action",
        {"share-networks", "security-services"},
    ),
    (
        "NeutronTrunks.create_and_list_trunks",
        {"subport_count": 1},
        "GET /neutron/v2.0/trunks/",
        {"network", "port", "trunk"},
    ),
    ("NeutronBGPVPN.create_and_delete_bgpvpns", {}, "DELETE /neutron", {"bgpvpn"}),
    (
        "NeutronFWaaS.create_policy_add_and_remove_rules",
        {},
        "PUT /neutron",
        {"firewall_policy", "firewall_rule"},
    ),
    ("NeutronFWaaS.create_and_delete_firewall_groups", {}, "DELETE /neutron", {"firewall_group"}),
    ("IronicNodes.create_and_delete_node", {"driver": "fake"}, "DELETE /ironic", {"nodes"}),
    (
        "MagnumClusters.create_and_list_clusters",
        {"node_count": 1, "cluster_template_uuid": "t"},
        "GET /magnum/v1/clusters$",
        {"clusters", "keypairs"},
    ),
    ("GnocchiMetric.create_delete_metric", {}, "DELETE /gnocchi", {"metric"}),
    ("GnocchiResource.create_delete_resource", {}, "DELETE /gnocchi", {"resource"}),
    (
        "GnocchiArchivePolicy.create_delete_archive_policy",
        {},
        "DELETE /gnocchi",
        {"archive_policy"},
    ),
    ("CinderVolumes.create_volume_backup", {"size": 1}, "DELETE /cinder", {"volumes", "backups"}),
    (
        "CinderVolumes.create_and_restore_volume_backup",
        {"size": 1},
        "DELETE /cinder/backups",
        {"volumes", "backups"},
    ),
    (
        "NovaServers.boot_server_attach_created_volume_and_extend",
        {**BOOTED, "volume_size": 1, "new_volume_size": 2},
        "DELETE /nova/servers/.*/os-volume_attachments",
        {"servers", "volumes"},
    ),
]
KINDS = sorted(set().union(*(row[3] for row in HALF_DONE)))


@pytest.mark.parametrize(("name", "args", "stop", "kinds"), HALF_DONE)
def test_what_a_half_done_iteration_leaves_goes_and_no_more(cloud, name, args, stop, kinds):
    project, user = cloud.find("projects", ADMIN)["id"], cloud.find("users", ADMIN)["id"]
    usual = {"project_id": project, "project": project, "user_id": user, "status": "available"}
    neutron = {"device_id": "", "device_owner": "", "fixed_ips": [], "network_id": ""}
    for kind in KINDS:
        made = cloud.make(
            kind, {"name": "osb-theirs", "meta": {}, "volume_id": "", **neutron, **usual}
        )
        made |= {"uuid": made["id"], "original_resource_id": "osb-theirs"}
        made[f"{kind[:-1]}_ref"] = f"{cloud.url}/barbican/v1/{kind}/{made['id']}"
    before = {kind: set(cloud.objects[kind]) for kind in KINDS}
    chain = Chain(cloud)
    made = chain.set_up(Cleanup, Plugins().scenario(f"{name}@native").context["cleanup"])
    workload = Workload(cloud, name, args, **made)
    cloud.faults.append([stop, 500, 1])

    with pytest.raises(RequestFailed, match="500"):
        workload.run()
    there = {kind for kind in KINDS if set(cloud.objects[kind]) != before[kind]}
    chain.undo()

    assert there == kinds
    assert {kind: set(cloud.objects[kind]) for kind in KINDS} == before


def test_specs_that_types_have_and_lists_of_an_administrator(cloud):
    chain = Chain(cloud)
    chain.set_up(Cleanup, ["cinder_admin.qos_specs", "manila.security_services"])
    cloud.make("qos-specs", {"name": made_by(chain, 1)})
    project = cloud.find("projects", ADMIN)["id"]
    cloud.make("security-services", {"name": made_by(chain, 1), "project_id": project})

    chain.undo()

    sent = [f"{method} {path}" for method, path, _ in cloud.seen]
    assert any(one.startswith("DELETE /cinder/qos-specs/") and "force=true" in one for one in sent)
    # Manila takes a limit for a filter here
    assert "GET /manila/v2/security-services" in sent
    assert names(cloud, "security-services") == names(cloud, "qos-specs") == []


def test_more_than_a_page_of_metrics_goes(cloud):
    for _ in range(1001):
        cloud.make("metric", {"name": "theirs"})
    chain = Chain(cloud)
    chain.set_up(Cleanup, ["gnocchi.metrics"])
    cloud.make("metric", {"name": made_by(chain, 1)})

    chain.undo()

    assert set(names(cloud, "metric")) == {"theirs"}


def test_more_than_a_page_of_secrets_and_shares_goes(cloud):
    project = cloud.find("projects", ADMIN)["id"]
    chain = Chain(cloud)
    chain.set_up(Cleanup, ["barbican", "manila"])
    for number in range(1, 251):
        made = cloud.make("secrets", {"name": made_by(chain, number)})
        made["secret_ref"] = f"{cloud.url}/barbican/v1/secrets/{made['id']}"
        cloud.make("share-networks", {"name": made_by(chain, number), "project_id": project})

    chain.undo()

    assert names(cloud, "secrets") == names(cloud, "share-networks") == []
