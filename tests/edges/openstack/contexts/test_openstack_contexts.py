"""What contexts make in a cloud is as asked for, and goes; what is not ours stays."""

from __future__ import annotations

import jsonschema
import pytest

from helpers.cloud_workload import RUN
from helpers.context_chain import Chain, made_by
from helpers.fake_cloud import PASSWORD, FakeCloud, fake_cloud
from osbench.common.deployment.record import Deployment
from osbench.common.errors import ContextError, DeploymentError
from osbench.edges.openstack.common import resource_names
from osbench.edges.openstack.common.cloud_users import cloud_user_of
from osbench.edges.openstack.common.request_errors import RequestFailed
from osbench.edges.openstack.contexts.api_versions import ApiVersions
from osbench.edges.openstack.contexts.cleanup import Cleanup
from osbench.edges.openstack.contexts.images import Images
from osbench.edges.openstack.contexts.roles import Roles
from osbench.edges.openstack.contexts.users import Users
from osbench.edges.openstack.contexts.workbooks import Workbooks
from osbench.edges.openstack.contexts.zaqar_queues import ZaqarQueues
from osbench.edges.openstack.coordinator.cloud_access import CloudAccess


@pytest.fixture
def cloud(virtual_time):
    with fake_cloud() as server:
        yield server


def test_users_are_made_with_tokens_and_removed_again(cloud):
    before = cloud.named("users"), cloud.named("projects")
    chain = Chain(cloud)

    made = chain.set_up(Users, {"tenants": 2, "users_per_tenant": 3})

    assert len(made["users"]) == 6
    assert len({user["project_id"] for user in made["users"]}) == 2
    assert len(cloud.named("users")) == 1 + 6
    assert all(user["temporary"] and user["state"] for user in made["users"])
    assert len(cloud.assigned) == 6
    assert ("users made", 6, 6) in chain.progress
    chain.undo()
    assert (cloud.named("users"), cloud.named("projects")) == before


def test_names_and_passwords_of_users_are_kept_before_they_are_made(cloud):
    chain = Chain(cloud)

    made = chain.set_up(Users, {"tenants": 1, "users_per_tenant": 2})

    first = chain.kept[0]["users"]
    assert [user["id"] for user in first] == ["", ""]
    for key in ("username", "password", "project_name"):
        assert [user[key] for user in first] == [user[key] for user in made["users"]]


def test_users_half_made_are_removed_by_their_names(cloud):
    cloud.faults.append([r"POST /v3/users", 403, 1])
    chain = Chain(cloud)

    with pytest.raises(RequestFailed, match=r"403 Forbidden: as the test says"):
        chain.set_up(Users, {"tenants": 3, "users_per_tenant": 2})
    chain.undo()

    assert cloud.named("users") == cloud.named("projects") == ["admin"]


def test_users_whose_answer_was_lost_are_taken_as_they_are(cloud, monkeypatch):
    monkeypatch.setattr("osbench.edges.openstack.coordinator.cloud_access.PAUSES_S", (0.0,) * 4)
    cloud.faults.append([r"PUT /v3/projects/.*/roles/", 503, 2])
    chain = Chain(cloud)

    made = chain.set_up(Users, {"tenants": 1, "users_per_tenant": 2})

    assert len({user["id"] for user in made["users"]}) == 2
    assert len(cloud.named("users")) == 3


def test_users_of_the_record_are_taken_and_left(cloud):
    cloud.make("users", {"name": "ann", "password": PASSWORD, "domain_id": "default"})
    ann = {"username": "ann", "password": PASSWORD, "project_name": "admin"}
    chain = Chain(cloud, users=[ann])

    made = chain.set_up(Users)
    chain.undo()

    (user,) = made["users"]
    assert (user["username"], user["temporary"]) == ("ann", False)
    assert user["id"] == cloud.find("users", "ann")["id"]
    assert cloud.named("users") == ["admin", "ann"]


