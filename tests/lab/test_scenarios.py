"""All native scenarios against real services, and the same tasks by Rally: nothing stays.

The lab has to be theirs alone: what it has is counted before and after.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from helpers.lab import cloud_tasks
from helpers.lab.cloud_tasks import TIMES, Load
from helpers.lab.population import population
from helpers.lab.rally_command import Rally, workloads
from helpers.lab.span_chains import Trace
from helpers.runs import checked, site
from osbench.edges.openstack.scenarios.openstack_scenario import ACCEPTED, READY
from services.catalogue import admin
from services.lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(1800)]

#: Services of each task, by the fixture that starts them: one task for those that are cheap.
TASKS = {
    "lab": ("keystone", "zaqar", "glance", "placement"),
    "mistral": ("mistral",),
    "nova": ("nova",),
    "neutron": ("neutron",),
    "cinder": ("cinder",),
    "barbican": ("barbican",),
    "ironic": ("ironic",),
    "designate": ("designate",),
    "manila": ("manila",),
}
#: Services that are counted in addition to those that a task is for.
BESIDE = {"nova": ("glance", "neutron")}
#: What Rally itself leaves. Zaqar's client returns a pair to its clean-up, the queues and their
#: number, which Rally takes for two queues: the queues of producers that failed stay. Its clean-up
#: lists public flavors only: the private ones of two scenarios stay. So do quotas of Neutron that
#: its scenario has updated, when their projects go. Its scenarios of containers and orders have no
#: clean-up: a secret for a container and an ordered key stay.
LEFT_BY_RALLY = {
    "lab": {"queues": TIMES},
    "nova": {"flavors": 2 * TIMES},
    "neutron": {"quotas": TIMES},
    "barbican": {"secrets": 2 * TIMES},
}

#: Actions within others that are Rally's looks whether something is ready, or exists.
LOOKS = ("glance_v2.get_image", "neutron.list_networks", "neutron.list_extension")

#: Name of an action, and those within it.
Action = tuple[str, tuple[Any, ...]]


@dataclass(frozen=True, kw_only=True)
class Ran:
    """A task that osbench has run."""

    #: Fixture that has started its services.
    fixture: str
    lab: Lab
    home: Path
    loads: Sequence[Load]
    result: dict[str, Any]
    rows: list[dict[str, str]]
    #: The results as Rally would write them.
    as_rally: list[dict[str, Any]]
    counted: tuple[str, ...]
    before: dict[str, int]
    after: dict[str, int]


@pytest.fixture(scope="module")
def record(lab: Lab) -> Iterator[dict[str, Any]]:
    """A deployment record of the lab with a user, who has a project."""
    client, url = admin(lab), lab.auth_url
    name, password = f"native-{uuid.uuid4().hex[:8]}", uuid.uuid4().hex
    body: dict[str, Any] = {"project": {"name": name, "domain_id": "default"}}
    project = client.post(f"{url}/projects", json=body).json()["project"]["id"]
    body = {"user": {"name": name, "password": password, "domain_id": "default"}}
    user = client.post(f"{url}/users", json=body).json()["user"]["id"]
    (role,) = client.get(f"{url}/roles?name=member").json()["roles"]
    client.put(f"{url}/projects/{project}/users/{user}/roles/{role['id']}")
    content: dict[str, Any] = lab.deployment()["openstack"]
    domains = {"user_domain_name": "Default", "project_domain_name": "Default"}
    someone = {"username": name, "password": password, "project_name": name, **domains}
    try:
        yield {**content, "users": [someone]}
    finally:
        client.delete(f"{url}/users/{user}")
        client.delete(f"{url}/projects/{project}")


@pytest.fixture(scope="module", params=TASKS)
def ran(request: pytest.FixtureRequest, record: dict[str, Any]) -> Iterator[Ran]:
    """A task, run from two worker processes."""
    fixture = request.param
    lab = request.getfixturevalue(fixture)
    services = TASKS[fixture]
    counted = tuple(dict.fromkeys(("keystone", *services, *BESIDE.get(fixture, ()))))
    with site() as here:
        loads = [load for service in services for load in loads_of(request, service, here.home)]
        here.deployment({"openstack": record})
        before = population(lab, *counted)
        task = here.task(*(load.subtask() for load in loads))
        options = ("--json", "--workers", "2", "--wait-for-workers", "300")
        started = here.start("osbench-coord", "run", task, *options)
        done = started.finish(within_s=1500.0)
        assert done.code == 0, done.out + done.err
        run = done.result["run_id"]
        (exported,) = json.loads(here.coord("results", run, "--rally-json").out)["tasks"]
        yield Ran(
            fixture=fixture,
            lab=lab,
            home=here.home,
            loads=loads,
            result=done.result,
            rows=here.rows(run),
            as_rally=workloads(exported),
            counted=counted,
            before=before,
            after=population(lab, *counted),
        )


def loads_of(request: pytest.FixtureRequest, service: str, folder: Path) -> list[Load]:
    """The workloads of a service's task, whose files are in the folder."""
    make = getattr(cloud_tasks, service)
    found: list[Load]
    if service in ("glance", "mistral", "nova"):
        found = make(folder)
    elif service == "designate":
        found = make(request.getfixturevalue("zone"))
    else:
        found = make()
    return found


