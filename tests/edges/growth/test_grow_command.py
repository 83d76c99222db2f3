"""The command `grow`: bad usage, its course, interrupts, and exit codes."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from helpers.grown_runs import Laws, grown_run
from osbench.common.errors import INTERRUPTED, OsbenchError
from osbench.coordinator.front.cli.group import Group
from osbench.edges.growth import population_runs
from osbench.edges.growth.grow_command import grow
from osbench.edges.growth.request_figures import MeasuredRun
from osbench.edges.growth.traced_counts import RequestKey

GROWING: Laws = {"time": lambda n: 0.01, "spans": lambda n: 1 + n, "sql": lambda n: n}
REQUESTS = {RequestKey(0, "list"): GROWING}
AT = ("--at", "10,100,1000", "--populate", "true")


class Desk:
    """A folder with a task, whose runs are made of functions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._conf = folder / "osbench.conf"
        self._conf.write_text(f"[DEFAULT]\ndata_dir = {folder}\n")
        #: Requests for runs, in their order.
        self.wanted: list[Any] = []
        self.write({})

    def write(self, sla: dict[str, Any], url: str = "http://127.0.0.1:1") -> None:
        """Write the task."""
        steps = [{"name": "list", "path": "/"}]
        subtask = {
            "title": "Shop",
            "scenario": {"HttpFlow.run": {"base": url, "steps": steps}},
            "runner": {"constant": {"times": 1, "concurrency": 1}},
            "sla": {"failure_rate": {"max": 0}, **sla},
        }
        task = {"version": 2, "title": "A shop", "subtasks": [subtask]}
        (self.folder / "task.yaml").write_text(yaml.safe_dump(task))

    def grow(self, *arguments: str) -> Result:
        """Type the command."""
        group = Group(commands=[grow])
        task = str(self.folder / "task.yaml")
        given = ["grow", task, *arguments, "--config-file", str(self._conf)]
        return CliRunner().invoke(group, given)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A folder with a task; no run may begin."""
    return Desk(tmp_path)


@pytest.fixture
def measured(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Callable[[int], MeasuredRun]], None]:
    """Sets what a run at a population has measured."""

    def use(run_at: Callable[[int], MeasuredRun]) -> None:
        def run_tagged(settings: Any, wanted: Any, *_: Any) -> Any:
            desk.wanted.append(wanted)
            return SimpleNamespace(exit_code=0, run_id="r")

        monkeypatch.setattr(population_runs, "run_tagged", run_tagged)
        monkeypatch.setattr(
            population_runs, "read_run", lambda report, directory, population: run_at(population)
        )
        monkeypatch.setattr(population_runs.RunDirectory, "find", lambda *_: None)

    return use


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Missing option '--at'"),
        (("--at", "10,100"), "the service has to get to each population: give --seed FILE"),
        ((*AT, "--seed", "seed.yaml"), "cannot be combined: both fill the service"),
        (("--at", "10", "--populate", "true"), "has one population; growth takes two or more"),
        (("--at", "", "--populate", "true"), "is not a list of numbers such as 100,1000,10000"),
        (("--at", "10,1e3", "--populate", "true"), "is not a list of numbers"),
        (("--at", "10,10", "--populate", "true"), "is not ascending"),
        (("--at", "100,10", "--populate", "true"), "is not ascending"),
        (("--at", "0,10", "--populate", "true"), "that is not from 1 to 1,000,000,000"),
        (("--at", "-5,10", "--populate", "true"), "that is not from 1 to 1,000,000,000"),
        (("--at", "1,9999999999", "--populate", "true"), "that is not from 1 to"),
        (("--at", "10,100", "--populate", " "), "--populate is empty"),
        ((*AT, "--rounds", "0"), "--rounds"),
        ((*AT, "--predict", "-1"), "--predict"),
        ((*AT, "--populate-within", "0"), "--populate-within"),
        ((*AT, "--traces-from", "http://there"), "write tempo+http://HOST:3200"),
    ],
)
def test_bad_usage_is_one_message_and_exit_code_2(
    desk: Desk, arguments: tuple[str, ...], said: str
) -> None:
    found = desk.grow(*arguments)

    assert found.exit_code == 2
    assert said in " ".join(found.output.split())
    assert "Traceback" not in found.output


def test_a_missing_task_is_named(desk: Desk) -> None:
    (desk.folder / "task.yaml").unlink()

    found = desk.grow(*AT)

    assert found.exit_code == 2
    assert "there is no task file" in found.output


def test_a_law_in_a_criterion_takes_three_populations_before_any_is_made(desk: Desk) -> None:
    desk.write({"growth": {"sql": {"law": "linear"}}})

    found = desk.grow("--at", "10,100", "--populate", f"touch {desk.folder}/filled")

    assert found.exit_code == 2
    assert "limits a law, which takes 3 populations, and --at has 2" in found.output
    assert not (desk.folder / "filled").exists()


def test_populations_are_made_in_order_and_measured(
    desk: Desk, measured: Callable[[Callable[[int], MeasuredRun]], None]
) -> None:
    measured(lambda population: grown_run(population, REQUESTS))
    log = desk.folder / "log"

    found = desk.grow(
        *("--at", "10,100,1000", "--rounds", "2", "--populate", f"echo $POPULATION >> {log}"),
        *("--item", "port", "--tag", "nightly", "--otlp", "127.0.0.1:4318"),
        *("--html", str(desk.folder / "g.html"), "--markdown", str(desk.folder / "g.md")),
    )

    assert found.exit_code == 0, found.output
    assert log.read_text().split() == ["10", "100", "1000"]
    assert "list makes 1.0 SQL statements for each port" in found.output
    assert "population 1,000: measuring, run 2 of 2" in found.output
    assert len(desk.wanted) == 6
    assert desk.wanted[0].run_options.tags == ("nightly",)
    assert desk.wanted[0].run_options.otlp == "127.0.0.1:4318"
    assert "<svg" in (desk.folder / "g.html").read_text()
    assert "**list makes 1.0 SQL" in (desk.folder / "g.md").read_text()


def test_the_population_is_an_argument_of_a_template_that_has_it(
    desk: Desk, measured: Callable[[Callable[[int], MeasuredRun]], None]
) -> None:
    measured(lambda population: grown_run(population, REQUESTS))
    desk.write({}, url="http://127.0.0.1:1/{{ population }}")

    found = desk.grow(*AT)

    assert found.exit_code == 0, found.output
    given = [wanted.options.task_args for wanted in desk.wanted]
    assert given == [("population=10",), ("population=100",), ("population=1000",)]


@pytest.mark.parametrize(
    ("limits", "limited", "code"),
    [
        ({"spans": {"exponent": {"max": 0.1}}}, False, 1),
        # counts hold on a machine that is too slow
        ({"spans": {"exponent": {"max": 0.1}}}, True, 1),
        ({"spans": {"exponent": {"max": 1.1}}}, True, 0),
        ({"time": {"exponent": {"max": 0.5}}}, False, 0),
        ({"time": {"exponent": {"max": 0.5}}}, True, 4),
        ({"time": {"law": "constant"}, "sql": {"law": "constant"}}, True, 1),
        (None, True, 4),
        (None, False, 0),
    ],
)
def test_exit_codes_follow_from_criteria_and_the_generator(
    desk: Desk,
    measured: Callable[[Callable[[int], MeasuredRun]], None],
    limits: Any,
    limited: bool,
    code: int,
) -> None:
    measured(lambda population: grown_run(population, REQUESTS, limited=limited))
    desk.write({"growth": limits} if limits else {})

    found = desk.grow(*AT, "--json", "--quiet")

    assert found.exit_code == code, found.output
    assert json.loads(found.stdout)["exit_code"] == code


def test_a_command_that_fails_later_leaves_what_was_measured(
    desk: Desk, measured: Callable[[Callable[[int], MeasuredRun]], None]
) -> None:
    measured(lambda population: grown_run(population, REQUESTS))
    desk.write({"growth": {"sql": {"law": "constant"}}})

    found = desk.grow("--at", "10,100,1000", "--populate", "[ $POPULATION -lt 1000 ]", "--quiet")

    assert found.exit_code == 2
    assert "causes" in found.output or "makes" in found.output
    assert "Error: --populate for a population of 1,000 ended with exit code 1" in found.output
    # two of three populations are no verdict
    assert "✗" not in found.output


def test_a_command_that_fails_at_once_is_the_only_message(desk: Desk) -> None:
    found = desk.grow("--at", "10,100", "--populate", "exit 3", "--quiet")

    assert found.exit_code == 2
    assert found.stdout == ""
    assert "ended with exit code 3" in found.stderr


def test_iterations_that_all_fail_are_an_error(
    desk: Desk, measured: Callable[[Callable[[int], MeasuredRun]], None]
) -> None:
    measured(lambda population: grown_run(population, REQUESTS, ok=0, bad=30))

    found = desk.grow(*AT)

    assert found.exit_code == 1
    assert "no iteration succeeded at a population of 10; `osbench-coord results" in found.output


def test_an_interrupt_prints_what_was_measured_and_runs_no_more(
    desk: Desk, measured: Callable[[Callable[[int], MeasuredRun]], None]
) -> None:
    def run_at(population: int) -> MeasuredRun:
        if population == 100:
            signal.raise_signal(signal.SIGINT)
        return grown_run(population, REQUESTS)

    measured(run_at)
    desk.write({"growth": {"sql": {"law": "constant"}}})

    found = desk.grow(*AT, "--json", "--quiet")

    assert found.exit_code == INTERRUPTED
    printed = json.loads(found.stdout)
    assert (printed["populations"], printed["criteria"]) == ([10, 100], [])
    assert printed["exit_code"] == INTERRUPTED


def test_an_interrupt_while_the_service_is_filled_ends_the_command(desk: Desk) -> None:
    # the command interrupts its caller, and would go on
    found = desk.grow("--at", "10,100", "--populate", "kill -INT $PPID; sleep 600")

    assert found.exit_code == INTERRUPTED
    assert "interrupted before a population was measured" in found.output


def test_an_interrupted_run_does_not_count(
    desk: Desk,
    measured: Callable[[Callable[[int], MeasuredRun]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measured(lambda population: grown_run(population, REQUESTS))
    made: list[int] = []

    def run_tagged(*_: Any) -> Any:
        made.append(1)
        if len(made) == 3:
            signal.raise_signal(signal.SIGINT)
            return SimpleNamespace(exit_code=INTERRUPTED, run_id="r")
        return SimpleNamespace(exit_code=0, run_id="r")

    monkeypatch.setattr(population_runs, "run_tagged", run_tagged)
    found = desk.grow(*AT, "--json", "--quiet")

    assert found.exit_code == INTERRUPTED
    assert json.loads(found.stdout)["populations"] == [10, 100]


def test_a_run_that_cannot_begin_later_leaves_what_was_measured(
    desk: Desk,
    measured: Callable[[Callable[[int], MeasuredRun]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measured(lambda population: grown_run(population, REQUESTS))
    made: list[int] = []

    def run_tagged(*_: Any) -> Any:
        made.append(1)
        if len(made) == 2:
            raise OsbenchError("no workers")
        return SimpleNamespace(exit_code=0, run_id="r")

    monkeypatch.setattr(population_runs, "run_tagged", run_tagged)
    found = desk.grow(*AT, "--quiet")

    assert found.exit_code == 2
    assert "Only 10 was measured: growth takes two populations." in found.output
    assert "Error: no workers" in found.output


def test_a_page_that_cannot_be_written_loses_no_result(
    desk: Desk, measured: Callable[[Callable[[int], MeasuredRun]], None]
) -> None:
    measured(lambda population: grown_run(population, REQUESTS))

    found = desk.grow(*AT, "--quiet", "--html", str(desk.folder / "missing" / "g.html"))

    assert found.exit_code == 2
    assert "list makes 1.0 SQL statements for each item" in found.output
    assert "cannot write" in found.output