@pytest.mark.parametrize(
    ("name", "taken"),
    [("bob", ["bob"]), (["cyd", "ann"], ["ann", "cyd"]), (None, ["ann", "bob", "cyd"])],
)
def test_users_of_the_record_are_chosen_by_name(cloud, name, taken):
    names = ["ann", "bob", "cyd"]
    for one in names:
        cloud.make("users", {"name": one, "password": PASSWORD, "domain_id": "default"})
    like = {"password": PASSWORD, "project_name": "admin"}
    chain = Chain(cloud, users=[{**like, "username": one} for one in names])

    made = chain.set_up(Users, {"name": name} if name else {})

    assert [one["username"] for one in made["users"]] == taken
    assert not any(one["temporary"] for one in made["users"])
    chain.undo()
    assert cloud.named("users") == ["admin", *names]


def test_a_name_that_the_record_does_not_have_is_refused(cloud):
    chain = Chain(cloud, users=[{"username": "ann", "password": "p", "project_name": "admin"}])

    with pytest.raises(DeploymentError, match="has no user bob; add one, or choose from ann"):
        chain.set_up(Users, {"name": "bob"})

    assert Users.check_config({"name": "ann"}) == []
    assert Users.check_config({"name": "ann", "tenants": 2}) == [
        "name chooses among users of the record, and tenants makes new ones"
    ]


def test_roles_that_were_there_before_are_not_taken_away(cloud):
    cloud.make("users", {"name": "ann", "password": PASSWORD, "domain_id": "default"})
    ann = {"username": "ann", "password": PASSWORD, "project_name": "admin"}
    chain = Chain(cloud, users=[ann])
    place = cloud.find("projects", "admin")["id"], cloud.find("users", "ann")["id"]
    had = (*place, cloud.find("roles", "member")["id"])
    cloud.assigned.add(had)
    chain.set_up(Users)
    before = chain.made[0][2]["users"][0]["state"]

    made = chain.set_up(Roles, ["member", "reader"])

    assert len(cloud.assigned) == 2
    assert made["users"][0]["state"] != before
    chain.undo()
    assert cloud.assigned == {had}


def test_a_role_that_is_not_there_is_named(cloud):
    chain = Chain(cloud)
    chain.set_up(Users)

    with pytest.raises(ContextError, match="there is no role 'pilot'"):
        chain.set_up(Roles, ["pilot"])


def test_queues_are_made_in_every_project(cloud):
    chain = Chain(cloud)
    chain.set_up(Users, {"tenants": 2})

    made = chain.set_up(ZaqarQueues, {"queues_per_tenant": 25, "messages_per_queue": 1})

    assert [len(queues) for queues in made["zaqar_queues"].values()] == [25, 25]
    assert len(cloud.named("queues")) >= 50
    chain.undo()
    assert cloud.named("queues") == []


def test_images_with_a_name_of_their_own_are_found_by_their_tag(cloud, tmp_path):
    file = tmp_path / "image"
    file.write_bytes(b"data")
    cloud.make("images", {"name": "testVM", "status": "active"})
    chain = Chain(cloud)
    chain.set_up(Users)
    config = {
        "image_url": str(file),
        "image_type": "raw",
        "image_container": "bare",
        "image_name": "testVM",
    }

    made = chain.set_up(Images, config)

    ((image,),) = made["images"].values()
    assert cloud.objects["images"][image]["size"] == 4
    assert cloud.named("images") == ["testVM", "testVM"]
    chain.undo()
    assert cloud.named("images") == ["testVM"]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, ("private", 0, 0)),
        ({"image_args": {"is_public": True, "min_ram": 64, "min_disk": 2}}, ("public", 64, 2)),
        ({"image_args": {"is_public": False, "other": 1}}, ("private", 0, 0)),
        (
            {"image_args": {"is_public": True, "min_ram": 9}, "visibility": "shared", "min_ram": 1},
            ("shared", 1, 0),
        ),
    ],
)
def test_the_former_arguments_of_images_mean_what_they_mean_to_rally(
    cloud, tmp_path, more, expected
):
    file = tmp_path / "image"
    file.write_bytes(b"data")
    chain = Chain(cloud)
    config = {"image_url": str(file), "disk_format": "raw", "container_format": "bare", **more}
    jsonschema.validate(config, Images.CONFIG_SCHEMA)

    chain.set_up(Images, config)

    ((image,),) = chain.made[-1][2]["images"].values()
    made = cloud.objects["images"][image]
    assert (made["visibility"], made["min_ram"], made["min_disk"]) == expected


