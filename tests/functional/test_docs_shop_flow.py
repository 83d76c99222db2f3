"""The flow of a shop of the pages for users of Locust, k6 and JMeter, as far as it can run here."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace

import pytest

from helpers.commands import environment
from helpers.machine import Machine, with_worker
from helpers.readme import REPOSITORY, Block, blocks
from servers import folder
from servers.child import PATIENCE_S

pytestmark = pytest.mark.functional

LOCUST_PAGE, K6_PAGE = "docs/coming-from-locust.md", "docs/coming-from-k6.md"
JMETER_PAGE = "docs/coming-from-jmeter.md"


WORKER = "osbench-worker --processes 1 --plugin-path samples/shop_flow/shopper.py"


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    """A machine with the samples, the shop of all these pages, and a worker."""
    with folder() as home:
        desk = home / "desk"
        desk.mkdir()
        (desk / "samples").symlink_to(REPOSITORY / "samples")
        made = Machine(home, folder=desk, forked=True)
        server, _ = blocks("coming-from-locust", LOCUST_PAGE)
        with made.running(server) as shop, with_worker(made, WORKER):
            made.wait_for_port("8080", shop)
            yield made


def visits(report: str) -> dict[str, int]:
    """How often each step of the flow was made, as a report says."""
    found = re.findall(r"(?:^|> )\s*(look|buy|list|item|order) +(\d+) ", report, re.M)
    return {step: int(count) for step, count in found}


def details(machine: Machine, block: Block) -> str:
    """Return the report of the last run with all figures."""
    return machine.run(replace(block, text="osbench-coord results --details\n"))


def assert_flow(report: str) -> None:
    made = visits(report)
    assert "100 planned = 100 ok" in report
    assert made["look"] + made["buy"] == 100
    # 3 of 4 are expected
    assert made["look"] > made["buy"] > 0
    assert made["list"] == made["item"] == made["look"]
    assert made["order"] == made["buy"]
    assert "percentile: p95 of buy > order" in report
    assert "4 started" in report


def test_the_class_runs_as_the_page_for_users_of_locust_says(machine: Machine) -> None:
    _, first = blocks("coming-from-locust", LOCUST_PAGE)

    shown = machine.run(first)

    assert "shopper.yaml: OK, 1 subtask, 1 workload" in shown
    once, _, report = shown.partition("\nExit code 0")
    assert "200 OK in" in once
    assert "100 planned = 100 ok" in report
    assert_flow(details(machine, first))


def test_the_flow_without_code_runs_as_the_page_for_users_of_k6_says(machine: Machine) -> None:
    _, first, others = blocks("coming-from-k6", K6_PAGE)

    machine.run(first)
    assert_flow(details(machine, first))
    reports = " ".join(machine.run(others).split())

    assert reports.count("Exit code 0") == 1
    assert " stage" in reports
    assert reports.count("100 planned = 100 ok") == 1
    assert reports.rstrip().endswith("exit code 1")
    (machine.folder / "report.html").unlink()


def test_the_plan_runs_as_the_page_for_users_of_jmeter_says(machine: Machine) -> None:
    _, first = blocks("coming-from-jmeter", JMETER_PAGE)

    shown = machine.run(first)

    assert "plan.yaml: OK, 1 subtask, 1 workload" in shown
    once, end, report = shown.partition("\nExit code 0")
    assert "POST " in once
    assert "200 OK in" in once
    assert end
    assert "percentile: p95 of item" in report
    assert "4 started" in details(machine, first)
    assert (machine.folder / "report.html").exists()


def test_the_locust_file_runs_where_there_is_locust(machine: Machine) -> None:
    # that of a clone whose bench has run
    bench = REPOSITORY / ".venv-bench" / "bin" / "locust"
    locust = str(bench) if bench.exists() else shutil.which("locust")
    if locust is None:
        pytest.skip("Locust is not installed: `make bench` makes an environment with it")
    url = machine.text("http://127.0.0.1:8080")
    seed = ["curl", "--silent", "--data", '{"name": "lamp"}', f"{url}/items"]
    subprocess.run(seed, check=True, capture_output=True)
    done = subprocess.run(
        [
            *(locust, "--headless", "--json", "--only-summary", "--host", url),
            *("--locustfile", str(REPOSITORY / "samples" / "shop_flow" / "locustfile.py")),
            *("--users", "4", "--spawn-rate", "4", "--run-time", "3s"),
        ],
        env=environment(machine.home),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    made = {one["name"]: one for one in json.loads(done.stdout)}
    assert set(made) == {"login", "list", "item", "order"}
    assert not any(one["num_failures"] for one in made.values())
