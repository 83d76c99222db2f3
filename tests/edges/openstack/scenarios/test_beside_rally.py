"""Native scenarios beside Rally's own on the same small cloud: the same requests and actions."""

from __future__ import annotations

import re
from typing import Any

import pytest

from helpers import beside_rally
from helpers.cloud_workload import PLUGINS, Workload
from helpers.fake_cloud import ADMIN, FakeCloud, fake_cloud
from osbench.common.errors import DeploymentError

pytest.importorskip("rally_openstack", reason="the extra osbench[rally] is not installed")

ITERATION = 3
IMAGE, FLAVOR, LARGER = "1" * 32, "2" * 32, "3" * 32
BOOTED = {"image": IMAGE, "flavor": FLAVOR}
NETWORK = {"id": "net", "subnets": [], "router_id": "r1"}
ENCRYPTED = {"provider": "LuksEncryptor", "cipher": "aes-xts-plain64", "key_size": 256}
LIMITS = {"consumer": "both", "write_iops_sec": "10", "read_iops_sec": "1000"}
SHARE = {"share_proto": "NFS"}
LDAP = {"security_service_type": "ldap"}

#: Scenario, arguments, and regular expressions of requests that only Rally sends.
CASES: list[tuple[str, dict[str, Any], str]] = [
    ("DesignateBasic.create_and_list_zones", {}, ""),
    ("DesignateBasic.list_zones", {}, ""),
    ("DesignateBasic.create_and_delete_zone", {}, ""),
    ("DesignateBasic.list_recordsets", {"zone_id": "5" * 32}, ""),
    ("DesignateBasic.create_and_delete_recordsets", {"recordsets_per_zone": 2}, ""),
    ("DesignateBasic.create_and_list_recordsets", {"recordsets_per_zone": 2}, ""),
    ("BarbicanSecrets.list", {}, ""),
    ("BarbicanSecrets.create", {}, ""),
    ("BarbicanSecrets.create_and_delete", {}, r"GET /barbican/v1/secrets/ID"),
    ("BarbicanSecrets.create_and_get", {}, ""),
    ("BarbicanSecrets.get", {}, ""),
    ("BarbicanSecrets.create_and_list", {}, ""),
    ("BarbicanContainers.list", {}, ""),
    ("BarbicanContainers.create_and_delete", {}, ""),
    ("BarbicanContainers.create_and_add", {}, ""),
    ("BarbicanContainers.create_certificate_and_delete", {}, ""),
    ("BarbicanContainers.create_rsa_and_delete", {}, ""),
    ("BarbicanOrders.list", {}, ""),
    ("BarbicanOrders.create_key_and_delete", {}, ""),
    ("BarbicanOrders.create_asymmetric_and_delete", {}, ""),
    ("ManilaShares.create_and_delete_share", SHARE, ""),
    ("ManilaShares.list_shares", {"search_opts": {"status": "available"}}, ""),
    ("ManilaShares.list_shares", {"detailed": False}, ""),
    ("ManilaShares.create_and_extend_share", {**SHARE, "new_size": 3}, ""),
    ("ManilaShares.create_and_shrink_share", SHARE, ""),
    ("ManilaShares.create_and_list_share", SHARE, ""),
    ("ManilaShares.create_share_network_and_delete", {"neutron_net_id": "n"}, "AGAIN"),
    ("ManilaShares.create_share_network_and_list", {"detailed": False}, ""),
    ("ManilaShares.list_share_servers", {"search_opts": {"status": "active"}}, ""),
    ("ManilaShares.create_security_service_and_delete", {**LDAP, "dns_ip": "10.0.0.2"}, "AGAIN"),
    ("ManilaShares.attach_security_service_to_share_network", {}, "AGAIN"),
    (
        "ManilaShares.create_share_then_allow_and_deny_access",
        {**SHARE, "access_type": "ip", "access": "10.0.0.9"},
        "",
    ),
    ("NeutronTrunks.create_and_list_trunks", {"subport_count": 2}, ""),
    ("NeutronTrunks.boot_server_with_subports", {**BOOTED, "subport_count": 1}, ""),
    ("NeutronTrunks.boot_server_and_add_subports", {**BOOTED, "subport_count": 2}, ""),
    (
        "NeutronTrunks.boot_server_and_batch_add_subports",
        {**BOOTED, "subports_per_batch": 2, "batches": 2},
        "",
    ),
    ("NeutronBGPVPN.create_and_delete_bgpvpns", {"route_targets": ["1:2"]}, ""),
    ("NeutronBGPVPN.create_and_list_bgpvpns", {}, ""),
    ("NeutronBGPVPN.create_and_update_bgpvpns", {"update_name": True}, ""),
    ("NeutronBGPVPN.create_bgpvpn_assoc_disassoc_networks", {"route_targets": ["1:2"]}, ""),
    ("NeutronBGPVPN.create_bgpvpn_assoc_disassoc_routers", {"route_targets": ["1:2"]}, ""),
    ("NeutronBGPVPN.create_and_list_networks_associations", {"route_targets": ["1:2"]}, ""),
    ("NeutronBGPVPN.create_and_list_routers_associations", {"route_targets": ["1:2"]}, ""),
    ("IronicNodes.create_and_list_node", {"driver": "fake", "properties": {"cpus": 1}}, ""),
    ("IronicNodes.create_and_list_node", {"driver": "fake", "limit": 5, "sort_key": "name"}, ""),
    ("IronicNodes.create_and_delete_node", {"driver": "fake"}, ""),
    ("MagnumClusterTemplates.list_cluster_templates", {"limit": 3}, ""),
    ("MagnumClusters.list_clusters", {}, ""),
    (
        "MagnumClusters.create_and_list_clusters",
        {"node_count": 1, "cluster_template_uuid": "t"},
        "",
    ),
    ("MagnumClusters.create_and_list_clusters", {"node_count": 1}, ""),
    ("Gnocchi.get_status", {}, ""),
    ("Gnocchi.list_capabilities", {}, ""),
    ("GnocchiArchivePolicy.list_archive_policy", {}, ""),
    ("GnocchiArchivePolicy.create_archive_policy", {}, ""),
    ("GnocchiArchivePolicy.create_delete_archive_policy", {"aggregation_methods": ["max"]}, ""),
    ("GnocchiArchivePolicyRule.list_archive_policy_rule", {}, ""),
    ("GnocchiArchivePolicyRule.create_archive_policy_rule", {}, ""),
    ("GnocchiArchivePolicyRule.create_delete_archive_policy_rule", {}, ""),
    ("GnocchiMetric.list_metric", {"limit": 3}, ""),
    ("GnocchiMetric.create_metric", {"unit": "B"}, r"GET /gnocchi/v1/metric/ID"),
    ("GnocchiMetric.create_delete_metric", {}, r"GET /gnocchi/v1/metric/ID"),
    ("GnocchiMetric.create_delete_metric", {"resource_id": "6" * 32, "unit": "B"}, ""),
    ("GnocchiResource.create_resource", {}, ""),
    ("GnocchiResource.create_delete_resource", {}, ""),
    ("GnocchiResourceType.list_resource_type", {}, ""),
    ("GnocchiResourceType.create_resource_type", {}, ""),
    ("GnocchiResourceType.create_delete_resource_type", {}, ""),
    ("CinderVolumes.create_volume_backup", {"size": 1}, ""),
    # osbench gives the new volume a name
    ("CinderVolumes.create_and_restore_volume_backup", {"size": 1}, r"POST .*/restore"),
    ("CinderVolumes.create_and_list_volume_backups", {"size": 1, "detailed": False}, ""),
    ("CinderVolumeBackups.create_incremental_volume_backup", {"size": 1}, ""),
    (
        "CinderVolumes.create_nested_snapshots_and_attach_volume",
        {**BOOTED, "size": {"min": 2, "max": 2}, "nested_level": 2},
        "",
    ),
    ("CinderVolumeTypes.create_get_and_delete_encryption_type", ENCRYPTED, ""),
    ("CinderVolumeTypes.create_and_delete_encryption_type", ENCRYPTED, ""),
    ("CinderVolumeTypes.create_and_list_encryption_type", ENCRYPTED, ""),
    (
        "CinderVolumeTypes.create_and_update_encryption_type",
        {"create_provider": "a", "update_provider": "b"},
        "",
    ),
    ("CinderQos.create_qos_associate_and_disassociate_type", LIMITS, ""),
    ("NovaServers.boot_and_get_console_url", {**BOOTED, "console_type": "novnc"}, ""),
    ("NovaServers.boot_server_and_list_interfaces", BOOTED, ""),
    (
        "NovaServers.boot_server_and_attach_interface",
        {**BOOTED, "subnet_create_args": {}, "boot_server_args": {}},
        "",
    ),
    ("NovaServers.resize_shutoff_server", {**BOOTED, "to_flavor": LARGER}, ""),
    ("NovaServers.resize_shutoff_server", {**BOOTED, "to_flavor": LARGER, "confirm": False}, ""),
    (
        "NovaServers.boot_server_attach_created_volume_and_resize",
        {**BOOTED, "to_flavor": LARGER, "volume_size": 1},
        "",
    ),
    (
        "NovaServers.boot_server_attach_created_volume_and_extend",
        {**BOOTED, "volume_size": 1, "new_volume_size": 2},
        "",
    ),
    ("NovaServers.boot_server_attach_created_volume_and_live_migrate", {**BOOTED, "size": 1}, ""),
    ("NovaServers.boot_server_attach_volume_and_list_attachments", BOOTED, ""),
]
#: The requests that `AGAIN` stands for: Rally's client gets a new object of Manila once more.
AGAIN = r"GET /manila/v2/(share-networks|security-services)/ID$"


