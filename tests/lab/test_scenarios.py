"""All native scenarios against real services, from two worker processes; nothing stays.

OSBENCH_KILL_REPETITIONS sets how often everything is killed in the middle of a load (3 unless set).
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import signal
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest
import yaml
from osprofiler.drivers import base
from runs import Site, site
from services import operations
from services.catalogue import admin
from services.lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.alone, pytest.mark.timeout(1800)]

REPETITIONS = int(os.environ.get("OSBENCH_KILL_REPETITIONS", "3"))
TIMES = 2
USERS = {"users": {"tenants": 2, "users_per_tenant": 1, "user_choice_method": "round_robin"}}
#: What is counted before and after: service type, path, key.
COUNTED = [
    ("identity", "/users", "users"),
    ("identity", "/projects", "projects"),
    ("identity", "/roles", "roles"),
    ("identity", "/services", "services"),
    ("messaging", "/v2/queues", "queues"),
    ("image", "/v2/images?limit=1000", "images"),
    ("placement", "/resource_providers", "resource_providers"),
]
KEYSTONE: dict[str, dict[str, Any]] = {
    "create_user": {},
    "create_delete_user": {},
    "create_user_set_enabled_and_delete": {},
    "create_and_list_users": {},
    "create_user_update_password": {},
    "create_and_update_user": {"update_user_kwargs": {"enabled": False}},
    "create_tenant": {},
    "create_tenant_with_users": {"users_per_tenant": 1},
    "create_and_list_tenants": {},
    "create_update_and_delete_tenant": {},
    "authenticate_user_and_validate_token": {},
    "add_and_remove_user_role": {},
    "create_add_and_list_user_roles": {},
    "create_and_delete_role": {},
    "create_and_get_role": {},
    "create_and_list_roles": {},
    "get_entities": {},
    "create_and_delete_service": {},
    "create_and_list_services": {},
    "create_and_list_ec2credentials": {},
    "create_and_delete_ec2credential": {},
}
NEED_USERS = {"add_and_remove_user_role", "create_add_and_list_user_roles"}
WORKBOOK = """\
version: "2.0"
name: replaced
workflows:
  quick:
    tasks:
      nothing:
        action: std.noop
"""


@pytest.fixture
def here() -> Iterator[Site]:
    with site() as found:
        yield found


def use(here: Site, lab: Lab) -> None:
    """Have the commands of a site know the lab."""
    file = here.write("lab.json", json.dumps(lab.deployment()))
    made = here.coord("deployment", "create", "--name", "lab", "--file", str(file))
    assert made.code == 0, made.err


def workload(scenario: str, args: Mapping[str, Any], **contexts: Any) -> dict[str, Any]:
    return {
        "scenario": {scenario: dict(args)},
        "contexts": contexts,
        "runner": {"constant": {"times": TIMES, "concurrency": 2}},
    }


def counts(lab: Lab, counted: list[tuple[str, str, str]]) -> dict[str, int]:
    client = admin(lab)
    headers = {"Client-ID": "b3a5d6a2-5f0c-4f6a-9b53-5c3d0f3c4b11"}
    return {
        path: len(
            client.get(path, endpoint_filter={"service_type": kind}, headers=headers).json()[key]
        )
        for kind, path, key in counted
    }


def all_ok(here: Site, *workloads: dict[str, Any]) -> list[dict[str, str]]:
    """Run them on two worker processes; every iteration is ok, and each has a trace."""
    file = here.write(
        "task.yaml",
        yaml.safe_dump(
            {
                "version": 2,
                "title": "All",
                "subtasks": [{"title": str(at), **one} for at, one in enumerate(workloads)],
            }
        ),
    )
    started = here.start("osbench-coord", "run", "--json", str(file), "--workers", "2")
    done = started.finish(within_s=900.0)
    assert done.code == 0, done.out + done.err
    for one in done.result["workloads"]:
        assert one["accounting"]["ok"] == TIMES, one
    printed = here.coord("results", done.result["run_id"], "--csv")
    rows = list(csv.DictReader(io.StringIO(printed.out)))
    assert len({row["trace_id"] for row in rows}) == TIMES * len(workloads)
    return rows


def projects_in(lab: Lab, trace_id: str) -> set[str]:
    """Projects that wrote spans of a trace below the iteration's own root."""
    report = base.get_driver(lab.trace_store, conf={}).get_report(trace_id)
    (root,) = report["children"]
    assert root["info"]["name"] == "osbench.iteration"
    found: set[str] = set()
    stack = list(root["children"])
    while stack:
        span = stack.pop()
        found.add(span["info"]["project"].lower())
        stack += span["children"]
    return found


