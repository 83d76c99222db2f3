"""Resources in error, or in a change that does not end, are found and left as they are."""

from __future__ import annotations

import pytest

from helpers.context_chain import Chain, made_by
from helpers.fake_cloud import fake_cloud
from helpers.fake_compute import TASK_STATE, change
from osbench.common.plugin.context import ResourceInError
from osbench.common.ports import clock as time
from osbench.edges.openstack.common import resource_names
from osbench.edges.openstack.contexts.cleanup import Cleanup
from osbench.edges.openstack.coordinator import error_search
from osbench.edges.openstack.coordinator.error_search import CHANGING_S

SERVICES = ["nova", "cinder", "neutron", "glance", "heat"]


@pytest.fixture
def cloud(virtual_time):
    with fake_cloud() as server:
        server.absent.clear()
        yield server


@pytest.fixture
def chain(cloud):
    found = Chain(cloud)
    found.set_up(Cleanup, SERVICES)
    return found


def plant(cloud, kind, name, status, **more):
    # servers are ACTIVE once they are built, and stacks have names of their own
    project = cloud.find("projects", "admin")["id"]
    fields = {"name": name, "stack_name": name, "status": status, "stack_status": status}
    return cloud.make(kind, {**fields, "boots": status, "project_id": project, **more})


def searched(chain, patient=lambda: True):
    (_, services, made), *_ = chain.made
    return Cleanup(services, chain.environment(1), made).in_error(patient)


def test_resources_of_iterations_and_contexts_in_error_are_found_by_kind(cloud, chain):
    plant(cloud, "servers", made_by(chain, 7), "ERROR")
    plant(cloud, "servers", f"{made_by(chain, 8)}-2", "ERROR")
    plant(cloud, "servers", made_by(chain, 9), "ACTIVE", **{TASK_STATE: None})
    plant(cloud, "volumes", made_by(chain, 7), "error_deleting")
    plant(cloud, "volumes", made_by(chain, 7), "error", snapshot_id="s")
    plant(cloud, "volumes", made_by(chain, 8), "available")
    plant(cloud, "images", made_by(chain, 9), "killed")
    plant(cloud, "port", made_by(chain, 9), "ERROR")
    plant(cloud, "port", made_by(chain, 9), "DOWN")
    context = resource_names.of_contexts(chain.environment(0).run, 0)
    plant(cloud, "network", f"{context}-network-0-0", "ERROR")
    before = {kind: dict(some) for kind, some in cloud.objects.items()}

    result = searched(chain)

    found = {
        (kind, one.iteration, one.state) for kind, some in result.found.items() for one in some
    }
    assert found == {
        ("servers", 7, "ERROR"),
        ("servers", 8, "ERROR"),
        ("volumes", 7, "error_deleting"),
        ("volumes", 7, "error"),
        ("images", 9, "killed"),
        ("ports", 9, "ERROR"),
        ("networks", 0, "ERROR"),
    }
    assert all(one.in_error for some in result.found.values() for one in some)
    assert (result.unlisted, result.problem) == ({}, "")
    assert result.waited_s < 1
    assert {kind: dict(some) for kind, some in cloud.objects.items()} == before


def test_resources_of_others_do_not_count(cloud, chain):
    key = chain.made[0][2]["names_key"]
    for name in (
        "mine",
        resource_names.in_iteration(chain.environment(0).run, 0, 1, "another key"),
        resource_names.in_iteration(chain.environment(0).run, 1, 1, key).replace("-1-i", "-10-i"),
        f"{resource_names.of_contexts(chain.environment(0).run, 1)}-c-0-0",
    ):
        plant(cloud, "servers", name, "ERROR")

    result = searched(chain)

    assert result.found["servers"] == []
    assert set(result.found) == {
        *("servers", "snapshots", "volumes", "floating ips", "routers", "ports", "networks"),
        *("images", "stacks", "backups", "trunks", "firewall groups"),
    }


def test_changes_that_end_are_awaited_and_others_count(cloud, chain):
    plant(cloud, "servers", made_by(chain, 1), "BUILD", boots="ACTIVE")
    plant(cloud, "servers", made_by(chain, 2), "BUILD", boots="ERROR")
    plant(cloud, "servers", made_by(chain, 3), "BUILD")
    plant(cloud, "servers", made_by(chain, 4), "ACTIVE", **{TASK_STATE: "deleting"})
    change(plant(cloud, "volumes", made_by(chain, 5), "deleting"), {}, None)
    plant(cloud, "stacks", made_by(chain, 6), "CREATE_IN_PROGRESS")

    result = searched(chain)

    servers = {one.iteration: (one.state, one.in_error) for one in result.found["servers"]}
    assert servers == {2: ("ERROR", True), 3: ("BUILD", False), 4: ("ACTIVE (deleting)", False)}
    assert result.found["volumes"] == []
    assert [one.state for one in result.found["stacks"]] == ["CREATE_IN_PROGRESS"]
    assert result.waited_s >= CHANGING_S
    assert any("changing 2 servers, 1 stacks" in what for what, _, _ in chain.progress)


def test_nothing_is_awaited_once_the_user_ends_the_run(cloud, chain):
    plant(cloud, "volumes", made_by(chain, 5), "creating")

    result = searched(chain, patient=lambda: False)

    assert [one.state for one in result.found["volumes"]] == ["creating"]
    assert result.waited_s < CHANGING_S


