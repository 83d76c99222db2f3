"""The sample tasks of networks, load balancers and quotas leave nothing, nor does a killed run."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from helpers.fake_cloud import FakeCloud, fake_cloud
from helpers.readme import REPOSITORY
from helpers.runs import Site, site

pytestmark = pytest.mark.functional

KINDS = (
    *("network", "subnet", "port", "router", "floatingip", "security_group", "loadbalancer"),
    *("pool", "users", "projects"),
)


@pytest.fixture
def cloud() -> Iterator[FakeCloud]:
    with fake_cloud() as found:
        found.absent.clear()
        found.make("roles", {"name": "load-balancer_member"})
        fields = {"name": "public", "subnets": [], "router:external": True}
        found.make("network", fields)
        yield found


@pytest.fixture
def here(cloud: FakeCloud) -> Iterator[Site]:
    """A site whose runs are in local mode."""
    with site() as found:
        found.deployment(cloud.deployment(), "cloud")
        yield found


def left(cloud: FakeCloud) -> dict[str, list[str]]:
    found = {kind: cloud.named(kind) for kind in KINDS}
    return {kind: names for kind, names in found.items() if names}


@pytest.mark.parametrize("name", ["networks", "load_balancers", "quotas"])
def test_a_sample_task_leaves_the_cloud_as_it_was(guest: Site, cloud: FakeCloud, name: str) -> None:
    guest.deployment(cloud.deployment(), "cloud")
    before = left(cloud)
    task = str(REPOSITORY / "samples" / "tasks" / f"{name}.yaml")

    done = guest.run(task, "--task-args", "times=6")

    assert done.code == 0, done.err
    assert [one["accounting"]["ok"] for one in done.result["workloads"]] == [6] * len(
        done.result["workloads"]
    )
    assert left(cloud) == before
    assert cloud.quotas == {}


def test_kill_of_everything_while_routers_are_made(here: Site, cloud: FakeCloud) -> None:
    before = left(cloud)
    task = here.task(
        {
            "scenario": {
                "NeutronNetworks.associate_and_dissociate_floating_ips": {},
            },
            "contexts": {"users": {"tenants": 2}, "network": {}, "router": {}},
            "runner": {"constant": {"times": 100_000, "concurrency": 8}},
        }
    )
    started = here.begin("osbench-coord", "run", task, "--workers", "2")
    started.wait_for(lambda: len(cloud.named("floatingip")) > 20)

    os.kill(started.process.pid, signal.SIGKILL)
    for process in here.private():
        process.kill()
    started.process.wait()
    done = here.coord("cleanup", "last")

    assert done.code == 0, done.err
    assert left(cloud) == before
