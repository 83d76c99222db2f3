"""Contexts of Nova, Cinder, Swift and security groups; what iterations leave in these services."""

from __future__ import annotations

from typing import Any

import pytest

from helpers.cloud_workload import RUN, Workload
from helpers.context_chain import Chain
from helpers.fake_cloud import ADMIN, PASSWORD, FakeCloud
from osbench.common.deployment.record import Deployment
from osbench.common.errors import ContextError, DeploymentError
from osbench.common.plugin.plugins import Plugins
from osbench.edges.openstack.common import resource_names
from osbench.edges.openstack.common.request_errors import RequestFailed
from osbench.edges.openstack.contexts.cleanup import Cleanup
from osbench.edges.openstack.contexts.nova_flavors import FlavorsByName
from osbench.edges.openstack.contexts.project_objects import ProjectObjects
from osbench.edges.openstack.contexts.project_servers import ProjectServers
from osbench.edges.openstack.contexts.project_volumes import ProjectVolumes
from osbench.edges.openstack.contexts.ssh_access import SshAccess
from osbench.edges.openstack.contexts.user_keypairs import UserKeypairs
from osbench.edges.openstack.contexts.users import Users
from osbench.edges.openstack.coordinator.resources import KIND_NAMES

SERVER = {"image": {"id": "i"}, "flavor": {"id": "f"}}


def left(cloud: FakeCloud, *kinds: str) -> dict[str, list[str]]:
    """Names of the objects of some kinds that are there."""
    found = {
        kind: [
            one["name"]
            for one in cloud.objects.get(kind, {}).values()
            if one.get("stack_status") != "DELETE_COMPLETE"
        ]
        for kind in kinds
    }
    return {kind: names for kind, names in found.items() if names}


# contexts


def test_volumes_are_available_in_every_project(cloud):
    chain = Chain(cloud)
    chain.set_up(Users, {"tenants": 2})
    cloud.lost.append(["POST /cinder/volumes", 1])

    made = chain.set_up(ProjectVolumes, {"size": 2, "volumes_per_tenant": 2, "type": None})

    assert [[one["size"] for one in several] for several in made["volumes"].values()] == [
        [2, 2]
    ] * 2
    # one of them was made by a request whose answer was lost
    assert [one["status"] for one in cloud.objects["volumes"].values()] == ["available"] * 4
    chain.undo()
    assert left(cloud, "volumes") == {}


def test_a_volume_that_fails_is_told_and_goes(cloud):
    cloud.volumes_fail = True
    chain = Chain(cloud)
    chain.set_up(Users)

    with pytest.raises(ContextError, match=r"^a volume is in error instead of available; see"):
        chain.set_up(ProjectVolumes, {"size": 1})
    chain.undo()

    assert left(cloud, "volumes") == {}


def test_a_volume_that_never_gets_ready_is_told(cloud, monkeypatch, tmp_path):
    file = tmp_path / "rally.conf"
    file.write_text("[openstack]\ncinder_volume_create_timeout = 0\n")
    monkeypatch.setattr("osbench.common.config.rally_conf.FILES", (file,))
    chain = Chain(cloud)
    said = r"^a volume is still in creating after 0 s \(cinder_volume_create_timeout\); see"

    with pytest.raises(ContextError, match=said):
        chain.set_up(ProjectVolumes, {"size": 1})
    chain.undo()

    assert left(cloud, "volumes") == {}


def test_a_server_whose_answer_was_lost_is_taken_as_it_is(cloud):
    cloud.make("images", {"name": "tiny", "status": "active"})
    cloud.make("flavors", {"name": "m1"})
    cloud.lost.append(["POST /nova/servers$", 2])
    chain = Chain(cloud)
    config = {"image": {"name": "tiny"}, "flavor": {"name": "m1"}, "servers_per_tenant": 2}

    made = chain.set_up(ProjectServers, config)

    assert [len(several) for several in made["servers"].values()] == [2]
    assert len(cloud.objects["servers"]) == 2
    chain.undo()


def test_servers_are_booted_in_every_project(cloud):
    cloud.make("images", {"name": "tiny", "status": "active"})
    cloud.make("flavors", {"name": "m1"})
    chain = Chain(cloud)
    chain.set_up(Users, {"tenants": 2})
    config: dict[str, Any] = {"image": {"name": "tiny"}, "flavor": {"name": "m1"}}

    made = chain.set_up(ProjectServers, {**config, "nics": ["n1", {"net-id": "n2"}]})

    assert [len(several) for several in made["servers"].values()] == [5, 5]
    assert {one["status"] for one in cloud.objects["servers"].values()} == {"ACTIVE"}
    networks = [one["networks"] for one in cloud.objects["servers"].values()]
    assert networks == [[{"uuid": "n1"}, {"uuid": "n2"}]] * 10
    chain.undo()
    assert left(cloud, "servers") == {}


