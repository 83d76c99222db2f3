"""Scenarios of Nova: requests, actions, and failures."""

from __future__ import annotations

from typing import Any

import pytest

from helpers.cloud_workload import Workload, sent_by, timed
from helpers.fake_cloud import ADMIN, FakeCloud, fake_cloud
from osbench.common.errors import DeploymentError
from osbench.common.plugin.plugins import Plugins
from osbench.common.ports import clock
from osbench.edges.openstack.common.request_errors import NotReady, RequestFailed
from osbench.edges.openstack.scenarios.server_changes import BOUNCES

SERVER = {"image": {"id": "i"}, "flavor": {"id": "f"}}
BOOT, END = "POST /nova/servers", "DELETE /nova/servers/*"
SHOW, ACT = "GET /nova/servers/*", "POST /nova/servers/*/action"
HYPERVISORS = "GET /nova/os-hypervisors/detail"
VOLUME = "POST /cinder/volumes"
FLAVOR = {"ram": 64, "vcpus": 1, "disk": 0}
ZONE = {"availability_zone": "nova"}


@pytest.fixture
def cloud(virtual_time):
    with fake_cloud() as server:
        server.absent.clear()
        yield server


SERVERS: list[tuple[str, dict[str, Any], list[str], list[str]]] = [
    ("boot_server", {}, [BOOT], ["boot_server"]),
    ("boot_and_show_server", {}, [BOOT, SHOW], ["boot_server", "show_server"]),
    (
        "boot_and_list_server",
        {},
        [BOOT, "GET /nova/servers/detail"],
        ["boot_server", "list_servers"],
    ),
    (
        "boot_and_update_server",
        {"description": "d"},
        [BOOT, "PUT /nova/servers/*"],
        ["boot_server", "update_server"],
    ),
    (
        "boot_and_get_console_output",
        {"length": 5},
        [BOOT, ACT],
        ["boot_server", "get_console_output_server"],
    ),
    (
        "boot_and_delete_server",
        {"force_delete": True},
        [BOOT, ACT],
        ["boot_server", "force_delete_server"],
    ),
    (
        "boot_and_delete_multiple_servers",
        {"count": 3},
        [BOOT, "GET /nova/servers/detail", END, END, END],
        ["boot_servers", "delete_servers"],
    ),
    (
        "boot_server_from_volume",
        {"volume_size": 1},
        [VOLUME, BOOT],
        ["cinder_v3.create_volume", "boot_server"],
    ),
    (
        "boot_server_from_volume_and_delete",
        {"volume_size": 1, "create_volume_kwargs": {"description": "d"}},
        [VOLUME, BOOT, END],
        ["cinder_v3.create_volume", "boot_server", "delete_server"],
    ),
    (
        "boot_lock_unlock_and_delete",
        {},
        [BOOT, ACT, ACT, END],
        ["boot_server", "lock_server", "unlock_server", "delete_server"],
    ),
    *(
        (
            f"{one}_and_{other}_server",
            {},
            [BOOT, ACT, ACT, END],
            ["boot_server", f"{one}_server", f"{other}_server", "delete_server"],
        )
        for one, other in (("pause", "unpause"), ("suspend", "resume"), ("shelve", "unshelve"))
    ),
    (
        "resize_server",
        {"to_flavor": {"id": "g"}},
        [BOOT, ACT, ACT, END],
        ["boot_server", "resize", "resize_confirm", "delete_server"],
    ),
    (
        "resize_server",
        {"to_flavor": {"id": "g"}, "confirm": False},
        [BOOT, ACT, ACT, END],
        ["boot_server", "resize", "resize_revert", "delete_server"],
    ),
    (
        "boot_and_migrate_server",
        {},
        [BOOT, HYPERVISORS, SHOW, ACT, SHOW, ACT, END],
        [
            *("boot_server", "migrate", "migrate > nova.list_hypervisors"),
            *("resize_confirm", "delete_server"),
        ],
    ),
    (
        "boot_and_live_migrate_server",
        {"block_migration": True},
        [BOOT, HYPERVISORS, SHOW, ACT, END],
        [
            *("boot_server", "live_migrate", "live_migrate > nova.list_hypervisors"),
            "delete_server",
        ],
    ),
    (
        "snapshot_server",
        {},
        [BOOT, ACT, END, BOOT, END, "DELETE /glance/v2/images/*"],
        [
            *("boot_server", "snapshot_server", "snapshot_server > glance.wait_for_image"),
            *("snapshot_server > nova.wait_for_server", "delete_server", "delete_image"),
            *("delete_image > glance_v2.delete_image", "delete_image > glance.wait_for_delete"),
        ],
    ),
]


