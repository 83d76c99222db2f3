"""The cloud of tests of contexts: it has all services, and repeated requests do not pause."""

from __future__ import annotations

import pytest

from helpers.fake_cloud import fake_cloud


@pytest.fixture
def cloud(virtual_time, monkeypatch):
    monkeypatch.setattr("osbench.edges.openstack.coordinator.cloud_access.PAUSES_S", (0.0,) * 4)
    with fake_cloud() as server:
        server.absent.clear()
        yield server
