"""The commands `sla`, `use` and `import`: verdicts, what is used, results of Rally."""

import json
from pathlib import Path
from typing import Any

import msgpack
import pytest
from click.testing import CliRunner, Result

from helpers.cli_commands import command
from helpers.result_rows import row_of
from helpers.sample_reports import full_report, restart_hook
from helpers.stored_runs import stored_run
from helpers.summaries import to_json
from osbench.coordinator.front.cli.group import Group
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.rally.results import rally_json

PIE = msgpack.packb(
    {"kind": "additive", "item": {"title": "P", "chart_plugin": "Pie", "data": [["a", 2]]}}
)
ROWS = [
    row_of(1, 1, 0, 5_000, 40_005_000, 0, 0, (), (b"", [PIE], b"")),
    row_of(2, 2, 0, 10_000, 30_000_000, 0, 1, (), None),
    row_of(3, 3, 0, 20_000, 90_000_000, 0, 0, (), None),
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    found = tmp_path / "data"
    found.mkdir()
    return found


def call(data: Path, *args: str) -> Result:
    conf = data.parent / "osbench.conf"
    conf.write_text(f"[DEFAULT]\ndata_dir = {data}\n")
    group = Group(commands=[command(name) for name in ("sla", "use", "import", "compare")])
    return CliRunner().invoke(group, [*args, "--config-file", str(conf)])


def test_verdicts_are_printed_and_the_exit_code_is_that_of_the_run(data: Path) -> None:
    summary = to_json(full_report())
    directory = RunDirectory.create(str(data), "20260401-a")
    directory.write("summary.json", summary)
    directory.close()

    text, rows = call(data, "sla"), call(data, "sla", "20260401", "--json")

    assert text.exit_code == rows.exit_code == summary["exit_code"]
    assert f"Exit code {summary['exit_code']}: " in text.stdout
    found = json.loads(rows.stdout)
    assert [one["criterion"] for one in found] == [
        one["criterion"] for workload in summary["workloads"] for one in workload["sla"]
    ]
    assert text.stdout.count("FAILED") == sum(not one["success"] for one in found) > 0


def test_a_run_without_a_report_has_no_verdicts(data: Path) -> None:
    RunDirectory.create(str(data), "20260401-a").close()

    found = call(data, "sla")

    assert found.exit_code == 2
    assert "ended without a report" in found.stderr


def test_a_run_is_not_used_by_default_and_the_message_says_so(data: Path) -> None:
    RunDirectory.create(str(data), "20260401-a").close()

    shown, run, other = call(data, "use"), call(data, "use", "20260401-a"), call(data, "use", "x")

    assert "Deployment in use: none" in shown.stdout
    assert "Last run: 20260401-a" in shown.stdout
    assert (run.exit_code, other.exit_code) == (2, 2)
    assert "20260401-a is a run, and only deployments are put into use" in run.stderr
    assert "no deployment has the name x" in other.stderr


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """Results in Rally's format."""
    run = stored_run(tmp_path / "other", ROWS, hooks=(restart_hook(),))
    given = {"args": {"sleep": 1}, "sla": {"failure_rate": {"max": 0}}}
    run.directory.write("run.json", {"run_id": "r", "task": "t", "workloads": [given]})
    path = tmp_path / "rally.json"
    with path.open("w") as file:
        rally_json.write(run.directory, run.report, file)
    return path


def test_results_of_rally_become_a_run_with_the_same_numbers(data: Path, theirs: Path) -> None:
    done = call(data, "import", str(theirs))

    assert done.exit_code == 0, done.output
    summary = RunDirectory.find(str(data), done.stdout.strip()).read("summary.json")
    assert summary is not None
    (workload,) = summary["workloads"]
    before = json.loads(theirs.read_text())["tasks"][0]["subtasks"][0]["workloads"][0]
    sums = workload["accounting"]
    assert (sums["planned"], sums["ok"], sums["failed"], sums["timed_out"]) == (3, 1, 2, 0)
    assert workload["latency"]["service"]["ok"]["max"] == pytest.approx(0.04, rel=0.02)
    assert workload["name"] == next(iter(before["scenario"]))
    assert workload["runner"]["type"] == next(iter(before["runner"]))
    assert [one["criterion"] for one in workload["sla"]] == [
        one["criterion"] for one in before["sla_results"]["sla"]
    ]
    assert sum(one["count"] for one in workload["errors"]) == 2
    assert workload["outputs"]["additive"][0]["data"] == [["a", 2.0]]
    assert summary["notes"][1] == "the results of 1 hook were not imported"


@pytest.mark.parametrize(
    ("runner", "is_open"), [("rps", True), ("constant", False), ("serial", False)]
)
def test_only_an_open_load_of_rally_has_a_rate(
    data: Path, theirs: Path, runner: str, is_open: bool
) -> None:
    results = json.loads(theirs.read_text())
    results["tasks"][0]["subtasks"][0]["workloads"][0]["runner"] = {runner: {}}
    theirs.write_text(json.dumps(results))

    run = call(data, "import", str(theirs)).stdout.strip()

    (workload,) = RunDirectory.find(str(data), run).read("summary.json")["workloads"]
    assert (workload["offered"]["rate_offered"] is not None) == is_open
    assert (workload["offered"]["concurrency"] is None) == is_open


def test_an_imported_run_is_compared_like_others_and_imported_once(
    data: Path, theirs: Path
) -> None:
    run = call(data, "import", str(theirs)).stdout.strip()

    again = call(data, "import", str(theirs))
    theirs.write_text(theirs.read_text().replace('"uuid": "', '"uuid": "0'))
    other = call(data, "import", str(theirs)).stdout.strip()
    compared = call(data, "compare", run, other)

    assert again.exit_code == 2
    assert f"was imported before, as run {run}" in again.stderr
    assert compared.exit_code in (0, 1), compared.output
    assert "p50" in compared.stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ("[]", "holds results in the format before Rally 0.10"),
        ("{}", "it has no tasks"),
        ('{"tasks": [{}]}', "is not a result of `rally task report --json`: KeyError 'uuid'"),
        ('{"tasks": [7]}', "is not a result of `rally task report --json`: TypeError"),
    ],
)
def test_a_file_that_is_none_of_rallys_is_one_message(data: Path, text: str, said: str) -> None:
    path = data.parent / "odd.json"
    path.write_text(text)

    found = call(data, "import", str(path))

    assert found.exit_code == 2
    assert said in found.stderr
    assert RunDirectory.all(str(data)) == []


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("duration", "long", "ValueError could not convert string to float"),
        ("duration", 1e200, "OverflowError times of an iteration must fit 64 bits, in ns"),
        (
            "atomic_actions",
            [{"name": "a", "started_at": 1e200, "finished_at": 1e200, "children": []}],
            "OverflowError times of an atomic action must fit 64 bits, in ns",
        ),
    ],
)
def test_a_broken_task_leaves_no_run(
    data: Path, theirs: Path, key: str, value: Any, said: str
) -> None:
    document = json.loads(theirs.read_text())
    broken = json.loads(json.dumps(document["tasks"][0]))
    broken["uuid"] = "other"
    broken["subtasks"][0]["workloads"][0]["data"][1][key] = value
    document["tasks"].append(broken)
    theirs.write_text(json.dumps(document))

    found = call(data, "import", str(theirs))

    assert found.exit_code == 2
    assert said in found.stderr
    assert RunDirectory.all(str(data)) == []


def test_without_a_file_the_command_says_so(data: Path) -> None:
    found = call(data, "import", "absent.json")

    assert found.exit_code == 2
    assert "absent.json: No such file" in found.stderr