def test_a_workbook_whose_answer_was_lost_is_taken_as_it_is(cloud, monkeypatch, tmp_path):
    monkeypatch.setattr("osbench.edges.openstack.coordinator.cloud_access.PAUSES_S", (0.0,) * 4)
    file = tmp_path / "workbook.yaml"
    file.write_text("version: '2.0'")
    chain = Chain(cloud)
    chain.set_up(Users)
    # the small cloud has no Mistral
    chain.set_up(ApiVersions, {"mistral": {"service_type": "identity"}})
    cloud.faults += [[r"POST /v3/workbooks", 503, 1], [r"POST /v3/workbooks", 409, 1]]

    made = chain.set_up(Workbooks, {"definition": str(file)})

    assert [len(several) for several in made["workbooks"].values()] == [1]
    assert [path for method, path, _ in cloud.seen if "workbooks" in path] == ["/v3/workbooks"] * 2


@pytest.mark.parametrize("text", [None, "{a", "[1]"])
def test_a_definition_that_is_no_workbook_is_a_problem_of_the_task(text, tmp_path):
    file = tmp_path / "workbook.yaml"
    if text is not None:
        file.write_text(text)

    (said,) = Workbooks.check_config({"definition": str(file)})

    assert said.startswith(f"the definition {file} ")


def test_a_service_name_becomes_its_type(cloud):
    made = Chain(cloud).set_up(ApiVersions, {"zaqar": {"service_name": "messaging", "version": 2}})

    assert made["api_versions"] == {"zaqar": {"version": "2", "service_type": "messaging"}}


@pytest.mark.parametrize("service", ["nova", "cinder", "placement"])
def test_a_microversion_that_may_have_lost_its_zero_is_refused(cloud, service):
    with pytest.raises(ContextError, match=rf"{service}: put version 2\.9 in quotes"):
        Chain(cloud).set_up(ApiVersions, {service: {"version": 2.90}})


@pytest.mark.parametrize(
    ("service", "version", "kept"),
    [("nova", "2.90", "2.90"), ("nova", 2, "2"), ("keystone", 3.0, "3.0")],
)
def test_other_versions_are_kept_as_they_are(cloud, service, version, kept):
    made = Chain(cloud).set_up(ApiVersions, {service: {"version": version}})

    assert made["api_versions"][service]["version"] == kept


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr("osbench.edges.openstack.coordinator.cloud_access.PAUSES_S", (0.0,) * 4)


@pytest.mark.parametrize(
    "lost", [r"POST /glance/v2/images$", r"PUT /glance/v2/images/.*/file", r"GET /glance"]
)
def test_an_image_whose_answer_was_lost_is_taken_as_it_is(cloud, impatient, tmp_path, lost):
    file = tmp_path / "image"
    file.write_bytes(b"data")
    chain = Chain(cloud)
    chain.set_up(Users)
    cloud.lost.append([lost, 2])

    made = chain.set_up(
        Images, {"image_url": str(file), "disk_format": "raw", "container_format": "bare"}
    )

    ((image,),) = made["images"].values()
    assert [(one["id"], one["size"]) for one in cloud.objects["images"].values()] == [(image, 4)]


def test_an_image_of_an_upload_that_broke_off_is_made_anew(cloud, impatient, tmp_path):
    file = tmp_path / "image"
    file.write_bytes(b"data")
    chain = Chain(cloud)
    chain.set_up(Users)
    left = {"name": "x", "status": "saving", "tags": [f"osb-{RUN}-0-c-images-0-0"]}
    cloud.make("images", {"id": "broken", **left})

    chain.set_up(Images, {"image_url": str(file), "disk_format": "raw", "container_format": "bare"})

    ((identity, image),) = cloud.objects["images"].items()
    assert (identity != "broken", image["status"]) == (True, "active")