@pytest.mark.parametrize(("name", "args", "requests", "names"), SERVERS)
def test_requests_and_actions(cloud, name, args, requests, names):
    workload = Workload(cloud, f"NovaServers.{name}", {**SERVER, **args})

    assert sent_by(workload, cloud) == requests
    assert timed(workload) == [one if "." in one[:10] else f"nova.{one}" for one in names]


def test_a_server_is_rebuilt_from_another_image(cloud):
    args = {"from_image": {"id": "i"}, "to_image": {"id": "j"}, "flavor": {"id": "f"}}
    workload = Workload(cloud, "NovaServers.boot_and_rebuild_server", args)

    assert sent_by(workload, cloud) == [BOOT, ACT, END]
    assert timed(workload) == ["nova.boot_server", "nova.rebuild_server", "nova.delete_server"]


@pytest.mark.parametrize("bounce", BOUNCES)
def test_bounces_are_timed_as_one_and_apart(cloud, bounce):
    changes = [f"nova.{one}" for one in BOUNCES[bounce]]
    args = {**SERVER, "actions": [{bounce: 2}]}
    workload = Workload(cloud, "NovaServers.boot_and_bounce_server", args)

    sent = sent_by(workload, cloud)

    assert sent == [BOOT, *[ACT] * (2 * len(changes)), END]
    if len(changes) > 1:
        whole = f"nova.{bounce.replace('_', '_and_')}_server"
        changes = [whole, *(f"{whole} > {one}" for one in changes)]
    assert timed(workload) == ["nova.boot_server", *changes, "nova.delete_server"]


@pytest.mark.parametrize(
    ("actions", "said"),
    [
        ([{"jump": 1}], "actions: unknown action 'jump'; osbench knows hard_reboot, "),
        ([{"stop_start": 0}], "actions: stop_start must be an integer from 1 on, got 0"),
        ([{"stop_start": True}], "actions: stop_start must be an integer from 1 on, got True"),
        ([{}], "actions: expected a mapping with one action, such as {hard_reboot: 1}, got {}"),
        ([{"stop_start": 1, "lock_unlock": 1}], "actions: expected a mapping with one action"),
    ],
)
def test_bounces_are_checked_with_the_task(actions, said):
    plugin = Plugins().scenario("NovaServers.boot_and_bounce_server@native")

    (message,) = plugin.check_args({**SERVER, "actions": actions})

    assert message.startswith(said)


def test_a_server_from_a_volume_has_it_as_its_first_disk(cloud):
    args = {**SERVER, "volume_size": 2, "nics": "none"}
    Workload(cloud, "NovaServers.boot_server_from_volume", args).run()

    (volume,) = cloud.objects["volumes"].values()
    (server,) = cloud.objects["servers"].values()
    (disk,) = server["block_device_mapping_v2"]
    assert (volume["imageRef"], volume["size"]) == ("i", 2)
    assert "imageRef" not in server
    assert (disk["uuid"], disk["boot_index"]) == (volume["id"], 0)
    assert server["networks"] == "none"


# addresses


@pytest.mark.parametrize("dissociate", [False, True])
def test_a_floating_ip_is_associated(cloud, dissociate):
    cloud.objects["network"] = {
        identity: {"id": identity, "name": name, "router:external": True}
        for identity, name in (("n1", "public"), ("n2", "other"))
    }
    name = (
        "boot_server_associate_and_dissociate_floating_ip"
        if dissociate
        else "boot_and_associate_floating_ip"
    )
    args = {**SERVER, "floating_network": "other"}
    workload = Workload(cloud, f"NovaServers.{name}", args)

    sent = sent_by(workload, cloud)

    update = "PUT /neutron/v2.0/floatingips/*"
    assert sent == [
        *(BOOT, "POST /neutron/v2.0/floatingips", "GET /neutron/v2.0/ports?device_id=*", update),
        *([update] if dissociate else []),
    ]
    top = [one for one in timed(workload) if " > " not in one]
    assert top == [
        *("nova.boot_server", "neutron.create_floating_ip", "nova.associate_floating_ip"),
        *(["nova.dissociate_floating_ip"] if dissociate else []),
    ]
    (made,) = cloud.objects["floatingip"].values()
    assert made["floating_network_id"] == "n2"
    assert made["description"].startswith("osb-")


