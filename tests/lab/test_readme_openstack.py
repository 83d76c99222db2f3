"""The tutorial for a first cloud, word by word: load on a real Keystone, every iteration traced."""

from __future__ import annotations

import csv
import io
import itertools
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from osprofiler.drivers import base

from helpers.commands import LENIENT, coord, environment
from helpers.readme import REPOSITORY, blocks
from servers import folder
from services.lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]

#: Iterations of each workload, and the rate of the second, of the sample task.
TIMES, RATE = 40, 4


@dataclass(frozen=True, kw_only=True)
class Run:
    """Results that a user has after the tutorial."""

    printed: str
    result: dict[str, Any]
    rows: list[dict[str, str]]


@pytest.fixture(scope="module")
def run(keystone: Lab) -> Iterator[Run]:
    """The tutorial, typed by a user who has the file that a cloud gives its users."""
    commands = "\n".join(block.text for block in blocks("openstack", "docs/first-cloud.md"))
    with folder() as home:
        (home / "openrc").write_text(keystone.openrc())
        (home / ".osbench").mkdir(mode=0o700)
        (home / ".osbench" / "osbench.conf").write_text("[worker]\nprocesses = 2\n")
        done = subprocess.run(
            ["bash", "-ec", commands],
            cwd=REPOSITORY,
            env=environment(home) | LENIENT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        result = coord(home, "results", "last", "--json").stdout
        rows = coord(home, "results", "last", "--csv").stdout

        # neither what was printed nor what a run keeps holds the password or the key
        texts = (done.stdout, done.stderr, result, rows)
        kept = [path.read_bytes() for path in (home / ".osbench/runs").rglob("*") if path.is_file()]
        for secret in (keystone.password, keystone.hmac_key, keystone.traces.password):
            assert not any(secret in text for text in texts)
            assert not any(secret.encode() in content for content in kept)
        yield Run(
            printed=done.stdout,
            result=json.loads(result),
            rows=list(csv.DictReader(io.StringIO(rows))),
        )


def spans(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All spans below a node of a report."""
    for child in node["children"]:
        yield child
        yield from spans(child)


def named(node: dict[str, Any], name: str, project: str) -> list[dict[str, Any]]:
    """The spans of that name and project below a node."""
    return [
        span
        for span in spans(node)
        if (span["info"]["name"], span["info"]["project"]) == (name, project)
    ]


def test_a_cloud_is_loaded_as_readme_says(run: Run) -> None:
    assert "Exit code 0" in run.printed
    assert f"{TIMES} planned = {TIMES} ok" in run.printed
    *_, explained = run.printed.split("Exit code 0")
    assert "slow traces" in explained


def test_every_iteration_is_ok_and_accounted_for(run: Run) -> None:
    assert run.result["exit_code"] == 0
    assert [workload["name"] for workload in run.result["workloads"]] == [
        "Authenticate.keystone",
        "Authenticate.keystone",
    ]
    for workload in run.result["workloads"]:
        accounting = workload["accounting"]
        assert (accounting["planned"], accounting["ok"]) == (TIMES, TIMES)
        assert workload["latency"]["service"]["ok"]["count"] == TIMES
        assert workload["actions"]["authenticate.keystone"]["ok"]["count"] == TIMES
        (criterion,) = workload["sla"]
        assert (criterion["criterion"], criterion["success"]) == ("failure_rate", True)
        assert len(workload["workers"]) == 2
    for number in ("0", "1"):
        iterations = [int(row["iteration"]) for row in run.rows if row["workload"] == number]
        assert sorted(iterations) == list(range(1, TIMES + 1))
    assert {row["outcome"] for row in run.rows} == {"ok"}


def test_the_rate_is_the_one_that_was_asked_for(run: Run) -> None:
    due_s = sorted(float(row["due_s"]) for row in run.rows if row["workload"] == "1")

    gaps = [later - earlier for earlier, later in itertools.pairwise(due_s)]

    assert gaps == pytest.approx([1 / RATE] * (TIMES - 1), abs=1e-3)


def test_every_iteration_has_a_separate_trace(run: Run) -> None:
    trace_ids = {row["trace_id"] for row in run.rows}

    assert len(trace_ids) == 2 * TIMES
    for workload in run.result["workloads"]:
        assert workload["tracing"]["state"] == "on"
        assert workload["tracing"]["traced"] == TIMES
        assert workload["tracing"]["spans_dropped"] == 0


def test_traces_hold_keystones_spans_under_those_of_the_iteration(run: Run, keystone: Lab) -> None:
    for row in run.rows:
        # A driver adds each report that it makes to the last.
        report = base.get_driver(keystone.trace_store, conf={}).get_report(row["trace_id"])

        (root,) = report["children"]
        assert root["info"]["name"] == "osbench.iteration"
        assert root["info"]["project"] == "osbench"
        (action,) = named(root, "authenticate.keystone", "osbench")
        requests = named(action, "wsgi", "keystone")
        assert requests == named(report, "wsgi", "keystone")
        statements = [span for request in requests for span in named(request, "db", "keystone")]
        assert len(statements) >= 3
        assert statements == named(report, "db", "keystone")
