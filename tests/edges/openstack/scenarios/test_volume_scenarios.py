"""Scenarios of Cinder: requests, actions, and failures."""

from __future__ import annotations

from typing import Any

import pytest

from helpers.cloud_workload import READY, Workload, actions, sent_by, timed
from helpers.fake_cloud import ADMIN, FakeCloud, fake_cloud
from osbench.common.errors import DeploymentError
from osbench.edges.openstack.common import resource_names
from osbench.edges.openstack.common.request_errors import NotReady, RequestFailed

CREATE, DELETE = "POST /cinder/volumes", "DELETE /cinder/volumes/*"
SNAP, UNSNAP = "POST /cinder/snapshots", "DELETE /cinder/snapshots/*"
BOOT, END = "POST /nova/servers", "DELETE /nova/servers/*"
ATTACH = "POST /nova/servers/*/os-volume_attachments"
DETACH = "DELETE /nova/servers/*/os-volume_attachments/*"
SERVER = {"image": {"id": "i"}, "flavor": {"id": "f"}}
A = "cinder_v3."


@pytest.fixture
def cloud(virtual_time):
    with fake_cloud() as server:
        server.absent.clear()
        yield server


def volumes_of(cloud: FakeCloud) -> dict[str, Any]:
    """The result of the context `volumes`, with one volume."""
    project = cloud.find("projects", ADMIN)["id"]
    volume = cloud.make(
        "volumes", {"name": "given", "size": 3, "status": "available", "project": project}
    )
    return {"volumes": {project: [{"id": volume["id"], "size": 3}]}}


@pytest.mark.parametrize(
    ("name", "args", "requests", "names"),
    [
        ("create_volume", {"size": 1}, [CREATE], ["create_volume"]),
        (
            "create_and_delete_volume",
            {"size": {"min": 1, "max": 2}},
            [CREATE, DELETE],
            ["create_volume", "delete_volume"],
        ),
        (
            "create_and_get_volume",
            {"size": 1},
            [CREATE, "GET /cinder/volumes/*"],
            ["create_volume", "get_volume"],
        ),
        (
            "create_and_list_volume",
            {"size": 1, "detailed": False},
            [CREATE, "GET /cinder/volumes"],
            ["create_volume", "list_volumes"],
        ),
        (
            "create_and_update_volume",
            {"size": 1, "update_volume_kwargs": {"update_name": True, "description": "d"}},
            [CREATE, "PUT /cinder/volumes/*"],
            ["create_volume", "update_volume"],
        ),
        (
            "create_and_extend_volume",
            {"size": 1, "new_size": 2},
            [CREATE, "POST /cinder/volumes/*/action", DELETE],
            ["create_volume", "extend_volume", "delete_volume"],
        ),
        (
            "create_from_volume_and_delete_volume",
            {"size": 3},
            [CREATE, DELETE],
            ["create_volume", "delete_volume"],
        ),
        (
            "create_and_delete_snapshot",
            {"force": True, "description": "d"},
            [SNAP, UNSNAP],
            ["create_snapshot", "delete_snapshot"],
        ),
        (
            "create_and_list_snapshots",
            {},
            [SNAP, "GET /cinder/snapshots/detail"],
            ["create_snapshot", "list_snapshots"],
        ),
        (
            "create_volume_from_snapshot",
            {},
            [SNAP, CREATE, DELETE, UNSNAP],
            ["create_snapshot", "create_volume", "delete_volume", "delete_snapshot"],
        ),
        (
            "create_volume_from_snapshot",
            {"do_delete": False, "create_snapshot_kwargs": {"force": True}},
            [SNAP, CREATE],
            ["create_snapshot", "create_volume"],
        ),
    ],
)
def test_requests_and_actions(cloud, name, args, requests, names):
    workload = Workload(cloud, f"CinderVolumes.{name}", args, **volumes_of(cloud))

    assert sent_by(workload, cloud) == requests
    assert timed(workload) == [A + one for one in names]


TYPES, TRANSFERS, QOS = "/cinder/types", "/cinder/os-volume-transfer", "/cinder/qos-specs"
LIMITS = {"consumer": "both", "write_iops_sec": "10", "read_iops_sec": "1000"}


