"""Resources of runs that are gone, found by name and age."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from helpers.fake_cloud import ADMIN, FakeCloud, fake_cloud
from osbench.common.deployment.record import Deployment
from osbench.common.errors import DeploymentError
from osbench.common.openstack.resource_names import in_iteration, run_in
from osbench.coordinator.contexts.orphans import OrphanSearch

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
    monkeypatch.setattr("osbench.coordinator.contexts.cloud_access.PAUSES_S", (0.0,) * 4)
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


def search(cloud: FakeCloud, **more: object) -> OrphanSearch:
    return OrphanSearch(Deployment.from_spec("lab", cloud.deployment(**more)))


def foreign_are_there(cloud: FakeCloud) -> bool:
    kinds = ("users", "projects", "queues", "roles")
    return all(set(FOREIGN) <= set(cloud.named(kind)) for kind in kinds)


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

    methods = {method for method, path, _ in cloud.seen if not path.startswith("/v3/auth/tokens")}
    assert methods == {"GET"}


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

    # the queue cannot be seen before
    assert sorted(one.kind for one in found) == ["projects", "users"]
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

    found = OrphanSearch(Deployment.from_spec("lab", spec)).find(NOW_AT)

    assert [one.name for one in found.by_run[OLD]] == [name]
    assert "users" in found.unseen


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
        OrphanSearch(
            Deployment.from_spec("shop", {"osbench": {"services": {"shop": "http://127.0.0.1:1"}}})
        )