def test_a_server_without_a_port_fails_its_iteration(cloud):
    cloud.objects["network"] = {"n1": {"id": "n1", "name": "public", "router:external": True}}
    cloud.has_ports = False

    with pytest.raises(AssertionError, match="the server has no port to associate"):
        Workload(cloud, "NovaServers.boot_and_associate_floating_ip", SERVER).run()


def test_servers_get_what_contexts_made_for_their_project(cloud):
    project = cloud.find("projects", ADMIN)["id"]
    context = {"networks": {project: [{"id": "n1"}, {"id": "n2"}]}, "ssh_groups": {project: ["g"]}}
    given = {**SERVER, "security_groups": ["web"]}

    Workload(cloud, "NovaServers.boot_server", given, **context).run(1)
    Workload(cloud, "NovaServers.boot_server", {**given, "nics": "none"}, **context).run(2)
    picks = {**given, "auto_assign_nic": True}
    Workload(cloud, "NovaServers.boot_server", picks, **context).run(3)

    made = list(cloud.objects["servers"].values())
    assert [one["networks"] for one in made] == [[{"uuid": "n1"}], "none", [{"uuid": "n2"}]]
    assert all(one["security_groups"] == [{"name": "web"}, {"name": "g"}] for one in made)


# what administrators do, and the rest


