"""Scenarios of a cloud: what they send, how they time it, and what they say when it fails."""

from __future__ import annotations

import json
import re
import threading
import time
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import Template
from requests import Response

from helpers.cloud_workload import READY, RUN, Workload, actions, requests
from helpers.corpus import corpus
from helpers.fake_cloud import ADMIN, PASSWORD, FakeCloud, fake_cloud
from helpers.recording_server import recording_server
from osbench.common.deployment.record import Deployment
from osbench.common.deployment.service_catalogue import SERVICES
from osbench.common.errors import DeploymentError
from osbench.common.plugin.plugins import Plugins
from osbench.common.plugin.signature import signature_of, type_problems
from osbench.edges.openstack.common import account, resource_names
from osbench.edges.openstack.common.api_version import ApiVersion, configured_service
from osbench.edges.openstack.common.cloud_users import CloudUser, turn
from osbench.edges.openstack.common.object_lists import sought
from osbench.edges.openstack.common.request_errors import NotReady, RequestFailed, explanation
from osbench.edges.openstack.scenarios import server_arguments
from osbench.edges.openstack.scenarios.glance import GlanceImages
from osbench.edges.openstack.scenarios.swift import SwiftObjects
from osbench.edges.openstack.scenarios.zaqar import ZaqarBasic
from osbench.edges.openstack.worker.user_selector import UserSelector
from osbench.worker.engine.failures import Failures
from osbench.worker.http import jsonpath
from osbench.worker.tracing.profiling import Tracer

PLUGINS = Plugins()


@pytest.fixture
def cloud():
    with fake_cloud() as server:
        yield server


# arguments


def test_arguments_that_scenarios_share_are_declared_and_checked_like_their_own():
    boot = GlanceImages.create_image_and_boot_instances

    parameters = signature_of(boot).parameters
    refused = type_problems("boot", boot, {"disk_format": "raw", "min_disk": "1", "flavor": 1})

    required = [name for name, one in parameters.items() if one.default is one.empty]
    assert required[1:] == [
        *("container_format", "image_location", "disk_format", "flavor", "number_instances")
    ]
    assert list(parameters)[-4:] == [*("boot_server_kwargs", "session", "retries", "timeouts")]
    assert refused == {
        "min_disk": "argument 'min_disk' of boot must be int, not '1'",
        "flavor": "argument 'flavor' of boot must be dict[str, typing.Any], not 1",
    }


# sessions


def test_the_token_is_there_before_the_first_iteration(cloud):
    workload = Workload(cloud, "KeystoneBasic.create_user")
    cloud.seen.clear()

    found = workload.run()

    assert found == {"keystone_v3.create_user": 1}
    assert requests(cloud) == ["POST /v3/users"]


def test_a_session_of_its_own_counts_authentication(cloud):
    workload = Workload(cloud, "KeystoneBasic.create_user", {"session": "per_iteration"})
    cloud.seen.clear()

    found = [workload.run(n) for n in (1, 2)]

    assert found == [{"authenticate": 1, "keystone_v3.create_user": 1}] * 2
    assert requests(cloud) == ["POST /v3/auth/tokens", "POST /v3/users"] * 2


def test_a_token_that_is_refused_is_renewed_and_both_are_timed_apart(cloud):
    workload = Workload(cloud, "KeystoneBasic.create_user")
    cloud.tokens.clear()

    found = workload.run()

    assert found == {
        "keystone_v3.create_user": 1,
        "keystone_v3.create_user > re-authentication": 1,
        "keystone_v3.create_user > retry": 1,
    }
    assert workload.run(2) == {"keystone_v3.create_user": 1}


def test_a_new_token_is_not_taken_for_a_request_to_the_same_address(cloud):
    args = {"service_type": "identity", "path": "auth/tokens", "status": 404}
    workload = Workload(cloud, "OpenStack.request", args)
    cloud.tokens.clear()

    found = workload.run()

    assert found["openstack.get_identity > re-authentication"] == 1
    assert found["openstack.get_identity > retry"] == 1


