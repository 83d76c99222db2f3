"""The jobs of deploy/zuul, deploy/github and deploy/gitlab fit `osbench-coord gate`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

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
