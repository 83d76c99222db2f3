"""Rally's own Keystone tasks on osbench and on Rally, against one cloud: the same comes of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from osprofiler.drivers import base

from helpers.commands import coord
from helpers.corpus import corpus
from helpers.lab.rally_command import Rally, workloads
from osbench.common.deployment.record import Deployment
from osbench.common.plugin.context import ContextEnvironment
from osbench.edges.rally.adapters.context_adapter import context_class
from services.catalogue import admin
from services.lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(3600)]

#: The samples ask for 100 iterations by 10 users, and for 150 users in the cloud: more of the
#: same, for which one Keystone on SQLite takes an hour.
TIMES, CONCURRENCY, MOST = 2, 2, 1

#: Samples that differ in what they make and in who cleans up; all of them take a quarter of an
#: hour, and are run in a permanent lab (`--lab`).
CHOSEN = (
    "authenticate/keystone",
    "keystone/add-and-remove-user-role",
    "keystone/create-and-delete-service",
    "keystone/create-and-list-ec2credentials",
    "keystone/create-tenant-with-users",
    "keystone/create-user",
)

RUNNER = {"constant": {"times": TIMES, "concurrency": CONCURRENCY}}

#: What no sample has: existing roles for the users of a workload, who take turns.
ROLES = {
    "title": "Users with roles",
    "scenario": {"Authenticate.keystone": {}},
    "contexts": {
        "users": {"tenants": 2, "users_per_tenant": 2, "user_choice_method": "round_robin"},
        "roles": ["member", "reader"],
    },
}

#: Scenario, iterations, failed ones: of each workload.
Counts = list[tuple[str, int, int]]


@dataclass(frozen=True, kw_only=True)
class Population:
    """How many of a kind the cloud has."""

    users: int
    projects: int
    roles: int
    services: int


def population(lab: Lab) -> Population:
    session = admin(lab)
    found = {
        kind: len(session.get(f"{lab.auth_url}/{kind}").json()[kind])
        for kind in Population.__annotations__
    }
    return Population(**found)


def samples(*, every: bool) -> list[dict[str, Any]]:
    """The subtasks of Rally's task files for Keystone, in small."""
    folder = corpus() / "rally-openstack" / "scenarios"
    files = [folder / f"{name}.yaml" for name in CHOSEN]
    if every:
        files = [*(folder / "keystone").glob("*.yaml"), folder / "authenticate/keystone.yaml"]
    found = [
        subtask
        for file in sorted(files)
        for subtask in yaml.safe_load(file.read_text("utf-8"))["subtasks"]
    ]
    return [*map(small, found), {**ROLES, "runner": RUNNER}]


def small(subtask: Mapping[str, Any]) -> dict[str, Any]:
    contexts = dict(subtask.get("contexts", {}))
    if "users" in contexts:
        contexts["users"] = {
            key: min(value, MOST) if isinstance(value, int) else value
            for key, value in contexts["users"].items()
        }
    return {**subtask, "contexts": contexts, "runner": RUNNER}


def deployment(lab: Lab) -> dict[str, Any]:
    """Without a key: Keystone takes its time when it is traced."""
    content: Any = lab.deployment()["openstack"]
    return {key: value for key, value in content.items() if not key.startswith("profiler_")}


def on_osbench(home: Path, task: Path, lab: Lab) -> tuple[Counts, dict[str, Any]]:
    (home / "cloud.json").write_text(json.dumps({"openstack": deployment(lab)}), "utf-8")
    made = coord(home, "deployment", "create", "--name", "lab", "--file", "cloud.json")
    assert made.returncode == 0, made.stderr
    ran = coord(
        home,
        *("run", str(task), "--deployment", "lab", "--prefer", "rally", "--workers", "2"),
        "--json",
        within_s=3000,
    )
    result: dict[str, Any] = json.loads(ran.stdout)
    sums = [(one["name"], one["accounting"]) for one in result["workloads"]]
    return [(name, s["planned"], s["failed"]) for name, s in sums], result


