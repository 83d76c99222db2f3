"""A lack of the cloud for a native scenario is a problem of the task, before it runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from helpers.fake_cloud import ADMIN, PASSWORD, FakeCloud, fake_cloud
from osbench.common.deployment.record import Deployment
from osbench.common.plugin.plugins import Plugins
from osbench.coordinator.task.taskfile import parse
from osbench.edges.openstack.coordinator.cloud_limits import cloud_limits

PLUGINS = Plugins()
SERVER = {"image": {"name": "cirros"}, "flavor": {"name": "tiny"}}
BOOT = "NovaServers.boot_and_delete_server"
CREATE = "CinderVolumes.create_and_delete_volume"


@pytest.fixture
def cloud() -> Iterator[FakeCloud]:
    with fake_cloud() as server:
        server.absent.clear()
        server.make("images", {"name": "cirros", "id": "i1", "status": "active"})
        server.make("flavors", {"name": "tiny", "id": "f1", "vcpus": 2, "ram": 1})
        server.make("types", {"name": "fast"})
        yield server


def told(
    cloud: FakeCloud,
    scenario: str,
    args: Any,
    contexts: Any = None,
    runner: Any = None,
    **more: Any,
) -> list[str]:
    workload = {"scenario": {scenario: args}, "contexts": contexts or {}}
    if runner:
        workload["runner"] = {"constant": runner}
    document = {"version": 2, "title": "t", "subtasks": [{"title": "s", **workload}]}
    deployment = Deployment.from_spec("cloud", cloud.deployment(**more))
    found = cloud_limits(parse(document, "task.yaml"), PLUGINS, deployment)
    return [f"{one.place}: {one.message}" for one in found]


def test_a_task_that_the_cloud_can_run_has_no_problem(cloud):
    runner = {"times": 5, "concurrency": 5}

    assert told(cloud, BOOT, SERVER, runner=runner) == []
    assert told(cloud, BOOT, {"image": "i1", "flavor": {"id": "f1"}}, {"users": {}}) == []
    assert told(cloud, CREATE, {"size": 1, "volume_type": "fast"}) == []
    assert told(cloud, "Dummy.dummy", {}) == []


def test_services_that_the_catalogue_lacks_are_told_of_scenario_and_contexts(cloud):
    cloud.absent |= {"compute", "image"}

    server, image = told(
        cloud,
        BOOT,
        SERVER,
        {"images": {"image_url": "x.img", "disk_format": "raw", "container_format": "bare"}},
    )

    assert server.startswith(f"subtasks[0].scenario: scenario {BOOT} needs nova: ")
    assert image.startswith("subtasks[0].contexts.images: context images needs glance: ")


@pytest.mark.parametrize(
    ("scenario", "args", "said"),
    [
        (
            BOOT,
            {**SERVER, "flavor": {"name": "huge"}},
            f"{BOOT}.flavor: there is no flavor 'huge'; choose from tiny",
        ),
        (
            BOOT,
            {**SERVER, "image": "gone"},
            f"{BOOT}.image: there is no image with the id 'gone'; "
            "give the id or name of an existing one",
        ),
        (
            CREATE,
            {"size": 1, "volume_type": "slow"},
            f"{CREATE}.volume_type: there is no volume type 'slow'; choose from fast",
        ),
    ],
)
def test_objects_that_do_not_exist_are_told(cloud, scenario, args, said):
    assert told(cloud, scenario, args) == [f"subtasks[0].scenario.{said}"]


def test_objects_that_a_context_makes_need_not_exist(cloud):
    flavors = {"flavors": [{"name": "huge", "ram": 1, "vcpus": 1}]}

    assert told(cloud, BOOT, {**SERVER, "flavor": {"name": "huge"}}, flavors) == []


def test_quotas_that_cannot_hold_the_concurrency_are_told(cloud):
    runner = {"times": 100, "concurrency": 30}

    # the fake cloud's quotas are 10; 30 on 2 projects are 15 on one of them, with 2 cores each
    found = told(cloud, BOOT, SERVER, {"users": {"tenants": 2}}, runner)

    assert [one.partition(" needs ")[2].partition(" in ")[0] for one in found] == [
        *("15 instances of nova", "30 cores of nova", "15 ram of nova")
    ]
    assert found[0].startswith("subtasks[0].runner.constant: needs ")
    assert "and the quota is 10: raise it by the context quotas, take more tenants" in found[0]

    raised = {"nova": {"instances": -1, "cores": 30, "ram": 15}}
    with_quotas = {"users": {"tenants": 2}, "quotas": raised}
    assert told(cloud, BOOT, SERVER, with_quotas, runner) == []
    assert told(cloud, BOOT, SERVER, {"users": {"tenants": 6}}, runner) == []


def test_quotas_of_the_project_of_an_existing_user_count(cloud):
    (project,) = cloud.objects["projects"]
    cloud.quotas["cinder", project] = {"volumes": 3, "gigabytes": 100}
    user = {"username": ADMIN, "password": PASSWORD, "project_name": ADMIN}
    names = {"user_domain_name": "Default", "project_domain_name": "Default"}
    runner = {"times": 9, "concurrency": 4}

    (found,) = told(
        cloud, CREATE, {"size": {"min": 20, "max": 90}}, {}, runner, users=[{**user, **names}]
    )

    assert "needs 4 volumes of cinder in a project at once, and the quota is 3" in found


def test_a_cloud_that_does_not_answer_is_one_problem(cloud):
    cloud.faults.append(["GET /nova/flavors", 500, 9])

    (found,) = told(cloud, BOOT, SERVER)

    assert found.startswith(": deployment cloud: GET ")
    assert "500" in found


def test_contexts_count_whatever_platform_their_names_have(cloud):
    runner = {"times": 100, "concurrency": 30}
    tenants = {"users@openstack": {"tenants": 6}}
    raised = {"quotas@openstack": {"nova": {"instances": -1, "cores": -1, "ram": -1}}}

    assert told(cloud, BOOT, SERVER, tenants, runner) == []
    assert told(cloud, BOOT, SERVER, raised, runner) == []
    assert len(told(cloud, BOOT, SERVER, {}, runner)) == 3


def test_quotas_that_nobody_may_read_are_no_problem(cloud):
    cloud.faults.append(["os-quota-sets", 403, 9])

    assert told(cloud, BOOT, SERVER, {}, {"times": 100, "concurrency": 30}) == []


def test_new_users_without_an_admin_are_one_problem():
    user = {"username": "ann", "password": "p", "project_name": "p"}
    workload = {"scenario": {BOOT: SERVER}, "contexts": {"users": {"tenants": 2}}}
    document = {"version": 2, "title": "t", "subtasks": [{"title": "s", **workload}]}
    spec = {"openstack": {"auth_url": "http://c/v3", "users": [user]}}

    (found,) = cloud_limits(
        parse(document, "task.yaml"), PLUGINS, Deployment.from_spec("cloud", spec)
    )

    assert found.message == ("deployment cloud: it has no admin, who makes users; add one to it")
