"""Contexts of S3: keys from Keystone or a record, buckets with objects, and that nothing stays."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from helpers.fake_cloud import FakeCloud
from helpers.fake_s3 import FakeS3, fake_s3
from helpers.s3_workload import ACCESS, RUN, SECRET, S3Workload, record_of
from osbench.common.deployment.record import Deployment
from osbench.common.errors import ContextError, DeploymentError
from osbench.common.plugin.context import ContextEnvironment
from osbench.common.secrets.masking import mask, secret_values
from osbench.edges.openstack.common import s3_api
from osbench.edges.openstack.common.request_errors import RequestFailed
from osbench.edges.openstack.contexts.s3_credentials import S3Credentials
from osbench.edges.openstack.contexts.s3_objects import S3ObjectsContext
from osbench.edges.openstack.contexts.users import Users

BUCKET = "osb-20260401-120000-ab12-0-c-s3-0"
EC2 = "ec2_credentials"


@pytest.fixture
def server(cloud: FakeCloud) -> Iterator[FakeS3]:
    with fake_s3() as found:
        yield found


def deployment_of(cloud: FakeCloud, server: FakeS3, **more: Any) -> Deployment:
    record = cloud.deployment(endpoint_overrides={"s3": server.url}, **more)
    return Deployment.from_spec("cloud", record)


def with_users(deployment: Deployment, config: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    Users(config, ContextEnvironment(run=RUN, deployment=deployment), made).setup()
    return made


# keys of a record


def test_a_record_without_keystone_has_the_keys_in_the_address(server: FakeS3) -> None:
    workload = S3Workload(server, "S3Objects.put_object")

    access = workload.context["s3"]

    assert access["endpoint"] == server.url
    assert access["projects"] == {"": [{"access_key": ACCESS, "secret_key": SECRET}]}
    assert SECRET not in str(mask(workload.context["s3"]))
    assert SECRET in set(secret_values(access))
    assert "planted" not in str(record_of(server).masked())


@pytest.mark.parametrize(
    ("spec", "config", "problem"),
    [
        ({"services": {"shop": "http://a:b@h"}}, {}, "has no service s3, only shop; write"),
        ({"services": {"s3": "http://h:1"}}, {}, "has no access key and secret key; write"),
        ({"services": {"s3": "http://only@h"}}, {}, "has no access key and secret key"),
        ({"services": {"s3": "http://a:b@h/?x=1"}}, {}, "has a query"),
        ({"services": {"s3": "http://a%2Cb:c@h"}}, {}, "the access key is empty or has a char"),
        ({"services": {"s3": "http://a:b@h"}}, {"region": "x y"}, "a region has letters"),
        ({"services": {"s3": "http://a:b@h"}}, {"service": "rgw"}, "has no service rgw"),
        ({"services": {"s3": "http://a:b@h"}}, {"endpoint": "http://h"}, "clouds with Keystone"),
    ],
)
def test_a_record_that_lacks_something_is_one_message(
    spec: dict[str, Any], config: dict[str, Any], problem: str
) -> None:
    deployment = Deployment.from_spec("store", {"osbench": spec})

    with pytest.raises(DeploymentError, match=re.escape(problem)) as raised:
        S3Credentials(config, ContextEnvironment(run=RUN, deployment=deployment), {}).setup()

    assert "a:b" not in str(raised.value)


def test_without_a_deployment() -> None:
    with pytest.raises(DeploymentError, match="needs a deployment"):
        S3Credentials({}, ContextEnvironment(run=RUN), {}).setup()


# keys from Keystone


def test_each_user_gets_keys_and_each_project_a_bucket(cloud: FakeCloud, server: FakeS3) -> None:
    deployment = deployment_of(cloud, server)
    users = with_users(deployment, {"tenants": 2, "users_per_tenant": 2})

    workload = S3Workload(server, "S3Objects.get_object", deployment=deployment, context=users)
    for iteration in range(1, 5):
        workload.run(iteration)

    made = cloud.objects[EC2]
    downloads = [(path, access) for method, path, access in server.seen if method == "GET"]
    assert len(made) == 4
    assert sorted(server.buckets) == [BUCKET, BUCKET[:-1] + "1"]
    # projects in turn, and the users of each
    assert len({access for _, access in downloads}) == 4
    assert [path.split("/")[1][-1] for path, _ in downloads] == ["0", "1", "0", "1"]

    workload.undo()

    assert made == {}
    assert server.buckets == {}


def test_a_user_of_two_projects_has_keys_for_each(cloud: FakeCloud, server: FakeS3) -> None:
    cloud.make("projects", {"name": "second", "domain_id": "default"})
    user = {"username": "admin", "password": "right", "domain_name": "Default"}
    users = [{**user, "project_name": name} for name in ("admin", "second", "admin")]

    workload = S3Workload(
        server, "S3Objects.put_object", deployment=deployment_of(cloud, server, users=users)
    )

    # one of them is in the record twice
    assert len({one["tenant_id"] for one in cloud.objects[EC2].values()}) == 2
    assert len(cloud.objects[EC2]) == 2
    workload.undo()
    assert cloud.objects[EC2] == {}
    assert server.buckets == {}


def test_only_credentials_of_the_run_are_deleted(cloud: FakeCloud, server: FakeS3) -> None:
    deployment = deployment_of(cloud, server)
    admin = cloud.find("users", "admin")
    project = cloud.find("projects", "admin")
    assert admin and project
    cloud.make(
        EC2,
        {
            "id": "OLD",
            "access": "OLD",
            "secret": "x",
            "user": admin["id"],
            "tenant_id": project["id"],
        },
    )

    workload = S3Workload(server, "S3Objects.put_object", deployment=deployment)
    during = set(cloud.objects[EC2])
    workload.undo()

    assert len(during) == 2
    assert set(cloud.objects[EC2]) == {"OLD"}


def test_a_lost_response_makes_no_second_credential(cloud: FakeCloud, server: FakeS3) -> None:
    cloud.lost.append(["POST .*OS-EC2", 1])

    workload = S3Workload(server, "S3Objects.put_object", deployment=deployment_of(cloud, server))

    assert len(cloud.objects[EC2]) == 1
    workload.undo()
    assert cloud.objects[EC2] == {}


def test_credentials_that_a_killed_setup_left_are_named_not_deleted(
    cloud: FakeCloud, server: FakeS3
) -> None:
    deployment = deployment_of(cloud, server)
    kept: list[dict[str, Any]] = []
    made: dict[str, Any] = {}
    environment = ContextEnvironment(run=RUN, deployment=deployment)

    def keep() -> None:
        # as it is on disk when the process is killed after the next request
        kept.append({"ec2_credentials": {u: dict(v) for u, v in made[EC2].items()}})

    S3Credentials({}, environment, made, keep).setup()
    (left,) = cloud.objects[EC2]
    context = S3Credentials({}, environment, kept[0])

    with pytest.raises(ContextError, match=f"may have created the EC2 credentials {left}; unless"):
        context.cleanup()
    assert list(cloud.objects[EC2]) == [left]

    cloud.objects[EC2].clear()
    context.cleanup()


def test_credentials_of_a_users_made_for_the_run_go_in_any_case(
    cloud: FakeCloud, server: FakeS3
) -> None:
    deployment = deployment_of(cloud, server)
    users = with_users(deployment, {"tenants": 1})
    environment = ContextEnvironment(run=RUN, deployment=deployment, context=users)
    made: dict[str, Any] = {}
    S3Credentials({}, environment, made).setup()
    for one in made[EC2].values():
        one["access_key"] = ""

    S3Credentials({}, environment, made).cleanup()

    assert cloud.objects[EC2] == {}


@pytest.mark.parametrize(
    ("absent", "overrides", "endpoint"),
    [
        ((), {"s3": "http://rgw:7480/"}, "http://rgw:7480"),
        ((), {"object-store": "http://swift:8080/v1/AUTH_x"}, "http://swift:8080"),
        ((), {"object-store": "https://rgw/swift/v1"}, "https://rgw"),
        (("object-store",), {}, None),
    ],
)
def test_the_address_is_of_the_catalogue(
    cloud: FakeCloud, absent: tuple[str, ...], overrides: dict[str, str], endpoint: str | None
) -> None:
    cloud.absent.update(absent)
    record = cloud.deployment(endpoint_overrides=overrides)
    environment = ContextEnvironment(run=RUN, deployment=Deployment.from_spec("cloud", record))
    made: dict[str, Any] = {}
    context = S3Credentials({}, environment, made)

    if endpoint is None:
        with pytest.raises(DeploymentError, match="no service of type s3"):
            context.setup()
    else:
        context.setup()
        assert made["s3"]["endpoint"] == endpoint


def test_an_address_of_the_task_gets_no_trace_headers(cloud: FakeCloud) -> None:
    environment = ContextEnvironment(
        run=RUN, deployment=Deployment.from_spec("cloud", cloud.deployment())
    )
    made: dict[str, Any] = {}

    S3Credentials({"endpoint": "http://other:9000"}, environment, made).setup()

    assert (made["s3"]["endpoint"], made["s3"]["traced"]) == ("http://other:9000", False)
    with pytest.raises(DeploymentError, match="endpoint must begin with"):
        S3Credentials({"endpoint": "other:9000"}, environment, {}).setup()


# buckets


def test_objects_of_all_sizes_are_made_and_removed(server: FakeS3) -> None:
    size = [{"size": 10, "weight": 1}, {"size": "100 KiB", "weight": 1}]
    workload = S3Workload(server, "S3Objects.get_object", objects={"objects": 60, "size": size})

    assert set(server.buckets[BUCKET].values()) == {10, 102_400}
    assert len(server.buckets[BUCKET]) == 60
    server.uploads["u1"] = (BUCKET, "x", {})
    server.page = 7
    workload.undo()

    assert server.buckets == {}
    assert server.uploads == {}


def test_a_setup_may_be_repeated_after_errors(server: FakeS3) -> None:
    server.faults += [
        [f"PUT /{BUCKET}$", 503, "SlowDown", 1],
        [f"PUT /{BUCKET}/.*-1$", 500, "InternalError", 2],
    ]

    S3Workload(server, "S3Objects.get_object", objects={"objects": 3})

    assert len(server.buckets[BUCKET]) == 3


def test_the_bucket_is_known_before_it_is_made(server: FakeS3) -> None:
    kept: list[dict[str, Any]] = []
    server.faults.append(["PUT .*-2$", 403, "AccessDenied", 1])
    deployment = record_of(server)
    access: dict[str, Any] = {}
    S3Credentials({}, ContextEnvironment(run=RUN, deployment=deployment), access).setup()
    made: dict[str, Any] = {}
    environment = ContextEnvironment(run=RUN, deployment=deployment, context=access)
    context = S3ObjectsContext({}, environment, made, lambda: kept.append(dict(made)))

    with pytest.raises(RequestFailed, match="403 Forbidden: AccessDenied"):
        context.setup()
    S3ObjectsContext({}, environment, kept[0]).cleanup()

    assert server.buckets == {}


def test_a_bucket_of_another_owner_is_left_alone(server: FakeS3) -> None:
    server.faults.append([f"PUT /{BUCKET}$", 409, "BucketAlreadyExists", 1])

    with pytest.raises(RequestFailed, match="BucketAlreadyExists"):
        S3Workload(server, "S3Objects.get_object")


def test_what_is_still_listed_is_deleted_again(server: FakeS3) -> None:
    workload = S3Workload(server, "S3Objects.get_object")
    server.late = set(server.buckets[BUCKET])

    workload.undo()

    assert server.buckets == {}


def test_objects_that_stay_are_one_message(server: FakeS3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_api, "LOOKS", 2)
    workload = S3Workload(server, "S3Objects.get_object")
    delete = s3_api.S3Client.delete_objects
    monkeypatch.setattr(s3_api.S3Client, "delete_objects", lambda *_: None)

    with pytest.raises(RequestFailed, match="3 objects or more are still listed after 2 deletions"):
        workload.undo()
    monkeypatch.setattr(s3_api.S3Client, "delete_objects", delete)
    server.faults.append([r"POST .*\?delete", 200, "InternalError", 1])
    with pytest.raises(RequestFailed, match="InternalError"):
        workload.undo()


def test_cleanup_without_a_bucket_is_done(server: FakeS3) -> None:
    workload = S3Workload(server, "S3Objects.get_object")
    server.buckets.clear()

    workload.undo()


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"size": {"min": 4}}, "size: min and max are needed"),
        ({"size": "x"}, "size: must be bytes"),
    ],
)
def test_wrong_sizes_are_refused(config: dict[str, Any], problem: str) -> None:
    (found,) = S3ObjectsContext.check_config(config)

    assert found.startswith(problem)
