"""`plan` with given figures, and options that mean nothing together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from osbench.coordinator.cli.group import Group
from osbench.edges.history.sizing.plan_command import plan

GIVEN = ("--no-calibration", "--cost", "1ms", "--service-time", "100ms")

TASK = """
version: 2
title: Shop
subtasks:
  - title: both
    run_in_parallel: true
    workloads:
      - name: buy
        scenario: {Dummy.dummy: {}}
        runner: {stages: {start: 0, stages: [{target: 1200, duration: 60}]}}
      - name: look
        scenario: {Dummy.dummy: {}}
        think: {min: 1, max: 3}
        runner: {constant_for_duration: {duration: 60, concurrency: 300}}
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "task.yaml").write_text(TASK)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def invoke(*arguments: str) -> Result:
    # as wide as a page of a report
    return CliRunner(env={"COLUMNS": "200"}).invoke(
        Group("osbench-coord", commands={"plan": plan}), ["plan", *arguments]
    )


def test_a_task_is_planned_with_given_figures(home: Path) -> None:
    done = invoke("task.yaml", "--cores", "4", "--json", *GIVEN)

    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    buy, look = found["workloads"]
    # 1200/s of 1 ms, at 0.58 of a core each
    assert (buy["processes"], buy["limited_by"], buy["rate"]) == (3, "CPU", 1200)
    # 300 users that think for 2 s: two processes of 256 each
    assert (look["processes"], look["limited_by"]) == (2, "users")
    assert look["rate"] == pytest.approx(300 / 2.1)
    assert look["shares"] == [150, 150]
    # they are under load at once
    assert (found["needs"]["processes"], found["needs"]["hosts"]) == (5, 2)
    assert found["calibration"] is None
    assert json.loads((home / ".osbench/plans" / f"{found['digest']}.json").read_text()) == found


def test_the_text_has_load_shares_and_what_hosts_need() -> None:
    done = invoke("task.yaml", "--cores", "4", *GIVEN)

    text = " ".join(done.stdout.split())
    assert done.exit_code == 0, done.output
    assert "Plan of Shop" in text
    assert "not calibrated: cost and service time are as they were given" in text
    assert "1.00 ms of CPU per iteration" in text
    assert "█| 60 s, 1,200 at its peak" in text
    assert "3 processes, for its CPU; each has 400 arrivals/s at the peak" in text
    assert "2 processes, for its users; each has 150 virtual users at the peak" in text
    assert "0 to 1200/s 1,200 120 153 1.20 3" in text
    assert "Hosts 2 with 4 cores for workers" in text


def test_limits_of_this_host_that_do_not_suffice_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (64, 64))

    done = invoke("task.yaml", *GIVEN)

    assert "Note: a worker process needs 190 file descriptors and may open 64" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give TASK, --url URL or --scenario NAME"),
        (("task.yaml", "--scenario", "Dummy.dummy"), "TASK and --scenario cannot be combined"),
        (("task.yaml", "--rps", "5"), "--rps cannot be combined with TASK"),
        (
            ("--scenario", "Dummy.dummy", "--task-args", "times=3"),
            "--task-args cannot be combined with --scenario",
        ),
        (("task.yaml", "--no-calibration"), "--no-calibration needs --cost DURATION"),
        (
            ("task.yaml", "--no-calibration", "--cost", "1ms"),
            "--no-calibration needs --service-time DURATION",
        ),
        (("task.yaml", *GIVEN, "--calibrate-s", "9"), "--calibrate-s cannot be combined with"),
        (
            ("task.yaml", "--cost", "1ms", "--service-time", "1ms"),
            "--cost needs --no-calibration",
        ),
        (("task.yaml", "--cores", "0"), "--cores"),
        (("task.yaml", "--utilisation", "60"), "--utilisation"),
        (("task.yaml", "--calibrate-s", "0.1"), "must be at least 1 s"),
        (("nothing.yaml",), "nothing.yaml"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    arguments: tuple[str, ...], message: str
) -> None:
    done = invoke(*arguments)

    assert done.exit_code == 2, done.output
    assert message in done.stderr


def test_a_data_directory_that_takes_nothing_is_told_before_any_load(home: Path) -> None:
    (home / ".osbench").write_text("in the way")

    done = invoke("task.yaml")

    assert done.exit_code == 2
    assert "not a directory" in done.stderr