@pytest.mark.parametrize(
    ("name", "args", "requests", "names"),
    [
        ("CinderVolumes.list_types", {}, [f"GET {TYPES}?is_public=None"], ["list_types"]),
        (
            "CinderVolumes.list_types",
            {"is_public": True, "search_opts": {"limit": 1}},
            [f"GET {TYPES}?limit=1"],
            ["list_types"],
        ),
        ("CinderVolumes.list_transfers", {}, [f"GET {TRANSFERS}/detail"], ["list_transfers"]),
        (
            "CinderVolumes.list_transfers",
            {"detailed": False},
            [f"GET {TRANSFERS}"],
            ["list_transfers"],
        ),
        (
            "CinderVolumes.create_and_accept_transfer",
            {"size": 1},
            [CREATE, f"POST {TRANSFERS}", f"POST {TRANSFERS}/*/accept"],
            ["create_volume", "transfer_create", "transfer_accept"],
        ),
        (
            "CinderVolumes.create_volume_and_update_readonly_flag",
            {"size": 1},
            [CREATE, "POST /cinder/volumes/*/action"],
            ["create_volume", "update_readonly_flag"],
        ),
        (
            "CinderVolumeTypes.create_and_delete_volume_type",
            {"description": "d"},
            [f"POST {TYPES}", f"DELETE {TYPES}/*"],
            ["create_volume_type", "delete_volume_type"],
        ),
        (
            "CinderVolumeTypes.create_and_get_volume_type",
            {},
            [f"POST {TYPES}", f"GET {TYPES}/*"],
            ["create_volume_type", "get_volume_type"],
        ),
        (
            "CinderVolumeTypes.create_and_list_volume_types",
            {"is_public": False},
            [f"POST {TYPES}", f"GET {TYPES}?is_public=None"],
            ["create_volume_type", "list_types"],
        ),
        (
            "CinderVolumeTypes.create_and_update_volume_type",
            {"update_name": True, "update_is_public": True},
            [f"POST {TYPES}", f"PUT {TYPES}/*"],
            ["create_volume_type", "update_volume_type"],
        ),
        (
            "CinderVolumeTypes.create_and_set_volume_type_keys",
            {"volume_type_key": {"volume_backend_name": "LVM"}},
            [f"POST {TYPES}", f"POST {TYPES}/*/extra_specs"],
            ["create_volume_type", "set_volume_type_keys"],
        ),
        (
            "CinderVolumeTypes.create_volume_type_and_encryption_type",
            {"provider": "luks", "key_size": 256},
            [f"POST {TYPES}", f"POST {TYPES}/*/encryption"],
            ["create_volume_type", "create_encryption_type"],
        ),
        (
            "CinderVolumeTypes.create_volume_type_add_and_list_type_access",
            {},
            [
                f"POST {TYPES}",
                f"POST {TYPES}/*/action",
                f"GET {TYPES}/*/os-volume-type-access",
            ],
            ["create_volume_type", "add_type_access", "list_type_access"],
        ),
        (
            "CinderQos.create_and_get_qos",
            LIMITS,
            [f"POST {QOS}", f"GET {QOS}/*"],
            ["create_qos", "get_qos"],
        ),
        (
            "CinderQos.create_and_list_qos",
            LIMITS,
            [f"POST {QOS}", f"GET {QOS}"],
            ["create_qos", "list_qos"],
        ),
        (
            "CinderQos.create_and_set_qos",
            {**LIMITS, **{f"set_{name}": "9" for name in LIMITS}},
            [f"POST {QOS}", f"PUT {QOS}/*"],
            ["create_qos", "set_qos"],
        ),
    ],
)
def test_requests_and_actions_of_types_qos_and_transfers(cloud, name, args, requests, names):
    workload = Workload(cloud, name, args)

    assert sent_by(workload, cloud) == requests
    assert timed(workload) == [A + one for one in names]


@pytest.mark.parametrize(
    ("args", "changed"),
    [
        ({"update_description": "d"}, {"description": "d"}),
        ({"update_is_public": True, "is_public": False}, {"is_public": True}),
        ({}, {}),
    ],
)
def test_a_type_gets_what_the_task_changes(cloud, args, changed):
    Workload(cloud, "CinderVolumeTypes.create_and_update_volume_type", args).run()

    (made,) = cloud.objects["types"].values()
    assert {key: made.get(key) for key in changed} == changed
    assert made["name"].startswith("osb-")


def test_clones_are_each_of_the_one_before(cloud):
    args = {"size": 2, "nested_level": 2}
    workload = Workload(cloud, "CinderVolumes.create_volume_and_clone", args)

    assert sent_by(workload, cloud) == [CREATE] * 3

    clone = "cinder.clone_volume"
    assert timed(workload) == [f"{A}create_volume", clone, f"{clone} > {A}create_volume"]
    first, second, third = cloud.objects["volumes"].values()
    assert second["source_volid"] == first["id"]
    assert (third["source_volid"], third["size"]) == (second["id"], 2)


def test_a_volume_is_uploaded_as_an_image(cloud):
    args = {"size": 1, "disk_format": "qcow2"}
    workload = Workload(cloud, "CinderVolumes.create_and_upload_volume_to_image", args)

    sent = sent_by(workload, cloud)

    assert sent == [
        CREATE,
        "POST /cinder/volumes/*/action",
        DELETE,
        "DELETE /glance/v2/images/*",
    ]
    assert timed(workload) == [
        f"{A}create_volume",
        f"{A}upload_volume_to_image",
        f"{A}delete_volume",
        "glance_v2.delete_image",
    ]
    assert cloud.objects["images"] == {}