ADMINS: list[tuple[str, dict[str, Any], list[str], list[str]]] = [
    ("NovaFlavors.list_flavors", {}, ["GET /nova/flavors/detail"], ["list_flavors"]),
    (
        "NovaFlavors.list_flavors",
        {"detailed": False, "is_public": None, "min_ram": 5},
        ["GET /nova/flavors?minRam=5&is_public=None"],
        ["list_flavors"],
    ),
    ("NovaFlavors.create_flavor", FLAVOR, ["POST /nova/flavors"], ["create_flavor"]),
    (
        "NovaFlavors.create_and_get_flavor",
        FLAVOR,
        ["POST /nova/flavors", "GET /nova/flavors/*"],
        ["create_flavor", "get_flavor"],
    ),
    (
        "NovaFlavors.create_and_delete_flavor",
        FLAVOR,
        ["POST /nova/flavors", "DELETE /nova/flavors/*"],
        ["create_flavor", "delete_flavor"],
    ),
    (
        "NovaFlavors.create_and_list_flavor_access",
        {**FLAVOR, "is_public": True},
        ["POST /nova/flavors", "GET /nova/flavors/*/os-flavor-access"],
        ["create_flavor", "list_flavor_access"],
    ),
    (
        "NovaFlavors.create_flavor_and_add_tenant_access",
        {**FLAVOR, "is_public": False},
        ["POST /nova/flavors", "POST /nova/flavors/*/action"],
        ["create_flavor", "add_tenant_access"],
    ),
    (
        "NovaFlavors.create_flavor_and_set_keys",
        {**FLAVOR, "extra_specs": {"a": "b"}},
        ["POST /nova/flavors", "POST /nova/flavors/*/os-extra_specs"],
        ["create_flavor", "set_flavor_keys"],
    ),
    ("NovaAggregates.list_aggregates", {}, ["GET /nova/os-aggregates"], ["list_aggregates"]),
    (
        "NovaAggregates.create_and_list_aggregates",
        ZONE,
        ["POST /nova/os-aggregates", "GET /nova/os-aggregates"],
        ["create_aggregate", "list_aggregates"],
    ),
    (
        "NovaAggregates.create_and_delete_aggregate",
        ZONE,
        ["POST /nova/os-aggregates", "DELETE /nova/os-aggregates/1"],
        ["create_aggregate", "delete_aggregate"],
    ),
    (
        "NovaAggregates.create_and_update_aggregate",
        ZONE,
        ["POST /nova/os-aggregates", "PUT /nova/os-aggregates/1"],
        ["create_aggregate", "update_aggregate"],
    ),
    (
        "NovaAggregates.create_and_get_aggregate_details",
        ZONE,
        ["POST /nova/os-aggregates", "GET /nova/os-aggregates/1"],
        ["create_aggregate", "get_aggregate_details"],
    ),
    (
        "NovaAggregates.create_aggregate_add_and_remove_host",
        ZONE,
        [
            *("POST /nova/os-aggregates", HYPERVISORS),
            *["POST /nova/os-aggregates/1/action"] * 2,
        ],
        [
            *("create_aggregate", "list_hypervisors"),
            *("aggregate_add_host", "aggregate_remove_host"),
        ],
    ),
    (
        "NovaAggregates.create_aggregate_add_host_and_boot_server",
        {"image": {"id": "i"}, "metadata": {"a": "b"}},
        [
            *("POST /nova/os-aggregates", HYPERVISORS),
            *["POST /nova/os-aggregates/1/action"] * 2,
            *("POST /nova/flavors", "POST /nova/flavors/*/os-extra_specs", BOOT, SHOW),
        ],
        [
            *("create_aggregate", "list_hypervisors", "aggregate_set_metadata"),
            *("aggregate_add_host", "create_flavor", "boot_server"),
        ],
    ),
    ("NovaHypervisors.list_hypervisors", {}, [HYPERVISORS], ["list_hypervisors"]),
    (
        "NovaHypervisors.list_and_get_hypervisors",
        {},
        [HYPERVISORS, "GET /nova/os-hypervisors/1", "GET /nova/os-hypervisors/2"],
        ["list_hypervisors", "get_hypervisor"],
    ),
    (
        "NovaHypervisors.statistics_hypervisors",
        {},
        ["GET /nova/os-hypervisors/statistics"],
        ["statistics_hypervisors"],
    ),
    (
        "NovaHypervisors.list_and_get_uptime_hypervisors",
        {},
        [HYPERVISORS, *(f"GET /nova/os-hypervisors/{one}/uptime" for one in (1, 2))],
        ["list_hypervisors", "uptime_hypervisor"],
    ),
    (
        "NovaHypervisors.list_and_search_hypervisors",
        {},
        [HYPERVISORS, *(f"GET /nova/os-hypervisors/host-{one}/search" for one in (1, 2))],
        ["list_hypervisors", "search_hypervisors"],
    ),
    (
        "NovaServices.list_services",
        {"binary": "nova-compute"},
        ["GET /nova/os-services?binary=nova-compute"],
        ["list_services"],
    ),
    (
        "NovaAvailabilityZones.list_availability_zones",
        {},
        ["GET /nova/os-availability-zone/detail"],
        ["list_availability_zones"],
    ),
    (
        "NovaKeypair.create_and_list_keypairs",
        {"key_type": "ssh"},
        ["POST /nova/os-keypairs", "GET /nova/os-keypairs"],
        ["create_keypair", "list_keypairs"],
    ),
    (
        "NovaKeypair.create_and_get_keypair",
        {},
        ["POST /nova/os-keypairs", "GET /nova/os-keypairs/*"],
        ["create_keypair", "get_keypair"],
    ),
    (
        "NovaKeypair.create_and_delete_keypair",
        {},
        ["POST /nova/os-keypairs", "DELETE /nova/os-keypairs/*"],
        ["create_keypair", "delete_keypair"],
    ),
    (
        "NovaKeypair.boot_and_delete_server_with_keypair",
        SERVER,
        ["POST /nova/os-keypairs", BOOT, END, "DELETE /nova/os-keypairs/*"],
        ["create_keypair", "boot_server", "delete_server", "delete_keypair"],
    ),
    (
        "NovaServerGroups.create_and_list_server_groups",
        {"policies": "affinity", "all_projects": True},
        ["POST /nova/os-server-groups", "GET /nova/os-server-groups?all_projects=True"],
        ["create_server_group", "list_server_groups"],
    ),
    (
        "NovaServerGroups.create_and_get_server_group",
        {"policies": ["affinity"]},
        ["POST /nova/os-server-groups", "GET /nova/os-server-groups/*"],
        ["create_server_group", "get_server_group"],
    ),
    (
        "NovaServerGroups.create_and_delete_server_group",
        {"kwargs": {"policies": ["affinity"]}},
        ["POST /nova/os-server-groups", "DELETE /nova/os-server-groups/*"],
        ["create_server_group", "delete_server_group"],
    ),
]


@pytest.mark.parametrize(("name", "args", "requests", "names"), ADMINS)
def test_requests_and_actions_beside_servers(cloud, name, args, requests, names):
    workload = Workload(cloud, name, args)

    assert sent_by(workload, cloud) == requests
    assert timed(workload) == [f"nova.{one}" for one in names]


# what goes wrong


def test_a_server_that_breaks_is_told_with_its_fault(cloud):
    cloud.broken_action = "suspend"

    with pytest.raises(NotReady, match=r"^the server is in ERROR: it broke$"):
        Workload(cloud, "NovaServers.suspend_and_resume_server", SERVER).run()


