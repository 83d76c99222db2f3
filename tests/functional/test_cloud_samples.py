"""Sample tasks of Cinder, Nova, Heat and Swift run on a small cloud, and nothing of them stays."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from helpers.fake_cloud import FakeCloud, fake_cloud
from helpers.readme import REPOSITORY
from helpers.runs import Site, site

pytestmark = pytest.mark.functional

KINDS = ("servers", "volumes", "snapshots", "images", "keypairs", "flavors", "stacks", "users")


@pytest.fixture
def cloud() -> Iterator[FakeCloud]:
    with fake_cloud() as found:
        found.absent.clear()
        found.make("images", {"name": "cirros", "status": "active"})
        found.make("flavors", {"name": "m1.tiny"})
        yield found


@pytest.fixture
def here(cloud: FakeCloud) -> Iterator[Site]:
    """A site whose runs are in local mode."""
    with site() as found:
        found.deployment(cloud.deployment(), "cloud")
        yield found


def there(cloud: FakeCloud) -> dict[str, list[str]]:
    with cloud.lock:
        found = {
            kind: [
                str(one["name"])
                for one in cloud.objects.get(kind, {}).values()
                if one.get("stack_status") != "DELETE_COMPLETE"
            ]
            for kind in KINDS
        }
        boxes = [name for several in cloud.containers.values() for name in several]
    return {kind: names for kind, names in {**found, "containers": boxes}.items() if names}


@pytest.mark.parametrize(
    ("name", "counts"),
    [("volumes", [3, 3]), ("servers", [3, 3, 3]), ("stacks", [3]), ("objects", [3, 3])],
)
def test_a_sample_runs_and_leaves_nothing(
    guest: Site, cloud: FakeCloud, name: str, counts: list[int]
) -> None:
    guest.deployment(cloud.deployment(), "cloud")
    # tasks of samples name files beside them
    (guest.home / "samples").symlink_to(REPOSITORY / "samples")
    before = there(cloud)

    done = guest.run(f"samples/tasks/{name}.yaml", "--task-args", "times=3")

    assert done.code == 0, done.out + done.err
    assert [one["accounting"]["ok"] for one in done.result["workloads"]] == counts
    assert there(cloud) == before


def test_a_kill_in_the_middle_leaves_what_the_cleanup_finds(here: Site, cloud: FakeCloud) -> None:
    before = there(cloud)
    server = {"image": {"name": "cirros"}, "flavor": {"name": "m1.tiny"}}
    task = here.task(
        {
            "scenario": {"CinderVolumes.create_snapshot_and_attach_volume": server},
            "contexts": {
                "users": {"tenants": 2},
                "keypair": {},
                "volumes": {"size": 1},
                "swift_objects": {},
            },
            "runner": {"constant": {"times": 100_000, "concurrency": 4}},
        }
    )
    started = here.begin("osbench-coord", "run", task, "--workers", "1")

    def is_killed() -> bool:
        """Kill the run if two volumes are attached at this moment."""
        with cloud.lock:
            volumes = cloud.objects.get("volumes", {}).values()
            found = sum(one["status"] in ("attaching", "in-use") for one in volumes) > 1
            if found:
                os.kill(started.process.pid, signal.SIGKILL)
                for process in here.private():
                    process.kill()
                started.process.wait()
        return found

    started.wait_for(is_killed)

    left = there(cloud)
    done = here.coord("cleanup", "last")

    assert {"servers", "volumes", "snapshots", "keypairs", "containers"} <= left.keys()
    assert done.code == 0, done.out + done.err
    assert there(cloud) == before
