"""The commands of the how-to pages and the plug-in guide do what the pages say."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from helpers.machine import Machine
from helpers.readme import REPOSITORY, Block, blocks, files
from servers import folder

pytestmark = pytest.mark.functional

TASKS, LOAD, PLUGIN_GUIDE = "docs/tasks.md", "docs/load.md", "docs/plugin-guide.md"


@pytest.fixture
def machine() -> Iterator[Machine]:
    """A machine with the samples and an empty folder to type in."""
    with folder() as home:
        desk = home / "desk"
        desk.mkdir()
        (desk / "samples").symlink_to(REPOSITORY / "samples")
        yield Machine(home, folder=desk)


def page(machine: Machine, story: str, document: str) -> list[Block]:
    """Write the files of a page, and return the blocks of its story."""
    for name, text in files(document).items():
        (machine.folder / name).write_text(machine.text(text), encoding="utf-8")
    return blocks(story, document)


def test_the_page_on_tasks(machine: Machine) -> None:
    scenario, server, *steps = page(machine, "tasks", TASKS)

    with machine.running(server) as shop:
        machine.wait_for_port("8080", shop)
        outputs = [" ".join(machine.run(step).split()) for step in (scenario, *steps)]

    alone, first, changed, picked, mix, left, deployments = outputs
    assert "40 = 40 + 0" in alone
    assert "200 = 200 + 0" in first
    assert "100 = 100 + 0" in changed
    assert '"ok": true, "subtasks": 1, "workloads": 1' in picked
    assert "100 = 100 + 0" in mix
    assert "0 of 0 contexts" in left
    assert "100 = 100 + 0" in deployments


def test_the_page_on_flows(machine: Machine) -> None:
    server, flow = page(machine, "flows", "docs/flows.md")

    with machine.running(server) as shop:
        machine.wait_for_port("8080", shop)
        shown = " ".join(machine.run(flow).split())

    assert "100 = 100 + 0" in shown
    assert "> order" in shown


def test_the_page_on_loads(machine: Machine) -> None:
    _, server, *_ = page(machine, "tasks", TASKS)
    search, plan = page(machine, "load", LOAD)

    with machine.running(server) as shop:
        machine.wait_for_port("8080", shop)
        capacity, planned = (" ".join(machine.run(step).split()) for step in (search, plan))

    assert "40/s sustained, the highest rate that was tried: raise `high`" in capacity
    assert "calibrated by run" in planned
    assert "not calibrated: cost and service time are as they were given" in planned
    assert "CPU per iteration" in planned


def test_the_page_on_limits(machine: Machine) -> None:
    (plugins,) = page(machine, "limits", "docs/limits.md")

    shown = machine.run(plugins)

    assert "failure_rate" in shown
    assert "max_s" in shown


def test_the_page_on_results(machine: Machine) -> None:
    _, server, *_ = page(machine, "tasks", TASKS)
    steps = page(machine, "results", "docs/results.md")

    with machine.running(server) as shop:
        machine.wait_for_port("8080", shop)
        once, background, results, errors, charts = (
            " ".join(machine.run(step).split()) for step in steps
        )

    desk = machine.folder
    assert "200 OK in" in once
    assert "Exit code 130" in background
    assert json.loads((desk / "result.json").read_text("utf-8"))["exit_code"] == 0
    assert len((desk / "iterations.csv").read_text("utf-8").splitlines()) == 101
    assert json.loads((desk / "rally.json").read_text("utf-8"))["tasks"]
    assert "nightly" in results
    assert "iteration 1: ok after" in errors
    assert "no errors" in errors
    assert "100 = 100 + 0" in charts


def test_the_plugin_guide_in_local_mode_and_with_a_worker(machine: Machine) -> None:
    first, shop, *stories, samples, by_hand, worker = blocks("plugin-guide", PLUGIN_GUIDE)
    customers, requests, coroutines = stories
    redis, configure, *_ = blocks("scale-out", "docs/many-hosts.md")

    greeted = machine.run(first)
    with machine.running(shop) as terminal:
        machine.wait_for_port("8080", terminal)
        bought = machine.run(customers)
        shopped = machine.run(requests)
        looked = machine.run(coroutines)
    machine.run(by_hand)
    with machine.running(redis):
        machine.run(configure)
        with machine.running(worker) as terminal:
            machine.wait_for_workers(terminal, 1)
            ran = machine.run(samples)

    assert "Say hello" in greeted
    assert "20 = 20" in greeted
    assert "40 = 40 + 0" in " ".join(bought.split())
    assert "4 started" in bought
    assert "POST /orders: $.by: failed" in " ".join(bought.split())
    assert "20 = 20" in shopped
    assert "shop.add" in shopped
    assert "400 = 400 + 0" in " ".join(looked.split())
    assert "failures_in_a_row" in ran
    assert "p50 of 80 iterations is between" in ran
    assert "bursts" in ran
    assert "80 = 80" in ran
    assert "Exit code 0" in ran
    slowest = (machine.folder / "slow.txt").read_text("utf-8").splitlines()
    assert len(slowest) == 6
    # which of its two workloads has the slowest iteration is up to the disk and the processor
    assert all("Files.write_and_read" in line or "Checksum" in line for line in slowest[1:])
    times = [float(line.split()[0]) for line in slowest[1:]]
    assert times == sorted(times, reverse=True)


def test_a_load_is_changed_as_the_page_on_loads_says(machine: Machine) -> None:
    (changes,) = blocks("control", LOAD)

    report = " ".join(machine.run(changes).split())

    assert "20/s: " in report
    assert "200/s: " in report
    assert "Exit code 130" in report


def test_the_page_on_exporters(machine: Machine) -> None:
    for step in blocks("exporters", "docs/exporters.md"):
        machine.run(step)

    desk = machine.folder
    written = {str(path.relative_to(desk)) for path in desk.rglob("*") if path.is_file()}
    assert written >= {
        *("junit.xml", "iterations.csv", "result.json", "latency.hlog"),
        *("reports/times.csv", "reports/osbench.prom"),
        *("report.html", "ci/report.html", "ci/junit.xml", "ci/iterations.csv", "ci/results.json"),
    }
    assert len((desk / "ci" / "iterations.csv").read_text("utf-8").splitlines()) == 201
    assert len((desk / "ci" / "results.json").read_text("utf-8").splitlines()) == 1


def test_the_page_on_operations_when_a_coordinator_dies(machine: Machine) -> None:
    redis, configure, worker, *_ = blocks("scale-out", "docs/many-hosts.md")
    (story,) = blocks("coordinator-dies", "docs/faults.md")

    with machine.running(redis):
        machine.run(configure)
        with machine.running(worker) as terminal:
            machine.wait_for_workers(terminal, 1)
            shown = " ".join(machine.run(story).split())

    assert "its coordinator was killed" in shown
    assert "goes on with it; its workers wait until" in shown
    assert "waits for resume" in shown
    assert "400 = 400 + 0" in shown
    assert "Exit code 0" in shown