def test_requests_to_keystone_have_the_token_of_the_systems_admin(cloud):
    system = {
        "auth_type": "v3password",
        "auth": {
            "username": ADMIN,
            "password": PASSWORD,
            "user_domain_name": "Default",
            "system_scope": "all",
        },
    }
    deployment = Deployment.from_spec("cloud", cloud.deployment(system_admin=system))
    workload = Workload(cloud, "KeystoneBasic.create_user", deployment=deployment)
    cloud.seen.clear()

    workload.run()

    ((_, path, headers),) = cloud.seen
    assert (path, cloud.tokens[headers["x-auth-token"]]["project"]) == ("/v3/users", "")


def test_an_address_of_the_record_replaces_that_of_the_catalogue(cloud):
    elsewhere = {"compute": f"{cloud.url}/elsewhere"}
    deployment = Deployment.from_spec("cloud", cloud.deployment(endpoint_overrides=elsewhere))
    args = {"service_type": "compute", "path": "/servers", "status": 404}
    workload = Workload(cloud, "OpenStack.request", args, deployment=deployment)
    cloud.seen.clear()

    workload.run()

    assert requests(cloud) == ["GET /elsewhere/servers"]


@pytest.mark.parametrize("status", [429, 503])
def test_a_request_that_is_to_be_repeated_later_is_repeated_as_an_action(cloud, status):
    cloud.retry_after = "0"
    workload = Workload(cloud, "KeystoneBasic.create_user", {"retries": 3})
    cloud.faults.append(["POST /v3/users", status, 2])

    found = workload.run()

    assert found == {
        "keystone_v3.create_user": 1,
        f"keystone_v3.create_user > retry after {status}": 2,
    }


@pytest.mark.parametrize(
    ("args", "status", "after", "sent"),
    [
        ({}, 429, "0", 1),
        ({"retries": 2}, 429, "", 1),
        ({"retries": 2}, 503, "soon", 1),
        ({"retries": 2}, 503, "nan", 1),
        ({"retries": 2}, 500, "0", 1),
        ({"retries": 2}, 503, "0", 3),
        ({"retries": 2}, 503, "Wed, 21 Oct 2015 07:28:00 GMT", 3),
    ],
)
def test_a_request_is_sent_as_often_as_the_scenario_and_the_service_say(
    cloud, args, status, after, sent
):
    cloud.retry_after = after
    workload = Workload(cloud, "KeystoneBasic.create_user", args)
    cloud.faults.append(["POST /v3/users", status, 9])
    cloud.seen.clear()

    with pytest.raises(RequestFailed, match=str(status)):
        workload.run()

    assert requests(cloud) == ["POST /v3/users"] * sent


@pytest.mark.parametrize("retries", [-1, 1.5, True, "2"])
def test_retries_are_a_number(retries):
    plugin = PLUGINS.scenario("KeystoneBasic.create_user@native")

    (message,) = plugin.check_args({"retries": retries})

    assert message == f"retries must be an integer from 0 on, got {retries!r}"


def test_a_token_that_has_expired_is_renewed_by_the_request_that_needs_it(cloud):
    workload = Workload(cloud, "KeystoneBasic.add_and_remove_user_role")
    user = workload.context["user_selector"].user(1)
    workload.run()
    cloud.seen.clear()
    user.login.auth_ref._data["token"]["expires_at"] = "2026-01-01T00:00:00.000000Z"
    user.login._renewal_of = None

    assert workload.last.cloud.user_id == user.login.auth_ref.user_id
    assert requests(cloud) == []
    workload.last.cloud.request("GET", "keystone", "users")

    assert actions(workload.last)["token renewal"] == 1
    assert requests(cloud) == ["POST /v3/auth/tokens", "GET /v3/users"]