def test_every_scenario_of_keystone(here: Site, lab: Lab) -> None:
    use(here, lab)
    before = counts(lab, COUNTED[:4])

    rows = all_ok(
        here,
        *(
            workload(f"KeystoneBasic.{name}", args, **(USERS if name in NEED_USERS else {}))
            for name, args in KEYSTONE.items()
        ),
    )

    assert counts(lab, COUNTED[:4]) == before
    for row in rows:
        assert projects_in(lab, row["trace_id"]) >= {"osbench", "keystone"}, row


def test_every_scenario_of_zaqar_glance_and_placement(here: Site, lab: Lab) -> None:
    use(here, lab)
    data = here.write("image.raw", "x" * 100_000)
    image = {"image_location": str(data), "container_format": "bare", "disk_format": "raw"}
    images = {"image_url": str(data), "container_format": "bare", "disk_format": "raw"}
    before = counts(lab, COUNTED)

    rows = all_ok(
        here,
        workload("ZaqarBasic.create_queue", {}, **USERS, zaqar_queues={"messages_per_queue": 2}),
        workload("ZaqarBasic.producer_consumer", {"min_msg_count": 30, "max_msg_count": 30}),
        workload("GlanceImages.list_images", {}, **USERS, images=images, roles=["reader"]),
        *(
            workload(f"GlanceImages.{name}", image)
            for name in (
                "create_and_list_image",
                "create_and_get_image",
                "create_and_delete_image",
                "create_and_download_image",
                "create_and_update_image",
                "create_and_deactivate_image",
            )
        ),
        workload("Authenticate.validate_glance", {"repetitions": 2}),
        workload("Placement.list_resource_providers", {}),
        workload("Placement.create_resource_provider", {}),
        workload("Placement.create_and_delete_resource_provider", {}),
        workload(
            "OpenStack.request",
            {
                "service_type": "keystone",
                "path": "/auth/projects",
                "checks": {"$.links.next": None},
            },
        ),
    )

    assert counts(lab, COUNTED) == before
    expected = ["zaqar"] * 2 + ["glance"] * 8 + ["placement"] * 3 + ["keystone"]
    for row in rows:
        found = projects_in(lab, row["trace_id"])
        assert found >= {"osbench", expected[int(row["workload"])]}, row


def test_every_scenario_of_mistral(here: Site, mistral: Lab) -> None:
    use(here, mistral)
    definition = {"definition": str(here.write("workbook.yaml", WORKBOOK))}
    counted = [*COUNTED[:2], ("workflowv2", "/workbooks", "workbooks")]
    before = counts(mistral, counted)

    all_ok(
        here,
        workload("MistralWorkbooks.create_workbook", definition),
        workload("MistralWorkbooks.create_workbook", {**definition, "do_delete": True}, **USERS),
        workload("MistralWorkbooks.list_workbooks", {}, **USERS, workbooks=definition),
        workload("MistralExecutions.create_execution_from_workbook", definition),
        workload("MistralExecutions.list_executions", {}),
    )

    assert counts(mistral, counted) == before


def test_every_scenario_of_nova(here: Site, nova: Lab) -> None:
    use(here, nova)
    server = {"image": {"name": "lab-image"}, "flavor": {"name": "m1.tiny"}, "nics": "none"}
    counted = [*COUNTED[:2], ("compute", "/servers?all_tenants=1", "servers")]
    before = counts(nova, counted)

    all_ok(
        here,
        workload("NovaServers.boot_server", server),
        workload(
            "NovaServers.boot_and_delete_server",
            server,
            **USERS,
            quotas={"nova": {"instances": 5}, "neutron": {"network": 3}},
        ),
        workload("NovaServers.boot_and_list_server", server),
        workload("NovaServers.list_servers", {}),
        workload("Authenticate.validate_nova", {"repetitions": 1}),
        workload("Authenticate.validate_neutron", {"repetitions": 1}),
    )

    assert counts(nova, counted) == before


def test_every_scenario_of_cinder(here: Site, cinder: Lab) -> None:
    use(here, cinder)
    counted = [*COUNTED[:2], ("block-storage", "/volumes?all_tenants=1", "volumes")]
    before = counts(cinder, counted)

    all_ok(
        here,
        workload("CinderVolumes.create_volume", {"size": 1}),
        workload(
            "CinderVolumes.create_and_delete_volume",
            {"size": {"min": 1, "max": 2}},
            **USERS,
            quotas={"cinder": {"volumes": 7}},
        ),
        workload("CinderVolumes.list_volumes", {}),
        workload("Authenticate.validate_cinder", {"repetitions": 1}),
    )

    assert counts(cinder, counted) == before


