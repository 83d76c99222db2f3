"""Resources of runs that are gone, found by name and age."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from helpers.fake_cloud import ADMIN, FakeCloud, fake_cloud
from osbench.common.deployment.record import Deployment
from osbench.common.errors import DeploymentError
from osbench.edges.openstack.common.resource_names import in_iteration, rally_task_in, run_in
from osbench.edges.openstack.coordinator.orphans import RALLY, CloudOrphanSearch

OLD, OTHER = "20250101-000000-ab12", "20250102-000000-cd34"
NOW_AT = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
#: Of another client: none of them is osbench's.
FOREIGN = (
    *("ann", "osb-", "osb-production", "osbench", f"osb-{OLD}", f"osb-{OLD}-0-i1"),
    *(f"osb-{OLD}-0-i1-aaaaaaaa", f"osb-{OLD}-0-c-0", f"osb-{OLD}-0-c-users-0-0-backup"),
    f"copy of osb-{OLD}-0-i1-aaaaaaaaaaaaaaaa",
    f"osb-{OLD}-0-i1-aaaaaaaaaaaaaaaa-backup",
    f"osb-{OLD}-0-i1-AAAAAAAAAAAAAAAA",
    "osb-20251399-000000-ab12-0-i1-aaaaaaaaaaaaaaaa",
    f"OSB-{OLD}-0-i1-aaaaaaaaaaaaaaaa",
)


def of_iteration(run: str = OLD, number: int = 1) -> str:
    return in_iteration(run, 0, number, "k" * 32)


@pytest.fixture
def cloud(virtual_time: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCloud]:
    monkeypatch.setattr("osbench.edges.openstack.coordinator.cloud_access.PAUSES_S", (0.0,) * 4)
    with fake_cloud() as server:
        for kind in ("users", "projects", "queues", "roles"):
            for name in FOREIGN:
                server.make(kind, {"name": name, "domain_id": "default", "project": own(server)})
        yield server


def own(cloud: FakeCloud) -> str:
    """Id of the administrator's project."""
    found = cloud.find("projects", ADMIN)
    assert found is not None
    return str(found["id"])


def search(cloud: FakeCloud, **more: object) -> CloudOrphanSearch:
    return CloudOrphanSearch(Deployment.from_spec("lab", cloud.deployment(**more)))


def foreign_are_there(cloud: FakeCloud) -> bool:
    kinds = ("users", "projects", "queues", "roles")
    return all(set(FOREIGN) <= set(cloud.named(kind)) for kind in kinds)


def test_users_beyond_the_first_page_of_keystone_are_found(cloud: FakeCloud) -> None:
    for number in range(20):
        cloud.make("users", {"name": of_iteration(number=number), "domain_id": "default"})
    cloud.keystone_page = 3
    orphans = search(cloud)

    found = orphans.find(NOW_AT)
    problems = orphans.remove([one for some in found.by_run.values() for one in some])

    assert {run: len(some) for run, some in found.by_run.items()} == {OLD: 20}
    assert problems == []
    assert set(cloud.named("users")) == {*FOREIGN, ADMIN}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_name_that_osbench_does_not_give_is_of_no_run(name: str) -> None:
    assert run_in(name) == ""


@pytest.mark.parametrize(
    "name",
    [
        f"osb-{OLD}-0-i1-0123456789abcdef",
        f"osb-{OLD}-0-i1000000000-0123456789abcdef",
        f"osb-{OLD}-12-c-0a1b2c3d-0",
        f"osb-{OLD}-0-c-0a1b2c3d-0-3",
        f"osb-{OLD}-0-c-flavors-2",
        f"osb-{OLD}-0-c-zaqar_queues-0-1",
    ],
)
def test_names_of_iterations_and_contexts_have_their_run(name: str) -> None:
    assert run_in(name) == OLD