def on_rally(home: Path, task: Path, lab: Lab) -> Counts:
    rally = Rally(home)
    rally.use(deployment(lab))
    return [
        (*one["scenario"], one["total_iteration_count"], one["failed_iteration_count"])
        for one in workloads(rally.task(task))
    ]


@pytest.fixture
def cloud(request: pytest.FixtureRequest) -> Lab:
    """Keystone: that of a permanent lab, where there is one."""
    name = "running_lab" if request.config.getoption("--lab") else "keystone"
    found = request.getfixturevalue(name)
    assert isinstance(found, Lab)
    return found


@pytest.mark.usefixtures("whole")
def test_tasks_come_to_the_same_on_osbench_and_on_rally(
    request: pytest.FixtureRequest, cloud: Lab, tmp_path: Path
) -> None:
    pytest.importorskip("rally_openstack", reason="the extra osbench[rally] is not installed")
    task = tmp_path / "task.json"
    subtasks = samples(every=bool(request.config.getoption("--lab")))
    task.write_text(json.dumps({"version": 2, "title": "Keystone", "subtasks": subtasks}))
    for name in ("osbench", "rally"):
        (tmp_path / name).mkdir()
    before = population(cloud)

    ours, result = on_osbench(tmp_path / "osbench", task, cloud)
    after_ours = population(cloud)
    theirs = on_rally(tmp_path / "rally", task, cloud)
    after_theirs = population(cloud)

    assert result["exit_code"] == 0, result
    assert ours == theirs
    assert len(ours) == len(subtasks)
    assert all(planned == TIMES for _, planned, _ in ours)
    assert after_ours == before
    assert after_theirs == before
    assert list(result["workloads"][-1]["actions"]) == ["authenticate.keystone"]


def test_users_of_a_setup_that_died_are_found_by_their_names(cloud: Lab) -> None:
    pytest.importorskip("rally_openstack", reason="the extra osbench[rally] is not installed")
    context = context_class("users@openstack")
    assert context is not None
    record = Deployment.from_spec("lab", {"openstack": deployment(cloud)})
    environment = ContextEnvironment(run="a-run", deployment=record)
    before = population(cloud)
    made: dict[str, Any] = {}
    kept: list[dict[str, Any]] = []

    context({}, environment, made, lambda: kept.append(dict(made))).setup()
    between = population(cloud)
    # all that is on disk when the process dies in the middle
    context({}, environment, kept[0]).cleanup()

    assert (between.users, between.projects) == (before.users + 1, before.projects + 1)
    assert population(cloud) == before


def test_a_traced_iteration_holds_the_clouds_spans_and_results_hold_no_secret(
    cloud: Lab, tmp_path: Path
) -> None:
    pytest.importorskip("rally_openstack", reason="the extra osbench[rally] is not installed")
    record = {"openstack": cloud.deployment()["openstack"]}
    (tmp_path / "cloud.json").write_text(json.dumps(record), "utf-8")
    made = coord(tmp_path, "deployment", "create", "--name", "lab", "--file", "cloud.json")
    assert made.returncode == 0, made.stderr

    ran = coord(
        tmp_path,
        *("run", "--scenario", "Authenticate.keystone@rally", "--times", "2"),
        *("--deployment", "lab", "--workers", "1", "--json"),
    )
    shown = coord(tmp_path, "results", "last", "--rally-json")

    result = json.loads(ran.stdout)
    (workload,) = result["workloads"]
    assert workload["tracing"]["traced"] == 2, ran.stderr
    (slowest, *_) = workload["exemplars"]
    spans = base.get_driver(cloud.trace_store, conf={}).get_report(slowest["trace_id"])
    (root,) = spans["children"]
    action = next(one for one in root["children"] if one["info"]["name"] == "authenticate.keystone")
    assert any(one["info"]["name"].startswith("wsgi") for one in action["children"])
    written = b"".join(
        path.read_bytes() for path in (tmp_path / ".osbench" / "runs").rglob("*") if path.is_file()
    )
    for secret in (cloud.hmac_key, cloud.password, cloud.trace_store):
        assert secret not in ran.stdout + ran.stderr + shown.stdout
        assert secret.encode() not in written
