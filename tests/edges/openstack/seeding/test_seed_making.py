"""Seeds made in a cloud: once each, whatever fails, with an exact account."""

from __future__ import annotations

from typing import Any

import pytest

from helpers.context_chain import Chain
from helpers.fake_cloud import ADMIN, PASSWORD
from osbench.common.errors import DeploymentError
from osbench.edges.openstack.common.object_lists import sought
from osbench.edges.openstack.common.request_errors import RequestFailed
from osbench.edges.openstack.common.resource_names import is_from_iteration, rally_task_in, run_in
from osbench.edges.openstack.contexts.existing_network import ExistingNetwork
from osbench.edges.openstack.coordinator.orphans import OSBENCH, RALLY, CloudOrphanSearch
from osbench.edges.openstack.seeding import seed_group, seed_making
from osbench.edges.openstack.seeding.seed_making import SeedMaking
from osbench.edges.openstack.seeding.seed_removal import SeedRemoval

#: One of each kind, with two or three objects.
EVERYTHING: tuple[dict[str, Any], ...] = (
    {"projects": 2},
    {"users": {"count": 3, "of": "projects", "password": PASSWORD}},
    {"networks": 2},
    {"subnets": None},
    {"ports": 3},
    {"routers": 2},
    {"security_groups": 2},
    {"volumes": 2},
    {"shares": 2},
    {"images": {"count": 2, "size": "3 KiB"}},
    {"keypairs": 2},
    {"servers": {"count": 2, "image": "tiny", "flavor": "m1", "of": "networks"}},
    {
        "objects": {
            "group": "policy",
            "count": 2,
            "service": "neutron",
            "path": "firewall-policies",
            "list": "firewall_policies",
            "key": "firewall_policy",
        }
    },
)
#: Kinds of the stand-in with objects of `EVERYTHING`.
KINDS = (
    *("projects", "users", "network", "subnet", "port", "router", "security_group", "volumes"),
    *("shares", "images", "keypairs", "servers", "firewall_policy"),
)


def names(cloud, kind):
    return [name for name in cloud.named(kind) if name.startswith("osb-seed-")]


@pytest.fixture
def stocked(cloud):
    cloud.make("images", {"name": "tiny", "status": "active"})
    cloud.make("flavors", {"name": "m1"})
    return cloud


def test_every_kind_is_made_once_and_found_again(stocked, seeds, account):
    first = seeds.make(*EVERYTHING)
    posts = sum(method == "POST" for method, path, _ in stocked.seen if "tokens" not in path)
    again = seeds.make(*EVERYTHING)

    assert first.complete
    assert {(a, c, d) for a, _, c, d in account(first).values()} == {(0, 0, 0)}
    assert names(stocked, "port") == [f"osb-seed-full-port-{n}" for n in (1, 2, 3)]
    assert [len(names(stocked, kind)) for kind in KINDS] == [2, 3, 2, 2, 3, *(2,) * 8]
    assert again.complete
    assert all(made == 0 for _, made, _, _ in account(again).values())
    assert posts == sum(
        method == "POST" for method, path, _ in stocked.seen if "tokens" not in path
    )


def test_a_list_that_is_older_than_a_response_is_read_again(cloud, seeds, account, monkeypatch):
    lists = []
    listed = seed_group.beginning_with

    def late(*args):
        lists.append(args)
        # the first list after the creations
        return list(listed(*args))[: 1 if len(lists) == 3 else None]

    monkeypatch.setattr(seed_group, "beginning_with", late)

    made = seeds.make({"networks": 3})

    assert len(lists) == 4
    assert made.complete
    assert account(made) == {"network": (0, 3, 0, 0)}


def test_objects_belong_to_their_parents_in_turn(cloud, seeds):
    seeds.make(*EVERYTHING[:5])

    networks = {one["id"]: one["name"] for one in cloud.objects["network"].values()}
    of = {one["name"]: networks[one["network_id"]] for one in cloud.objects["port"].values()}
    assert of == {
        "osb-seed-full-port-1": "osb-seed-full-network-1",
        "osb-seed-full-port-2": "osb-seed-full-network-2",
        "osb-seed-full-port-3": "osb-seed-full-network-1",
    }
    members = {
        (cloud.objects["projects"][p]["name"], cloud.objects["users"][u]["name"])
        for p, u, _ in cloud.assigned
    }
    assert members == {
        ("osb-seed-full-project-1", "osb-seed-full-user-1"),
        ("osb-seed-full-project-2", "osb-seed-full-user-2"),
        ("osb-seed-full-project-1", "osb-seed-full-user-3"),
    }
    assert len({one["cidr"] for one in cloud.objects["subnet"].values()}) == 2


