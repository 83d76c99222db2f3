"""Options of `run` that mean nothing together are refused before anything is started."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from osbench.coordinator.front.cli.commands.run import run
from osbench.coordinator.front.cli.group import CALLED, Group


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / "task.yaml"
    path.write_text("Dummy.dummy: [{}]")
    return str(path)


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(Group("osbench-coord", commands={"run": run}), ["run", *arguments])


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--rps", "5", "--times", "9"), "--rps and --times"),
        (("--duration", "5s"), "--duration"),
        (("--arg", "sleep=1"), "--arg"),
        (("--concurrency", "2"), "--users"),
        (("--timeout", "1m"), "--timeout"),
    ],
)
def test_what_describes_a_scenario_is_refused_beside_a_task_file(
    task: str, options: tuple[str, ...], named: str
) -> None:
    done = invoke(task, *options)

    assert done.exit_code == 2
    assert done.stderr.startswith(f"Error: {named} cannot be combined with TASK, which")
    assert "--set" in done.stderr


@pytest.mark.parametrize("rate", ["nan", "inf", "1e308"])
def test_a_rate_that_no_load_can_have_is_refused(task: str, rate: str) -> None:
    done = invoke("--scenario", "Dummy.dummy", "--rps", rate, "--duration", "30")

    assert done.exit_code == 2
    assert "Invalid value for '--rps'" in done.stderr


def test_arguments_of_a_template_are_refused_where_there_is_none(task: str) -> None:
    done = invoke("--scenario", "Dummy.dummy", "--task-args", "times=3")

    assert done.exit_code == 2
    assert "--task-args cannot be combined with --scenario, which has no template" in done.stderr


@pytest.mark.parametrize("duration", ["5 minutes", "-1", "soon"])
def test_what_is_no_duration_is_refused(task: str, duration: str) -> None:
    done = invoke("--scenario", "Dummy.dummy", "--duration", duration)

    assert done.exit_code == 2
    assert "must be seconds, or a duration such as 30s, 5m or 1h30m" in done.stderr


@pytest.mark.parametrize(
    ("typed", "called"),
    [("--html=page.html", "--report FILE"), ("--vus=4", "--users N")],
)
def test_options_of_other_tools_are_told_what_they_are_called(
    task: str, typed: str, called: str
) -> None:
    done = invoke(task, typed)

    assert done.exit_code == 2
    assert f"No such option '{typed.partition('=')[0]}'. It is called {called} here." in done.stderr


def test_what_other_tools_have_is_an_option_of_run() -> None:
    options = {name for parameter in run.params for name in parameter.opts}

    words = {word for one in CALLED.values() for word in one.split() if word.startswith("--")}

    assert words <= options
    assert not options & {*CALLED}


def test_a_request_from_options_is_written_as_a_task_and_not_run(task: str, tmp_path: Path) -> None:
    file = tmp_path / "written.yaml"
    load = ("--url", "http://127.0.0.1:1/items", "--rps", "20", "--duration", "30")

    done = invoke(*load, "--write", str(file))
    printed = invoke(*load, "--write", "-")
    again = invoke(*load, "--write", str(file))

    assert done.exit_code == printed.exit_code == 0
    assert done.stderr == f"wrote {file}; run it with: osbench-coord run {file}\n"
    assert printed.stdout == file.read_text("utf-8")
    assert "url: http://127.0.0.1:1/items" in printed.stdout
    assert (again.exit_code, again.stderr) == (2, f"Error: {file} exists; give another name\n")
    assert not (tmp_path / ".osbench").exists()


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("http://shop/", "run --url http://shop/ --rps 20 --duration 30`"),
        ("https://ann:secret@shop/", "run --url https://***@shop/ --rps 20"),
        ("locustfile.py", "is Python, not a task file: run a scenario in it with"),
    ],
)
def test_what_is_no_task_file_is_told_how_it_is_run(task: str, source: str, said: str) -> None:
    done = invoke(source)

    assert done.exit_code == 2
    assert said in done.stderr
    assert "secret" not in done.stderr
