"""What a run leaves in a cloud is removed, and nothing else, however the run ended."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from helpers.fake_cloud import FakeCloud, fake_cloud
from helpers.runs import Cluster, Site, site
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.load.run.plan import new_run_id
from osbench.edges.openstack.common.resource_names import in_iteration, of_contexts
from servers import redis_server

pytestmark = pytest.mark.functional

#: Resources of another user in the cloud, with names like ours.
OTHERS = ["ann", "osb-", "osb-20250101-000000-ffff-0-i1-aaaaaaaa", "osb-20250101-000000-ffff-0-c-0"]
USERS = {"users": {"tenants": 2, "users_per_tenant": 2}}


@pytest.fixture
def cloud() -> Iterator[FakeCloud]:
    with fake_cloud() as found:
        for kind in ("users", "projects", "queues"):
            for name in OTHERS:
                found.make(kind, {"name": name, "domain_id": "default", "project": "theirs"})
        yield found


@pytest.fixture
def here(cloud: FakeCloud) -> Iterator[Site]:
    with site() as found:
        record(found, cloud)
        yield found


def record(here: Site, cloud: FakeCloud, **more: object) -> None:
    here.deployment(cloud.deployment(**more), "cloud")


def only_others(cloud: FakeCloud) -> bool:
    kinds = ("users", "projects", "queues")
    return all(set(cloud.named(kind)) - {"admin"} == set(OTHERS) for kind in kinds)


def test_two_workers_with_contexts_leave_nothing(here: Site, cloud: FakeCloud) -> None:
    found = cloud.find("users", "admin")
    assert found is not None
    one = f"/users/{found['id']}"
    # the first of them is refused, whereupon the token is renewed
    cloud.faults.append([f"GET /v3{one}", 401, 1])
    task = here.task(
        {
            "scenario": {"ZaqarBasic.create_queue": {}},
            "contexts": {**USERS, "roles": ["reader"], "zaqar_queues": {}},
            "runner": {"constant": {"times": 40, "concurrency": 4}},
        },
        {
            "scenario": {"KeystoneBasic.create_user": {}},
            "runner": {"constant": {"times": 20, "concurrency": 4}},
        },
        {
            "scenario": {"HttpFlow.run": {"steps": [{"name": "show", "path": one}]}},
            "http": {"service": "keystone"},
            "runner": {"constant": {"times": 40, "concurrency": 4}},
        },
    )

    done = here.run(task, "--workers", "2")

    assert done.code == 0, done.err
    assert [one["accounting"]["ok"] for one in done.result["workloads"]] == [40, 20, 40]
    actions = done.result["workloads"][2]["actions"]
    made = {name: one["ok"]["count"] for name, one in actions.items()}
    # the request is made once more, and both are told apart; other users may wait for the token
    assert (made["show"], made["show > retry"]) == (40, 1)
    assert made["show > re-authentication"] >= 1
    assert sum(path == f"/v3{one}" for _, path, _ in cloud.seen) == 41
    assert only_others(cloud)
    sent = [path.rpartition("/")[2] for method, path, _ in cloud.seen if method == "PUT"]
    assert len({name for name in sent if "-i" in name}) == 40


def test_kill_of_everything_in_the_middle(here: Site, cloud: FakeCloud) -> None:
    cloud.slow_s = 0.05
    task = here.task(
        {
            "scenario": {"KeystoneBasic.create_user": {}},
            "contexts": USERS,
            "runner": {"constant": {"times": 100_000, "concurrency": 8}},
        }
    )
    started = here.begin("osbench-coord", "run", task, "--workers", "2")
    started.wait_for(lambda: len(cloud.named("users")) > 60)

    os.kill(started.process.pid, signal.SIGKILL)
    for process in here.private():
        process.kill()
    started.process.wait()
    left = len(cloud.named("users"))
    done = here.coord("cleanup", "last")
    again = here.coord("cleanup", "last")

    assert left > 60
    assert done.code == 0, done.err
    assert "2 of 2 contexts undone" in done.out
    assert only_others(cloud)
    assert "0 of 0 contexts undone" in again.out


def test_cleanup_waits_for_workers_of_other_hosts(here: Site, cloud: FakeCloud) -> None:
    cloud.slow_s = 0.4
    with redis_server() as redis:
        cluster = Cluster(here, redis)
        cluster.start_worker()
        cluster.await_idle(1)
        task = here.task(
            {
                "scenario": {"KeystoneBasic.create_user": {}},
                "runner": {"constant": {"times": 80, "concurrency": 4}},
            }
        )
        started = here.begin("osbench-coord", "run", task)
        started.wait_for(lambda: len(cloud.named("users")) > 8)

        # what the worker runs gets its answer once the cleanup waits for it
        with cloud.lock:
            os.kill(started.process.pid, signal.SIGKILL)
            started.process.wait()
            cleanup = here.begin("osbench-coord", "cleanup", "last")
            cleanup.await_said("waiting for 1 worker process still serving run")
        done = cleanup.finish()

    assert done.code == 0, done.err
    assert only_others(cloud)


def test_iterations_that_time_out_leave_nothing(guest: Site, cloud: FakeCloud) -> None:
    record(guest, cloud)
    # users are made long after those who asked for them have given up
    cloud.slow_s = 1.5
    task = guest.task(
        {
            "scenario": {"KeystoneBasic.create_user": {}},
            "runner": {"constant": {"times": 8, "concurrency": 4, "timeout": 0.2}},
            "sla": {"failure_rate": {"max": 100}},
        }
    )

    done = guest.run(task)

    # on a busy machine a request may end before its iteration is given up
    assert done.sums["ok"] == 0
    assert done.sums[Outcome.TIMED_OUT.name.lower()] > 0
    assert only_others(cloud)


def test_a_context_that_is_refused_is_one_message_and_leaves_nothing(
    guest: Site, cloud: FakeCloud
) -> None:
    record(guest, cloud)
    # logins and services that are refused by a real Keystone are in tests/lab/test_refusals.py
    cloud.faults.append([r"POST /v3/projects", 403, 10])
    task = guest.task({"scenario": {"ZaqarBasic.create_queue": {}}, "contexts": USERS})

    done = guest.coord("run", task, "--deployment", "cloud", "--quiet")

    assert done.code == 2
    assert "403 Forbidden: as the test says" in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert only_others(cloud)


def orphan(cloud: FakeCloud) -> None:
    """Have users in the cloud that a run has made whose directory nobody has."""
    run = new_run_id()
    for number in range(1, 3):
        project = f"{of_contexts(run, 0)}-users-{number}"
        cloud.make("projects", {"name": project, "domain_id": "default"})
    for number in range(50):
        name = in_iteration(run, 0, number, "a-secret")
        cloud.make("users", {"name": name, "domain_id": "default"})


def test_orphans_of_a_run_without_a_directory_are_shown_and_removed(
    here: Site, cloud: FakeCloud
) -> None:
    orphan(cloud)
    orphans = ("cleanup", "--orphans", "--deployment", "cloud")

    young = here.coord(*orphans, "--yes")
    shown = here.coord(*orphans, "--older", "0s", "--dry-run")
    # nobody answers
    asked = here.coord(*orphans, "--older", "0s")
    before = cloud.named("users")
    done = here.coord(*orphans, "--older", "0s", "--yes")
    again = here.coord(*orphans, "--older", "0s", "--yes")

    assert young.code == 0
    assert "some younger than 1d" in young.err
    assert "no resources to remove" in young.err
    assert shown.code == 0
    assert "would be removed" in shown.err
    ours = {name for name in before if name not in {*OTHERS, "admin"}}
    assert len(ours) > 40
    assert all(name in shown.out for name in ours)
    assert "with the security groups of these projects" in shown.out
    assert not [name for name in OTHERS[2:] if f" {name} " in shown.out]
    assert asked.code == 130
    assert "remove " in asked.err
    assert done.code == 0, done.err
    assert only_others(cloud)
    assert again.code == 0
    assert "no resources to remove" in again.err


def test_what_rally_left_is_taken_only_where_that_is_asked_for(
    here: Site, cloud: FakeCloud
) -> None:
    project = cloud.make("projects", {"name": "c_rally_1f2e3d4c_aaaaaaaa", "domain_id": "default"})
    cloud.make("users", {"name": "c_rally_1f2e3d4c_bbbbbbbb", "domain_id": "default"})
    queue = "s_rally_1f2e3d4c_cccccccc"
    cloud.make("queues", {"id": queue, "name": queue, "project": project["id"]})
    orphans = ("cleanup", "--orphans", "--deployment", "cloud")

    ours = here.coord(*orphans, "--older", "0s", "--yes")
    shown = here.coord(*orphans, "--rally", "--dry-run")
    unasked = here.coord(*orphans, "--rally", "--yes")
    done = here.coord(*orphans, "--rally", "--older", "0s", "--yes")

    assert "no resources to remove" in ours.err
    assert shown.code == 0, shown.err
    for name in ("c_rally_1f2e3d4c_aaaaaaaa", "c_rally_1f2e3d4c_bbbbbbbb", queue):
        assert f" {name} " in shown.out
    assert "in project c_rally_1f2e3d4c_aaaaaaaa" in shown.out
    assert "3 resources of 1 Rally task would be removed" in shown.err
    assert "left out: no resource of Rally task 1f2e3d4c has a time of creation" in unasked.err
    assert done.code == 0, done.err
    assert "3 resources of 1 Rally task removed" in done.err
    assert only_others(cloud)


def test_orphans_are_not_those_of_a_run_that_goes_on(here: Site, cloud: FakeCloud) -> None:
    cloud.slow_s = 0.05
    task = here.task(
        {
            "scenario": {"KeystoneBasic.create_user": {}},
            "contexts": USERS,
            "runner": {"constant": {"times": 300, "concurrency": 2}},
        }
    )
    started = here.begin("osbench-coord", "run", task, "--json")
    started.wait_for(lambda: len(cloud.named("users")) > 20)
    # it goes on for as long as the command takes, and not for long after that
    cloud.slow_s = 1.0
    cleaned = here.coord("cleanup", "--orphans", "--deployment", "cloud", "--older", "0s", "--yes")
    cloud.slow_s = 0.0
    done = started.finish()

    assert cleaned.code == 0, cleaned.err
    assert "left out: run " in cleaned.err
    assert "is running" in cleaned.err
    assert done.code == 0, done.err
    assert [one["accounting"]["ok"] for one in done.result["workloads"]] == [300]
    assert only_others(cloud)


def test_orphans_that_cannot_be_removed_are_told_with_code_5(here: Site, cloud: FakeCloud) -> None:
    cloud.make("roles", {"name": "osb-20250101-000000-ffff-0-i1-0123456789abcdef"})
    cloud.faults.append(["GET /zaqar", 403, 1000])

    done = here.coord("cleanup", "--orphans", "--deployment", "cloud", "--yes")

    assert done.code == 5
    assert "1 resource of 1 run removed" in done.err
    assert "queues could not be listed" in done.out + done.err
    assert "Traceback" not in done.err


def test_orphans_of_no_cloud(here: Site, cloud: FakeCloud) -> None:
    spec = cloud.deployment()
    spec["openstack"]["auth_url"] = "http://127.0.0.1:1/v3"
    here.deployment(spec, "away")
    wrong = {
        ("--deployment", "nowhere"): "nowhere",
        ("--deployment", "away"): "cannot reach the cloud of away",
        ("--deployment", "cloud", "--older", "soon"): "'soon' is not an age",
    }

    for options, said in wrong.items():
        done = here.coord("cleanup", "--orphans", "--yes", *options)

        assert done.code == 2, done.out + done.err
        assert said in done.out + done.err
        assert "Traceback" not in done.err
