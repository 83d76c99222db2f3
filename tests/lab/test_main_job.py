"""The main job: load on a real Keystone from two worker processes, every iteration traced."""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from osprofiler.drivers import base

from helpers.commands import coord
from services.lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]

TIMES = 24

TASK = f"""
version: 2
title: Tokens
subtasks:
  - title: Four users who never pause
    scenario: {{Authenticate.keystone: {{}}}}
    runner: {{constant: {{times: {TIMES}, concurrency: 4}}}}
  - title: Three a second
    scenario: {{Authenticate.keystone: {{}}}}
    runner: {{rps: {{times: {TIMES}, rps: 3}}}}
"""


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a user has in hand after a run."""

    result: dict[str, Any]
    rows: list[dict[str, str]]


@pytest.fixture(scope="module")
def run(keystone: Lab, tmp_path_factory: pytest.TempPathFactory) -> Run:
    home = tmp_path_factory.mktemp("main-job")
    (home / ".osbench").mkdir(mode=0o700)
    # Keystone and the workers share the machine: how late they are is not what is tested.
    (home / ".osbench" / "osbench.conf").write_text(
        "[benchmark]\nlag_limit_s = 10\nmax_lag_s = 60\n[worker]\nprocesses = 2\n"
    )
    (home / "lab.json").write_text(json.dumps(keystone.deployment()))
    (home / "task.yaml").write_text(TASK)

    created = coord(home, "deployment", "create", "--name", "lab", "--file", "lab.json")
    assert created.returncode == 0, created.stderr
    ran = coord(home, "run", "task.yaml", "--json", "--deployment", "lab", "--workers", "2")
    assert ran.returncode == 0, ran.stderr + ran.stdout
    result = json.loads(ran.stdout)
    rows = coord(home, "results", result["run_id"], "--csv")
    assert rows.returncode == 0, rows.stderr
    assert_tells_no_secret(keystone, home, created.stdout, ran.stdout, ran.stderr, rows.stdout)
    return Run(result=result, rows=list(csv.DictReader(io.StringIO(rows.stdout))))


def assert_tells_no_secret(keystone: Lab, home: Path, *texts: str) -> None:
    """Neither what was printed nor what a run keeps holds the password or the key."""
    kept = [path.read_bytes() for path in (home / ".osbench/runs").rglob("*") if path.is_file()]
    for secret in (keystone.password, keystone.hmac_key, keystone.traces.password):
        assert not any(secret in text for text in texts)
        assert not any(secret.encode() in content for content in kept)


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
    for number in ("0", "1"):
        iterations = [int(row["iteration"]) for row in run.rows if row["workload"] == number]
        assert sorted(iterations) == list(range(1, TIMES + 1))
    assert {row["outcome"] for row in run.rows} == {"ok"}


def test_two_worker_processes_share_the_load(run: Run) -> None:
    for workload in run.result["workloads"]:
        assert len(workload["workers"]) == 2


def test_the_rate_is_the_one_that_was_asked_for(run: Run) -> None:
    due_s = sorted(float(row["due_s"]) for row in run.rows if row["workload"] == "1")

    gaps = [later - earlier for earlier, later in itertools.pairwise(due_s)]

    assert gaps == pytest.approx([1 / 3] * (TIMES - 1), abs=1e-3)


def test_every_iteration_has_a_trace_of_its_own(run: Run) -> None:
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
        assert len(statements) >= 10
        assert statements == named(report, "db", "keystone")