def test_what_is_found_is_removed_and_nothing_else(cloud: FakeCloud) -> None:
    for number in range(30):
        name = of_iteration(number=number)
        cloud.make("queues", {"id": name, "name": name, "project": own(cloud)})
    cloud.make("users", {"name": of_iteration(OTHER), "domain_id": "default"})
    orphans = search(cloud)

    found = orphans.find(NOW_AT)
    problems = orphans.remove([one for some in found.by_run.values() for one in some])

    assert {run: len(some) for run, some in found.by_run.items()} == {OLD: 30, OTHER: 1}
    assert found.problems == problems == []
    assert set(cloud.named("queues")) == set(FOREIGN)
    assert foreign_are_there(cloud)
    assert cloud.find("users", ADMIN)


def test_only_what_was_confirmed_is_removed(cloud: FakeCloud) -> None:
    names = [of_iteration(number=number) for number in range(2)]
    for name in names:
        cloud.make("queues", {"id": name, "name": name, "project": own(cloud)})
    orphans = search(cloud)
    found = orphans.find(NOW_AT).by_run[OLD]

    orphans.remove([one for one in found if one.name == names[0]])

    assert set(cloud.named("queues")) == {*FOREIGN, names[1]}


def test_a_search_changes_nothing(cloud: FakeCloud) -> None:
    project = cloud.make("projects", {"name": f"osb-{OLD}-0-c-aabbccdd-0", "domain_id": "default"})
    cloud.make("queues", {"name": of_iteration(), "project": project["id"]})

    search(cloud).find(NOW_AT)

    others = ("/v3/auth/tokens", f"/v3/projects/{project['id']}/users/")
    methods = {method for method, path, _ in cloud.seen if not path.startswith(others)}
    assert methods == {"GET"}
    # what the administrator needed to look into the project
    assert cloud.assigned == set()


def test_a_role_that_the_administrator_has_stays(cloud: FakeCloud) -> None:
    project = cloud.make("projects", {"name": f"osb-{OLD}-0-c-aabbccdd-0", "domain_id": "default"})
    admin, role = cloud.find("users", ADMIN), cloud.find("roles", "admin")
    assert admin is not None
    assert role is not None
    before = {(project["id"], admin["id"], role["id"])}
    cloud.assigned |= before

    search(cloud).find(NOW_AT)

    assert cloud.assigned == before


def test_a_run_with_something_young_is_left_alone(cloud: FakeCloud) -> None:
    cloud.absent.clear()
    for created, run in (("2025-12-31T23:30:00Z", OLD), ("2025-06-01T00:00:00Z", OTHER)):
        for number in range(2):
            name = of_iteration(run, number)
            fields = {"name": name, "domain_id": "default"}
            cloud.make("users", fields | ({"created_at": created} if number else {}))

    found = search(cloud).find(NOW_AT - 7200)

    assert list(found.by_run) == [OTHER]
    assert found.young == {OLD: 2}


def test_without_an_instant_of_creation_that_of_the_run_counts(cloud: FakeCloud) -> None:
    cloud.make("users", {"name": of_iteration(), "domain_id": "default", "created_at": "?"})

    began_at = datetime(2025, 1, 1, tzinfo=UTC).timestamp()

    assert search(cloud).find(began_at).young == {OLD: 1}
    assert list(search(cloud).find(began_at + 1).by_run) == [OLD]


def test_projects_of_a_run_go_with_what_osbench_made_in_them(cloud: FakeCloud) -> None:
    project = cloud.make("projects", {"name": f"osb-{OLD}-0-c-aabbccdd-0", "domain_id": "default"})
    cloud.make("users", {"name": f"osb-{OLD}-0-c-aabbccdd-0-0", "domain_id": "default"})
    name = of_iteration()
    cloud.make("queues", {"id": name, "name": name, "project": project["id"]})
    cloud.make("queues", {"id": "theirs", "name": "theirs", "project": project["id"]})
    orphans = search(cloud)

    found = orphans.find(NOW_AT).by_run[OLD]
    problems = orphans.remove(found)

    assert sorted(one.kind for one in found) == ["projects", "queues", "users"]
    assert [one.project for one in found if one.kind == "queues"] == [project["name"]]
    assert problems == []
    assert set(cloud.named("queues")) == {*FOREIGN, "theirs"}
    assert foreign_are_there(cloud)
    assert not [one for one in cloud.named("projects") if run_in(one)]


