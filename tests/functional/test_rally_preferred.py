"""Who is preferred, and plug-in files of Rally's, in a real run; results say whose plug-ins ran."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from helpers.runs import Site, checked, site

pytest.importorskip("rally_openstack", reason="the extra osbench[rally] is not installed")

pytestmark = pytest.mark.functional

PLUGIN = '''
from beside import PAUSE_S
from rally.task import scenario


@scenario.configure(name="Teams.own")
class Own(scenario.Scenario):
    """A scenario that a team has written for Rally."""

    def run(self, pause=PAUSE_S):
        self.sleep_between(pause)
'''


@pytest.fixture
def here() -> Iterator[Site]:
    with site() as found:
        found.rally = True
        yield found


def test_results_say_whose_plugins_ran_and_hold_what_was_picked(here: Site, tmp_path: Path) -> None:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "beside.py").write_text("PAUSE_S = 0.01\n")
    (tmp_path / "plugins" / "own.py").write_text(PLUGIN)
    runner = {"constant": {"times": 4, "concurrency": 2, "timeout": 20}}
    workloads = [
        {
            "scenario": {"Dummy.dummy": {}},
            "runner": runner,
            "contexts": {"dummy_context": {}},
            "sla": {"failure_rate": {"max": 0}, "throughput": {"min": 0.001}},
        },
        {"scenario": {"Dummy.dummy@native": {}}, "runner": runner},
        {"scenario": {"Teams.own": {}}, "runner": runner},
    ]
    task = tmp_path / "task.yaml"
    document = {
        "version": 2,
        "title": "Both",
        "description": "Ours and theirs.",
        "tags": ["nightly"],
        "subtasks": [
            {
                "title": "picked",
                "description": "What is run.",
                "tags": ["smoke"],
                "workloads": workloads,
            },
            {"title": "left out", "scenario": {"Dummy.failure": {}}},
        ],
    }
    task.write_text(yaml.safe_dump(document))
    options = ("--prefer", "rally", "--subtask", "picked", "--plugin-path")

    done = here.run(str(task), "--workers", "1", *options, str(tmp_path / "plugins"))

    assert done.code == 0, done.err
    first, second, third = done.result["workloads"]
    assert [checked(one)["ok"] for one in (first, second, third)] == [4, 4, 4]
    assert [one["source"] for one in (first, second, third)] == ["rally", "native", "rally"]
    assert [(one["name"], one["source"]) for one in first["contexts"]] == [
        ("dummy_context@default", "rally")
    ]
    assert [row["source"] for row in first["sla"]] == ["rally", "native"]
    assert (done.result["description"], done.result["tags"]) == ("Ours and theirs.", ["nightly"])
    assert (first["subtask_description"], first["subtask_tags"]) == ("What is run.", ["smoke"])
    shown = here.coord("results", done.result["run_id"])
    assert "0. Dummy.dummy (Rally's)" in shown.out
    assert "1. Dummy.dummy@native  constant" in shown.out