@pytest.mark.parametrize("kind", ["user", "port", "volume", "share", "image", "keypair", "server"])
def test_lost_responses_double_nothing(stocked, seeds, account, kind):
    stocked.lost.append([f"POST .*/(os-)?{kind}s$", 2])
    stocked.faults.append([f"GET .*/{kind}s", 503, 1])

    made = seeds.make(*EVERYTHING)

    assert made.complete
    assert account(made)[kind][1:] == (
        len(names(stocked, f"{kind}s" if kind != "port" else kind)),
        0,
        0,
    )


def test_a_response_that_comes_after_the_search_leaves_one_object(cloud, seeds, account):
    """A creation is served so late that its repetition finds nothing by the name."""
    cloud.lost.append(["POST /neutron/v2.0/ports$", 1])
    making = seeds.making({"networks": 1}, {"ports": 4})
    making.look()
    maker = making.groups[1].maker
    maker.find = lambda one: ""

    making.make()

    assert names(cloud, "port") == [f"osb-seed-full-port-{n}" for n in (1, 2, 3, 4)]
    assert account(making)["port"] == (0, 4, 0, 0)
    assert making.groups[1].doubles == 1


def test_objects_that_fail_are_counted_with_their_reason_and_made_next_time(cloud, seeds, account):
    cloud.faults.append(["POST /neutron/v2.0/ports$", 400, 3])

    first = seeds.make({"networks": 2}, {"ports": 9})
    second = seeds.make({"networks": 2}, {"ports": 9})

    assert not first.complete
    assert account(first) == {"network": (0, 2, 0, 0), "port": (0, 6, 3, 0)}
    ((reason, number),) = first.groups[1].errors.items()
    assert "POST" in reason
    assert "400" in reason
    assert number == 3
    assert account(second) == {"network": (2, 0, 0, 0), "port": (6, 3, 0, 0)}
    assert second.complete


def test_a_group_is_given_up_after_failures_in_a_row(cloud, seeds, account):
    cloud.faults.append(["POST /v3/users$", 403, 1000])

    made = seeds.make({"users": 40}, {"networks": 1})

    existing, done, failed, not_tried = account(made)["user"]
    assert (existing, done) == (0, 0)
    # calls that are in flight end
    assert seed_making.GIVE_UP <= failed <= seed_making.GIVE_UP + 3
    assert not_tried == 40 - failed
    assert "given up after 10 failures in a row" in made.groups[0].errors
    # other groups are made
    assert account(made)["network"] == (0, 1, 0, 0)


def test_children_of_a_missing_parent_are_not_tried(cloud, seeds, account):
    cloud.faults.append(["POST /neutron/v2.0/networks$", 400, 1])

    made = seeds.make({"networks": 2}, {"ports": 10})

    assert account(made) == {"network": (0, 1, 1, 0), "port": (0, 5, 0, 5)}
    assert made.groups[1].errors == {"not tried: its network is missing": 5}


def test_ctrl_c_accounts_for_everything_and_the_next_call_goes_on(cloud, seeds, account):
    class Impatient(list):
        def __call__(self, now):
            if now.group.entry.group == "user" and now.done >= 5:
                raise KeyboardInterrupt

    cloud.slow_s = 0.0
    plan = seeds.plan({"users": 400}, {"networks": 1})
    making = SeedMaking(plan, seeds.access(), at_once=4, tell=Impatient())
    making.look()

    with pytest.raises(KeyboardInterrupt):
        making.make()
    again = seeds.make({"users": 400}, {"networks": 1})

    there = account(making)["user"][1]
    assert 5 <= there < 400
    assert account(making)["network"] == (0, 0, 0, 1)
    assert account(again) == {"user": (there, 400 - there, 0, 0), "network": (0, 1, 0, 0)}