@pytest.fixture
def cloud(monkeypatch):
    from rally import plugins

    plugins.load()
    monkeypatch.setattr("osbench.edges.openstack.scenarios.openstack_scenario.POLL_S", 0.001)
    # Rally sleeps before polls and between them
    monkeypatch.setattr("rally.common.utils.interruptable_sleep", lambda *_: None)
    monkeypatch.setattr("rally.task.utils.time.sleep", lambda _: None)
    with fake_cloud() as server:
        server.absent.clear()
        server.make("images", {"id": IMAGE, "name": "cirros", "status": "active"})
        for identity, name in ((FLAVOR, "tiny"), (LARGER, "small")):
            server.make("flavors", {"id": identity, "name": name, "ram": 64, "vcpus": 1, "disk": 0})
        server.make("types", {"id": "4" * 32, "name": "lvm"})
        server.make("network", {"id": "net", "name": "net", "subnets": []})
        yield server


def made_by_contexts(cloud: FakeCloud) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Results of contexts: of osbench's workload, of a project of Rally, of Rally's whole task."""
    project = cloud.find("projects", ADMIN)["id"]
    zone = cloud.make("zones", {"name": "z.name.", "id": "5" * 32, "project_id": project})
    types = [{"id": "4" * 32, "name": "lvm"}]
    ours = {
        "networks": {project: [NETWORK]},
        "network": {},
        "network_ranges_used": 1,
        "zones": {project: [{"id": zone["id"], "name": zone["name"]}]},
        "volume_types": types,
        "cluster_templates": {project: ["t"]},
        "manila_share_networks": {project: ["sn1", "sn2"]},
    }
    networks = [{"id": "sn1"}, {"id": "sn2"}]
    tenant = {
        "networks": [{**NETWORK, "tenant_id": project}],
        "zones": [{"id": zone["id"], "name": zone["name"]}],
        "manila_share_networks": {"share_networks": networks},
        "cluster_template": "t",
    }
    return ours, tenant, {"volume_types": types}


@pytest.mark.parametrize(("name", "args", "more"), CASES)
def test_requests_and_actions_are_rallys(cloud, name, args, more):
    ours, tenant, context = made_by_contexts(cloud)
    if name.startswith(("NeutronTrunks", "CinderVolumes")) or "volume" in name:
        # servers without a network of a context
        ours.pop("networks"), tenant.pop("networks")
    beside_rally.clear(cloud)

    theirs = beside_rally.run_rally(cloud, name, args, tenant, context, ITERATION)
    sent = beside_rally.said(cloud)
    workload = Workload(cloud, name, args, **ours)
    beside_rally.clear(cloud)
    workload.run(ITERATION)

    extra = re.compile(AGAIN if more == "AGAIN" else more) if more else None
    kept = [line for line in sent if extra is None or not extra.match(line)]
    mine = [line for line in beside_rally.said(cloud) if not extra or not extra.match(line)]
    assert mine == kept
    assert beside_rally.timed(workload.last) == theirs
    assert more == "" or len(mine) < len(sent)


@pytest.mark.parametrize(
    ("name", "args", "said"),
    [
        ("IronicNodes.create_and_delete_node", {"name": "n"}, "osbench sets name itself"),
        ("BarbicanSecrets.create_symmetric_and_delete", {"payload": 1}, "payload must be text"),
        ("ManilaShares.list_shares", {"share_proto": 5}, "share_proto must be one of NFS"),
        ("ManilaShares.set_and_delete_metadata", {"sets": 0}, "sets must be an integer from 1 on"),
        (
            "ManilaShares.set_and_delete_metadata",
            {"key_min_length": 9, "key_max_length": 3},
            "key_min_length and key_max_length must be integers from 1 to 256",
        ),
        (
            "DesignateBasic.create_and_list_recordsets",
            {"recordsets_per_zone": "3"},
            "recordsets_per_zone must be an integer from 1 on, got '3'",
        ),
        ("NeutronBGPVPN.create_and_list_bgpvpns", {"bgpvpn_type": "l4"}, "must be l2 or l3"),
        ("NeutronTrunks.create_and_list_trunks", {"subport_count": 0}, "subport_count must be"),
        (
            "NovaServers.boot_server_attach_volume_and_list_attachments",
            {"volume_num": 0},
            "volume_num must be an integer from 1 on",
        ),
        ("NovaServers.boot_and_get_console_url", {"console_type": "tty"}, "console_type must be"),
        ("CinderVolumes.modify_volume_metadata", {"sets": "x"}, "sets must be an integer from 0"),
        ("CinderVolumes.modify_volume_metadata", {"sets": 1}, "set at least as many keys as are"),
        (
            "CinderVolumes.create_nested_snapshots_and_attach_volume",
            {"nested_level": 0},
            "nested_level must be an integer from 1 on",
        ),
        ("CinderVolumeTypes.create_and_delete_encryption_type", {}, "give provider, or"),
        ("CinderVolumeTypes.create_get_and_delete_encryption_type", {}, ""),
        ("CinderVolumes.modify_volume_metadata", {}, ""),
    ],
)
def test_arguments_that_cannot_work_are_told_before_the_load(name, args, said):
    plugin = PLUGINS.scenario(f"{name}@native")

    found = plugin.cls.check_arguments(plugin.method, args)

    assert any(said in one for one in found) if said else found == []


def test_a_console_of_vmware_has_its_microversion(cloud):
    workload = Workload(
        cloud, "NovaServers.boot_and_get_console_url", {**BOOTED, "console_type": "webmks"}
    )

    workload.run()

    headers = next(headers for _, path, headers in cloud.seen if path.endswith("/remote-consoles"))
    assert headers["openstack-api-version"] == "compute 2.8"


def test_arguments_of_servers_are_checked_wherever_they_are(cloud):
    args = {**BOOTED, "boot_server_args": {"bogus": 1}}

    with pytest.raises(DeploymentError, match=r"bogus in boot_server_args: unknown argument"):
        Workload(cloud, "NovaServers.boot_server_and_attach_interface", args)