@pytest.mark.parametrize("lost", [r"PUT /zaqar", r"POST /zaqar/.*/messages"])
def test_a_queue_whose_answer_was_lost_is_filled_once(cloud, impatient, lost):
    chain = Chain(cloud)
    chain.set_up(Users)
    cloud.lost.append([lost, 2])

    chain.set_up(ZaqarQueues, {"messages_per_queue": 120})

    (queue,) = cloud.objects["queues"].values()
    assert [message["body"]["id"] for message in queue["messages"]] == list(range(120))


# what iterations leave


def leave(cloud, kind, *several):
    for name in several:
        cloud.make(kind, {"name": name})


def test_only_what_iterations_of_the_workload_left_is_removed(cloud):
    chain = Chain(cloud, workload=1)
    chain.set_up(Cleanup, ["keystone.users", "keystone.roles"])
    mine = [made_by(chain, number) for number in range(7)]
    others = [
        resource_names.in_iteration(RUN, 11, 1, chain.made[-1][2]["names_key"]),
        resource_names.in_iteration(RUN, 0, 1, chain.made[-1][2]["names_key"]),
        f"osb-{RUN}-1-c-0",
        "osb-20250101-000000-ffff-1-i1-aa",
        "OSB",
        # much like ours
        resource_names.in_iteration(RUN, 1, 1, "another key"),
        f"osb-{RUN}-1-i1-0123456789abcdef",
        f"osb-{RUN}-1-i",
        f"x-{mine[0]}",
        f"{mine[0]}-backup",
        f"{mine[0]}-1",
        mine[0].upper(),
        mine[0].replace("-i0-", "-i1-"),
    ]
    for kind in ("users", "projects", "roles"):
        leave(cloud, kind, *mine, *others)

    chain.undo()

    assert cloud.named("users") == sorted([*others, "admin"])
    assert cloud.named("roles") == sorted([*others, "admin", "member", "reader"])
    assert cloud.named("projects") == sorted([*mine, *others, "admin"])


def test_a_resource_renamed_by_a_user_is_not_removed(cloud):
    chain = Chain(cloud)
    chain.set_up(Cleanup, ["keystone.users"])
    kept, left = (cloud.make("users", {"name": made_by(chain, number)}) for number in (1, 2))
    kept["name"] = "adopted"

    chain.undo()

    assert kept["id"] in cloud.objects["users"]
    assert left["id"] not in cloud.objects["users"]


def test_users_much_like_those_of_the_context_stay(cloud):
    chain = Chain(cloud)
    made = chain.set_up(Users, {"tenants": 2})
    user = made["users"][0]["username"]
    others = [f"osb-{RUN}-0-c-0-0", f"{user}-0", user[:-1], f"x{user}"]
    for kind in ("users", "projects"):
        leave(cloud, kind, *others)

    chain.undo()

    assert cloud.named("users") == cloud.named("projects") == sorted([*others, "admin"])


def test_queues_much_like_those_of_the_context_stay(cloud):
    chain = Chain(cloud)
    chain.set_up(Users)
    made = chain.set_up(ZaqarQueues, {"queues_per_tenant": 2})
    ((project, (first, _)),) = made["zaqar_queues"].items()
    for name in (f"{first}0", first.replace("-0-0", "-0-2")):
        cloud.make("queues", {"id": name, "name": name, "project": project})

    chain.undo()

    assert cloud.named("queues") == [f"{first}0", first.replace("-0-0", "-0-2")]


