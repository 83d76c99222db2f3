"""The lines of `status --follow`, and the exit code of `wait`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from osbench.common.errors import DamagedRun
from osbench.coordinator.front.cli.run_views.following import exit_code, lines
from osbench.coordinator.results.storage import failure
from osbench.coordinator.results.storage.run_directory import RunDirectory

NOTE: dict[str, Any] = {
    "workload": 0,
    "name": "Shop.buy",
    "phase": "running",
    "elapsed_s": 12.0,
    "planned": 5000,
    "settled": 1200,
    "busy": 4,
    "away": "",
}
RECENT = {
    "span_s": 10.0,
    "rate": 120.0,
    "p50_s": 0.0101,
    "p95_s": 0.02,
    "failed": 12,
    "failed_share": 0.01,
    "error": "Refused: no more",
}


def test_a_line_says_what_happened_lately() -> None:
    (line,) = lines({**NOTE, "recent": RECENT})

    assert line == (
        "[  12.0 s] Shop.buy running: 1,200 of 5,000 done, 4 in flight; last 10 s: 120/s, "
        "p50 10.1 ms, p95 20.0 ms, 12 failed (1.0%), most with Refused: no more"
    )


def test_a_line_says_that_users_cannot_start() -> None:
    (line,) = lines({**NOTE, "start_failures": 3})

    assert line.endswith("4 in flight, 3 starts of users failed")


def test_workloads_at_once_have_a_line_each_and_contexts_have_theirs() -> None:
    contexts = {**NOTE, "workload": -1, "name": "contexts", "phase": "users", "planned": 3}

    found = lines(
        {**contexts, "settled": 2, "beside": [{**NOTE, "away": "the broker at x", "planned": None}]}
    )

    assert found == [
        "[  12.0 s] contexts users: 2 of 3 done",
        "[  12.0 s] Shop.buy running: 1,200 done, 4 in flight, unreachable: the broker at x",
    ]


def test_a_run_without_a_report_has_the_code_of_its_failure_or_3(tmp_path: Path) -> None:
    directory = RunDirectory.create(str(tmp_path), "r")

    assert exit_code(directory) == 3
    failure.keep(directory, KeyboardInterrupt())
    assert exit_code(directory) == 130
    directory.write("failure.json", {"message": "no worker", "exit_code": 2})
    assert exit_code(directory) == 2
    (directory.path / "failure.json").write_text("{broken")
    assert exit_code(directory) == DamagedRun.exit_code
    directory.close()