def test_threads_refused_with_one_token_get_one_new_one(cloud):
    workload = Workload(cloud, "KeystoneBasic.create_user")
    admin = workload.context["user_selector"].admin
    workload.run()
    client = workload.last.admin
    answered = []

    def ask() -> None:
        answered.append(client.request("GET", "keystone", "users").status_code)

    asked = [threading.Thread(target=ask) for _ in range(8)]
    session = client.session()
    before = admin.login.get_token(session)
    cloud.tokens.clear()
    cloud.seen.clear()
    with cloud.lock:
        for thread in asked:
            thread.start()
        while len(cloud.seen) < len(asked):
            time.sleep(0.01)
    for thread in asked:
        thread.join()

    assert answered == [200] * 8
    assert admin.login.get_token(session) != before
    assert requests(cloud).count("POST /v3/auth/tokens") == 1
    assert requests(cloud).count("GET /v3/users") == 16


def test_redirects_are_timed_apart_and_secrets_do_not_follow_them(cloud):
    tracer = Tracer("key", "r", 1.0, None, 0)
    workload = Workload(cloud, "OpenStack.request", {"service_type": "identity", "path": "/users"})
    with recording_server() as foreign:
        found = {}
        workload.run()
        client = workload.last.cloud
        workload.context["user_selector"].sessions.hosts.add(
            f"http://127.0.0.1:{foreign.server_port}"
        )
        profiler = tracer.begin(1)
        try:
            client.send("GET", f"{foreign.url}/to?code=302&url={foreign.elsewhere}/status/200")
            found = actions(workload.last)
        finally:
            tracer.end(profiler, None)
        sent, redirected = (one.headers for one in foreign.taken())

    assert found["redirect"] == 1
    secrets = {"x-auth-token", "x-trace-info", "x-trace-hmac", "traceparent"}
    assert secrets <= sent.keys()
    assert not secrets & redirected.keys()
    assert sent["x-openstack-request-id"].replace("-", "")[3:] == sent["traceparent"][3:35]


def test_users_are_those_of_the_context_in_turn(cloud):
    workload = Workload(cloud, "Authenticate.keystone")
    record = workload.context["deployment"]
    users = []
    for name in ("ann", "bob"):
        cloud.make("users", {"name": name, "password": PASSWORD, "domain_id": "default"})
        kept = CloudUser(credential=record.admin).to_dict()
        users.append({**kept, "username": name, "project_id": name})
    workload = Workload(
        cloud, "Authenticate.keystone", users=users, user_choice_method="round_robin"
    )
    asked = []

    for iteration in range(1, 5):
        workload.run(iteration)
        asked.append(workload.last.cloud.account.credential.username)

    assert asked == ["ann", "bob", "ann", "bob"]


def test_users_chosen_at_random_are_the_same_in_every_process(cloud):
    record = Deployment.from_spec("cloud", cloud.deployment())
    kept = CloudUser(credential=record.admin).to_dict()
    users = [{**kept, "username": f"user{n}", "project_id": str(n % 3)} for n in range(12)]
    chosen = []

    for _ in range(2):
        context = {"users": users, "user_choice_method": "random", "run": RUN, "workload": 0}
        selector = UserSelector(context, record, None)
        chosen.append([selector.user(number).credential.username for number in range(1, 601)])

    assert chosen[0] == chosen[1]
    assert all(25 < chosen[0].count(user["username"]) < 85 for user in users)


def test_a_virtual_user_keeps_one_connection(cloud, monkeypatch):
    accepted = []
    accept = cloud.get_request
    monkeypatch.setattr(cloud, "get_request", lambda: accepted.append(1) or accept())
    workload = Workload(cloud, "OpenStack.request", {"service_type": "compute", "path": "servers"})
    accepted.clear()

    def load() -> None:
        for iteration in range(1, 6):
            workload.run(iteration)

    users = [threading.Thread(target=load) for _ in range(40)]
    for user in users:
        user.start()
    for user in users:
        user.join()

    assert requests(cloud).count("GET /nova/servers") == 200
    assert len(accepted) == 40


# what is sent