def in_domains(cloud: FakeCloud, chain: Chain) -> None:
    """Leave a user and a role in two domains other than the administrator's."""
    for domain in ("east", "west"):
        cloud.objects["domains"][domain] = {"id": domain, "name": domain}
    for kind in ("users", "roles"):
        for number, domain in enumerate(("default", "east", "west")):
            cloud.make(kind, {"name": made_by(chain, number), "domain_id": domain})
        cloud.make(kind, {"name": "somebody's", "domain_id": "east"})


def test_users_and_roles_of_every_domain_are_removed(cloud):
    chain = Chain(cloud)
    chain.set_up(Cleanup, ["keystone.users", "keystone.roles"])
    in_domains(cloud, chain)

    chain.undo()

    assert cloud.named("users") == ["admin", "somebody's"]
    assert cloud.named("roles") == ["admin", "member", "reader", "somebody's"]


def test_one_domain_is_enough_for_who_may_not_list_them(cloud):
    chain = Chain(cloud)
    chain.set_up(Cleanup, ["keystone.users"])
    in_domains(cloud, chain)
    cloud.faults.append([r"GET /v3/domains", 403, 10_000])

    chain.undo()

    assert len(cloud.named("users")) == 4


def test_hidden_images_are_removed_too(cloud):
    chain = Chain(cloud)
    chain.set_up(Cleanup, ["glance"])
    for number, hidden in enumerate((True, False)):
        cloud.make("images", {"name": made_by(chain, number), "os_hidden": hidden})
        cloud.make("images", {"name": "somebody's", "os_hidden": hidden})

    chain.undo()

    assert cloud.named("images") == ["somebody's"] * 2


@pytest.mark.parametrize("several", [["mistral"], ["mistral.actions"]])
def test_actions_of_workbooks_are_removed_and_no_others(cloud, several):
    cloud.absent.clear()
    chain = Chain(cloud)
    chain.set_up(Cleanup, several)
    ours = made_by(chain, 1)
    others = [f"{ours}-copy.greet", "std.echo", f"x.{ours}", f"osb-{RUN}-0-i1-0123456789abcdef.a"]
    leave(cloud, "actions", f"{ours}.greet", f"{ours}.deeply.nested", *others)

    chain.undo()

    assert cloud.named("actions") == sorted(others)


def test_actions_of_the_workbooks_of_a_context_are_removed(cloud, tmp_path):
    cloud.absent.clear()
    file = tmp_path / "workbook.yaml"
    file.write_text("version: '2.0'")
    chain = Chain(cloud)
    chain.set_up(Users)
    made = chain.made
    made.append((Workbooks, {"definition": str(file)}, {"workbooks": {}}))
    name = f"osb-{RUN}-0-c-workbooks-0-0"
    leave(cloud, "actions", f"{name}.greet", f"{name}0.greet", "std.echo")

    chain.undo()

    assert cloud.named("actions") == sorted([f"{name}0.greet", "std.echo"])


def test_an_administrator_who_may_not_look_is_reported_before_the_load(cloud):
    cloud.faults.append([r"GET /v3/users", 403, 1])
    chain = Chain(cloud)

    with pytest.raises(RequestFailed, match=r"GET .*/v3/users: 403 Forbidden"):
        chain.set_up(Cleanup, ["keystone.users"])

    chain.undo()


def test_what_a_service_was_still_at_is_removed_too(cloud, virtual_time):
    chain = Chain(cloud)
    chain.set_up(Cleanup, ["keystone.users"])
    late = iter([made_by(chain, 1)])
    virtual_time.on_sleep = lambda _: [leave(cloud, "users", name) for name in late]

    chain.undo()

    assert cloud.named("users") == ["admin"]


def test_servers_are_waited_for(cloud):
    chain = Chain(cloud)
    chain.set_up(Cleanup, ["nova"])
    ours = made_by(chain, 1)
    # Nova numbers those that are made at once
    for name in (ours, f"{ours}-1", f"{ours}-2", f"{ours}-copy", "somebody's"):
        cloud.make("servers", {"name": name, "status": "ACTIVE"})

    chain.undo()

    assert cloud.named("servers") == [f"{ours}-copy", "somebody's"]