def test_servers_take_networks_of_a_context_in_turn(cloud):
    cloud.make("images", {"name": "tiny", "status": "active"})
    cloud.make("flavors", {"name": "m1"})
    project = cloud.find("projects", ADMIN)["id"]
    chain = Chain(cloud)
    chain.made.append((Users, {}, {"networks": {project: [{"id": "n1"}, {"id": "n2"}]}}))
    config = {"image": {"name": "tiny"}, "flavor": {"name": "m1"}, "servers_per_tenant": 3}

    chain.set_up(ProjectServers, {**config, "auto_assign_nic": True})

    taken = [one["networks"][0]["uuid"] for one in cloud.objects["servers"].values()]
    assert sorted(taken) == ["n1", "n1", "n2"]


def test_servers_that_ask_for_no_network_of_a_context_get_none(cloud):
    cloud.make("images", {"name": "tiny", "status": "active"})
    cloud.make("flavors", {"name": "m1"})
    project = cloud.find("projects", ADMIN)["id"]
    chain = Chain(cloud)
    chain.made.append((Users, {}, {"networks": {project: [{"id": "n1"}]}}))
    config = {"image": {"name": "tiny"}, "flavor": {"name": "m1"}, "servers_per_tenant": 1}

    chain.set_up(ProjectServers, config)

    (server,) = cloud.objects["servers"].values()
    assert "networks" not in server


def test_an_image_that_is_not_there_is_told(cloud):
    chain = Chain(cloud)

    with pytest.raises(DeploymentError, match="there is no image 'tiny'; create one"):
        chain.set_up(ProjectServers, {"image": {"name": "tiny"}, "flavor": {"name": "m1"}})
    chain.undo()


def test_every_user_gets_a_key_pair(cloud):
    chain = Chain(cloud)
    users = chain.set_up(Users, {"tenants": 2, "users_per_tenant": 2})["users"]
    cloud.lost.append(["POST /nova/os-keypairs", 1])

    made = chain.set_up(UserKeypairs)

    assert made["keypairs"].keys() == {user["id"] for user in users}
    assert all(set(one) == {"name", "private", "public"} for (one,) in made["keypairs"].values())
    assert len(cloud.objects["keypairs"]) == 4
    chain.undo()
    assert left(cloud, "keypairs") == {}


def test_flavors_that_were_there_stay(cloud):
    cloud.make("flavors", {"name": "there"})
    chain = Chain(cloud)
    specs = {"hw:cpu_policy": "shared"}
    config = [{"name": "there", "ram": 1}, {"name": "new", "ram": 64, "extra_specs": specs}]
    cloud.lost.append(["POST /nova/flavors$", 1])

    chain.set_up(FlavorsByName, config)

    new = cloud.find("flavors", "new")
    assert (new["vcpus"], new["disk"], new["extra_specs"]) == (1, 0, specs)
    assert new["id"].startswith(resource_names.of_contexts(RUN, 0))
    chain.undo()
    assert cloud.named("flavors") == ["there"]


@pytest.mark.parametrize("config", [None, {}])
def test_a_security_group_lets_everything_in(cloud, config):
    chain = Chain(cloud)
    chain.set_up(Users, {"tenants": 2})
    cloud.lost.append(["POST /neutron/v2.0/security-groups", 1])

    made = chain.set_up(SshAccess, config)

    groups = [name for (name,) in made["ssh_groups"].values()]
    assert cloud.named("security_group") == sorted(groups)
    rules = list(cloud.objects["security_group_rule"].values())
    assert len(rules) == 2 * 6
    assert {one["direction"] for one in rules} == {"ingress"}
    chain.undo()
    assert left(cloud, "security_group") == {}


def test_without_security_groups_there_is_none(cloud):
    cloud.extensions.clear()
    chain = Chain(cloud)

    assert chain.set_up(SshAccess) == {}
    chain.undo()


def test_containers_with_objects_are_made_and_go(cloud):
    chain = Chain(cloud)
    chain.set_up(Users, {"tenants": 2})
    cloud.store_page = 2

    config = {"containers_per_tenant": 3, "objects_per_container": 4, "object_size": 7}
    made = chain.set_up(ProjectObjects, config)

    assert [len(several) for several in made["swift_objects"].values()] == [3, 3]
    stored = [one for boxes in cloud.containers.values() for one in boxes.values()]
    assert [set(box.values()) for box in stored] == [{bytes(7)}] * 6
    assert {len(box) for box in stored} == {4}
    chain.undo()
    assert not any(cloud.containers.values())


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("volumes", {}),
        ("volumes", {"size": 0}),
        ("volumes", {"size": 1, "count": 2}),
        ("servers", {"image": {"name": "a"}}),
        ("servers", {"image": {"id": "a"}, "flavor": {"name": "b"}}),
        ("keypair", {"name": "a"}),
        ("flavors", [{"name": "a"}]),
        ("flavors", [{"name": "a", "ram": 1, "id": "b"}]),
        ("allow_ssh", {"port": 22}),
        ("swift_objects", {"object_size": 0}),
    ],
)
def test_what_no_context_can_do_is_refused_with_the_task(name, config):
    from jsonschema import Draft202012Validator

    schema = Plugins().get("context", name).CONFIG_SCHEMA

    assert list(Draft202012Validator(schema).iter_errors(config))


