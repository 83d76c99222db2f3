"""The command `validate` says what it checked and what is wrong."""

import json

import click
import pytest
from click.testing import CliRunner

from osbench.coordinator.front.cli.commands.validate import validate
from osbench.coordinator.front.cli.group import Group

GOOD = """
version: 2
title: t
subtasks:
  - title: a
    scenario: {Dummy.dummy: {sleep: 0}}
    runner: {constant: {times: 2, max_cpu_count: 1}}
  - title: b
    workloads:
      - scenario: {Dummy.dummy: {}}
      - scenario: {Dummy.dummy: {}}
"""
BAD = "Dummy.dumy: [{runner: {times: 0}}]"


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "bad.yaml").write_text(BAD)
    (tmp_path / "one.yaml").write_text("Dummy.dummy: [{runner: {times: {{ times }} } }]")
    group = Group("osbench-coord", commands={"validate": validate})

    def invoke(*args, text=None):
        return CliRunner().invoke(group, ["validate", *args], input=text)

    return invoke


def test_a_good_file_is_reported_with_its_counts_and_notes(run):
    result = run("good.yaml")

    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "good.yaml: OK, 2 subtasks, 3 workloads"
    assert lines[1].startswith("  note: subtasks[0].runner.constant: max_cpu_count has no effect")
    assert len(lines) == 2


def test_one_bad_file_spoils_the_exit_code_and_all_are_reported(run):
    result = run("bad.yaml", "good.yaml")

    assert result.exit_code == 2
    assert "bad.yaml: 2 problems" in result.stdout
    assert "Dummy.dumy[0]: there is no scenario 'Dummy.dumy'" in result.stdout
    assert "Dummy.dumy[0].runner.times: must be at least 1, got 0" in result.stdout
    assert "good.yaml: OK" in result.stdout


def test_an_included_file_that_cannot_be_read_is_a_problem_of_the_task(run, tmp_path):
    (tmp_path / "part.yaml").write_bytes(b"\xff")
    (tmp_path / "task.yaml").write_text("{% include 'part.yaml' %}")

    result = run("task.yaml", "good.yaml")

    assert result.exit_code == 2
    assert "task.yaml: 1 problem" in result.stdout
    assert "part.yaml is not text in UTF-8" in result.stdout
    assert "good.yaml: OK" in result.stdout


def test_json_is_an_object_a_file(run):
    result = run("--json", "bad.yaml", "good.yaml")

    bad, good = map(json.loads, result.stdout.splitlines())
    assert result.exit_code == 2
    assert (bad["file"], bad["ok"], bad["workloads"]) == ("bad.yaml", False, None)
    assert {
        "place": "Dummy.dumy[0].runner.times",
        "message": "must be at least 1, got 0",
    } in bad["problems"]
    assert (good["ok"], good["subtasks"], good["workloads"]) == (True, 2, 3)
    assert good["notes"][0]["place"] == "subtasks[0].runner.constant"


@pytest.mark.parametrize("args", [["--task-args", "times=3"], ["--task-args-file", "args.yaml"]])
def test_template_arguments(run, tmp_path, args):
    (tmp_path / "args.yaml").write_text("times: 3")

    missing = run("one.yaml")
    given = run("one.yaml", *args)

    assert (missing.exit_code, given.exit_code) == (2, 0)
    assert "needs the task argument times" in missing.stdout
    assert given.stdout == "one.yaml: OK, 1 subtask, 1 workload\n"


def test_standard_input(run):
    result = run("-", text=BAD)

    assert result.exit_code == 2
    assert result.stdout.startswith("-: 2 problems")


def test_plugins_by_path(run, tmp_path):
    (tmp_path / "mine.py").write_text(
        "from osbench.plugin import scenario\n"
        "class Mine(scenario.Scenario):\n"
        "    @scenario.configure(name='Mine.own')\n"
        "    def own(self, times): pass\n"
    )
    (tmp_path / "mine.yaml").write_text("Mine.own: [{args: {times: 1}}, {}]")

    without = run("mine.yaml")
    with_path = run("--plugin-path", "mine.py", "mine.yaml")

    assert "there is no scenario 'Mine.own'" in without.stdout
    assert with_path.exit_code == 2
    assert "Mine.own[1].args: argument 'times' of Mine.own is missing" in with_path.stdout
    assert "Mine.own[0]" not in with_path.stdout


@pytest.mark.parametrize("args", [["--task-args", "nothing"], ["--plugin-path", "absent.py"]])
def test_bad_options_are_one_message(run, args):
    plain = run(*args, "good.yaml")
    as_json = run("--json", *args, "good.yaml")

    assert (plain.exit_code, plain.stdout) == (2, "")
    assert args[0].removeprefix("--").replace("plugin-path", "plug-in path") in plain.stderr
    assert as_json.exit_code == 2
    assert json.loads(as_json.stdout)["error"]["message"] in plain.stderr


def test_a_file_must_be_named(run):
    result = run()

    assert result.exit_code == click.UsageError.exit_code
    assert "FILE" in result.stderr


def test_values_set_from_the_command_line_are_checked_with_the_file(run):
    good = run("good.yaml", "--set", "a.0.runner.times=5", "--set", "1.1.args.sleep=0.5")
    bad = run("good.yaml", "--set", "0.0.runner.times=none", "--set", "0.0.args.sleep=1")
    lost = run("good.yaml", "--set", "c.0.runner.times=5")

    assert good.exit_code == 0
    assert bad.exit_code == lost.exit_code == 2
    assert 'subtasks[0].runner.constant.times: must be an integer, got "none"' in bad.output
    assert "--set c.0.runner.times: there is no subtask 'c'" in lost.output


def test_an_argument_that_no_file_has_is_refused_after_all_reports(run):
    result = run("one.yaml", "good.yaml", "--task-args", "times=2,tiems=3")

    assert result.exit_code == 2
    assert "one.yaml: OK" in result.stdout
    assert "--task-args: the task has no argument 'tiems'; did you mean times?" in result.stderr


def test_of_an_argument_in_a_file_that_no_task_has_is_warned(run, tmp_path):
    (tmp_path / "args.yaml").write_text("times: 2\ntiems: 3\n")

    result = run("one.yaml", "--task-args-file", "args.yaml")

    assert result.exit_code == 0
    assert "Warning: --task-args-file args.yaml: the task has no argument 'tiems'" in result.stderr