def test_what_cannot_be_removed_is_reported_with_the_reason(cloud):
    cloud.faults.append([r"DELETE /v3/users", 403, 10_000])
    chain = Chain(cloud)
    chain.set_up(Cleanup, ["keystone.users"])
    leave(cloud, "users", made_by(chain, 1), made_by(chain, 2))

    with pytest.raises(ContextError, match=r"^2 users are left: DELETE .* 403 Forbidden"):
        chain.undo()

    cloud.faults.clear()
    chain.undo()
    assert cloud.named("users") == ["admin"]


def test_a_service_that_fails_does_not_keep_the_others(cloud):
    chain = Chain(cloud)
    chain.set_up(Cleanup, ["nova", "zaqar", "keystone.users", "keystone.roles"])
    leave(cloud, "users", made_by(chain, 1))
    leave(cloud, "roles", made_by(chain, 2))
    cloud.faults += [
        [r"GET /nova/servers", 503, 10_000],
        [r"GET /zaqar/", 403, 10_000],
        [r"DELETE /v3/users", 403, 10_000],
    ]

    with pytest.raises(ContextError) as caught:
        chain.undo()

    assert [text.partition(" GET ")[0] for text in str(caught.value).split("; ")[:2]] == [
        "servers: RequestFailed:",
        "queues: RequestFailed:",
    ]
    assert "1 users are left: DELETE " in str(caught.value)
    assert len(cloud.named("roles")) == 3
    cloud.faults.clear()
    chain.undo()
    assert cloud.named("users") == ["admin"]


def test_nothing_is_looked_for_where_no_iteration_began(cloud):
    cloud.absent.add("compute")
    chain = Chain(cloud)

    with pytest.raises(DeploymentError, match="no service of type compute"):
        chain.set_up(Cleanup, ["nova"])

    chain.undo()


def test_a_record_without_admin_is_reported_before_the_load(cloud):
    chain = Chain(cloud)
    spec = cloud.deployment()
    spec["openstack"]["users"] = [spec["openstack"].pop("admin")]
    chain.deployment = Deployment.from_spec("cloud", spec)

    with pytest.raises(DeploymentError, match="context cleanup needs the admin of the cloud"):
        chain.set_up(Cleanup, ["keystone.users"])


APP = {
    "auth_type": "v3applicationcredential",
    "auth": {"application_credential_id": "ac1", "application_credential_secret": PASSWORD},
}
SYSTEM = {
    "auth_type": "v3password",
    "auth": {
        "username": "admin",
        "password": PASSWORD,
        "user_domain_name": "Default",
        "system_scope": "all",
    },
}


def test_an_application_credential_of_an_administrator_makes_users_with_passwords(cloud):
    chain = Chain(cloud, admin=APP)

    made = chain.set_up(Users, {"tenants": 1, "users_per_tenant": 2})

    assert not any("auth_type" in user for user in made["users"])
    assert all(user["state"] for user in made["users"])
    chain.undo()
    assert cloud.named("users") == ["admin"]


def test_users_of_the_record_keep_their_auth_plugins(cloud):
    chain = Chain(cloud, users=[APP])

    made = chain.set_up(Users)
    (user,) = chain.environment(1).context["users"]

    assert (user["auth_type"], user["auth"]) == (APP["auth_type"], APP["auth"])
    assert cloud_user_of(user, chain.deployment).credential.auth_type == APP["auth_type"]
    assert made["users"][0]["state"]


def test_keystone_is_asked_with_system_scope_and_other_services_with_the_admins_project(cloud):
    chain = Chain(cloud, system_admin=SYSTEM)
    admin = CloudAccess(chain.environment(0), "test").admin

    admin.request("GET", "keystone", "users")
    admin.request("GET", "nova", "servers")

    projects = {
        path: cloud.tokens[headers["x-auth-token"]]["project"]
        for _, path, headers in cloud.seen
        if "x-auth-token" in headers
    }
    assert projects["/v3/users"] == ""
    assert projects["/nova/servers"] == admin.project_id