def test_every_name_that_an_iteration_gives_says_who_made_it(cloud):
    for name in ("create_and_list_users", "create_update_and_delete_tenant", "get_entities"):
        args = {"service_name": None} if name == "get_entities" else {}
        Workload(cloud, f"KeystoneBasic.{name}", args).run(12)

    made = {one["name"] for kind in ("users", "projects", "roles") for one in things(cloud, kind)}
    ours = {name for name in made if name.startswith(resource_names.of_iterations(RUN, 0) + "12-")}
    assert made - ours == {ADMIN, "member", "reader"}
    assert len(ours) == 4
    assert all(len(name) <= 64 for name in ours)


def things(cloud: FakeCloud, kind: str) -> list[dict[str, Any]]:
    return list(cloud.objects[kind].values())


def test_domains_are_looked_for_before_the_load(cloud):
    cloud.objects["domains"] = {
        "1": {"id": "1", "name": "Default"},
        "2": {"id": "2", "name": "other"},
    }
    record = cloud.deployment()
    record["openstack"]["admin"]["project_domain_name"] = "admins"
    deployment = Deployment.from_spec("cloud", record)
    for args, domain in (({}, "1"), ({"create_user_kwargs": {"domain_name": "other"}}, "2")):
        workload = Workload(
            cloud, "KeystoneBasic.create_and_update_user", args, deployment=deployment
        )
        cloud.seen.clear()

        workload.run()

        assert not [path for _, path, _ in cloud.seen if "/domains" in path]
        assert things(cloud, "users")[-1]["domain_id"] == domain


@pytest.mark.parametrize(
    ("service", "path", "version", "address"),
    [
        ("keystone", "v3", "", "v3"),
        ("keystone", "v3", "4", "v4"),
        ("glance", "image", "", "image/v2"),
        ("glance", "image", "1", "image/v1"),
        ("glance", "image/v2", "v3", "image/v3"),
        ("neutron", "v2.0", "2", "v2.0"),
        ("neutron", "", "2", "v2.0"),
        ("heat", "v1/0a1b", "1", "v1/0a1b"),
        ("heat", "v1/0a1b", "2", "v2/0a1b"),
        ("nova", "v2.1", "2.37", "v2.1"),
        ("nova", "v2.1", "2", "v2.1"),
        ("cinder", "v3/0a1b", "3", "v3/0a1b"),
    ],
)
def test_a_version_that_is_wished_is_that_of_the_address(service, path, version, address):
    known = configured_service(SERVICES[service], ApiVersion(version=version))

    found = account.versioned_url(f"http://host:1/{path}".rstrip("/"), known)

    assert found == f"http://host:1/{address}"


@pytest.mark.parametrize(("service", "version"), [("nova", "3"), ("cinder", "2")])
def test_a_version_that_cannot_be_chosen_is_reported_before_the_load(cloud, service, version):
    scenario = {"nova": "NovaServers.list_servers", "cinder": "CinderVolumes.list_volumes"}[service]
    wish = {service: {"version": version}}

    with pytest.raises(DeploymentError, match=f"api_versions: there is no version {version} of"):
        Workload(cloud, scenario, api_versions=wish)

    wish[service]["service_type"] = "compute"
    Workload(cloud, scenario, api_versions=wish)


def test_creating_a_queue_reaches_zaqar(cloud):
    workload = Workload(cloud, "ZaqarBasic.create_queue", {"metadata": {"a": 1}})
    cloud.seen.clear()

    assert workload.run() == {"zaqar.create_queue": 1}

    ((method, path, headers),) = cloud.seen
    assert (method, path.startswith(f"/zaqar/v2/queues/osb-{RUN}-0-i1-")) == ("PUT", True)
    assert headers["client-id"]


class Pages:
    """A client of a service that knows no markers; a list without end fails."""

    def __init__(self, page):
        self.page, self.left = page, 5

    def document(self, *_, **__):
        self.left -= 1
        assert self.left, "a list without end"
        return self.page


@pytest.mark.parametrize("links", [[], [{"rel": "next", "href": "/v2/queues/q/messages?marker=1"}]])
def test_messages_that_are_repeated_for_ever_are_counted_once(links):
    scenario = object.__new__(ZaqarBasic)
    scenario.cloud = Pages({"messages": [{"id": "1"}, {"id": "2"}], "links": links})

    # without the action, which needs an iteration
    assert ZaqarBasic._read.__wrapped__(scenario, "q") == 2