def test_a_kind_that_cannot_be_listed_is_named_and_others_are_found(cloud, chain):
    plant(cloud, "servers", made_by(chain, 1), "ERROR")
    cloud.faults.append([r"GET /cinder/snapshots/detail", 403, 100])

    result = searched(chain)

    assert [one.iteration for one in result.found["servers"]] == [1]
    assert list(result.unlisted) == ["snapshots"]
    assert "403 Forbidden: as the test says" in result.unlisted["snapshots"]
    assert "snapshots" not in result.found


def test_a_kind_that_cannot_be_listed_again_keeps_what_was_found(cloud, chain):
    plant(cloud, "volumes", made_by(chain, 1), "creating")

    def patient():
        if chain.progress and "waited" in chain.progress[-1][0]:
            cloud.faults.append([r"GET /cinder/volumes/detail", 403, 100])
        return True

    result = searched(chain, patient)

    assert result.found["volumes"] == [
        ResourceInError(kind="volumes", state="creating", in_error=False, iteration=1)
    ]
    assert list(result.unlisted) == ["volumes"]


def test_a_cloud_that_is_gone_is_said_of_each_kind(cloud, chain, monkeypatch):
    monkeypatch.setattr("osbench.edges.openstack.coordinator.cloud_access.PAUSES_S", ())
    cloud.tokens.clear()
    cloud.faults.append(["", 503, 10_000])

    result = searched(chain)

    assert result.found == {}
    assert set(result.unlisted) >= {"servers", "volumes", "stacks"}


def test_the_number_in_a_foreign_name_is_not_that_of_an_iteration(cloud, chain):
    context = resource_names.of_contexts(chain.environment(0).run, 0)
    plant(cloud, "servers", f"{context}-x-i99999999999999999999-0000000011111111", "ERROR")

    result = searched(chain)

    assert [one.iteration for one in result.found["servers"]] == [0]


def test_an_odd_response_does_not_end_the_search(cloud, chain):
    plant(cloud, "servers", made_by(chain, 1), "ERROR", tags=5)
    plant(cloud, "volumes", made_by(chain, 2), "error")

    result = searched(chain)

    assert [one.iteration for one in result.found["volumes"]] == [2]
    assert list(result.unlisted) == ["servers"]


def test_a_state_that_is_not_text_can_be_journalled(cloud, chain):
    plant(cloud, "servers", made_by(chain, 1), "ERROR\ud800")

    result = searched(chain)

    assert [one.state for one in result.found["servers"]] == ["ERROR\\ud800"]


@pytest.fixture
def listing(monkeypatch):
    """Calls of `each` once per list request, with its kind; returns the kinds listed so far."""
    listed = []
    real = error_search.beginning_with

    def prepare(each):
        def beginning_with(kind, cloud, beginning):
            listed.append(kind.name)
            each(kind)
            return real(kind, cloud, beginning)

        monkeypatch.setattr(error_search, "beginning_with", beginning_with)
        return listed

    return prepare


@pytest.mark.parametrize(("error", "times"), [(TimeoutError, 1), (ConnectionError, 5)])
def test_a_service_that_does_not_answer_is_not_asked_for_its_other_kinds(
    cloud, chain, listing, error, times
):
    plant(cloud, "servers", made_by(chain, 1), "ERROR")

    def hang(kind):
        if kind.service == "cinder":
            raise error("no answer")

    listed = listing(hang)
    result = searched(chain)

    assert [one.iteration for one in result.found["servers"]] == [1]
    text = f"{error.__name__}: no answer"
    assert result.unlisted == {"backups": text, "snapshots": text, "volumes": text}
    assert (listed.count("backups"), listed.count("snapshots")) == (times, 0)


def test_a_search_sends_no_request_when_its_time_is_over(cloud, chain, listing):
    plant(cloud, "snapshots", made_by(chain, 1), "creating")

    listed = listing(lambda _: time.sleep(50))
    result = searched(chain)

    assert listed == ["servers", "backups", "snapshots"]
    assert set(result.unlisted.values()) == {"the search had ended after 120 s"}
    # the third had begun in time, and was not read to its end
    assert set(result.found) == {"servers", "backups"}
    assert {"volumes", "ports", "stacks"} <= set(result.unlisted)


def test_what_was_found_stays_known_when_the_time_is_over(cloud, chain, listing):
    plant(cloud, "volumes", made_by(chain, 1), "creating")
    looks = []

    def slow(kind):
        looks.append(kind.name)
        time.sleep(500 if looks.count("volumes") == 2 else 0)

    listing(slow)
    result = searched(chain)

    assert looks.count("volumes") == 2
    assert [one.state for one in result.found["volumes"]] == ["creating"]
    assert result.unlisted == {}


def test_ctrl_c_ends_a_search_between_its_requests(cloud, chain, listing):
    plant(cloud, "servers", made_by(chain, 1), "ERROR")
    listed = listing(lambda _: None)

    result = searched(chain, patient=lambda: "snapshots" not in listed)

    assert listed == ["servers", "backups", "snapshots"]
    assert [one.iteration for one in result.found["servers"]] == [1]
    assert result.unlisted["volumes"] == "Ctrl-C ended the search"
    assert "stacks" in result.unlisted
