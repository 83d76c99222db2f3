"""The cloud of tests of seeds, and a seed as a test makes it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from helpers.fake_cloud import FakeCloud, fake_cloud
from osbench.common.deployment.record import Deployment
from osbench.common.plugin.context import ContextEnvironment
from osbench.coordinator.task.taskfile.args import TaskArguments
from osbench.edges.openstack.coordinator.cloud_access import CloudAccess
from osbench.edges.openstack.seeding import seed_making
from osbench.edges.openstack.seeding.seed_file import SeedPlan, read_seed
from osbench.edges.openstack.seeding.seed_making import SeedMaking


@pytest.fixture
def cloud(virtual_time, monkeypatch):
    monkeypatch.setattr("osbench.edges.openstack.coordinator.cloud_access.PAUSES_S", (0.0,) * 4)
    monkeypatch.setattr(seed_making, "TELL_S", 0.005)
    with fake_cloud() as server:
        server.absent.clear()
        yield server


class Seeds:
    """Seeds of files in a folder, made in a cloud in the process of the test."""

    def __init__(self, cloud: FakeCloud, folder: Path) -> None:
        self.cloud = cloud
        self.folder = folder

    def access(self, *, admin: bool = True) -> CloudAccess:
        """Access as the admin, or as a user of a record without one."""
        spec = self.cloud.deployment()
        if not admin:
            spec["openstack"]["users"] = [spec["openstack"].pop("admin")]
        deployment = Deployment.from_spec("lab", spec)
        return CloudAccess(ContextEnvironment(run="", deployment=deployment), "the command seed")

    def plan(self, *resources: Any, name: str = "full", **more: Any) -> SeedPlan:
        path = self.folder / "seed.yaml"
        content = {"name": name, "resources": list(resources), **more}
        path.write_text(yaml.safe_dump(content), "utf-8")
        return read_seed(str(path), TaskArguments())

    def making(self, *resources: Any, **more: Any) -> SeedMaking:
        return SeedMaking(self.plan(*resources, **more), self.access(), at_once=4)

    def make(self, *resources: Any, **more: Any) -> SeedMaking:
        """Look and make, as the command does."""
        making = self.making(*resources, **more)
        making.look()
        making.make()
        return making


@pytest.fixture
def seeds(cloud: FakeCloud, tmp_path: Path) -> Seeds:
    return Seeds(cloud, tmp_path)


def account(making: SeedMaking) -> dict[str, tuple[int, int, int, int]]:
    """Existing, made, failed and not tried objects by group; they sum to the plan."""
    for group in making.groups:
        parts = (group.existing, group.made, group.failed, group.not_tried)
        assert sum(parts) == group.planned
        assert min(parts) >= 0
    return {
        group.entry.group: (group.existing, group.made, group.failed, group.not_tried)
        for group in making.groups
    }


Account = Callable[[SeedMaking], dict[str, tuple[int, int, int, int]]]


@pytest.fixture(name="account")
def account_of() -> Account:
    return account