def test_names_that_are_repeated_for_ever_are_listed_once():
    scenario = object.__new__(SwiftObjects)
    scenario.cloud = Pages([{"name": "a"}, {"name": "b"}])

    assert scenario._names("") == ["a", "b"]


@pytest.mark.parametrize("count", [0, 10, 25])
def test_messages_of_a_queue_are_read_page_after_page(cloud, count):
    counts = {"min_msg_count": count, "max_msg_count": count}
    workload = Workload(cloud, "ZaqarBasic.producer_consumer", counts)

    assert workload.run() == {
        "zaqar.create_queue": 1,
        f"zaqar.post_between_{count}_and_{count}_messages": 1,
        "zaqar.list_messages": 1,
        "zaqar.delete_queue": 1,
    }
    assert cloud.named("queues") == []


def test_a_server_is_accepted_and_then_ready_and_polls_are_not_traced(cloud):
    tracer = Tracer("key", "r", 1.0, None, 0)
    image = cloud.make("images", {"name": "tiny-image", "status": "active"})
    flavor = cloud.make("flavors", {"name": "m1.tiny"})
    args = {"image": {"name": "^tiny.*"}, "flavor": {"name": "m1.tiny"}, "nics": "none"}
    workload = Workload(cloud, "NovaServers.boot_and_delete_server", args)
    cloud.seen.clear()
    profiler = tracer.begin(1)
    try:
        found = workload.run()
    finally:
        tracer.end(profiler, None)

    assert found == {
        "nova.boot_server": 1,
        "nova.boot_server > accepted": 1,
        f"nova.boot_server > {READY}": 1,
        "nova.delete_server": 1,
        "nova.delete_server > accepted": 1,
        f"nova.delete_server > {READY}": 1,
    }
    traced = [method for method, _, headers in cloud.seen if "x-trace-info" in headers]
    assert traced == ["POST", "DELETE"]
    assert [method for method, *_ in cloud.seen].count("GET") >= 4
    posted = cloud.seen[0][2]
    assert posted["openstack-api-version"] == "compute 2.37"
    assert workload.context["image"] == image["id"]
    assert workload.context["flavor"] == flavor["id"]


def test_arguments_of_novaclient_become_those_of_nova():
    disk = {"uuid": "v", "source_type": "volume", "boot_index": 1}

    sent, microversion = server_arguments.body(
        {"name": "s", "imageRef": "i"},
        {
            "nics": [{"net-id": "n", "v4-fixed-ip": "10.0.0.5", "port-id": ""}],
            "meta": {"a": "b"},
            "userdata": "text",
            "security_groups": ["web"],
            "key_name": "k",
            "scheduler_hints": {"group": "g"},
            "admin_pass": "p",
            "disk_config": "AUTO",
            "files": {"/etc/motd": "text"},
            "block_device_mapping_v2": [disk],
            "auto_assign_nic": True,
        },
    )

    assert microversion == ""
    disks = sent["server"].pop("block_device_mapping_v2")
    assert [one["uuid"] for one in disks] == ["i", "v"]
    assert sent == {
        "server": {
            "name": "s",
            "imageRef": "i",
            "networks": [{"uuid": "n", "fixed_ip": "10.0.0.5"}],
            "metadata": {"a": "b"},
            "user_data": "dGV4dA==",
            "security_groups": [{"name": "web"}],
            "key_name": "k",
            "adminPass": "p",
            "OS-DCF:diskConfig": "AUTO",
            "personality": [{"path": "/etc/motd", "contents": "dGV4dA=="}],
        },
        "os:scheduler_hints": {"group": "g"},
    }


