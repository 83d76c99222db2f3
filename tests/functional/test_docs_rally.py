"""The commands of the page on Rally's tasks do what it says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.machine import Machine, with_worker
from helpers.readme import REPOSITORY, blocks, files
from servers import folder

pytestmark = pytest.mark.functional

PAGE, COMING = "docs/rally.md", "docs/coming-from-rally.md"


def machine_of(home: Path) -> Machine:
    """A machine with the files of both pages."""
    desk = home / "desk"
    (desk / "plugins").mkdir(parents=True)
    (desk / "samples").symlink_to(REPOSITORY / "samples")
    made = Machine(home, folder=desk, forked=True, rally=True)
    for name, text in (files(PAGE) | files(COMING)).items():
        (desk / name).write_text(made.text(text), encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    """A machine with the files of both pages, and a worker that has their plug-ins."""
    with folder() as home:
        made = machine_of(home)
        with with_worker(made, "osbench-worker --processes 1 --plugin-path plugins"):
            yield made


def test_what_rally_is_called_here_runs_as_the_page_says(machine: Machine) -> None:
    first, again, reports, random_times = (
        " ".join(machine.run(step).split()) for step in blocks("coming-from-rally", COMING)
    )

    assert "task.yaml: OK, 1 subtask, 2 workloads" in first
    assert first.count("20 planned = 20 ok") == 2
    # of `sla`, and of the report
    assert (again.count(" passed "), again.count(" met ")) == (2, 2)
    assert again.count("20 planned = 20 ok") == 2
    assert reports.count("From Rally") == 3
    assert re.search(r"(1\d|20) planned = \1 ok", random_times)
    assert (machine.folder / "report.html").exists()


def test_rallys_sample_of_a_runner_runs_as_the_page_says() -> None:
    pytest.importorskip("rally", reason="the extra osbench[rally] is not installed")
    # in local mode: workers have the one plug-in file that the command names
    with folder() as home:
        machine = machine_of(home)

        (said,) = (" ".join(machine.run(step).split()) for step in blocks("rally-runner", COMING))

    assert re.search(r"(1\d) planned = \1 ok", said)


def test_rallys_tasks_and_plugins_run_as_the_page_says(machine: Machine) -> None:
    pytest.importorskip("rally_openstack", reason="the extra osbench[rally] is not installed")

    dummies, queue, _ = (" ".join(machine.run(step).split()) for step in blocks("rally", PAGE))

    assert "40 planned = 40 ok" in dummies
    assert "20 planned = 20 ok" in dummies
    assert "foo" in dummies
    assert "20 planned = 20 ok" in queue
    assert "work" in queue
    (rallys,) = json.loads((machine.folder / "rally.json").read_text("utf-8"))["tasks"]
    assert rallys["subtasks"][0]["workloads"][0]["total_iteration_count"] == 20
    assert "Queue.work" in (machine.folder / "junit.xml").read_text("utf-8")
