"""The commands of the how-to pages and the plug-in guide do what the pages say."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from helpers.machine import Machine, with_worker
from helpers.readme import REPOSITORY, Block, blocks, files
from servers import folder

pytestmark = pytest.mark.functional

TASKS, PLUGIN_GUIDE = "docs/tasks.md", "docs/plugin-guide.md"


@pytest.fixture(scope="module")
def fleet() -> Iterator[Machine]:
    """A machine with the shop of the samples, a Redis, and the worker of the plug-in guide."""
    *_, worker = blocks("plugin-guide", PLUGIN_GUIDE)
    with folder() as home:
        made = desk(Machine(home, forked=True), "plugins")
        server, *_ = blocks("tasks", TASKS)
        with made.running(server) as shop, with_worker(made, worker.text):
            made.wait_for_port("8080", shop)
            yield made


def desk(machine: Machine, name: str) -> Machine:
    """Go to a new folder, which has the samples and nothing else."""
    machine.folder = machine.home / "desks" / name
    machine.folder.mkdir(parents=True)
    (machine.folder / "samples").symlink_to(REPOSITORY / "samples")
    return machine


@pytest.fixture
def machine(fleet: Machine, request: pytest.FixtureRequest) -> Machine:
    """The machine, in a folder of this test."""
    return desk(fleet, request.node.name)


def page(machine: Machine, story: str, document: str) -> list[Block]:
    """Write the files of a page, and return the blocks of its story."""
    for name, text in files(document).items():
        (machine.folder / name).write_text(machine.text(text), encoding="utf-8")
    return blocks(story, document)


def test_the_pages_on_tasks(machine: Machine) -> None:
    _, *steps = page(machine, "tasks", TASKS)
    for name in ("url", "contexts", "deployments"):
        steps += blocks("tasks", f"docs/{name}.md")

    outputs = [" ".join(machine.run(step).split()) for step in steps]

    first, changed, picked, mix, alone, left, deployments = outputs
    assert "200 planned = 200 ok" in first
    assert "100 planned = 100 ok" in changed
    assert '"ok": true, "subtasks": 1, "workloads": 1' in picked
    assert "100 planned = 100 ok" in mix
    assert "40 planned = 40 ok" in alone
    assert "0 of 0 contexts" in left
    assert "100 planned = 100 ok" in deployments


def test_the_page_on_flows(machine: Machine) -> None:
    _, flow = page(machine, "flows", "docs/flows.md")

    shown = " ".join(machine.run(flow).split())

    assert shown.count("100 planned = 100 ok") == 2
    assert "> order" in shown
    assert "page > totals" in shown


def test_the_page_on_the_capacity(machine: Machine) -> None:
    search, users = blocks("load", "docs/capacity.md")

    found = " ".join(machine.run(search).split())
    at_once = " ".join(machine.run(users).split())

    assert "met search: at least 40.0/s, the highest rate that was tried: raise `high`" in found
    assert (
        "met search: at least 8 users, the highest number of users that was tried: raise `high`"
        in at_once
    )


def test_the_page_on_plans(machine: Machine) -> None:
    page(machine, "tasks", TASKS)
    (plan,) = blocks("load", "docs/plan.md")

    planned = " ".join(machine.run(plan).split())

    assert "calibrated by run" in planned
    assert "not calibrated: cost and service time are as they were given" in planned
    assert "CPU per iteration" in planned


def test_the_page_on_limits(machine: Machine) -> None:
    (plugins,) = page(machine, "limits", "docs/limits.md")

    shown = machine.run(plugins)

    assert "failure_rate" in shown
    assert "max_s" in shown


def test_the_page_on_results(machine: Machine) -> None:
    page(machine, "tasks", TASKS)
    steps = page(machine, "results", "docs/results.md")

    once, background, results, errors, charts = (
        " ".join(machine.run(step).split()) for step in steps
    )

    here = machine.folder
    assert "200 OK in" in once
    assert "Exit code 130" in background
    assert json.loads((here / "result.json").read_text("utf-8"))["exit_code"] == 0
    assert len((here / "iterations.csv").read_text("utf-8").splitlines()) == 101
    assert json.loads((here / "rally.json").read_text("utf-8"))["tasks"]
    assert "nightly" in results
    assert "iteration 1: ok after" in errors
    assert "no errors" in errors
    assert "100 planned = 100 ok" in charts


def test_the_plugin_guide_in_local_mode() -> None:
    first, *_ = blocks("plugin-guide", PLUGIN_GUIDE)
    with folder() as home:
        machine = desk(Machine(home, forked=True), "desk")

        greeted = machine.run(first)

        assert not list(home.rglob("osbench.conf"))
    assert "Say hello" in greeted
    assert "20 planned = 20 ok" in greeted


def test_the_plugin_guide_with_a_worker(machine: Machine) -> None:
    _, _, *stories, samples, by_hand, _ = blocks("plugin-guide", PLUGIN_GUIDE)

    bought, shopped, looked = (machine.run(story) for story in stories)
    machine.run(by_hand)
    ran = machine.run(samples)

    assert "40 planned = 40 ok" in " ".join(bought.split())
    assert "4 started" in bought
    assert "POST /orders: $.by: failed" in " ".join(bought.split())
    assert "20 planned = 20 ok" in shopped
    assert "shop.add" in shopped
    assert "400 planned = 400 ok" in " ".join(looked.split())
    assert "failures_in_a_row" in ran
    assert "p50 of 80 iterations is between" in ran
    assert "bursts" in ran
    assert "80 planned = 80 ok" in ran
    assert "Exit code 0" in ran
    slowest = (machine.folder / "slow.txt").read_text("utf-8").splitlines()
    assert len(slowest) == 6
    # which of its two workloads has the slowest iteration is up to the disk and the processor
    assert all("Files.write_and_read" in line or "Checksum" in line for line in slowest[1:])
    times = [float(line.split()[0]) for line in slowest[1:]]
    assert times == sorted(times, reverse=True)


def test_a_load_is_changed_as_the_page_says(machine: Machine) -> None:
    (changes,) = blocks("control", "docs/control.md")

    report = " ".join(machine.run(changes).split())

    assert "20/s: " in report
    assert "200/s: " in report
    assert "Exit code 130" in report


def test_the_page_on_exporters(machine: Machine) -> None:
    for step in blocks("exporters", "docs/exporters.md"):
        machine.run(step)

    here = machine.folder
    written = {str(path.relative_to(here)) for path in here.rglob("*") if path.is_file()}
    assert written >= {
        *("junit.xml", "iterations.csv", "result.json", "latency.hlog"),
        *("reports/times.csv", "reports/osbench.prom"),
        *("report.html", "ci/report.html", "ci/junit.xml", "ci/iterations.csv", "ci/results.json"),
    }
    assert len((here / "ci" / "iterations.csv").read_text("utf-8").splitlines()) == 201
    assert len((here / "ci" / "results.json").read_text("utf-8").splitlines()) == 1


def test_the_page_on_operations_when_a_coordinator_dies(machine: Machine) -> None:
    (story,) = blocks("coordinator-dies", "docs/faults.md")

    shown = " ".join(machine.run(story).split())

    assert "its coordinator was killed" in shown
    assert "continues it; its workers wait until" in shown
    assert "waits for resume" in shown
    assert "400 planned = 400 ok" in shown
    assert "Exit code 0" in shown