@pytest.mark.parametrize(("what", "more"), [("image", "next"), ("flavor", "flavors_links")])
def test_images_and_flavors_are_looked_for_on_all_pages(cloud, monkeypatch, what, more):
    pages = {
        None: {f"{what}s": [{"id": "1", "name": "first"}], more: [{"rel": "next"}]},
        "1": {f"{what}s": [{"id": "2", "name": "second"}]},
    }
    workload = Workload(cloud, "ZaqarBasic.create_queue")
    workload.run()
    client = workload.last.cloud
    monkeypatch.setattr(client, "document", lambda *_, params: pages[params.get("marker")])

    assert sought(client, what, {"name": "second"}) == "2"
    assert sought(client, what, {"name": "^sec"}) == "2"
    with pytest.raises(DeploymentError, match=f"there is no {what} '.', and it is not a regular"):
        sought(client, what, {"name": "("})


def test_many_servers_are_booted_with_a_request_each(cloud, tmp_path):
    (tmp_path / "image").write_bytes(b"data")
    args = {
        "container_format": "bare",
        "disk_format": "raw",
        "image_location": str(tmp_path / "image"),
        "flavor": {"id": "f"},
        "number_instances": 3,
    }
    workload = Workload(cloud, "GlanceImages.create_image_and_boot_instances", args)

    found = workload.run()

    assert found["nova.boot_servers"] == 1
    assert found["nova.boot_servers > accepted"] == 1
    assert found[f"nova.boot_servers > {READY}"] == 3
    assert requests(cloud).count("POST /nova/servers") == 3
    assert [one["status"] for one in things(cloud, "servers")] == ["ACTIVE"] * 3
    assert not any("max_count" in one for one in things(cloud, "servers"))


def test_a_later_run_fetches_an_image_anew(cloud):
    args = {"container_format": "bare", "disk_format": "raw"}
    with recording_server() as images:
        args["image_location"] = f"{images.url}/status/200"
        for _ in range(2):
            workload = Workload(cloud, "GlanceImages.create_and_list_image", args)
            workload.run(1)
            workload.run(2)
        fetched = len(images.taken())

    assert fetched == 2


def test_a_request_of_the_task_is_checked(cloud):
    args = {
        "service_type": "identity",
        "path": "users",
        "status": 200,
        "checks": {"$.users[*].name": "admin", "$.users[0]['domain_id']": "default"},
    }

    assert Workload(cloud, "OpenStack.request", args).run() == {"openstack.get_identity": 1}

    args["checks"] = {"$.users[0].name": "ann"}
    with pytest.raises(AssertionError, match=r"\$.users\[0\].name is 'admin', not 'ann'"):
        Workload(cloud, "OpenStack.request", args).run()


# what goes wrong


def test_a_response_that_is_not_json_names_the_request_and_what_needs_json(cloud, monkeypatch):
    args = {"service_type": "identity", "path": "users", "checks": {"$.users": []}}
    workload = Workload(cloud, "OpenStack.request", args)
    monkeypatch.setattr(Response, "json", lambda self: json.loads("<html>"))

    with pytest.raises(AssertionError, match=r"GET users of identity \(HTTP 200\): .* not JSON"):
        workload.run()


def test_a_refusal_tells_request_status_reason_and_an_id(cloud):
    workload = Workload(cloud, "KeystoneBasic.create_user")
    cloud.faults.append([r"POST /v3/users", 403, 1])

    with pytest.raises(RequestFailed) as caught:
        workload.run()

    text = f"POST {cloud.url}/v3/users: 403 Forbidden: as the test says (for example request req-"
    assert str(caught.value).startswith(text)
    assert caught.value.status == 403


def test_an_address_that_cannot_be_reached_is_the_one_reported(cloud):
    workload = Workload(cloud, "ZaqarBasic.create_queue")
    workload.context["user_selector"].any_user.login.auth_url = "http://127.0.0.1:1/v3"
    cloud.tokens.clear()

    with pytest.raises(ConnectionError, match=r"^POST http://127\.0\.0\.1:1/v3/auth/tokens: "):
        workload.run()


