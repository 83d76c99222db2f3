"""Scenarios of Heat and Swift: requests, actions, and failures."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from helpers.cloud_workload import PLUGINS, Workload, sent_by, timed
from helpers.fake_cloud import ADMIN, fake_cloud
from osbench.common.errors import ContextError
from osbench.common.plugin.context import ContextEnvironment, with_text
from osbench.edges.openstack.common.request_errors import NotReady
from osbench.edges.openstack.scenarios.heat import HeatStacks

TEMPLATE = "heat_template_version: 2018-08-31\nresources: {}\n"
CREATE, DELETE = "POST /heat/stacks", "DELETE /heat/stacks/*/*"
ACT = "POST /heat/stacks/*/*/actions"
SNAPSHOTS = "POST /heat/stacks/*/*/snapshots"
BOX = "/swift/*"


@pytest.fixture
def cloud(virtual_time):
    with fake_cloud() as server:
        server.absent.clear()
        yield server


@pytest.mark.parametrize(
    ("name", "args", "requests", "names"),
    [
        ("create_and_delete_stack", {}, [CREATE, DELETE], ["create_stack", "delete_stack"]),
        (
            "create_and_list_stack",
            {},
            [CREATE, "GET /heat/stacks"],
            ["create_stack", "list_stacks"],
        ),
        (
            "create_check_delete_stack",
            {},
            [CREATE, ACT, DELETE],
            ["create_stack", "check_stack", "delete_stack"],
        ),
        (
            "create_suspend_resume_delete_stack",
            {},
            [CREATE, ACT, ACT, DELETE],
            ["create_stack", "suspend_stack", "resume_stack", "delete_stack"],
        ),
        (
            "create_snapshot_restore_delete_stack",
            {},
            [CREATE, SNAPSHOTS, f"{SNAPSHOTS}/s1/restore", DELETE],
            ["create_stack", "snapshot_stack", "restore_stack", "delete_stack"],
        ),
        (
            "create_update_delete_stack",
            {"updated_template_path": f"{TEMPLATE}# other"},
            [CREATE, "PUT /heat/stacks/*/*", DELETE],
            ["create_stack", "update_stack", "delete_stack"],
        ),
        (
            "create_stack_and_list_output",
            {},
            [CREATE, "GET /heat/stacks/*/*/outputs"],
            ["create_stack", "list_output"],
        ),
        (
            "create_stack_and_show_output",
            {"output_key": "address"},
            [CREATE, "GET /heat/stacks/*/*/outputs/address"],
            ["create_stack", "show_output"],
        ),
        (
            "create_stack_and_list_output_via_API",
            {},
            [CREATE, "GET /heat/stacks/*/*"],
            ["create_stack", "list_output_via_API"],
        ),
        (
            "create_stack_and_show_output_via_API",
            {"output_key": "address"},
            [CREATE, "GET /heat/stacks/*/*"],
            ["create_stack", "show_output_via_API"],
        ),
    ],
)
def test_requests_and_actions_of_stacks(cloud, name, args, requests, names):
    # a worker gets the text of the file
    workload = Workload(cloud, f"HeatStacks.{name}", {"template_path": TEMPLATE, **args})

    assert sent_by(workload, cloud) == requests
    assert timed(workload) == [f"heat.{one}" for one in names]


@pytest.mark.parametrize("below", ["resources", "events"])
def test_what_each_stack_has_is_listed(cloud, below):
    for name in ("one", "two"):
        cloud.make("stacks", {"name": name, "stack_name": name, "stack_status": "CREATE_COMPLETE"})
    workload = Workload(cloud, f"HeatStacks.list_stacks_and_{below}")

    found = sent_by(workload, cloud)

    lists = [f"GET /heat/stacks/{name}/*/{below}" for name in ("one", "two")]
    assert found == ["GET /heat/stacks", *lists]
    assert timed(workload) == ["heat.list_stacks", f"heat.list_{below}"]


def test_an_output_that_a_stack_lacks_fails_the_iteration(cloud):
    args = {"template_path": TEMPLATE, "output_key": "absent"}
    workload = Workload(cloud, "HeatStacks.create_stack_and_show_output_via_API", args)

    with pytest.raises(AssertionError, match="the stack has no output absent"):
        workload.run()


def test_an_update_has_what_it_does_not_change(cloud):
    args = {
        "template_path": TEMPLATE,
        "updated_template_path": f"{TEMPLATE}# other",
        "parameters": {"a": 1},
        "files": {"x.yaml": "text"},
        "updated_environment": {"parameters": {}},
    }
    workload = Workload(cloud, "HeatStacks.create_update_delete_stack", args)
    cloud.faults.append(["DELETE", 500, 1])

    with pytest.raises(Exception, match="500"):
        workload.run()

    (stack,) = cloud.objects["stacks"].values()
    assert (stack["template"], stack["parameters"]) == (f"{TEMPLATE}# other", {"a": 1})
    assert (stack["files"], stack["environment"]) == ({"x.yaml": "text"}, {"parameters": {}})


def test_a_stack_that_fails_is_told_with_its_reason(cloud):
    cloud.stacks_fail = "CREATE"
    workload = Workload(cloud, "HeatStacks.create_and_delete_stack", {"template_path": TEMPLATE})

    with pytest.raises(
        NotReady, match=r"^the stack is in CREATE_FAILED: Resource CREATE failed: no valid host$"
    ):
        workload.run()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, None),
        ({"files": {"a": "stack.yaml"}}, None),
        (
            {"template_path": "absent.yaml"},
            r"argument template_path: cannot read absent.yaml: No such file",
        ),
        ({"template_path": "bad.yaml"}, r"template_path: bad.yaml: is not YAML: "),
        (
            {"template_path": "other.yaml"},
            r"template_path: other.yaml: is not a template: it has no heat_template_version or",
        ),
        ({"files": {"a": "absent.yaml"}}, r"argument files: cannot read absent.yaml: No such file"),
    ],
)
def test_templates_are_checked_before_a_load(given, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in (("stack.yaml", TEMPLATE), ("bad.yaml", "{a"), ("other.yaml", "a: 1")):
        Path(name).write_text(text)
    plugin = PLUGINS.scenario("HeatStacks.create_and_delete_stack@native")

    found = plugin.check_args({"template_path": "stack.yaml", **given})

    assert len(found) == (said is not None), found
    assert all(said in one for one in found)


def test_files_of_a_template_are_sent_as_texts(tmp_path):
    file = tmp_path / "nested.yaml"
    file.write_text(TEMPLATE)
    environment = ContextEnvironment(run="r")
    args: dict[str, Any] = {"files": {"nested.yaml": str(file)}, "parameters": {"a": 1}}

    found, _ = with_text(HeatStacks.FILES, args, environment)

    assert found == {"files": {"nested.yaml": TEMPLATE}, "parameters": {"a": 1}}
    listed, _ = with_text(HeatStacks.FILES, {"files": [str(file)]}, environment)
    assert listed == {"files": {str(file): TEMPLATE}}
    file.write_bytes(b"\xff")
    with pytest.raises(ContextError, match=r"nested\.yaml is not text in UTF-8"):
        with_text(HeatStacks.FILES, args, dataclasses.replace(environment))


# Swift


@pytest.mark.parametrize(
    ("name", "requests", "names"),
    [
        (
            "list_objects",
            [f"GET {BOX}?format=json", f"GET {BOX}?format=json&marker=*"],
            ["list_objects"],
        ),
        (
            "delete_all",
            [f"DELETE {BOX}/*", f"DELETE {BOX}/*", f"DELETE {BOX}"],
            ["delete_object", "delete_container"],
        ),
        ("download_object", [f"GET {BOX}/*", f"GET {BOX}/*"], ["download_object"]),
    ],
)
def test_requests_and_actions_of_objects(cloud, name, requests, names):
    args = {"objects_per_container": 2, "object_size": 5000, "public": True}
    full = f"SwiftObjects.create_container_and_object_then_{name}"
    workload = Workload(cloud, full, args)

    sent = sent_by(workload, cloud)

    assert sent == [f"PUT {BOX}", f"PUT {BOX}/*", f"PUT {BOX}/*", *requests]
    assert timed(workload) == [
        f"swift.{one}" for one in ("create_container", "upload_object", *names)
    ]
    assert cloud.seen[0][2]["x-container-read"] == ".r:*,.rlistings"
    assert cloud.seen[1][2]["content-length"] == "5000"


def test_objects_of_a_context_are_listed_and_downloaded(cloud):
    project = cloud.find("projects", ADMIN)["id"]
    cloud.containers[project] = {"b c": {"x/y": b"12", "z": b"3"}, "a": {}}
    cloud.store_page = 1

    listing = sent_by(Workload(cloud, "SwiftObjects.list_objects_in_containers"), cloud)
    workload = Workload(cloud, "SwiftObjects.list_and_download_objects_in_containers")
    loading = sent_by(workload, cloud)

    pages = ["GET /swift?format=json" + more for more in ("", "&marker=a", "&marker=b+c")]
    assert listing[:3] == pages
    assert listing[3:] == [
        "GET /swift/a?format=json",
        *(f"GET /swift/b%20c?format=json{more}" for more in ("", "&marker=x%2Fy", "&marker=z")),
    ]
    assert loading[-2:] == ["GET /swift/b%20c/x%2Fy", "GET /swift/b%20c/z"]
    names = ["list_containers", "list_objects", "download_object"]
    assert timed(workload) == [f"swift.{one}" for one in names]


def test_an_object_that_comes_back_shorter_fails_its_iteration(cloud, monkeypatch):
    name = "SwiftObjects.create_container_and_object_then_download_object"
    workload = Workload(cloud, name, {"object_size": 10})
    project = cloud.find("projects", ADMIN)["id"]
    monkeypatch.setattr(workload.plugin.cls, "_upload", lambda _, box, data: short(cloud, box))

    def short(cloud, box):
        cloud.containers[project][box]["o"] = b"123"
        return "o"

    with pytest.raises(AssertionError, match="an object of 10 bytes came back with 3"):
        workload.run()