def named(lab: Lab) -> dict[str, set[str]]:
    """Names of all users and projects."""
    client = admin(lab)
    return {
        kind: {one["name"] for one in client.get(f"{lab.auth_url}/{kind}").json()[kind]}
        for kind in ("users", "projects")
    }


@contextlib.contextmanager
def bystanders(lab: Lab, names: Iterable[str]) -> Iterator[None]:
    """Users and projects of somebody else, with these names."""
    client = admin(lab)
    made = []
    try:
        for name in sorted(names):
            for kind in ("user", "project"):
                body = {kind: {"name": name, "domain_id": "default"}}
                answer = client.post(f"{lab.auth_url}/{kind}s", json=body).json()
                made.append(f"{lab.auth_url}/{kind}s/{answer[kind]['id']}")
        yield
    finally:
        for url in made:
            client.delete(url, raise_exc=False)


@pytest.mark.parametrize("nth", range(1, REPETITIONS + 1))
def test_kill_in_the_middle_of_create_user(here: Site, lab: Lab, nth: int) -> None:
    use(here, lab)
    task = here.task(
        {
            "scenario": {"KeystoneBasic.create_user": {}},
            "contexts": USERS,
            "runner": {"constant": {"times": 100_000, "concurrency": 4}},
        }
    )

    def of_run() -> dict[str, set[str]]:
        """Names of what the run has made, of users and projects."""
        (run,) = (here.data / "runs").iterdir()
        beginning = f"osb-{run.name}-"
        return {
            kind: {name for name in names if name.startswith(beginning)}
            for kind, names in named(lab).items()
        }

    before = named(lab)
    started = here.start("osbench-coord", "run", task, "--workers", "2")
    started.wait_for(lambda: any((here.data / "runs").glob("*")))
    started.wait_for(lambda: len(of_run()["users"]) > 2 + 2 * nth)

    os.kill(started.process.pid, signal.SIGKILL)
    for process in here.private():
        process.kill()
    started.process.wait()
    left = of_run()
    others = {
        like
        for name in (min(left["users"]), max(left["users"]), min(left["projects"]))
        for like in (f"{name}-1", name[:-1], f"{name[:-8]}aaaaaaaa")
    }
    with bystanders(lab, others):
        done = here.start("osbench-coord", "cleanup", "last").finish(within_s=900.0)
        after = named(lab)

        assert len(left["users"]) > 2 + 2 * nth
        assert len(left["projects"]) == 2
        assert done.code == 0, done.err
        assert of_run() == {"users": others, "projects": others}
        for kind, names in before.items():
            # what other runs have made in the same lab comes and goes
            assert {name for name in names if not re.search("osb-|rally", name)} <= after[kind]
        print(f"killed with {len(left['users'])} users: {done.out.strip()}")


def check(here: Site, lab: Lab, **changes: str) -> tuple[int, dict[str, str]]:
    """`deployment check`: exit code, and result and detail of each line."""
    spec: dict[str, Any] = lab.deployment()
    spec["openstack"] |= changes
    file = here.write("checked.json", json.dumps(spec))
    here.coord("deployment", "create", "--name", "checked", "--file", str(file))
    done = here.coord("deployment", "check", "checked", "--timeout", "30")
    here.coord("deployment", "delete", "checked")
    lines = (line.strip() for line in done.out.splitlines()[2:])
    return done.code, {line.split()[0]: line for line in lines if line}


def test_deployment_check_tells_what_each_service_does_with_the_key(here: Site, lab: Lab) -> None:
    kinds = {"identity", "image", "messaging", "placement"}

    code, right = check(here, lab)
    _, wrong = check(here, lab, profiler_hmac_key="wrong")

    assert code == 0
    for kind in kinds:
        assert "spans after" in right[kind], right
        assert " version " in right[kind]
        assert "clock" in right[kind]
        assert " warning " in wrong[kind], wrong
        assert "no spans" in wrong[kind]


def test_deployment_check_names_the_service_that_is_down(here: Site, lab: Lab) -> None:
    operations.stop(lab, ["placement"])
    try:
        code, found = check(here, lab)
    finally:
        operations.start(lab, ["placement"])

    assert code == 1
    assert " failed " in found["placement"]
    assert "Connection refused" in found["placement"]
    assert " ok " in found["image"]