def test_a_lower_count_removes_nothing_and_a_higher_one_adds(cloud, seeds, account):
    seeds.make({"users": 5})

    fewer = seeds.make({"users": 2})
    more = seeds.make({"users": 7})

    assert account(fewer) == {"user": (2, 0, 0, 0)}
    assert fewer.groups[0].beyond == 3
    assert account(more) == {"user": (5, 2, 0, 0)}
    assert len(names(cloud, "users")) == 7


def test_a_user_without_its_role_gets_it(cloud, seeds, account):
    entries = ({"projects": 1}, {"users": {"count": 3, "of": "projects"}})
    seeds.make(*entries)
    cloud.assigned.pop()

    again = seeds.make(*entries)

    assert account(again)["user"] == (2, 1, 0, 0)
    assert len(cloud.assigned) == 3


def test_volumes_are_awaited_and_broken_ones_replaced(cloud, seeds, account):
    cloud.volumes_fail = True
    broken = seeds.make({"volumes": 2})
    cloud.volumes_fail = False
    again = seeds.make({"volumes": 2})

    assert account(broken)["volume"] == (0, 0, 2, 0)
    assert "a volume is in error instead of available" in next(iter(broken.groups[0].errors))
    assert account(again)["volume"] == (0, 2, 0, 0)
    states = [one["status"] for one in cloud.objects["volumes"].values()]
    assert states.count("available") == 2
    assert set(states) <= {"available", "deleting"}


def test_an_image_whose_upload_broke_off_is_uploaded_again(cloud, seeds, account):
    project = cloud.find("projects", ADMIN)["id"]
    for number, status in enumerate(("queued", "saving"), start=1):
        cloud.make(
            "images",
            {"name": f"osb-seed-full-image-{number}", "status": status, "owner": project},
        )

    made = seeds.make({"images": {"count": 3, "size": 2048}})

    assert account(made)["image"] == (0, 3, 0, 0)
    images = cloud.objects["images"].values()
    assert [(one["status"], one["size"]) for one in images] == [("active", 2048)] * 3


def test_low_quotas_are_told_before_the_first_creation(cloud, seeds):
    making = seeds.making({"networks": 11}, {"ports": 12}, {"volumes": {"count": 3, "size": 4}})

    with pytest.raises(DeploymentError) as caught:
        making.look()

    assert str(caught.value).splitlines()[1:] == [
        "  network of neutron: 10, and the seed needs 11",
        "  port of neutron: 10, and the seed needs 12",
        "  gigabytes of cinder: 10, and the seed needs 12",
    ]
    assert not any(method == "POST" and "tokens" not in path for method, path, _ in cloud.seen)


def test_quotas_are_lifted_if_the_file_says_so(cloud, seeds):
    said: list[str] = []
    plan = seeds.plan({"networks": 11}, quotas="unlimited")
    making = SeedMaking(plan, seeds.access(), say=said.append)
    making.look()
    making.make()

    assert making.complete
    assert said == ["quota network of neutron: 10 before, now without limit"]
    (quotas,) = cloud.quotas.values()
    assert (quotas["network"], quotas["port"]) == (-1, 10)


def test_a_cloud_without_the_service_or_without_an_admin_is_told(cloud, seeds):
    cloud.absent.add("network")
    with pytest.raises(DeploymentError, match="network"):
        seeds.making({"users": 1}, {"networks": 1}).look()

    with pytest.raises(DeploymentError, match="the command seed needs the admin of the cloud; add"):
        SeedMaking(seeds.plan({"users": 1}), seeds.access(admin=False)).look()


def test_a_refused_login_is_told(cloud, seeds):
    cloud.find("users", ADMIN)["password"] = "changed"

    with pytest.raises(DeploymentError, match=r"deployment lab: .* gave no token to user 'admin'"):
        seeds.making({"users": 1}).look()


def test_a_removal_takes_the_seed_and_nothing_else(stocked, seeds):
    seeds.make(*EVERYTHING)
    seeds.make({"networks": 2}, {"ports": 2}, name="full-2")
    foreign = ("osb-seed-full", "osb-seed-full-user", "osb-seed-full-user-01", "osb-seed-full-1")
    for name in foreign:
        stocked.make("users", {"name": name, "domain_id": "default"})
    plan = seeds.plan(*EVERYTHING)

    removal = SeedRemoval("full", seeds.access(), plan.entries)
    found = removal.find()
    removal.remove()
    after = SeedRemoval("full", seeds.access(), plan.entries).find()

    assert found["ports"] == 3
    assert sum(found.values()) == 28
    assert after == {}
    assert names(stocked, "users") == sorted(foreign)
    assert names(stocked, "port") == ["osb-seed-full-2-port-1", "osb-seed-full-2-port-2"]
    assert {kind: names(stocked, kind) for kind in KINDS if kind not in ("users", "port")} == {
        **{kind: [] for kind in KINDS if kind not in ("users", "port")},
        "network": ["osb-seed-full-2-network-1", "osb-seed-full-2-network-2"],
    }


