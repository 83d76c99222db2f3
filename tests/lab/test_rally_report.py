"""Rally reads our results: what it counts, times and judges from them is what ours say."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from helpers.commands import coord
from helpers.lab.rally_command import Rally, workloads
from helpers.lab.rally_judge import RallyJudge

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]

CHARTS = '{"additive": [{"title": "Load", "chart_plugin": "Lines", "data": [["one", 1]]}]}'

#: Failures, nested actions, charts of all kinds, contexts, hooks that work and that do not.
TASK: Mapping[str, Any] = {
    "version": 2,
    "title": "For Rally",
    "tags": ["nightly"],
    "subtasks": [
        {
            "title": "with actions and failures",
            "scenario": {
                "Dummy.failure": {"sleep": 0.01, "from_iteration": 5, "to_iteration": 15, "each": 2}
            },
            "runner": {"constant": {"times": 30, "concurrency": 3}},
            "contexts": {"dummy_context": {}},
            "sla": {"failure_rate": {"max": 50}, "max_avg_duration": 5},
            "hooks": [
                {
                    "action": {"sys_call": f"echo '{CHARTS}'"},
                    "trigger": {"periodic": {"unit": "iteration", "step": 10}},
                    "description": "charts",
                },
                {
                    "action": {"sys_call": "false"},
                    "trigger": {"event": {"unit": "iteration", "at": [1]}},
                },
                {
                    "action": {"sys_call": "no-such-command"},
                    "trigger": {"event": {"unit": "time", "at": [0]}},
                },
            ],
        },
        {
            "title": "nested",
            "scenario": {"Dummy.dummy": {"sleep": 0.01}},
            "runner": {"rps": {"times": 20, "rps": 50}},
            "sla": {"max_avg_duration": 0.001},
        },
        {
            "title": "failing in actions",
            "scenario": {"Dummy.dummy_random_fail_in_atomic": {"exception_probability": 0.3}},
            "runner": {"constant": {"times": 60, "concurrency": 8}},
            "sla": {"failure_rate": {"max": 99}},
        },
        {
            "title": "charts",
            "scenario": {"Dummy.dummy_output": {}},
            "runner": {"constant": {"times": 40, "concurrency": 8}},
        },
        {
            "title": "timeouts",
            "scenario": {"Dummy.dummy": {"sleep": 30}},
            "runner": {"constant": {"times": 2, "concurrency": 2, "timeout": 0.5}},
        },
    ],
}


class Ran:
    """A run of `TASK`: its summary, its results as Rally's JSON, and Rally itself."""

    def __init__(self, home: Path) -> None:
        self.rally = Rally(home)
        (home / "task.json").write_text(json.dumps(TASK), "utf-8")
        self.ours = json.loads(coord(home, "run", "task.json", "--json").stdout)
        text = coord(home, "results", "last", "--rally-json").stdout
        document = json.loads(text)
        (self.task,) = document["tasks"]
        # Rally reads hooks as its database has them: not as it writes them
        for one in workloads(self.task):
            for hook in one["hooks"]:
                for key in ("action", "trigger"):
                    hook["config"][key] = list(*hook["config"][key].items())
        (home / "ours.json").write_text(json.dumps(document), "utf-8")
        self.rally.run("db", "create")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return Ran(tmp_path_factory.mktemp("rally-report"))


def test_rally_reports_what_osbench_ran(ran: Ran) -> None:
    theirs = ran.rally.report("theirs.json", "ours.json")

    ran.rally.run("task", "report", "--html", "--out", "theirs.html", "ours.json")

    found = workloads(theirs)
    assert theirs["tags"] == ["nightly"]
    assert len(found) == len(ran.ours["workloads"]) == len(TASK["subtasks"])
    for one, summary in zip(found, ran.ours["workloads"], strict=True):
        sums, service = summary["accounting"], summary["latency"]["service"]["ok"]
        total = one["statistics"]["durations"]["total"]["data"]
        assert one["total_iteration_count"] == sums["planned"] == len(one["data"])
        assert one["failed_iteration_count"] == sums["failed"] + sums["timed_out"]
        assert service["max"] is None or total["max"] >= service["max"] - 0.001
        starts = [row["timestamp"] for row in one["data"]]
        assert starts == sorted(starts)
        assert starts[0] > 1.7e9
    nested = found[1]["data"][0]["atomic_actions"]
    assert [nested[0]["name"], nested[0]["children"][0]["name"]] == ["foo", "bar"]
    page = (ran.rally.home / "theirs.html").read_text("utf-8")
    assert all(name in page for name in ("Dummy.failure", "Additive StatsTable", "Load"))


def test_rally_imports_them_and_finds_the_same_statistics(ran: Ran) -> None:
    ran.rally.run("env", "create", "--name", "imported", "--no-use")

    output = ran.rally.run("task", "import", "--env", "imported", "--file", "ours.json")
    (uuid,) = re.findall(r"Task UUID: ([0-9a-f-]+)", output)
    theirs = ran.rally.report("imported.json", uuid)

    same = ("statistics", "data", "min_duration", "max_duration", "load_duration")
    for one, given in zip(workloads(theirs), workloads(ran.task), strict=True):
        for key in (*same, "total_iteration_count", "failed_iteration_count", "pass_sla"):
            assert one[key] == given[key], key
        # Rally keeps whole microseconds of it
        assert one["start_time"] == pytest.approx(given["start_time"], rel=0, abs=1e-6)
        assert one["sla_results"] == given["sla_results"]
        assert one["contexts_results"] == given["contexts_results"]
        assert [hook["summary"] for hook in one["hooks"]] == [
            hook["summary"] for hook in given["hooks"]
        ]


def test_rallys_criteria_judge_the_iterations_as_ours_did(ran: Ran, judge: RallyJudge) -> None:
    compared = []
    for workload in workloads(ran.task):
        for row in workload["sla_results"]["sla"]:
            config = workload["sla"][row["criterion"]]
            theirs = judge.ask(row["criterion"], config, iterations=workload["data"])
            compared.append((row["success"], theirs["success"]))

    assert compared == [(ours, ours) for ours, _ in compared]
    assert sorted(ours for ours, _ in compared) == [False, False, True, True, True, True]


def test_hooks_contexts_and_charts_are_in_the_file(ran: Ran) -> None:
    failing, *_, charts, _ = workloads(ran.task)

    worked, failed, absent = failing["hooks"]
    (context,) = failing["contexts_results"]
    additive = charts["data"][0]["output"]["additive"]
    assert worked["summary"] == {"success": 3}
    assert worked["results"][0]["output"]["additive"][0]["data"] == [["one", 1]]
    assert failed["results"][0]["error"][:2] == ["Failed", "the command returned 1"]
    assert absent["results"][0]["error"][0] == "FileNotFoundError"
    assert (context["plugin_name"], context["setup"]["error"]) == ("dummy_context", None)
    assert context["cleanup"]["started_at"] > context["setup"]["finished_at"]
    assert failing["full_duration"] >= failing["load_duration"] > 0
    assert [chart["chart_plugin"] for chart in additive] == [
        "StatsTable",
        "StackedArea",
        "Lines",
        "Pie",
    ]