def test_a_project_is_left_if_its_contents_cannot_be_removed(cloud: FakeCloud) -> None:
    project = cloud.make("projects", {"name": f"osb-{OLD}-0-c-aabbccdd-0", "domain_id": "default"})
    name = of_iteration()
    cloud.make("queues", {"id": name, "name": name, "project": project["id"]})
    cloud.faults.append(["DELETE /zaqar", 403, 1000])
    orphans = search(cloud)

    problems = orphans.remove(orphans.find(NOW_AT).by_run[OLD])

    assert any("queues are left" in one for one in problems)
    assert problems[-1] == "1 objects of Keystone are left, since they own others"
    assert cloud.find("projects", project["name"])


def test_a_run_with_something_young_in_its_project_is_left_alone(cloud: FakeCloud) -> None:
    project = cloud.make("projects", {"name": f"osb-{OLD}-0-c-aabbccdd-0", "domain_id": "default"})
    fields = {"name": of_iteration(), "project": project["id"]}
    cloud.make("queues", fields | {"created_at": "2025-12-31T23:30:00Z"})

    found = search(cloud).find(NOW_AT - 7200)

    assert found.by_run == {}
    assert found.young == {OLD: 2}


#: As Rally names them by default, with the beginning of a task's id; names that it does not give.
OF_RALLY = ("c_rally_1f2e3d4c_a1B2c3D4", "s_rally_1f2e3d4c_ZZZZZZZZ")
NOT_OF_RALLY = (
    *("s_rally_1f2e3d4c", "s_rally_1f2e3d4c_ZZZZZZZ", "s_rally_1f2e3d4c_ZZZZZZZZZ"),
    *("x_rally_1f2e3d4c_ZZZZZZZZ", "rally_1f2e3d4c_ZZZZZZZZ", "s_rally_1f2e3d4c_ZZZZ-ZZZ"),
    *("S_RALLY_1f2e3d4c_ZZZZZZZZ", "s-rally-1f2e3d4c-ZZZZZZZZ", " s_rally_1f2e3d4c_ZZZZZZZZ"),
    *("s_rally_1f2e3d4c_ZZZZZZZZ-backup", "copy of s_rally_1f2e3d4c_ZZZZZZZZ", "c_rally_prod_db"),
)


@pytest.mark.parametrize("name", [*NOT_OF_RALLY, f"osb-{OLD}-0-c-flavors-2"])
def test_a_name_that_rally_does_not_give_is_of_no_task(name: str) -> None:
    assert rally_task_in(name) == ""


@pytest.mark.parametrize("name", OF_RALLY)
def test_a_name_that_rally_gives_has_the_beginning_of_its_task(name: str) -> None:
    assert rally_task_in(name) == "1f2e3d4c"
    assert run_in(name) == ""


def of_rally(cloud: FakeCloud) -> CloudOrphanSearch:
    return CloudOrphanSearch(Deployment.from_spec("lab", cloud.deployment()), RALLY)


def test_what_rally_has_left_is_listed_with_what_is_in_its_projects(cloud: FakeCloud) -> None:
    of_context, of_scenario = OF_RALLY
    project = cloud.make("projects", {"name": of_context, "domain_id": "default"})
    cloud.make("users", {"name": "c_rally_1f2e3d4c_00000000", "domain_id": "default"})
    cloud.make("queues", {"id": of_scenario, "name": of_scenario, "project": project["id"]})
    cloud.make("queues", {"id": "theirs", "name": "theirs", "project": project["id"]})
    for name in NOT_OF_RALLY:
        cloud.make("queues", {"name": name, "project": own(cloud)})
    osbenchs = of_iteration()
    cloud.make("users", {"name": osbenchs, "domain_id": "default"})
    orphans = of_rally(cloud)

    found = orphans.find(NOW_AT)
    listed = {(one.kind, one.name) for one in found.by_run["1f2e3d4c"]}
    problems = orphans.remove(found.by_run["1f2e3d4c"])

    assert found.ageless == ["1f2e3d4c"]
    assert list(found.by_run) == ["1f2e3d4c"]
    assert listed == {
        *(("users", "c_rally_1f2e3d4c_00000000"), ("projects", of_context)),
        ("queues", of_scenario),
    }
    assert problems == []
    assert set(cloud.named("queues")) == {*FOREIGN, *NOT_OF_RALLY, "theirs"}
    assert set(cloud.named("users")) == {*FOREIGN, ADMIN, osbenchs}
    assert foreign_are_there(cloud)
    assert of_context not in cloud.named("projects")