def test_failures_that_differ_in_ids_only_are_one(cloud):
    failures = Failures()
    numbers = set()
    workload = Workload(cloud, "KeystoneBasic.create_delete_user")
    cloud.faults.append([r"DELETE /v3/users", 404, 3])

    for iteration in (1, 2, 3):
        try:
            workload.run(iteration)
        except RequestFailed as error:
            numbers.add(failures.number(error, str(error)))

    assert numbers == {1}
    ((_, etype, message, _),) = failures.fresh()
    assert etype == "RequestFailed"
    assert "404 Not Found" in message


def test_what_never_gets_ready_is_reported(cloud):
    cloud.make("images", {"name": "i", "status": "active"})
    cloud.make("flavors", {"name": "f"})
    args = {"image": {"name": "i"}, "flavor": {"name": "f"}}
    args["timeouts"] = {"nova_server_boot_timeout": 0.05}
    workload = Workload(cloud, "NovaServers.boot_server", args)
    said = r"^the server is not ready after 0.05 s; .* raise nova_server_boot_timeout$"

    with pytest.raises(NotReady, match=said):
        workload.run()


@pytest.mark.parametrize(
    ("name", "args", "said"),
    [
        (
            "NovaServers.boot_and_delete_server",
            {"image": {"id": "i"}, "flavor": {"id": "f"}},
            "the server is in ERROR: it cannot go",
        ),
        ("CinderVolumes.create_and_delete_volume", {"size": 1}, "the volume is in error_deleting"),
    ],
)
def test_what_cannot_be_deleted_is_reported(cloud, name, args, said):
    cloud.absent.clear()
    workload = Workload(cloud, name, args, timeout_s=20.0)
    cloud.undeletable = True

    with pytest.raises(NotReady, match=said):
        workload.run()


@pytest.mark.parametrize(
    ("name", "args", "said"),
    [
        ("MistralWorkbooks.list_workbooks", {}, "has no service of type workflowv2 .public.; it"),
        ("KeystoneBasic.create_user", {"session": "mine"}, "must be per_user or per_iteration"),
        ("NovaServers.boot_server", {"image": {"name": "x"}}, "there is no image 'x'; create one"),
        (
            "KeystoneBasic.create_and_update_user",
            {"update_user_kwargs": {"name": "other"}},
            "update_user_kwargs must not change name",
        ),
        (
            "KeystoneBasic.create_and_update_user",
            {"create_user_kwargs": {"username": "ann"}},
            "create_user_kwargs cannot have username: use only",
        ),
        (
            "KeystoneBasic.create_and_list_roles",
            {"list_role_kwargs": {"user_id": "u"}},
            "list_role_kwargs cannot have user_id",
        ),
        (
            "NovaServers.boot_server",
            {"flavor": {"id": "f"}, "block_device_mapping": {"vda": "v"}},
            "^block_device_mapping: unknown argument for servers; use .* as NAME@rally",
        ),
        (
            "NovaServers.boot_server",
            {"nics": [{"net-name": "n"}]},
            "^nics: unknown key net-name; use .* as NAME@rally",
        ),
        (
            "NovaServers.boot_server",
            {"auto_assign_nic": True},
            "^auto_assign_nic: .* use nics, the context network, or NAME@rally",
        ),
        (
            "GlanceImages.create_image_and_boot_instances",
            {"boot_server_kwargs": {"name": "n"}},
            "^name in boot_server_kwargs: unknown argument",
        ),
        ("OpenStack.request", {"service_type": "dns"}, "has no service of type dns"),
        (
            "OpenStack.request",
            {"service_type": "identity", "checks": {"users": 1}},
            "'users' does not begin with",
        ),
        (
            "GlanceImages.create_and_list_image",
            {"image_location": "/no"},
            "there is no file /no",
        ),
    ],
)
def test_what_is_not_there_is_reported_before_the_load(cloud, name, args, said):
    with pytest.raises(DeploymentError, match=said):
        Workload(cloud, name, args)


def test_credentials_without_names_need_users_of_the_run(cloud):
    user = {**CloudUser(credential=record(cloud).admin).to_dict(), "temporary": False}

    with pytest.raises(DeploymentError, match="let the context users make these"):
        Workload(cloud, "KeystoneBasic.create_and_list_ec2credentials", users=[user])


