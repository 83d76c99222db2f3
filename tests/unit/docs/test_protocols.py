"""Protocols without a client behave as the page on protocols says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from helpers.readme import text
from osbench.common.errors import TaskError
from osbench.common.plugin.plugins import Plugins
from osbench.coordinator.task.taskfile import load

PAGE = "docs/protocols.md"


def load_scenario(folder: Path, scenario: dict[str, Any], **more: Any) -> None:
    """Check a task of one scenario; `more` are further keys of its workload."""
    task = {"version": 2, "title": "t", "subtasks": [{"title": "t", "scenario": scenario, **more}]}
    file = folder / "task.yaml"
    file.write_text(yaml.safe_dump(task), "utf-8")
    load(str(file), args={}, plugins=Plugins([]))


def described(word: str) -> Any:
    """The only block of YAML of the page with a word."""
    pieces = re.findall(r"^```yaml\n(.*?)^```$", text(PAGE), re.M | re.S)
    (piece,) = (piece for piece in pieces if word in piece)
    return yaml.safe_load(piece)


def flow(query: str | None = None) -> dict[str, Any]:
    """The flow with the GraphQL step of the page."""
    steps = described("graphql")
    steps[0]["json"]["query"] = query or steps[0]["json"]["query"]
    return {"HttpFlow.run": {"base": "http://127.0.0.1:8080", "steps": steps}}


def test_the_graphql_step_is_valid(tmp_path: Path) -> None:
    load_scenario(tmp_path, flow())


def test_the_query_and_the_keys_of_connections_are_valid(tmp_path: Path) -> None:
    http = described("max_requests")["http"]
    scenario = {"HttpFlow.run": {"base": "http://127.0.0.1:8080", "steps": described("QUERY")}}

    load_scenario(tmp_path, scenario, http=http)


def test_a_brace_without_a_space_reads_as_a_placeholder(tmp_path: Path) -> None:
    assert "`{name}` reads as a placeholder" in text(PAGE)

    with pytest.raises(TaskError, match=r"\{name\} is not a placeholder"):
        load_scenario(tmp_path, flow("{ item(id: 1) {name} }"))


@pytest.mark.parametrize("scheme", ["ws", "grpc"])
def test_addresses_of_other_protocols_are_refused(tmp_path: Path, scheme: str) -> None:
    assert f"`{scheme}://` is refused" in text(PAGE)

    with pytest.raises(TaskError, match="url must begin with http:// or https://"):
        load_scenario(
            tmp_path,
            {"HttpRequests.check_request": {"url": f"{scheme}://127.0.0.1:8080/", "method": "GET"}},
        )