@pytest.mark.parametrize(
    ("hypervisors", "said"),
    [
        (1, "a migration needs two hypervisors; this cloud has 1"),
        (2, "the server was migrated, and its host is still host-1"),
    ],
)
def test_a_migration_that_is_none_fails_its_iteration(cloud, hypervisors, said):
    cloud.hypervisors, cloud.immovable = hypervisors, True

    with pytest.raises(AssertionError, match=said):
        Workload(cloud, "NovaServers.boot_and_migrate_server", SERVER).run()


def test_a_live_migration_to_the_same_host_is_not_ready(cloud, monkeypatch):
    cloud.immovable = True
    args = {**SERVER, "timeouts": {"nova_server_live_migrate_timeout": 0}}
    workload = Workload(cloud, "NovaServers.boot_and_live_migrate_server", args)
    monkeypatch.setattr(workload.plugin.cls, "boot", lambda self, **_: booted(cloud))

    with pytest.raises(NotReady, match="the server on another host than host-1 is not ready"):
        workload.run()


BOOT_LIMIT = "nova_server_boot_timeout"


@pytest.mark.parametrize(
    ("build_s", "timeouts", "configured", "limit_s"),
    [
        (8.0, {}, {}, None),
        (8.0, {BOOT_LIMIT: 4}, {}, 4),
        (8.0, {}, {BOOT_LIMIT: 4.0}, 4),
        (8.0, {BOOT_LIMIT: 9}, {BOOT_LIMIT: 4.0}, None),
        (8.0, {BOOT_LIMIT: 4}, {BOOT_LIMIT: 9.0}, 4),
        (8.0, {}, {"nova_server_delete_timeout": 4.0}, None),
        (299.0, {}, {}, None),
        (301.0, {}, {}, 300),
    ],
)
def test_a_boot_has_the_limit_of_rally_or_the_users(
    cloud, monkeypatch, build_s, timeouts, configured, limit_s
):
    monkeypatch.setattr("helpers.fake_compute.BUILD_S", build_s)
    args = {**SERVER, "timeouts": timeouts}
    workload = Workload(cloud, "NovaServers.boot_server", args, wait_timeouts=configured)
    begin = clock.monotonic()

    if limit_s is None:
        workload.run()
        assert clock.monotonic() - begin == pytest.approx(build_s, abs=0.1 * build_s)
        return
    said = rf"^the server is not ready after {limit_s} s; .* raise {BOOT_LIMIT}$"
    with pytest.raises(NotReady, match=said):
        workload.run()

    assert clock.monotonic() - begin == pytest.approx(limit_s, abs=0.002)


def booted(cloud: FakeCloud) -> str:
    fields = {"name": "s", "status": "ACTIVE", "OS-EXT-SRV-ATTR:host": "host-1"}
    return str(cloud.make("servers", fields)["id"])


def test_access_to_a_public_flavor_is_refused_by_nova(cloud):
    with pytest.raises(RequestFailed, match="409 Conflict: Can not add access to a public flavor"):
        Workload(cloud, "NovaFlavors.create_flavor_and_add_tenant_access", FLAVOR).run()


@pytest.mark.parametrize(
    ("name", "args", "said"),
    [
        ("NovaServerGroups.create_and_get_server_group", {}, "policies must be given, such as"),
        (
            "NovaKeypair.create_and_get_keypair",
            {"user_id": "u"},
            "user_id: unknown argument for key pairs; use only key_type, public_key",
        ),
        (
            "NovaKeypair.boot_and_delete_server_with_keypair",
            {**SERVER, "boot_server_kwargs": {"size": 1}},
            "^size in boot_server_kwargs: unknown argument for servers",
        ),
        (
            "NovaServers.resize_server",
            {**SERVER, "to_flavor": {"name": "big"}},
            "there is no flavor 'big'; create one",
        ),
        (
            "NovaServers.boot_and_associate_floating_ip",
            SERVER,
            "there is no external network for floating IPs",
        ),
        (
            "NovaServers.boot_and_associate_floating_ip",
            {**SERVER, "create_floating_ip_args": {"ext_network": "public"}},
            "there is no external network 'public'; create one",
        ),
        (
            "NovaServers.boot_server_from_volume",
            {**SERVER, "volume_size": 1, "volume_type": "fast"},
            "there is no volume type 'fast'",
        ),
    ],
)
def test_what_cannot_work_is_told_before_the_load(cloud, name, args, said):
    with pytest.raises(DeploymentError, match=said):
        Workload(cloud, name, args)
