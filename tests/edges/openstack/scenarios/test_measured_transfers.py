"""Uploads and downloads of Swift and Glance: their bytes and first byte are in the record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.cloud_workload import Workload, actions, sent_by
from helpers.fake_cloud import FakeCloud, fake_cloud
from helpers.s3_workload import exchanges_of
from osbench.common.protocol.iteration_outputs import outputs
from osbench.edges.openstack.common.request_errors import RequestFailed
from osbench.edges.openstack.worker.short_way import SHORT_WAY, ShortWay

SIZE = 300_000
SWIFT = "SwiftObjects.create_container_and_object_then_download_object"
GLANCE = "GlanceImages.create_and_download_image"


@pytest.fixture
def cloud(virtual_time: Any) -> Iterator[FakeCloud]:
    with fake_cloud() as server:
        server.absent.clear()
        yield server


def swift(cloud: FakeCloud, **more: Any) -> Workload:
    args = {"object_size": SIZE, "objects_per_container": 2, **more}
    return Workload(cloud, SWIFT, args, **{SHORT_WAY: ShortWay()})


def glance(cloud: FakeCloud, folder: Path, **context: Any) -> Workload:
    image = folder / "image"
    image.write_bytes(bytes(SIZE))
    args = {
        "container_format": "bare",
        "disk_format": "raw",
        "image_location": str(image),
    }
    return Workload(cloud, GLANCE, args, **{SHORT_WAY: ShortWay(), **context})


def charts(workload: Workload) -> dict[str, float]:
    (chart,) = outputs(workload.last._outputs)["additive"]
    return dict(chart["data"])


def test_objects_of_swift(cloud: FakeCloud) -> None:
    workload = swift(cloud)

    found = actions_of(workload)

    assert found["swift.upload_object"] == found["swift.download_object"] == 2
    up, down = (exchanges_of(workload.last._recorder)[part] for part in (slice(0, 2), slice(2, 4)))
    assert (np.abs(up["sent"] - SIZE) < 1000).all()
    assert (np.abs(down["received"] - SIZE) < 1000).all()
    assert (up["wait"] > 0).all()
    assert (down["rest"] > 0).all()
    assert charts(workload).keys() == {"swift.upload_object", "swift.download_object"}


def actions_of(workload: Workload) -> dict[str, int]:
    workload.run()
    return actions(workload.last)


def test_images_of_glance(cloud: FakeCloud, tmp_path: Path) -> None:
    workload = glance(cloud, tmp_path)

    actions_of(workload)

    up, down = exchanges_of(workload.last._recorder)
    assert abs(up["sent"] - SIZE) < 1000
    assert abs(down["received"] - SIZE) < 1000
    assert charts(workload).keys() == {"glance_v2.upload_data", "glance_v2.download_image"}


def test_without_the_fast_transport_they_are_counted_as_of_another_client(
    cloud: FakeCloud, tmp_path: Path
) -> None:
    workload = glance(cloud, tmp_path, **{SHORT_WAY: None})

    actions_of(workload)

    recorder = workload.last._recorder
    found = exchanges_of(recorder)
    assert {recorder.names.names[one] for one in found["client"]} == {
        "requests: openstack_transport"
    }
    assert workload.last._outputs is None


def test_trace_headers_and_tokens_go_along(cloud: FakeCloud) -> None:
    sent = sent_by(swift(cloud, objects_per_container=1), cloud)

    assert sent == ["PUT /swift/*", "PUT /swift/*/*", "GET /swift/*/*"]


def test_a_refused_token_is_renewed_and_the_body_sent_again(cloud: FakeCloud) -> None:
    workload = swift(cloud, objects_per_container=1)
    cloud.faults.append(["PUT /swift/.*/", 401, 1])

    found = actions_of(workload)

    upload = "swift.upload_object"
    assert found[f"{upload} > re-authentication"] == found[f"{upload} > retry"] == 1
    statuses = exchanges_of(workload.last._recorder)["status"].tolist()
    assert statuses == [401, 201, 200]
    (box,) = (box for several in cloud.containers.values() for box in several.values())
    assert [len(data) for data in box.values()] == [SIZE]


def test_an_overload_is_repeated_if_retries_are_asked_for(cloud: FakeCloud) -> None:
    workload = swift(cloud, objects_per_container=1, retries=1)
    cloud.retry_after = "1"
    cloud.faults.append(["PUT /swift/.*/", 503, 1])

    found = actions_of(workload)

    assert found["swift.upload_object > retry after 503"] == 1
    cloud.faults.append(["GET /swift/.*/", 503, 2])
    with pytest.raises(RequestFailed, match=r"503 .*as the test says"):
        workload.run(2)


def test_a_refusal_has_the_reason_of_the_service(cloud: FakeCloud) -> None:
    workload = swift(cloud)
    cloud.faults.append(["GET /swift/.*/", 403, 1])

    with pytest.raises(RequestFailed, match=r"GET .*/swift/.*: 403 Forbidden: as the test says"):
        workload.run()

    assert exchanges_of(workload.last._recorder)["status"][-1] == 403


def test_a_redirect_is_left_to_requests(cloud: FakeCloud) -> None:
    workload = swift(cloud, objects_per_container=1)
    # without an address it leads nowhere
    cloud.faults.append(["GET /swift/.*/", 302, 1])

    actions_of(workload)

    recorder = workload.last._recorder
    last = exchanges_of(recorder)[-1]
    assert recorder.names.names[last["client"]] == "requests: a redirect"