# what iterations leave


#: Scenarios, the request at which their iterations stop, and the kinds of objects there are then.
HALF_DONE: list[tuple[str, dict[str, Any], str, set[str]]] = [
    (
        "CinderVolumes.create_snapshot_and_attach_volume",
        SERVER,
        "DELETE /nova/servers/.*/os-volume_attachments",
        {"servers", "volumes", "snapshots"},
    ),
    (
        "CinderVolumes.create_and_attach_volume",
        {**SERVER, "size": 1},
        "POST /nova/servers/.*/os-volume_attachments",
        {"servers", "volumes"},
    ),
    (
        "CinderVolumes.create_and_upload_volume_to_image",
        {"size": 1},
        "DELETE /cinder/volumes",
        {"volumes", "images"},
    ),
    (
        "NovaServers.boot_server_from_volume_and_delete",
        {**SERVER, "volume_size": 1},
        "DELETE /nova/servers",
        {"servers", "volumes"},
    ),
    (
        "NovaServers.boot_and_delete_multiple_servers",
        {**SERVER, "count": 3},
        "DELETE /nova/servers",
        {"servers"},
    ),
    ("NovaServers.snapshot_server", SERVER, "DELETE /glance", {"images"}),
    (
        "NovaServers.boot_and_associate_floating_ip",
        SERVER,
        "PUT /neutron",
        {"servers", "floatingip"},
    ),
    ("NovaKeypair.create_and_get_keypair", {}, "GET /nova/os-keypairs/", {"keypairs"}),
    (
        "NovaServerGroups.create_and_delete_server_group",
        {"policies": ["affinity"]},
        "DELETE /nova/os-server-groups",
        {"server_groups"},
    ),
    (
        "NovaFlavors.create_and_list_flavor_access",
        {"ram": 1, "vcpus": 1, "disk": 1},
        "GET /nova/flavors/.*/os-flavor-access",
        {"flavors"},
    ),
    (
        "NovaAggregates.create_aggregate_add_host_and_boot_server",
        {"image": {"id": "i"}, "metadata": {"a": "b"}},
        "GET /nova/servers/",
        {"servers", "flavors", "aggregates"},
    ),
    (
        "CinderVolumes.create_and_accept_transfer",
        {"size": 1},
        "POST /cinder/os-volume-transfer/.*/accept",
        {"volumes", "os-volume-transfer"},
    ),
    (
        "CinderVolumeTypes.create_and_set_volume_type_keys",
        {"volume_type_key": {"a": "b"}, "is_public": False},
        "POST /cinder/types/.*/extra_specs",
        {"types"},
    ),
    (
        "CinderQos.create_and_get_qos",
        {"consumer": "both", "write_iops_sec": "1", "read_iops_sec": "1"},
        "GET /cinder/qos-specs/",
        {"qos-specs"},
    ),
    (
        "HeatStacks.create_and_delete_stack",
        {"template_path": "heat_template_version: x"},
        "DELETE /heat",
        {"stacks"},
    ),
    (
        "SwiftObjects.create_container_and_object_then_delete_all",
        {"objects_per_container": 5},
        "DELETE /swift",
        {"containers"},
    ),
]
KINDS = (
    *("servers", "volumes", "snapshots", "images", "floatingip", "keypairs", "server_groups"),
    *("flavors", "aggregates", "stacks", "types", "qos-specs", "os-volume-transfer"),
)


@pytest.mark.parametrize(("name", "args", "stop", "kinds"), HALF_DONE)
def test_what_a_half_done_iteration_leaves_goes_and_no_more(cloud, name, args, stop, kinds):
    theirs = others(cloud)
    cloud.objects["network"] = {"n1": {"id": "n1", "name": "public", "router:external": True}}
    plugin = Plugins().scenario(f"{name}@native")
    chain = Chain(cloud)
    made = chain.set_up(Cleanup, plugin.context["cleanup"])
    workload = Workload(cloud, name, args, **made)
    cloud.faults.append([stop, 500, 1])

    with pytest.raises(RequestFailed, match="500"):
        workload.run()
    there = ours(cloud)
    chain.undo()

    assert there == kinds
    assert ours(cloud) == set()
    assert others(cloud) == theirs


