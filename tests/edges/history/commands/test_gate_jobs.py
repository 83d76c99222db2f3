"""The jobs of deploy/zuul, deploy/github and deploy/gitlab fit `osbench-coord gate`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from osbench.coordinator.front.cli.commands.run import run
from osbench.edges.history.commands.gate import gate

DEPLOY = Path(__file__).parents[4] / "deploy"
PLAYBOOKS = ("pre.yaml", "run.yaml", "post.yaml")


def read(*path: str) -> Any:
    """A YAML file of deploy."""
    return yaml.safe_load(DEPLOY.joinpath(*path).read_text("utf-8"))


def options(text: str) -> set[str]:
    """The long options in a text."""
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))


def test_the_zuul_job_has_its_playbooks_and_the_values_that_they_read() -> None:
    (job,) = (one["job"] for one in read("zuul", "jobs.yaml"))

    assert {Path(job[key]).name for key in ("pre-run", "run", "post-run")} == set(PLAYBOOKS)
    text = "".join(DEPLOY.joinpath("zuul", name).read_text("utf-8") for name in PLAYBOOKS)
    registered = set(re.findall(r"register: (\w+)", text))
    given = {*job["vars"], "osbench_task", "osbench_serve", *registered}
    assert set(re.findall(r"\bosbench_\w+", text)) == given
    described = set(re.findall(r"jobvar:: (\w+)", job["description"]))
    assert described == {*job["vars"], "osbench_task", "osbench_serve"} - {"osbench_folder"}


def tasks_of(playbook: str) -> str:
    """A playbook of deploy/zuul with the files of tasks that it includes."""
    text = DEPLOY.joinpath("zuul", playbook).read_text("utf-8")
    included = re.findall(r"include_tasks: (?:tasks/)?([\w-]+\.yaml)", text)
    return text + "".join(tasks_of(f"tasks/{name}") for name in included)


@pytest.mark.parametrize("name", ["osbench-devstack", "osbench-grenade"])
def test_the_jobs_of_clouds_have_the_values_that_their_playbooks_read(name: str) -> None:
    (job,) = (
        one["job"] for one in read("zuul", "jobs-of-clouds.yaml") if one["job"]["name"] == name
    )

    text = "".join(tasks_of(Path(job[key]).name) for key in ("run", "post-run"))
    registered = set(re.findall(r"register: (\w+)", text))
    own = {key for key in job["vars"] if key.startswith("osbench_")}
    assert set(re.findall(r"\bosbench_\w+", text)) == {*own, "osbench_task", *registered}
    described = set(re.findall(r"jobvar:: (\w+)", job["description"]))
    internal = {"folder", "openrc", "profiler_key", "trace_store", "upgrade"}
    assert described == {*own, "osbench_task"} - {f"osbench_{one}" for one in internal}
    # the services of the cloud and the record have the same key
    localrc = (
        job["vars"].get("devstack_localrc") or job["vars"]["grenade_devstack_localrc"]["shared"]
    )
    assert localrc["OSPROFILER_HMAC_KEYS"] == job["vars"]["osbench_profiler_key"]


@pytest.mark.parametrize(
    ("playbook", "command"), [("devstack-run.yaml", run), ("grenade-run.yaml", gate)]
)
def test_jobs_of_clouds_give_options_that_commands_have(playbook: str, command: Any) -> None:
    (call,) = re.findall(r"osbench-coord', '.*?osbench_arguments", tasks_of(playbook), re.DOTALL)
    known = options(CliRunner().invoke(command, ["--help"]).output)

    assert "--deployment" in options(call)
    assert options(call) <= known


def test_the_key_of_the_profiler_is_no_argument_of_a_process() -> None:
    text = DEPLOY.joinpath("zuul", "tasks", "set-up-osbench.yaml").read_text("utf-8")
    commands, _, environment = text.partition("environment:")

    assert "osbench_profiler_key" not in commands
    assert 'OSPROFILER_HMAC_KEY: "{{ osbench_profiler_key }}"' in environment


@pytest.mark.parametrize(
    "path", [("zuul", "run.yaml"), ("github", "action.yml"), ("gitlab", "osbench-gate.yml")]
)
def test_jobs_give_options_that_gate_has(path: tuple[str, ...]) -> None:
    text = DEPLOY.joinpath(*path).read_text("utf-8")
    known = options(CliRunner().invoke(gate, ["--help"]).output)

    assert {"--serve", "--setup", "--parent", "--pairs", "--output"} <= options(text) <= known


def test_the_action_describes_each_input_and_uses_it() -> None:
    action = read("github", "action.yml")
    text = DEPLOY.joinpath("github", "action.yml").read_text("utf-8")

    assert set(re.findall(r"\$\{\{ inputs\.(\w+) }}", text)) == set(action["inputs"])
    assert all(one["description"] for one in action["inputs"].values())
    # an input in the text of a script would let its author run commands
    assert all("inputs." not in step.get("run", "") for step in action["runs"]["steps"])