def record(cloud: FakeCloud) -> Any:
    return Deployment.from_spec("cloud", cloud.deployment())


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"error": {"code": 404, "message": "Could not find user."}}, "Could not find user."),
        ({"faultstring": "Workbook not found"}, "Workbook not found"),
        ({"errors": [{"status": 400, "title": "Bad", "detail": "No such\n provider"}]}, "No such"),
        ({"title": "Bad request", "description": "Queue name"}, "Queue name"),
        ({"code": 1}, ""),
        ("<html>", "<html>"),
    ],
)
def test_every_service_says_it_in_another_way(document, said):
    assert explanation(document).startswith(said)


# arithmetic


@given(sizes=st.lists(st.integers(1, 5), min_size=1, max_size=6), first=st.integers(1, 10_000))
def test_users_take_turns_project_after_project(sizes, first):
    projects = [list(range(size)) for size in sizes]

    taken = [turn(first + step, projects) for step in range(len(sizes) * 60)]

    for project, size in enumerate(sizes):
        mine = [user for where, user in taken if where == project]
        assert len(mine) == 60
        assert all(mine.count(user) == 60 // size for user in range(size))


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("$", [{"a": [{"b": 1}, {"b": 2}], "c d": None}]),
        ("$.a[0].b", [1]),
        ("$.a[-1].b", [2]),
        ("$.a[*].b", [1, 2]),
        ("$['c d']", [None]),
        ("$.a.b", []),
        ("$.a[7]", []),
        ("$.x", []),
    ],
)
def test_json_paths(path, found):
    assert jsonpath.values({"a": [{"b": 1}, {"b": 2}], "c d": None}, path) == found


@pytest.mark.parametrize("path", ["", "a", "$a", "$.a[", "$.a[1:", "$[?@.a"])
def test_json_paths_that_cannot_be_read(path):
    with pytest.raises(jsonpath.BadPath):
        jsonpath.compiled_query(path)


#: Workloads of native scenarios among Rally's samples, at least.
FITTING = {
    "keystone": 15,
    "authenticate": 5,
    "zaqar": 2,
    "mistral": 4,
    "glance": 5,
    "nova": 30,
    "cinder": 15,
    "heat": 8,
    "swift": 5,
}


@pytest.mark.parametrize("folder", FITTING)
def test_workloads_of_rally_fit(folder):
    paths = sorted(corpus().glob(f"rally-openstack/scenarios/{folder}/*.yaml"))
    known = set(PLUGINS.scenario_names())
    checked = 0

    for path in paths:
        for subtask in yaml.safe_load(Template(path.read_text()).render())["subtasks"]:
            for name, args in subtask.get("scenario", {}).items():
                if name not in known:
                    continue
                found = PLUGINS.scenario(f"{name}@native").check_args(args or {})
                # the files that samples name are not beside them
                assert [one for one in found if "No such file" not in one] == [], path
                checked += 1

    assert checked >= FITTING[folder]


BOOK = "version: '2.0'\nworkflows: {one: {}, two: {}}\n"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, None),
        ({"workflow_name": "two"}, None),
        ({"workflow_name": "three"}, r"book.yaml: has no workflow 'three', only one, two$"),
        (
            {"definition": "absent.yaml"},
            r"argument definition: cannot read absent.yaml: No such file",
        ),
        ({"definition": "bad.yaml"}, r"bad.yaml: is not YAML: "),
        ({"definition": "list.yaml"}, r"list.yaml: is not a workbook with workflows$"),
        ({"params": "bad.yaml"}, r"argument params: bad.yaml: is not JSON: "),
    ],
)
def test_files_of_mistral_are_checked_before_a_load(given, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in (("book.yaml", BOOK), ("bad.yaml", "{a"), ("list.yaml", "[1]")):
        (tmp_path / name).write_text(text)
    plugin = PLUGINS.scenario("MistralExecutions.create_execution_from_workbook@native")

    found = plugin.check_args({"definition": "book.yaml", **given})

    assert len(found) == (said is not None)
    assert all(re.search(str(said), one) for one in found)