@pytest.fixture(scope="module")
def zone(designate: Lab, record: dict[str, Any]) -> Iterator[str]:
    """The id of a zone in the project of the record's user."""
    client, dns = admin(designate), {"service_type": "dns"}
    (someone,) = record["users"]
    path = f"{designate.auth_url}/projects?name={someone['project_name']}"
    (project,) = client.get(path).json()["projects"]
    as_project = {"X-Auth-Sudo-Project-Id": project["id"]}
    body = {"name": "lab.example.", "type": "PRIMARY", "email": "lab@lab.example"}
    made = client.post("/v2/zones", endpoint_filter=dns, headers=as_project, json=body).json()
    try:
        yield made["id"]
    finally:
        client.delete(f"/v2/zones/{made['id']}", endpoint_filter=dns, headers=as_project)


@pytest.fixture(scope="module")
def rally(whole: None, record: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Rally:
    """Rally, which knows the lab."""
    found = Rally(tmp_path_factory.mktemp("rally"))
    found.use(record)
    return found


def test_every_iteration_ends_as_it_should(ran: Ran) -> None:
    found = ran.result["workloads"]

    for load, one in zip(ran.loads, found, strict=True):
        sums = checked(one)
        assert (sums["ok"], sums["failed"]) == (TIMES - load.failing, load.failing), one
        for error in one["errors"]:
            assert load.said in error["message"]
            # what a service has refused can be looked for in its log
            if "http" in error["message"]:
                assert re.search(r"for example request req-[-0-9a-f]{36}", error["message"])
        assert len(one["workers"]) == 2


def test_nothing_is_left(ran: Ran) -> None:
    assert ran.after == ran.before


def test_the_services_spans_stand_under_the_clients(ran: Ran) -> None:
    ids = [row["trace_id"] for row in ran.rows]

    traces = [Trace(ran.lab, one) for one in ids]

    assert len(set(ids)) == len(ids) == TIMES * len(ran.loads)
    for position, load in enumerate(ran.loads):
        of_load = [
            trace
            for row, trace in zip(ran.rows, traces, strict=True)
            if int(row["workload"]) == position
        ]
        for trace in of_load:
            assert not trace.astray, load
            for service, own in load.spans.items():
                assert trace.requests(service), load
                assert not own or own in trace.own(service), load


def test_rally_comes_to_the_same(ran: Ran, rally: Rally) -> None:
    chosen = [
        (load, one)
        for load, one in zip(ran.loads, ran.as_rally, strict=True)
        if not load.not_by_rally
    ]
    if not chosen:
        pytest.skip("Rally has none of these scenarios")
    task = ran.home / "by-rally.json"
    subtasks = [load.subtask() for load, _ in chosen]
    task.write_text(json.dumps({"version": 2, "title": "By Rally", "subtasks": subtasks}))
    before = population(ran.lab, *ran.counted)

    theirs = workloads(rally.task(task))
    after = population(ran.lab, *ran.counted)

    for (load, mine), its in zip(chosen, theirs, strict=True):
        assert its["total_iteration_count"] == mine["total_iteration_count"] == TIMES
        assert its["failed_iteration_count"] == mine["failed_iteration_count"] == load.failing
        assert done_in(its) == done_in(mine), load
    left = LEFT_BY_RALLY.get(ran.fixture, {})
    assert after == {kind: count + left.get(kind, 0) for kind, count in before.items()}


def done_in(workload: dict[str, Any]) -> list[tuple[Action, ...]]:
    """The actions of each iteration, in any order of the iterations."""
    return sorted(named(iteration["atomic_actions"]) for iteration in workload["data"])


def named(actions: Sequence[dict[str, Any]], *, within: bool = False) -> tuple[Action, ...]:
    """Names of actions and of those within: without osbench's two parts, without Rally's looks."""
    found: list[Action] = []
    for one in actions:
        inner = named(one["children"], within=True)
        if one["name"] in (ACCEPTED, READY):
            found += inner
        elif not (within and one["name"] in LOOKS):
            found.append((one["name"], inner))
    return tuple(found)