def ours(cloud: FakeCloud) -> set[str]:
    found = left(cloud, *KINDS)
    named = {kind for kind, names in found.items() if names != ["osb-theirs"]}
    boxes = {name for one in cloud.containers.values() for name in one} - {"osb-theirs"}
    floating = set(found.get("floatingip", ())) and {"floatingip"}
    return named | floating | ({"containers"} if boxes else set())


def others(cloud: FakeCloud) -> dict[str, list[str]]:
    """Objects of other clients, with names like ours, which are made at the first call."""
    project = cloud.find("projects", ADMIN)["id"]
    if "servers" not in cloud.objects:
        user = cloud.find("users", ADMIN)["id"]
        for kind in KINDS:
            if kind != "floatingip":
                cloud.make(
                    kind,
                    {
                        "name": "osb-theirs",
                        "stack_name": "osb-theirs",
                        "user_id": user,
                        "status": "available",
                        "stack_status": "CREATE_COMPLETE",
                        "volume_id": "",
                        "project": project,
                    },
                )
        cloud.containers[project] = {"osb-theirs": {"o": b""}}
    names = {kind: left(cloud, kind).get(kind, []) for kind in KINDS}
    return {
        kind: [name for name in several if name == "osb-theirs"] for kind, several in names.items()
    } | {"containers": [name for name in cloud.containers[project] if name == "osb-theirs"]}


@pytest.mark.parametrize(
    ("name", "args", "count"),
    [
        ("create_and_list_snapshots", {}, 1),
        ("create_volume_from_snapshot", {"do_delete": False}, 2),
    ],
)
def test_snapshots_go_before_their_volumes_and_after_those_made_from_them(cloud, name, args, count):
    chain = Chain(cloud)
    made = chain.set_up(Users)
    made = made | chain.set_up(ProjectVolumes, {"size": 1})
    made = made | chain.set_up(Cleanup, ["cinder"])
    Workload(cloud, f"CinderVolumes.{name}", args, **made).run()
    there = left(cloud, "snapshots", "volumes")
    assert [len(there[kind]) for kind in ("snapshots", "volumes")] == [1, count]

    chain.undo()

    assert left(cloud, "snapshots", "volumes") == {}


def test_a_server_that_is_locked_goes(cloud, monkeypatch):
    chain = Chain(cloud)
    made = chain.set_up(Cleanup, ["nova.servers"])
    workload = Workload(cloud, "NovaServers.boot_lock_unlock_and_delete", SERVER, **made)
    # killed during its pause
    monkeypatch.setattr(workload.plugin.cls, "sleep_between", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        workload.run()
    assert [one["locked"] for one in cloud.objects["servers"].values()] == [True]

    chain.undo()

    assert left(cloud, "servers") == {}


def test_a_deletion_that_was_accepted_is_not_requested_again_at_once(cloud):
    chain = Chain(cloud)
    made = chain.set_up(Cleanup, ["heat"])
    args = {"template_path": "heat_template_version: x"}
    Workload(cloud, "HeatStacks.create_and_list_stack", args, **made).run()
    cloud.seen.clear()

    chain.undo()

    assert [method for method, *_ in cloud.seen].count("DELETE") == 1
    assert left(cloud, "stacks") == {}


def test_key_pairs_of_every_user_go(cloud):
    chain = Chain(cloud)
    made = chain.set_up(Users, {"tenants": 2, "users_per_tenant": 2})
    made = made | chain.set_up(Cleanup, ["nova.keypairs"])
    workload = Workload(cloud, "NovaKeypair.create_and_list_keypairs", **made)
    for iteration in range(1, 5):
        workload.run(iteration)
    assert len({one["user_id"] for one in cloud.objects["keypairs"].values()}) == 4

    chain.undo()

    assert left(cloud, "keypairs") == {}


def test_flavors_and_aggregates_need_an_administrator(cloud):
    cloud.make("users", {"name": "ann", "password": PASSWORD, "domain_id": "default"})
    ann = {"username": "ann", "password": PASSWORD, "project_name": "admin"}
    chain = Chain(cloud, users=[ann])
    record = cloud.deployment(users=[ann])
    del record["openstack"]["admin"]
    chain.deployment = Deployment.from_spec("cloud", record)

    with pytest.raises(DeploymentError, match="needs the admin of the cloud"):
        chain.set_up(Cleanup, ["nova_admin"])
    chain.set_up(Cleanup, ["nova", "cinder"])


def test_kinds_have_names_that_scenarios_use():
    plugins = Plugins()
    named = {
        name
        for scenario in plugins.scenario_names()
        for name in plugins.scenario(f"{scenario}@native").context.get("cleanup", ())
    }

    assert named <= set(KIND_NAMES)
