"""What a context of Rally has left behind is removed by osbench, or listed with a command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.fake_cloud import ADMIN, PASSWORD, FakeCloud, fake_cloud
from osbench.common.deployment.record import Deployment
from osbench.common.errors import ContextError
from osbench.common.plugin.context import ContextEnvironment
from osbench.common.plugin.left_behind import LeftBehind
from osbench.common.plugin.plugins import Plugins
from osbench.coordinator.contexts.context_stack import undo
from osbench.coordinator.contexts.state_store import ContextStateStore, Entry
from osbench.edges.openstack.coordinator.leftovers import remove_left

OWNER = "1f2e3d4c-0000-4000-8000-000000000000"
OURS, OTHER = "s_rally_1f2e3d4c_aaaaaaaa", "s_rally_00000000_aaaaaaaa"
NAMES = (OURS, OTHER, "c_rally_1f2e3d4c_aaaaaaaa", "theirs")


@pytest.fixture
def cloud(virtual_time: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCloud]:
    monkeypatch.setattr("osbench.edges.openstack.coordinator.cloud_access.PAUSES_S", (0.0,) * 4)
    with fake_cloud() as server:
        project = server.find("projects", ADMIN)
        assert project is not None
        for name in NAMES:
            server.make("queues", {"id": name, "name": name, "project": project["id"]})
        yield server


def deployment(cloud: FakeCloud) -> Deployment:
    return Deployment.from_spec("lab", cloud.deployment())


def left(*kinds: str) -> LeftBehind:
    return LeftBehind(
        "left behind: no name",
        kinds=set(kinds),
        users=[],
        is_ours=lambda name: name == OURS,
        task="1f2e3d4c",
    )


def test_what_osbench_knows_is_removed(cloud: FakeCloud) -> None:
    remove_left(left("zaqar.queues"), ContextEnvironment(run="r", deployment=deployment(cloud)))

    assert set(cloud.named("queues")) == {*NAMES} - {OURS}


@pytest.mark.parametrize("kinds", [("manila.shares",), ("",), ("zaqar.queues", "manila.shares")])
def test_what_osbench_does_not_know_is_listed_with_the_command(
    cloud: FakeCloud, kinds: tuple[str, ...]
) -> None:
    environment = ContextEnvironment(run="r", deployment=deployment(cloud))

    with pytest.raises(ContextError) as caught:
        remove_left(left(*kinds), environment)

    assert str(caught.value).startswith("left behind: no name; `osbench-coord cleanup --orphans --")
    assert "--rally --deployment lab --older 0s` lists" in str(caught.value)
    assert "Rally task 1f2e3d4c" in str(caught.value)


def test_what_cannot_be_removed_is_told_with_the_reason(cloud: FakeCloud) -> None:
    cloud.faults.append(["DELETE /zaqar", 403, 1000])
    environment = ContextEnvironment(run="r", deployment=deployment(cloud))

    with pytest.raises(ContextError, match=r"no name; 1 queues are left: .* 403.*; `osbench-coord"):
        remove_left(left("zaqar.queues"), environment)


def test_queues_that_rallys_own_cleanup_cannot_remove_are_removed(
    cloud: FakeCloud, tmp_path: Path
) -> None:
    pytest.importorskip("rally_openstack", reason="the extra osbench[rally] is not installed")
    from osbench.edges.rally.context_object import codec

    store = ContextStateStore(tmp_path, tmp_path, "r", deployment(cloud))
    store.add(
        Entry(
            workload=0,
            name="cleanup@openstack",
            config=["zaqar.queues"],
            made={"rally": codec.pack(carried(cloud))},
        )
    )

    problems = undo(store, Plugins(), crashed=True)

    assert problems == []
    assert set(cloud.named("queues")) == {*NAMES} - {OURS}
    assert store.entries == []


def carried(cloud: FakeCloud) -> dict[str, Any]:
    """Rally's context object with the administrator as the user."""
    from rally_openstack.common.credential import OpenStackCredential

    user, project = cloud.find("users", ADMIN), cloud.find("projects", ADMIN)
    assert user is not None
    assert project is not None
    credential = OpenStackCredential(
        auth_url=cloud.auth_url,
        username=ADMIN,
        password=PASSWORD,
        tenant_name=ADMIN,
        user_domain_name="Default",
        project_domain_name="Default",
    )
    one = {"id": user["id"], "tenant_id": project["id"], "credential": credential}
    return {
        "owner_id": OWNER,
        "task": {"uuid": OWNER},
        "config": {"cleanup@openstack": ["zaqar.queues"]},
        "users": [one],
        "admin": None,
    }
