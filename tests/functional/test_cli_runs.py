"""Runs without a file and in the background, and the commands that look at runs."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest
import yaml

from helpers.commands import BIN, call, coord, environment
from helpers.processes import holder_of
from servers.child import PATIENCE_S

pytestmark = pytest.mark.functional


def until_running(home: Path, run_id: str) -> dict:
    """The status of a detached run once its load is under way."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        status = json.loads(call(home, "status", run_id, "--json").stdout)
        if status["status"] and status["status"]["settled"]:
            return status
        time.sleep(0.2)
    raise AssertionError(f"run {run_id} does not get on: {status}")


def until_over(home: Path, run_id: str) -> dict:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        status = json.loads(call(home, "status", run_id, "--json").stdout)
        if status["state"] == "finished":
            return status
        time.sleep(0.2)
    raise AssertionError(f"run {run_id} does not end: {status}")


def is_shown(lines: list[str], *words: str) -> bool:
    """Whether a line has all these words."""
    return any(all(word in line for word in words) for line in lines)


def test_a_scenario_runs_without_a_file_and_is_found_by_its_tag(home: Path) -> None:
    done = coord(
        home,
        *("run", "--scenario", "Dummy.dummy", "--arg", "sleep=0.01"),
        *("--times", "20", "--concurrency", "2", "--tag", "nightly", "--json"),
    )

    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    (workload,) = result["workloads"]
    assert workload["name"] == "Dummy.dummy"
    assert workload["accounting"]["ok"] == 20
    assert workload["latency"]["service"]["ok"]["p50"] >= 0.01
    assert result["tags"] == ["nightly"]

    other = coord(home, "run", "--scenario", "Dummy.dummy", "--tag", "two", "-q")
    found = call(home, "runs", "list", "--tag", "two", "--json")
    text = call(home, "runs", "list")

    assert other.returncode == 0, other.stderr
    assert [row["tags"] for row in json.loads(found.stdout)] == [["two"]]
    assert text.stdout.count("finished") == 2