def test_a_task_of_rally_with_something_young_is_left_alone(cloud: FakeCloud) -> None:
    of_context, of_scenario = OF_RALLY
    project = cloud.make("projects", {"name": of_context, "domain_id": "default"})
    fields = {"name": of_scenario, "project": project["id"]}
    cloud.make("queues", fields | {"created_at": "2025-12-31T23:30:00Z"})

    assert of_rally(cloud).find(NOW_AT - 7200).young == {"1f2e3d4c": 2}
    assert list(of_rally(cloud).find(NOW_AT).by_run) == ["1f2e3d4c"]


def test_what_cannot_be_listed_is_told_and_does_not_stop_the_rest(cloud: FakeCloud) -> None:
    cloud.make("users", {"name": of_iteration(), "domain_id": "default"})
    cloud.faults.append(["GET /zaqar", 403, 1000])

    found = search(cloud).find(NOW_AT)

    assert [one.kind for one in found.by_run[OLD]] == ["users"]
    assert len(found.problems) == 1
    assert "queues could not be listed" in found.problems[0]


def test_without_an_administrator_its_kinds_are_not_searched(cloud: FakeCloud) -> None:
    spec = cloud.deployment()
    admin = spec["openstack"].pop("admin")
    spec["openstack"]["users"] = [admin]
    name = of_iteration()
    cloud.make("queues", {"id": name, "name": name, "project": own(cloud)})

    found = CloudOrphanSearch(Deployment.from_spec("lab", spec)).find(NOW_AT)

    assert [one.name for one in found.by_run[OLD]] == [name]
    assert "users" in found.unseen


def test_what_stays_though_its_deletion_was_accepted_is_told(cloud: FakeCloud) -> None:
    # deleted by its name, which is not its id
    cloud.make("queues", {"name": of_iteration(), "project": own(cloud)})
    orphans = search(cloud)

    problems = orphans.remove(orphans.find(NOW_AT).by_run[OLD])

    assert problems == ["1 queues are left: their deletion was accepted"]


def test_all_services_are_searched(cloud: FakeCloud) -> None:
    cloud.absent.clear()
    server, volume = of_iteration(number=1), of_iteration(number=2)
    cloud.make("servers", {"name": server, "status": "ACTIVE", "created": "2025-03-01T00:00:00Z"})
    cloud.make("volumes", {"name": volume, "status": "available", "snapshot_id": "s"})
    orphans = search(cloud)

    found = orphans.find(NOW_AT)

    kinds = {one.name: one.kind for one in found.by_run.get(OLD, ())}
    assert found.problems == []
    assert kinds.get(server) == "servers"
    # not twice, though it is of two kinds
    assert len([one for one in found.by_run[OLD] if one.name == volume]) <= 1


def test_another_kind_of_deployment_is_refused() -> None:
    with pytest.raises(DeploymentError, match="needs a deployment of OpenStack"):
        CloudOrphanSearch(
            Deployment.from_spec("shop", {"osbench": {"services": {"shop": "http://127.0.0.1:1"}}})
        )


def test_a_refused_login_is_one_error_with_a_remedy(cloud: FakeCloud) -> None:
    record = cloud.deployment()
    record["openstack"]["admin"]["password"] = "wrong"
    orphans = CloudOrphanSearch(Deployment.from_spec("lab", record))

    with pytest.raises(
        DeploymentError, match=r"deployment lab: .*osbench-coord deployment check lab"
    ):
        orphans.find(NOW_AT)
