"""A clean-up that fails keeps the users it acts as, so that the next one removes everything."""

import pytest

from helpers.fake_cloud import fake_cloud
from osbench.common.deployment.record import Deployment
from osbench.common.plugin.plugins import Plugins
from osbench.common.task import Named, Workload
from osbench.coordinator.plugins.contexts.context_stack import ContextStack, undo
from osbench.coordinator.plugins.contexts.state_store import ContextStateStore
from osbench.edges.openstack.common import resource_names

RUN = "20260401-120000-ab12"


@pytest.fixture
def cloud(virtual_time):
    with fake_cloud() as server:
        yield server


def test_what_a_failing_sweep_left_is_removed_by_the_next(cloud, tmp_path):
    folder = tmp_path / "data" / "runs" / RUN
    folder.mkdir(parents=True)
    deployment = Deployment.from_spec("cloud", cloud.deployment())
    plugins = Plugins([])
    workload = Workload(
        place="subtasks[0]",
        position=0,
        scenario="ZaqarBasic.create_queue",
        args={},
        runner=Named(name="serial"),
        contexts=(
            Named(name="users", config={"tenants": 2}),
            Named(name="zaqar_queues", config={}),
        ),
    )
    contexts = ContextStack(ContextStateStore(folder, folder.parents[1], RUN, deployment), plugins)

    with contexts.around(0, workload, check=lambda: None, poll=lambda _: None) as made:
        for user in made["users"]:
            name = resource_names.in_iteration(RUN, 0, 1, made["names_key"])
            cloud.make("queues", {"id": name, "name": name, "project": user["project_id"]})
        cloud.faults.append([r"GET /zaqar/v2/queues", 503, 10_000])
    left = len(cloud.named("queues")), len(cloud.named("users")), len(cloud.named("projects"))
    found = ContextStateStore.load(folder, folder.parents[1])
    again = undo(found, plugins)
    cloud.faults.clear()
    last = undo(ContextStateStore.load(folder, folder.parents[1]), plugins)

    assert left == (4, 3, 3)
    for problems in (contexts.left, again):
        assert "context cleanup cannot be undone: queues: RequestFailed: GET" in problems[0]
        assert problems[1:] == [
            "context zaqar_queues is kept for context cleanup",
            "context users is kept for context cleanup",
        ]
    assert len(found.entries) == 3
    assert last == []
    assert cloud.named("queues") == []
    assert cloud.named("users") == cloud.named("projects") == ["admin"]
    assert list(folder.iterdir()) == []