@pytest.mark.parametrize(
    ("name", "args", "requests", "names"),
    [
        (
            "create_and_attach_volume",
            {"size": 1},
            [BOOT, CREATE, ATTACH, DETACH, DELETE, END],
            ["boot", "create_volume", "attach", "detach", "delete_volume", "end"],
        ),
        (
            "create_snapshot_and_attach_volume",
            {"description": "d"},
            [CREATE, SNAP, BOOT, ATTACH, DETACH, UNSNAP, DELETE, END],
            [
                *("create_volume", "create_snapshot", "boot", "attach", "detach"),
                *("delete_snapshot", "delete_volume", "end"),
            ],
        ),
    ],
)
def test_volumes_are_attached_and_detached(cloud, name, args, requests, names):
    of_nova = {
        "boot": "nova.boot_server",
        "attach": "nova.attach_volume",
        "detach": "nova.detach_volume",
        "end": "nova.delete_server",
    }
    workload = Workload(cloud, f"CinderVolumes.{name}", {**SERVER, **args})

    assert sent_by(workload, cloud) == requests
    assert timed(workload) == [of_nova.get(one, A + one) for one in names]
    assert cloud.objects["volumes"] == cloud.objects["servers"] == {}


def test_a_volume_is_accepted_and_then_ready(cloud):
    workload = Workload(cloud, "CinderVolumes.create_volume", {"size": 1, "description": "d"})

    workload.run()

    assert actions(workload.last) == {
        f"{A}create_volume": 1,
        f"{A}create_volume > accepted": 1,
        f"{A}create_volume > {READY}": 1,
    }
    (made,) = cloud.objects["volumes"].values()
    assert made["description"] == "d"
    assert made["name"].startswith(resource_names.of_iterations("20260401-120000-ab12", 0))


def test_lists_are_read_page_by_page_unless_a_limit_is_given(cloud):
    cloud.volumes_page = 2
    for number in range(5):
        cloud.make("volumes", {"name": str(number), "status": "available"})

    whole = sent_by(Workload(cloud, "CinderVolumes.list_volumes"), cloud)
    one = sent_by(Workload(cloud, "CinderVolumes.list_volumes", {"limit": 2}), cloud)

    assert len(whole) == 3
    assert all(path.startswith("GET /cinder/volumes/detail") for path in whole)
    assert one == ["GET /cinder/volumes/detail?limit=2"]


def test_a_volume_in_an_error_fails_its_iteration(cloud):
    cloud.volumes_fail = True

    with pytest.raises(NotReady, match=r"^the volume is in error$"):
        Workload(cloud, "CinderVolumes.create_volume", {"size": 1}).run()
    with pytest.raises(NotReady, match=r"^the snapshot is in error$"):
        Workload(cloud, "CinderVolumes.create_and_list_snapshots", **volumes_of(cloud)).run()


def test_a_volume_that_is_not_in_the_list_fails_its_iteration(cloud):
    workload = Workload(cloud, "CinderVolumes.create_and_list_volume", {"size": 1})
    cloud.volumes_page = 0

    with pytest.raises(AssertionError, match="the volume that was created is not in the list"):
        workload.run()


def test_a_refusal_of_cinder_is_told(cloud):
    workload = Workload(cloud, "CinderVolumes.create_and_extend_volume", {"size": 1, "new_size": 2})
    cloud.faults.append(["POST /cinder/volumes/.*/action", 400, 1])

    with pytest.raises(RequestFailed, match=r"/action: 400 Bad Request: as the test says"):
        workload.run()


@pytest.mark.parametrize(
    ("name", "args", "said"),
    [
        ("create_and_delete_snapshot", {}, "needs the context volumes: add it to the workload"),
        ("create_volume", {"size": 1, "name": "n"}, "^name: unknown argument for volumes"),
        (
            "create_and_attach_volume",
            {**SERVER, "size": 1, "create_volume_params": {"multiattach": True}},
            "^multiattach in create_volume_params: unknown argument for volumes",
        ),
        (
            "create_and_attach_volume",
            {**SERVER, "size": 1, "create_vm_params": {"name": "n"}},
            "^name in create_vm_params: unknown argument for servers",
        ),
        (
            "create_and_attach_volume",
            {**SERVER, "size": 1, "create_vm_params": {"meta": {}}, "key_name": "k"},
            "^key_name is given outside create_vm_params, .* move it there",
        ),
        (
            "create_volume",
            {"size": 1, "volume_type": "fast"},
            "there is no volume type 'fast'; choose from slow",
        ),
        (
            "create_and_update_volume",
            {"size": 1, "update_volume_kwargs": {"size": 2}},
            "update_volume_kwargs must have only update_name or description; got size",
        ),
        (
            "create_and_update_volume",
            {"size": 1},
            "update_volume_kwargs must have only update_name or description; got n",
        ),
    ],
)
def test_what_cannot_work_is_told_before_the_load(cloud, name, args, said):
    cloud.make("types", {"name": "slow"})

    with pytest.raises(DeploymentError, match=said):
        Workload(cloud, f"CinderVolumes.{name}", args)
