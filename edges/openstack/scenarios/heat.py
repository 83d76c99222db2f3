"""Scenarios of Heat's stacks: they create, list, change, snapshot and delete stacks."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import yaml

from osbench.common.files.yaml_documents import load_yaml
from osbench.common.plugin.atomic import ActionTimer, action_timer
from osbench.edges.openstack.scenarios.openstack_scenario import ACCEPTED, openstack, waits
from osbench.edges.openstack.scenarios.resource_scenario import ResourceKind, ResourceScenario

_STACK = ResourceKind(
    service="heat",
    path="stacks",
    key="stack",
    status="stack_status",
    failed="failed",
    reason="stack_status_reason",
)
_SCENARIO: Mapping[str, Any] = {"services": ("heat",), "cleanup": ("heat",)}
#: Keys of which a template has one: its version, in Heat's format or that of CloudFormation.
_VERSIONS = ("heat_template_version", "HeatTemplateFormatVersion", "AWSTemplateFormatVersion")
_NOTHING: Mapping[str, Any] = MappingProxyType({})


def _problem_of(template: str) -> str:
    """Return why a text is not YAML with a version of templates; "" if it is."""
    try:
        found = load_yaml(template)
    except yaml.YAMLError as error:
        return f"is not YAML: {' '.join(str(error).split())}"
    if not isinstance(found, dict) or not any(key in found for key in _VERSIONS):
        return f"is not a template: it has no {' or '.join(_VERSIONS)}"
    return ""


class HeatStacks(ResourceScenario):
    """Rally's `HeatStacks` scenarios: create stacks, act on them and delete them, each awaited.

    Templates are files on the coordinator's host; so are `files`, a list of paths or a mapping of
    names to paths.
    """

    FILES: ClassVar[tuple[str, ...]] = (
        "template_path",
        "updated_template_path",
        "files",
        "updated_files",
    )

    @classmethod
    def check_files(cls, texts: Mapping[str, Any], args: Mapping[str, Any]) -> list[str]:
        """Return a message for each template file that is not a template.

        `texts` has the contents of files by argument, `args` the paths, for the messages.
        """
        found = []
        for name in cls.FILES[:2]:
            said = _problem_of(texts[name]) if name in texts else ""
            found += [f"argument {name}: {args[name]}: {said}"] if said else []
        return found

    # the arguments of scenarios that create a stack

    @action_timer("heat.create_stack")
    def _create(
        self,
        template_path: str,
        parameters: dict[str, Any] | None = None,
        files: dict[str, str] | list[str] | None = None,
        environment: dict[str, Any] | None = None,
    ) -> str:
        """Create a stack and await it; return its path, NAME/ID. Raises NotReady.

        Template and files are contents here, not paths.
        """
        name = self.new_name()
        wanted = _body(name, template_path, parameters, files, environment)
        with ActionTimer(self, ACCEPTED):
            made = self.cloud.document("POST", "heat", _STACK.path, json=wanted)
        stack = f"{name}/{made['stack']['id']}"
        self.await_status(_STACK, stack, "CREATE_COMPLETE", wait="heat_stack_create")
        return stack

    # scenarios

    @openstack("HeatStacks.create_and_delete_stack", takes=_create, **_SCENARIO)
    @waits("heat_stack_create", "heat_stack_delete")
    def create_and_delete_stack(self, **stack_kwargs: Any) -> None:
        """Create a stack and delete it, waiting for the end of each."""
        self._delete(self._create(**stack_kwargs))

    @openstack("HeatStacks.create_and_list_stack", takes=_create, **_SCENARIO)
    @waits("heat_stack_create")
    def create_and_list_stack(self, **stack_kwargs: Any) -> None:
        """Create a stack, list all, and check that it is among them."""
        stack = self._create(**stack_kwargs)
        ids = {one["id"] for one in self._list()}
        self.checked(
            stack.rpartition("/")[2] in ids, "the stack that was created is not in the list"
        )

    @openstack("HeatStacks.create_check_delete_stack", takes=_create, **_SCENARIO)
    @waits("heat_stack_create", "heat_stack_check", "heat_stack_delete")
    def create_check_delete_stack(self, **stack_kwargs: Any) -> None:
        """Create a stack, request a check of it by Heat, and delete it."""
        stack = self._create(**stack_kwargs)
        self._act_on(stack, "check")
        self._delete(stack)

    @openstack("HeatStacks.create_suspend_resume_delete_stack", takes=_create, **_SCENARIO)
    @waits("heat_stack_create", "heat_stack_suspend", "heat_stack_resume", "heat_stack_delete")
    def create_suspend_resume_delete_stack(self, **stack_kwargs: Any) -> None:
        """Create a stack, suspend, resume and delete it."""
        stack = self._create(**stack_kwargs)
        self._act_on(stack, "suspend")
        self._act_on(stack, "resume")
        self._delete(stack)

    @openstack("HeatStacks.create_snapshot_restore_delete_stack", takes=_create, **_SCENARIO)
    @waits("heat_stack_create", "heat_stack_snapshot", "heat_stack_restore", "heat_stack_delete")
    def create_snapshot_restore_delete_stack(self, **stack_kwargs: Any) -> None:
        """Create a stack, make a snapshot of it, restore and delete it."""
        stack = self._create(**stack_kwargs)
        path = f"{_STACK.path}/{stack}/snapshots"
        with ActionTimer(self, "heat.snapshot_stack"):
            with ActionTimer(self, ACCEPTED):
                snapshot = self.cloud.document("POST", "heat", path, json={})
            self.await_status(_STACK, stack, "SNAPSHOT_COMPLETE", wait="heat_stack_snapshot")
        with ActionTimer(self, "heat.restore_stack"):
            with ActionTimer(self, ACCEPTED):
                self.cloud.request("POST", "heat", f"{path}/{snapshot['id']}/restore")
            self.await_status(_STACK, stack, "RESTORE_COMPLETE", wait="heat_stack_restore")
        self._delete(stack)

    @openstack("HeatStacks.create_stack_and_list_output", takes=_create, **_SCENARIO)
    @waits("heat_stack_create")
    def create_stack_and_list_output(self, **stack_kwargs: Any) -> None:
        """Create a stack, wait until it is complete, and list its outputs."""
        stack = self._create(**stack_kwargs)
        with ActionTimer(self, "heat.list_output"):
            self.cloud.document("GET", "heat", f"{_STACK.path}/{stack}/outputs")

    @openstack("HeatStacks.create_stack_and_show_output", takes=_create, **_SCENARIO)
    @waits("heat_stack_create")
    def create_stack_and_show_output(self, output_key: str, **stack_kwargs: Any) -> None:
        """Create a stack, wait until it is complete, and get its output `output_key`."""
        stack = self._create(**stack_kwargs)
        with ActionTimer(self, "heat.show_output"):
            self.cloud.document("GET", "heat", f"{_STACK.path}/{stack}/outputs/{output_key}")

    @openstack("HeatStacks.create_stack_and_list_output_via_API", takes=_create, **_SCENARIO)
    @waits("heat_stack_create")
    def create_stack_and_list_output_via_API(self, **stack_kwargs: Any) -> None:
        """Create a stack, wait until it is complete, and get it with its outputs."""
        self._outputs_of("list", self._create(**stack_kwargs))

    @openstack("HeatStacks.create_stack_and_show_output_via_API", takes=_create, **_SCENARIO)
    @waits("heat_stack_create")
    def create_stack_and_show_output_via_API(self, output_key: str, **stack_kwargs: Any) -> None:
        """Create a stack, wait until it is complete, get it; check that it has `output_key`."""
        found = self._outputs_of("show", self._create(**stack_kwargs))
        self.checked(output_key in found, f"the stack has no output {output_key}")

    @openstack("HeatStacks.list_stacks_and_resources", services=("heat",))
    def list_stacks_and_resources(self) -> None:
        """List all stacks, and the resources of each."""
        self._list_with("resources")

    @openstack("HeatStacks.list_stacks_and_events", services=("heat",))
    def list_stacks_and_events(self) -> None:
        """List all stacks, and the events of each."""
        self._list_with("events")

    @openstack("HeatStacks.create_update_delete_stack", takes=_create, **_SCENARIO)
    @waits("heat_stack_create", "heat_stack_update", "heat_stack_delete")
    def create_update_delete_stack(
        self,
        updated_template_path: str,
        updated_parameters: dict[str, Any] | None = None,
        updated_files: dict[str, str] | list[str] | None = None,
        updated_environment: dict[str, Any] | None = None,
        **stack_kwargs: Any,
    ) -> None:
        """Create a stack, update it by another template, and delete it.

        Parameters, files and environment stay as at the creation, unless others are given.
        """
        stack = self._create(**stack_kwargs)
        wanted = _body(
            stack.partition("/")[0],
            updated_template_path,
            updated_parameters or stack_kwargs.get("parameters"),
            updated_files or stack_kwargs.get("files"),
            updated_environment or stack_kwargs.get("environment"),
        )
        with ActionTimer(self, "heat.update_stack"):
            with ActionTimer(self, ACCEPTED):
                self.cloud.request("PUT", "heat", f"{_STACK.path}/{stack}", json=wanted)
            self.await_status(_STACK, stack, "UPDATE_COMPLETE", wait="heat_stack_update")
        self._delete(stack)

    # atomic actions

    @action_timer("heat.list_stacks")
    def _list(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.cloud.document("GET", "heat", _STACK.path)["stacks"]
        return found

    def _list_with(self, what: str) -> None:
        for stack in self._list():
            with ActionTimer(self, f"heat.list_{what}"):
                path = f"{_STACK.path}/{stack['stack_name']}/{stack['id']}/{what}"
                self.cloud.document("GET", "heat", path)

    def _outputs_of(self, verb: str, stack: str) -> set[str]:
        with ActionTimer(self, f"heat.{verb}_output_via_API"):
            outputs = self.show(_STACK, stack).get("outputs") or ()
        return {one["output_key"] for one in outputs}

    def _act_on(self, stack: str, action: str) -> None:
        with ActionTimer(self, f"heat.{action}_stack"):
            with ActionTimer(self, ACCEPTED):
                path = f"{_STACK.path}/{stack}/actions"
                self.cloud.request("POST", "heat", path, json={action: None})
            wait = f"heat_stack_{action}"
            self.await_status(_STACK, stack, f"{action.upper()}_COMPLETE", wait=wait)

    @action_timer("heat.delete_stack")
    def _delete(self, stack: str) -> None:
        with ActionTimer(self, ACCEPTED):
            self.delete(_STACK, stack)
        # Heat knows stacks by their ids when they are gone
        self.await_end(_STACK, stack, wait="heat_stack_delete", gone=("DELETE_COMPLETE",))


def _body(
    name: str,
    template: str,
    parameters: Mapping[str, Any] | None,
    files: Any,
    environment: Mapping[str, Any] | None,
) -> dict[str, Any]:
    return {
        "stack_name": name,
        "disable_rollback": True,
        "template": template,
        "parameters": dict(parameters or _NOTHING),
        "files": dict(files or _NOTHING),
        "environment": dict(environment or _NOTHING),
    }
