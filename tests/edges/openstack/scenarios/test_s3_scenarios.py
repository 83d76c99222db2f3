"""Scenarios of S3: what they send and check, how they time it, and what they say when it fails."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from helpers.cloud_workload import actions
from helpers.fake_s3 import FakeS3, fake_s3
from helpers.s3_workload import ACCESS, SECRET, S3Workload, exchanges_of
from osbench.common.errors import DeploymentError
from osbench.common.plugin.plugins import Plugins
from osbench.edges.openstack.common.request_errors import RequestFailed
from osbench.edges.openstack.scenarios.s3 import S3Objects

PUT, GET, RANGE = "s3.put_object", "s3.get_object", "s3.get_object_range"
LIST, DELETE = "s3.list_objects", "s3.delete_object"
BUCKET = "osb-20260401-120000-ab12-0-c-s3-0"


@pytest.fixture
def server(virtual_time: Any) -> Iterator[FakeS3]:
    with fake_s3() as found:
        yield found


def sizes(server: FakeS3) -> list[int]:
    return sorted(server.buckets[BUCKET].values())


def test_put(server: FakeS3) -> None:
    workload = S3Workload(server, "S3Objects.put_object", {"size": "100 KiB"}, {"objects": 0})

    for iteration in (1, 2):
        found = actions(workload.run(iteration))

    assert found == {PUT: 1}
    assert sizes(server) == [102_400] * 2
    assert workload.rates().keys() == {PUT}
    (sent,) = exchanges_of(workload.last._recorder)
    assert (sent["status"], sent["action"]) == (200, 0)
    assert sent["sent"] > 102_400
    assert {access for _, _, access in server.seen} == {ACCESS}
    assert server.headers[-1]["x-amz-content-sha256"] == "UNSIGNED-PAYLOAD"


def test_bodies_are_signed_if_that_is_asked_for(server: FakeS3) -> None:
    args = {"size": 70_000, "sign_bodies": True}
    S3Workload(server, "S3Objects.put_object", args, {"objects": 0}).run()

    assert re.fullmatch("[0-9a-f]{64}", server.headers[-1]["x-amz-content-sha256"])


def test_get_checks_the_size_that_the_context_has_drawn(server: FakeS3) -> None:
    size = {"min": 1, "max": 1_000_000}
    workload = S3Workload(server, "S3Objects.get_object", objects={"objects": 20, "size": size})

    for iteration in range(1, 20):
        assert actions(workload.run(iteration)) == {GET: 1}
    kept = server.buckets[BUCKET]
    kept.update(dict.fromkeys(kept, 5))

    assert len(set(sizes(server))) == 1
    with pytest.raises(AssertionError, match="came back with 5"):
        workload.run(21)


def test_a_range_is_in_the_object(server: FakeS3) -> None:
    workload = S3Workload(
        server,
        "S3Objects.get_object_range",
        {"range_size": {"min": 1, "max": 2000}},
        {"objects": 5, "size": 1000},
    )

    for iteration in range(1, 40):
        assert actions(workload.run(iteration)) == {RANGE: 1}

    asked = [one["range"] for one in server.headers if "range" in one]
    bounds = [tuple(map(int, one.removeprefix("bytes=").split("-"))) for one in asked]
    assert all(0 <= first <= last < 1000 for first, last in bounds)
    assert len({first for first, _ in bounds}) > 3


def test_list_follows_the_pages(server: FakeS3) -> None:
    workload = S3Workload(server, "S3Objects.list_objects", {"page_size": 4}, {"objects": 10})

    assert actions(workload.run()) == {LIST: 1, f"{LIST} > page": 3}

    server.buckets[BUCKET].popitem()
    with pytest.raises(AssertionError, match="9 objects are listed, but 10 were made before"):
        workload.run(2)


def test_delete(server: FakeS3) -> None:
    workload = S3Workload(server, "S3Objects.delete_object", {"size": 10}, {"objects": 0})

    assert actions(workload.run()) == {PUT: 1, DELETE: 1}

    assert sizes(server) == []


def test_an_upload_in_parts(server: FakeS3) -> None:
    size, part = 12_000_000, 5 << 20
    workload = S3Workload(
        server, "S3Objects.multipart_upload", {"size": size, "part_size": part}, {"objects": 0}
    )

    found = actions(workload.run())

    whole = "s3.multipart_upload"
    assert found == {
        whole: 1,
        f"{whole} > create": 1,
        f"{whole} > part": 3,
        f"{whole} > complete": 1,
    }
    assert sizes(server) == [size]
    assert workload.rates().keys() == {f"{whole} > part"}
    sent = exchanges_of(workload.last._recorder)["sent"]
    assert sent.sum() > size


def test_parts_of_an_upload_that_fails_are_deleted(server: FakeS3) -> None:
    args = {"size": 12_000_000, "part_size": 5 << 20}
    workload = S3Workload(server, "S3Objects.multipart_upload", args, {"objects": 0})
    server.faults.append(["partNumber=2", 503, "SlowDown", 1])

    with pytest.raises(RequestFailed, match=r"503.*SlowDown"):
        workload.run()

    assert server.uploads == {}
    assert sizes(server) == []


def test_a_mix_has_its_shares_and_deletes_its_own_objects(server: FakeS3) -> None:
    shares = {"put": "30 %", "get": 40, "range": "5", "list": 5.0, "delete": "20%"}
    workload = S3Workload(server, "S3Objects.mix", {"size": 100, "shares": shares})
    made = dict(server.buckets[BUCKET])

    found: Counter[str] = Counter()
    for iteration in range(1, 401):
        found.update(actions(workload.run(iteration)))

    assert found.keys() == {PUT, GET, RANGE, LIST, DELETE, f"{LIST} > page"}
    assert 120 < found[GET] < 200
    assert 50 < found[DELETE] < 110
    assert made.items() <= server.buckets[BUCKET].items()
    assert len(sizes(server)) == len(made) + found[PUT] - found[DELETE]


def test_a_refusal_names_the_code_and_groups(server: FakeS3) -> None:
    workload = S3Workload(server, "S3Objects.get_object")
    server.buckets.clear()

    with pytest.raises(RequestFailed) as raised:
        workload.run()

    error = raised.value
    assert re.fullmatch(
        rf"GET {server.url}/{BUCKET}/{BUCKET}-\d: 404 Not Found: NoSuchBucket: As the test says"
        r" \(for example request R1\)",
        str(error),
    )
    assert error.kind == f"GET {server.url}/*/*: 404 Not Found: NoSuchBucket: As the test says"
    assert error.status == 404


def test_an_overload_is_a_failure_unless_retries_are_asked_for(server: FakeS3) -> None:
    workload = S3Workload(server, "S3Objects.get_object")
    server.faults.append(["GET", 503, "SlowDown", 1])
    with pytest.raises(RequestFailed, match=r"503 .*SlowDown"):
        workload.run()
    statuses = exchanges_of(workload.last._recorder)["status"].tolist()
    assert statuses == [503]

    workload.args = {"retries": 2}
    server.faults.append(["GET", 503, "SlowDown", 1, "1"])

    assert actions(workload.run(2)) == {GET: 1, f"{GET} > retry after 503": 1}


def test_secrets_are_in_no_message_and_no_header(server: FakeS3) -> None:
    workload = S3Workload(server, "S3Objects.get_object")
    server.faults.append(["GET", 403, "SignatureDoesNotMatch", 1])

    with pytest.raises(RequestFailed) as raised:
        workload.run()

    assert SECRET not in str(raised.value)
    assert SECRET not in str(server.headers)


def test_a_response_that_is_not_s3s_is_a_failure(server: FakeS3) -> None:
    workload = S3Workload(server, "S3Objects.list_objects")
    server.faults.append(["GET", 200, "InternalError", 1])

    with pytest.raises(RequestFailed, match="InternalError: As the test says"):
        workload.run()


def test_contexts_are_needed() -> None:
    context = {"scenario": "S3Objects.get_object", "s3": {}}

    with pytest.raises(DeploymentError, match="needs the context s3_objects: add it"):
        S3Objects.warm_up(context)


@pytest.mark.parametrize(
    ("method", "args", "problem"),
    [
        ("put_object", {"size": "64 KX"}, "size: must be bytes"),
        ("put_object", {"retries": -1}, "retries must be an integer from 0 to 1000, got -1"),
        ("put_object", {"retries": True}, "retries must be an integer"),
        ("get_object_range", {"range_size": 0}, "range_size must be at least 1 bytes"),
        ("list_objects", {"page_size": 1001}, "page_size must be an integer from 1 to 1000"),
        ("mix", {"shares": {"fetch": 5}}, "shares.fetch: 5: write shares"),
        ("mix", {"shares": {"get": "-5 %"}}, "shares.get: '-5 %'"),
        ("mix", {"shares": {"get": "nan"}}, "shares.get: 'nan'"),
        ("mix", {"shares": {"get": 0}}, "at least one share"),
        ("mix", {"shares": [1]}, "shares must be an object"),
        ("mix", {"shares": {}}, "at least one share"),
        ("multipart_upload", {"part_size": "1 MiB"}, "part_size must be at least 5 MiB"),
        ("multipart_upload", {"size": "1 TiB"}, "at most 10,000 parts: raise part_size"),
        ("multipart_upload", {"part_size": {"min": 1}}, "part_size: must be"),
    ],
)
def test_wrong_arguments_are_one_message(method: str, args: dict[str, Any], problem: str) -> None:
    (found,) = S3Objects.check_arguments(method, args)

    assert found.startswith(problem) or problem in found


@pytest.mark.parametrize(
    "method",
    [
        *("put_object", "get_object", "get_object_range", "list_objects", "delete_object"),
        *("multipart_upload", "mix"),
    ],
)
def test_each_scenario_runs_with_its_usual_arguments(server: FakeS3, method: str) -> None:
    name = f"S3Objects.{method}"
    usual = Plugins().scenario(f"{name}@native").context["s3_objects"]

    S3Workload(server, name, objects=usual).run()

    assert list(server.buckets) == [BUCKET]
