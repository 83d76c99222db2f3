"""The iterations of a run directory, as the ledger counted them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

from helpers.result_rows import MS, row
from helpers.stored_runs import WORKER, block, stored_run
from osbench.common.plugin.exporter import json_values
from osbench.common.protocol.columns import COLUMNS, Column, changed_row
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.report.iterations import iterations
from osbench.coordinator.report.model.model import Report, WorkloadReport
from osbench.coordinator.results.accounting.worker_figures import WorkerFigures
from osbench.coordinator.results.storage.frames import FrameFile
from osbench.coordinator.results.storage.run_directory import RunDirectory

TRACE = bytes(range(16))
BOOM = (3, "Boom", 'no "route", sorry', "")


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[RunDirectory]:
    found = RunDirectory.create(str(tmp_path), "20260401-a")
    yield found
    found.close()


def kept(directory: RunDirectory, *bodies: dict[str, Any]) -> list[tuple[int, int, str]]:
    """Workload, iteration and outcome of each row of these blocks."""
    directory.keep(bodies)
    return [(one.workload, one.iteration, one.outcome) for one in iterations(directory)]


def test_a_row_has_all_that_is_known(tmp_path: Path) -> None:
    run = stored_run(
        tmp_path,
        [
            row(1, due=-1, started=2, ended=5002, idle=1, trace=TRACE),
            row(2, outcome=Outcome.FAILED, due=1, started=1, ended=4, failure=1),
            row(3, outcome=Outcome.DROPPED_LATE, due=9),
        ],
    )

    ok, failed, dropped = run.rows()

    assert (ok.workload, ok.iteration, ok.outcome, ok.state) == (0, 1, "ok", "ok")
    assert (ok.due_s, ok.started_s) == (-0.001, 0.002)
    assert (ok.service_s, ok.response_s, ok.start_lag_s) == (4.999, 5.002, 0.003)
    assert ok.service_ns == 4999 * MS
    assert ok.trace_id == "00010203-0405-0607-0809-0a0b0c0d0e0f"
    assert (ok.error_type, ok.error, ok.worker, ok.warmup) == ("", "", "=rack", False)
    assert (failed.state, failed.error_type) == ("failed", "GatewayTimeout")
    assert failed.error.startswith("HTTP 504")
    assert (dropped.outcome, dropped.state) == ("dropped_late", "dropped")
    assert dropped.due_s == 0.009
    assert (dropped.started_s, dropped.service_s, dropped.response_s) == (None, None, None)


@pytest.mark.parametrize("column", COLUMNS, ids=lambda one: one.name)
def test_each_number_of_a_block_is_in_the_exports(directory: RunDirectory, column: Column) -> None:
    plain = row(1, due=1, started=2, ended=9)
    other = changed_row(plain, **{column.name: 2 if column.name != "failure" else BOOM[0]})

    directory.keep(
        block([one], workload=number, failures=[BOOM]) for number, one in enumerate((plain, other))
    )
    one, two = (json_values(found._replace(workload=0), None) for found in iterations(directory))

    assert one != two


def test_rows_can_be_read_again(tmp_path: Path) -> None:
    run = stored_run(tmp_path, [row(1), row(2)])

    assert list(run.rows()) == list(run.rows())


def test_the_first_row_of_an_iteration_counts(directory: RunDirectory) -> None:
    found = kept(
        directory,
        block([row(1)], worker="w1"),
        block([row(1, outcome=Outcome.FAILED), row(2), row(2, outcome=Outcome.FAILED)]),
        block([row(1, outcome=Outcome.FAILED)], workload=1),
    )

    assert found == [(0, 1, "ok"), (0, 2, "ok"), (1, 1, "failed")]


def test_an_error_is_that_of_its_worker(directory: RunDirectory) -> None:
    failed = {"outcome": Outcome.FAILED, "failure": 3}
    directory.keep(
        [
            block([row(1, **failed)], worker="w1", failures=[BOOM]),
            block([row(2, **failed)], worker="w1"),
            block([row(3, **failed)], worker="w2"),
            block([], worker="w2", failures=[(3, "Other", "x", "")]),
            block([row(4, **failed)], worker="w2"),
        ]
    )

    assert [one.error_type for one in iterations(directory)] == ["Boom", "Boom", "", "Other"]


def test_what_the_coordinator_dropped_is_among_them(directory: RunDirectory) -> None:
    dues = np.array([7 * MS, -(1 << 60)], "<i8").tobytes()
    directory.decide(
        [
            {
                "do": "drop",
                "workload": 0,
                "numbers": [[2, 4]],
                "dues": dues,
                "why": "coordinator_gone",
            },
            # without instants
            {"do": "drop", "workload": 1, "numbers": [[1, 2]]},
        ]
    )

    found = kept(directory, block([row(1)]))

    assert found == [
        (0, 2, "dropped_coordinator_gone"),
        (0, 3, "dropped_coordinator_gone"),
        (1, 1, "dropped_worker_lost"),
        (0, 1, "ok"),
    ]
    assert [one.due_ns for one in iterations(directory)] == [7 * MS, None, None, 0]


def test_what_comes_first_decides_a_row_or_that_the_coordinator_dropped_it(
    directory: RunDirectory,
) -> None:
    directory.keep([block([row(1)])])
    directory.decide([{"do": "drop", "workload": 0, "numbers": [[1, 3]]}])

    found = kept(directory, block([row(1), row(2), row(3)]))

    assert found == [(0, 1, "ok"), (0, 2, "dropped_worker_lost"), (0, 3, "ok")]


def test_a_drop_of_an_older_release_comes_after_all_rows(directory: RunDirectory) -> None:
    record = {"do": "drop", "workload": 0, "numbers": [[1, 3]]}
    journal = FrameFile(directory.path / "journal")
    journal.append([msgpack.packb(record)])
    journal.close()

    found = kept(directory, block([row(1)]))

    assert found == [(0, 1, "ok"), (0, 2, "dropped_worker_lost")]


def test_a_block_of_another_shape_is_left_out_as_the_run_did(directory: RunDirectory) -> None:
    broken = block([row(1)])
    broken["columns"]["due"] = b"1234"

    found = kept(
        directory,
        broken,
        {**block([row(2)]), "failures": [[1, "too short"]]},
        block([row(3)]),
    )

    assert found == [(0, 3, "ok")]


def test_workers_are_called_by_label_or_by_host_and_pid(directory: RunDirectory) -> None:
    directory.keep([block([row(at)], worker=name) for at, name in enumerate("abc", start=1)])
    workers = (
        WorkerFigures(incarnation="a", host="node1", pid=7, label="rack"),
        WorkerFigures(incarnation="b", host="node1", pid=8),
    )
    report = Report(workloads=(WorkloadReport(name="w", workers=workers),))

    found = iterations(directory, report)

    assert [one.worker for one in found] == ["rack", "node1:8", "c"]


def test_the_warm_up_is_marked(directory: RunDirectory) -> None:
    directory.write("run.json", {"workloads": [{"warmup": 0.01}]})
    directory.keep(
        [
            block(
                [
                    row(1, due=9, started=10),
                    row(2, due=9, started=9),
                    row(3, due=9, outcome=Outcome.DROPPED_LATE),
                    row(4, due=10, outcome=Outcome.DROPPED_LATE),
                ],
                worker=WORKER,
            )
        ]
    )

    assert [one.warmup for one in iterations(directory)] == [False, True, True, False]