def test_a_removal_of_a_service_that_refuses_says_so_and_takes_the_rest(cloud, seeds):
    seeds.make({"users": 3}, {"networks": 2})
    removal = SeedRemoval("full", seeds.access())
    removal.find()
    cloud.faults.append(["DELETE /neutron/v2.0/networks", 403, 1000])

    with pytest.raises(Exception, match="2 networks are left"):
        removal.remove()

    assert names(cloud, "users") == []


def test_no_clean_up_of_runs_takes_a_seed(cloud, seeds):
    seeds.make(*EVERYTHING[:5])
    every = [name for kind in KINDS for name in names(cloud, kind)]

    for naming in (OSBENCH, RALLY):
        found = CloudOrphanSearch(seeds.access().deployment, naming).find(4e9)
        assert (found.by_run, found.young) == ({}, {})

    assert len(every) == 12
    for name in every:
        assert not run_in(name)
        assert not rally_task_in(name)
        assert not is_from_iteration(name, "")


def test_tasks_find_images_of_a_seed_by_name(cloud, seeds):
    seeds.make({"images": 12})
    client = seeds.access().projects[0]

    found = sought(client, "image", {"name": "osb-seed-full-image-1"})

    assert cloud.objects["images"][found]["name"] == "osb-seed-full-image-1"


def test_a_context_finds_the_networks_of_a_seed(cloud, seeds):
    seeds.make({"networks": 2}, {"subnets": None})

    made = Chain(cloud).set_up(ExistingNetwork, {})

    ((first, second),) = made["networks"].values()
    assert {first["name"], second["name"]} == {
        "osb-seed-full-network-1",
        "osb-seed-full-network-2",
    }


def test_more_users_than_a_page_of_keystone_are_found_again_and_removed(cloud, seeds, account):
    for number in range(30):
        # most pages have no user of the seed
        cloud.make(
            "users", {"id": f"{number:02}", "name": f"theirs-{number}", "domain_id": "default"}
        )
    cloud.keystone_page = 4

    first = seeds.make({"users": 13})
    again = seeds.make({"users": 13})
    removal = SeedRemoval("full", seeds.access())
    found = removal.find()
    removal.remove()

    assert account(first) == {"user": (0, 13, 0, 0)}
    assert account(again) == {"user": (13, 0, 0, 0)}
    assert found == {"users": 13}
    assert len(cloud.named("users")) == 31


def test_a_list_that_would_never_show_its_objects_is_refused(cloud, seeds):
    entry = {"group": "policy", "count": 2, "service": "neutron", "path": "firewall-policies"}
    making = seeds.making({"objects": {**entry, "list": "polices"}})

    with pytest.raises(
        DeploymentError, match=r"resources\[0\].objects: the list .* has no list 'pol"
    ):
        making.look()

    assert cloud.named("firewall_policy") == []


def test_two_calls_at_the_same_time_make_everything_once(cloud, seeds, account):
    entries = ({"networks": 3}, {"ports": 7})
    first, second = seeds.making(*entries), seeds.making(*entries)
    first.look()
    second.look()

    first.make()
    second.make()

    assert account(second) == {"network": (3, 0, 0, 0), "port": (7, 0, 0, 0)}
    assert len(names(cloud, "port")) == 7


def test_a_failed_list_after_the_creations_is_told_and_counted(cloud, seeds, account):
    making = seeds.making({"users": 4})
    making.look()
    # the list before the creations, and the list after them
    cloud.faults.append(["GET /v3/users$", 403, 0])
    create = making.groups[0].maker.create

    def create_and_refuse(one):
        cloud.faults[0][2] = 1
        return create(one)

    making.groups[0].maker.create = create_and_refuse

    with pytest.raises(RequestFailed):
        making.make()

    assert account(making) == {"user": (0, 4, 0, 0)}
