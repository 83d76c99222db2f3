"""Scenarios of Mistral's workbooks and executions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

import yaml

from osbench.common.files.yaml_documents import load_yaml
from osbench.common.plugin.atomic import ActionTimer, action_timer
from osbench.edges.openstack.common.request_errors import NotReady
from osbench.edges.openstack.scenarios.openstack_scenario import (
    ACCEPTED,
    OpenStackScenario,
    openstack,
    waits,
    without_none,
)

_TEXT = {"Content-Type": "text/plain", "Accept": "*/*"}
_CLEANED = ("mistral",)


def _problem_of(definition: str, workflow: Any) -> str:
    """Return why a text does not define a workbook with `workflow`, None or "" for any; else ""."""
    try:
        found = load_yaml(definition)
    except yaml.YAMLError as error:
        return f"is not YAML: {' '.join(str(error).split())}"
    workflows = found.get("workflows") if isinstance(found, dict) else None
    if not isinstance(workflows, dict) or not workflows:
        return "is not a workbook with workflows"
    if workflow and workflow not in workflows:
        return f"has no workflow {workflow!r}, only {', '.join(map(str, workflows))}"
    return ""


class Mistral(OpenStackScenario):
    """Base of the scenarios of Mistral: checks files, creates and deletes workbooks.

    Files are read on the coordinator's host.
    """

    FILES: ClassVar[tuple[str, ...]] = ("definition", "wf_input", "params")

    @classmethod
    def check_files(cls, texts: Mapping[str, Any], args: Mapping[str, Any]) -> list[str]:
        """Return a message for each file that is malformed or lacks the workflow; empty if none.

        `definition` must be a workbook, `wf_input` and `params` JSON. `texts` has the contents of
        files by argument, `args` their paths.
        """
        found = []
        if "definition" in texts:
            said = _problem_of(texts["definition"], args.get("workflow_name"))
            found += [f"argument definition: {args['definition']}: {said}"] if said else []
        for name in ("wf_input", "params"):
            try:
                json.loads(texts.get(name, "{}"))
            except ValueError as error:
                found.append(f"argument {name}: {args[name]}: is not JSON: {error}")
        return found

    @action_timer("mistral.create_workbook")
    def _create_workbook(self, definition: str) -> dict[str, Any]:
        workbook: dict[str, Any] = yaml.safe_load(definition)
        workbook["name"] = self.new_name()
        text = yaml.safe_dump(workbook)
        self.cloud.request("POST", "mistral", "workbooks", data=text.encode(), headers=_TEXT)
        return workbook

    @action_timer("mistral.delete_workbook")
    def _delete_workbook(self, name: str) -> None:
        self.cloud.request("DELETE", "mistral", f"workbooks/{name}")


class MistralWorkbooks(Mistral):
    """Rally's `MistralWorkbooks` scenarios: list and create workbooks."""

    @openstack("MistralWorkbooks.list_workbooks", services=("mistral",))
    def list_workbooks(self) -> None:
        """List all workbooks."""
        with ActionTimer(self, "mistral.list_workbooks"):
            self.cloud.document("GET", "mistral", "workbooks")

    @openstack("MistralWorkbooks.create_workbook", services=("mistral",), cleanup=_CLEANED)
    def create_workbook(self, definition: str, do_delete: bool = False) -> None:
        """Create a workbook from a file, under a unique name, and delete it if `do_delete`."""
        workbook = self._create_workbook(definition)
        if do_delete:
            self._delete_workbook(workbook["name"])


class MistralExecutions(Mistral):
    """Rally's `MistralExecutions` scenarios: list executions, and run workflows of workbooks."""

    @openstack("MistralExecutions.list_executions", services=("mistral",))
    def list_executions(
        self,
        marker: str = "",
        limit: int | None = None,
        sort_keys: str = "",
        sort_dirs: str = "",
    ) -> None:
        """List executions: one page, of `limit` after `marker`, if these are given."""
        asked = {"marker": marker, "limit": limit, "sort_keys": sort_keys, "sort_dirs": sort_dirs}
        params = {key: value for key, value in asked.items() if value not in (None, "")}
        with ActionTimer(self, "mistral.list_executions"):
            self.cloud.document("GET", "mistral", "executions", params=params)

    @openstack(
        "MistralExecutions.create_execution_from_workbook",
        services=("mistral",),
        cleanup=_CLEANED,
    )
    @waits("mistral_execution")
    def create_execution_from_workbook(
        self,
        definition: str,
        workflow_name: str | None = None,
        wf_input: str | None = None,
        params: str | None = None,
        do_delete: bool = False,
    ) -> None:
        """Create a workbook from a file, run a workflow of it, and wait until it succeeds.

        `definition`, `wf_input` and `params` are files on the coordinator's host. Without
        `workflow_name` the first workflow runs. If `do_delete`, workbook and execution are deleted.
        """
        workbook = self._create_workbook(definition)
        workflow = workflow_name or next(iter(workbook["workflows"]))
        execution = self._execute(f"{workbook['name']}.{workflow}", wf_input, params)
        if do_delete:
            self._delete_workbook(workbook["name"])
            with ActionTimer(self, "mistral.delete_execution"):
                self.cloud.request("DELETE", "mistral", f"executions/{execution}")

    @action_timer("mistral.create_execution")
    def _execute(self, workflow: str, wf_input: str | None, params: str | None) -> str:
        given = json.loads(params) if params else {}
        wanted = without_none(
            {
                "workflow_name": workflow,
                "input": wf_input,
                "params": json.dumps(given) if given else None,
                # identifies the iteration in Mistral's own lists
                "description": self.new_name(),
            }
        )
        with ActionTimer(self, ACCEPTED):
            made = self.cloud.document("POST", "mistral", "executions", json=wanted)
        identity = str(made["id"])

        def look() -> str | None:
            path = f"executions/{identity}"
            found = self.cloud.document("GET", "mistral", path, traced=False)
            if found["state"] == "ERROR":
                raise NotReady(
                    f"the execution failed: {found.get('state_info') or 'see the log of Mistral'}"
                )
            return identity if found["state"] == "SUCCESS" else None

        return self.wait_until("the execution", "mistral_execution", look)
