"""What the deployment check reports about each service: version, clock, and trace keys."""

from __future__ import annotations

import re
import time

import pytest

from helpers.fake_cloud import FakeCloud, fake_cloud
from osbench.common.deployment.record import Deployment
from osbench.coordinator.task.deployments import span_probe
from osbench.edges.openstack.coordinator.service_check import (
    ServiceResponse,
    check_services,
    version_in,
)
from servers import redis_server


@pytest.fixture(scope="module")
def traces():
    with redis_server(password="traces") as server:
        yield server


@pytest.fixture
def cloud(traces, monkeypatch):
    monkeypatch.setattr(span_probe, "SPANS_S", 0.3)
    with fake_cloud() as server:
        client = traces.client()
        server.traces = client
        yield server
        client.close()


def found(cloud: FakeCloud, traces, key: str | None = "right") -> dict[str, ServiceResponse]:
    more = {"profiler_hmac_key": key} if key else {}
    spec = cloud.deployment(profiler_conn_str=traces.url, **more)
    deployment = Deployment.from_spec("cloud", spec)
    assert deployment.admin
    return {
        said.service: said
        for said in check_services(deployment, deployment.admin, 5.0, time.monotonic() + 60)
    }


def test_services_that_take_the_key_are_distinguished_from_those_that_do_not(cloud, traces):
    cloud.trace_keys = {"v3": ["other", "right"], "zaqar": ["right"], "glance": ["wrong"]}

    said = found(cloud, traces)

    assert set(said) == {"identity", "messaging", "compute", "image", "placement"}
    for kind in ("identity", "messaging"):
        assert re.search(r"spans after \d+\.\d+ s", said[kind].detail)
        assert not said[kind].warning
    for kind in ("compute", "image"):
        assert "no spans: look at enabled, hmac_keys" in said[kind].detail
        assert said[kind].warning
    assert all(one.ok for one in said.values())
    assert traces.client().dbsize() == 0


def test_services_that_take_the_default_key_are_named(cloud, traces):
    cloud.trace_keys = {"v3": ["right"], "zaqar": ["right", "SECRET_KEY"], "nova": ["SECRET_KEY"]}

    said = found(cloud, traces)

    accepts = "accepts OSProfiler's default key SECRET_KEY"
    assert {kind for kind, one in said.items() if accepts in one.detail} == {"messaging", "compute"}
    assert said["messaging"].warning


def test_the_default_key_is_found_where_the_record_has_none(cloud, traces):
    cloud.trace_keys = {"v3": ["SECRET_KEY"]}

    said = found(cloud, traces, key=None)

    assert "accepts OSProfiler's default key" in said["identity"].detail
    assert not said["image"].warning


def test_a_service_that_fails_is_named(cloud, traces):
    cloud.faults.append([r"GET /glance/v2/images", 503, 10])

    said = found(cloud, traces)

    assert (said["image"].ok, said["image"].detail) == (False, "responds with 503")
    assert said["identity"].ok


def test_a_service_that_does_not_take_the_token_fails(cloud, traces):
    cloud.faults.append([r"GET /glance/v2/images", 401, 10])

    said = found(cloud, traces)

    assert not said["image"].ok
    assert said["image"].detail == "responds with 401 to a valid token"


def test_a_service_that_refuses_the_request_is_reported(cloud, traces):
    cloud.faults.append([r"GET /glance/v2/images", 403, 10])

    said = found(cloud, traces)

    assert said["image"].ok
    assert said["image"].warning
    assert "responds with 403" in said["image"].detail


def test_a_service_without_a_page_at_its_version_is_asked_for_a_list(cloud, traces):
    kinds = {"dns", "key-manager", "baremetal", "shared-file-system"}
    cloud.absent -= kinds
    # as Designate
    cloud.faults.append([r"GET /(designate|barbican|ironic|manila)/v\d$", 404, 100])

    said = found(cloud, traces)

    for kind in kinds:
        assert said[kind].ok
        assert "responds with 404" not in said[kind].detail
    asked = {path for method, path, _ in cloud.seen if method == "GET"}
    assert {"/designate/v2/zones?limit=1", "/ironic/v1/nodes?limit=1"} <= asked


def test_version_and_clock_are_reported(cloud, traces):
    said = found(cloud, traces)

    assert re.match(
        rf"version v3\.14 at {cloud.auth_url}, responds in [\d.]+ [mun]?s; clock ",
        said["identity"].detail,
    )


@pytest.mark.parametrize(
    ("document", "version"),
    [
        ({"version": {"id": "v3.14", "status": "stable"}}, "v3.14"),
        ({"versions": {"values": [{"id": "v3.14", "status": "stable"}]}}, "v3.14"),
        (
            {
                "versions": [
                    {"id": "v2.0", "status": "SUPPORTED", "version": ""},
                    {"id": "v2.1", "status": "CURRENT", "version": "2.96"},
                ]
            },
            "v2.1, up to 2.96",
        ),
        (
            {"versions": [{"id": "v1.0", "status": "CURRENT", "max_version": "1.39"}]},
            "v1.0, up to 1.39",
        ),
        ({"versions": [{"id": "1", "status": "DEPRECATED"}]}, ""),
        ({"versions": {"values": None}}, ""),
        ({"versions": "v2"}, ""),
        (["x"], ""),
    ],
)
def test_version_documents_of_all_shapes(document, version):
    assert version_in(document) == version
