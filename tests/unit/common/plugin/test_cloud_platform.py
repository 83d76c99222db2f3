"""The cloud of a record is found by its platform, and a missing one is named."""

from __future__ import annotations

import pytest

from osbench.common.deployment.record import Deployment
from osbench.common.errors import PluginError
from osbench.common.plugin import entry_points
from osbench.common.plugin.cloud_platform import cloud_of, installed_cloud

ADMIN = {"username": "a", "password": "p", "project_name": "x"}
CLOUD = Deployment.from_spec("c", {"openstack": {"auth_url": "http://cloud/v3", "admin": ADMIN}})
SERVICES = Deployment.from_spec("s", {"osbench": {"services": {"shop": "http://shop"}}})


@pytest.fixture
def without_cloud(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry_points, "_points_by_group", lambda _: {})


def test_the_cloud_of_a_record_is_of_its_platform() -> None:
    cloud = cloud_of(CLOUD)

    assert cloud is not None
    assert cloud.record_problems(CLOUD) == []


def test_only_a_record_of_a_cloud_needs_one(without_cloud: None) -> None:
    assert (cloud_of(None), cloud_of(SERVICES)) == (None, None)
    with pytest.raises(PluginError, match=r"entry point 'openstack' of the group osbench\.cloud: "):
        cloud_of(CLOUD)
    with pytest.raises(PluginError, match=r"'openstack' of the group osbench\.cloud: install"):
        installed_cloud()