def test_a_run_is_run_again_as_it_was_asked_for(home: Path) -> None:
    (home / "rows.csv").write_text("sleep:float\n0.01\n0.02\n")
    (home / "task.yaml").write_text(
        "version: 2\ntitle: '{{ title }}'\nsubtasks:\n- title: one\n  args_from: rows.csv\n"
        "  scenario: {Dummy.dummy: {}}\n  runner: {serial: {times: 2}}\n"
        "  sla: {failure_rate: {min: 50}}\n"
    )
    first = coord(
        home,
        *("run", "task.yaml", "--task-args", "title=Twice", "--tag", "nightly", "--json"),
    )
    # the task is as it was then
    (home / "task.yaml").unlink()

    again = coord(home, "rerun", "--json", "--export", f"junit={home}/junit.xml")
    verdicts = call(home, "sla", "--json")

    before, now = json.loads(first.stdout), json.loads(again.stdout)
    assert first.returncode == again.returncode == verdicts.returncode == 1, again.stderr
    assert now["run_id"] != before["run_id"]
    assert (now["task"], now["tags"]) == ("Twice", ["nightly"])
    assert now["workloads"][0]["accounting"] == before["workloads"][0]["accounting"]
    (verdict,) = json.loads(verdicts.stdout)
    assert (verdict["criterion"], verdict["success"]) == ("failure_rate", False)
    assert (home / "junit.xml").exists()

    (home / "rows.csv").unlink()
    refused = call(home, "rerun", before["run_id"])

    assert refused.returncode == 2
    assert "rows.csv" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "give TASK, --url URL or --scenario NAME"),
        (("task.yaml", "--scenario", "Dummy.dummy"), "TASK and --scenario cannot be combined"),
        (("--scenario", "Dummy.dumy"), "Dummy.dummy"),
        (
            ("--scenario", "Dummy.dummy", "--rps", "5"),
            "--rps needs --duration DURATION or --times N",
        ),
        (("--scenario", "Dummy.dummy", "--rps", "0"), "--rps"),
        (("--scenario", "Dummy.dummy", "--arg", "sleep"), "write name=value"),
        (("--scenario", "Dummy.failure", "--arg", "slep=1"), "slep"),
        (
            ("--scenario", "Dummy.dummy", "--rps", "5", "--concurrency", "2", "--times", "3"),
            "--users cannot be combined with --rps",
        ),
    ],
)
def test_bad_options_are_one_message(
    tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    done = call(tmp_path, "run", *options, "--json")

    assert done.returncode == 2
    assert message in json.dumps(json.loads(done.stdout)["error"])
    assert "Traceback" not in done.stderr


def test_a_detached_run_is_watched_aborted_shown_and_deleted(home: Path) -> None:
    options = ("--scenario", "Dummy.dummy", "--arg", "sleep=0.02", "--concurrency", "2")
    started = coord(home, "run", *options, "--duration", "120", "--detach")
    run_id = started.stdout.strip()

    running = until_running(home, run_id)
    refused = call(home, "runs", "delete", run_id)
    aborted = coord(home, "abort", run_id)
    over = until_over(home, run_id)
    shown = call(home, "runs", "show", run_id)
    listed = call(home, "runs", "list", "--json")
    deleted = call(home, "runs", "delete", run_id)

    assert started.returncode == 0, started.stderr
    assert running["state"] == "running"
    assert refused.returncode == 2
    assert "is running" in refused.stderr
    assert aborted.returncode == 0
    assert over["exit"] == 130
    assert over["ok"] == over["planned"] > 0
    assert "interrupted" in shown.stdout
    assert [row["run"] for row in json.loads(listed.stdout)] == [run_id]
    assert deleted.returncode == 0
    assert not (home / ".osbench" / "runs" / run_id).exists()


def test_a_detached_run_is_followed_to_its_end_and_waited_for(home: Path) -> None:
    options = ("--scenario", "Dummy.dummy_exception_probability", "--duration", "600")
    run_id = coord(home, "run", *options, "--detach").stdout.strip()

    lines: list[str] = []
    with subprocess.Popen(
        [str(BIN / "osbench-coord"), "status", run_id, "--follow"],
        cwd=home,
        env=environment(home),
        stdout=subprocess.PIPE,
        text=True,
    ) as followed:
        try:
            while not (is_shown(lines, "/s, p50 ") and is_shown(lines, " failed (", "most with ")):
                lines.append(followed.stdout.readline())
                assert lines[-1], lines
        finally:
            coord(home, "abort", run_id)
        lines += followed.stdout
    waited = call(home, "wait", run_id)
    again = call(home, "status", run_id, "--follow", "--json")

    last = lines[-1].strip()
    code = json.loads(again.stdout)["exit"]
    assert last.endswith(f"finished, exit code {code}")
    assert waited.returncode == code
    assert last in waited.stderr


def test_a_detached_run_that_cannot_begin_says_why(home: Path) -> None:
    done = coord(home, "run", "absent.yaml", "--detach")

    assert done.returncode == 2
    assert "absent.yaml" in done.stderr
    assert "Error: Error" not in done.stderr


def test_a_run_that_was_refused_is_listed_with_the_reason(home: Path) -> None:
    one = {
        "scenario": {"Dummy.dummy": {}},
        "runner": {"constant": {"times": 1, "concurrency": 1}},
    }
    subtask = {"title": "two at once", "run_in_parallel": True, "workloads": [one, one]}
    task = {"version": 2, "title": "Refused", "subtasks": [subtask]}
    (home / "task.yaml").write_text(yaml.safe_dump(task), encoding="utf-8")

    refused = call(home, "run", "task.yaml", "--workers", "1")
    status = call(home, "status")
    shown = call(home, "runs", "show")
    results = call(home, "results", "last")
    listed = call(home, "runs", "list")
    (row,) = json.loads(call(home, "runs", "list", "--json").stdout)

    assert refused.returncode == 2
    assert "give --workers 2 or more, not 1" in refused.stderr
    for said in (status.stdout, shown.stdout, results.stderr, row["why"]):
        assert "give --workers 2 or more, not 1" in said
    assert "broken off, exit code 2: 2 workloads" in status.stdout
    assert "2 workloads of the task run at once" in listed.stdout
    assert results.returncode == 2
    assert (row["state"], row["exit"]) == ("broken off", 2)


def test_a_run_whose_coordinator_was_killed_says_so_and_how_far_it_was(tmp_path: Path) -> None:
    options = ("--scenario", "Dummy.dummy", "--arg", "sleep=0.02", "--duration", "120")
    run_id = coord(tmp_path, "run", *options, "--detach").stdout.strip()
    until_running(tmp_path, run_id)
    unfinished = call(tmp_path, "results", run_id)
    lock = tmp_path / ".osbench" / "runs" / run_id / "lock"

    holder_of(lock).kill()

    deadline = time.monotonic() + PATIENCE_S
    while "running;" in (status := call(tmp_path, "status", run_id)).stdout:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    results = call(tmp_path, "results", run_id)
    rows = call(tmp_path, "results", run_id, "--csv")
    waited = call(tmp_path, "wait", run_id)
    assert "is still running" in unfinished.stderr
    assert waited.returncode == 3
    for said in (status.stdout, results.stderr, waited.stderr):
        assert "its coordinator was killed" in said
        assert "Dummy.dummy had been running for" in said
    assert f"osbench-coord results {run_id} --csv" in results.stderr
    assert len(rows.stdout.splitlines()) > 1


def test_no_run_of_that_name(tmp_path: Path) -> None:
    for command in (("status",), ("wait",), ("abort",), ("runs", "show"), ("results", "last")):
        done = call(tmp_path, *command)

        assert done.returncode == 2
        assert "no run" in done.stderr
