"""Counters of a run beside its iterations: in what `trace explain` and the summary say."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from helpers.planted_counters import counters_of, queue, share, wandering
from helpers.result_rows import row
from osbench.common.protocol.columns import encode_rows
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.traces.analysis.explanation import Explanation, explain
from osbench.edges.traces.collection.iteration_counters import iteration_counters
from osbench.edges.traces.collection.trace_set import of_iterations
from osbench.edges.traces.counters.counter_file import write_counters
from osbench.edges.traces.counters.counter_series import WorkloadCounters
from osbench.edges.traces.output.trace_text import show_explanation

POINTS = 120
BURSTS = np.concatenate([np.arange(one, one + 3) for one in (10, 37, 71)])


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[RunDirectory]:
    """A run of two workloads; iterations of the second are slow in three bursts."""
    made = RunDirectory.create(str(tmp_path), "20260401-101500-abcd")
    chance = np.random.default_rng(3)
    for workload in (0, 1):
        rows = []
        for number in range(1, 3001):
            due = 40 * number
            slow = workload == 1 and due // 1000 in BURSTS and chance.random() < 0.4
            took = int(chance.uniform(250, 300) if slow else chance.uniform(8, 14))
            rows.append(
                row(
                    number,
                    outcome=Outcome.OK,
                    due=due,
                    started=due,
                    ended=due + took,
                    actions=(("buy", -1, due, due + took, 0),),
                    names=("buy",),
                )
            )
        for part in (rows[1500:], rows[:1500]):
            columns = encode_rows(part, ("buy",), 0)
            body = {"workload": workload, "incarnation": "w", "columns": columns, "failures": []}
            made.keep([body])
    names = [{"name": name, "warmup": {"seconds": 0}} for name in ("calm", "shop")]
    made.write("summary.json", {"workloads": names})
    yield made
    made.close()


def planted(level: float = 0.98) -> WorkloadCounters:
    chance = np.random.default_rng(7)
    busy = 0.4 + 0.02 * wandering(chance, POINTS)
    busy[BURSTS] = level
    other = 0.5 + 0.02 * wandering(chance, POINTS)
    return counters_of(
        share("CPU", "db1", busy),
        share("CPU", "api1", other),
        queue("messages ready", "mq1", np.exp(wandering(chance, POINTS))),
    )


def explained(directory: RunDirectory, **counters: WorkloadCounters) -> Explanation:
    write_counters(directory, {int(name[1:]): one for name, one in counters.items()})
    trace_set = of_iterations(directory)
    return explain(trace_set.features, counters=trace_set.counters())


def text_of(found: Explanation) -> str:
    file = io.StringIO()
    show_explanation(Console(file=file, width=400), found)
    return file.getvalue()


def test_the_resource_that_was_full_is_told_behind_the_cause(directory: RunDirectory) -> None:
    found = explained(directory, w0=planted(), w1=planted())

    calm, shop = sorted(found.answers, key=lambda one: one.name)
    assert shop.sentence.endswith(" While they ran, CPU of db1 was at 85 % (others: 43 %).")
    (cause,) = shop.resources
    assert (cause.host, cause.p < 0.04) == ("db1", True)
    assert (shop.watched, calm.watched) == (3, 3)
    # in the other workload slow iterations are at any time
    assert calm.resources == ()
    assert "None of 3 counters of the system under test is clearly higher then" in text_of(found)


def test_without_counters_nothing_is_said_of_them(directory: RunDirectory) -> None:
    trace_set = of_iterations(directory)

    assert trace_set.counters() is None
    said = text_of(explain(trace_set.features, counters=trace_set.counters()))
    assert "While they ran" not in said
    assert "system under test" not in said


def test_counters_of_one_workload_are_not_those_of_another(directory: RunDirectory) -> None:
    found = explained(directory, w0=planted())

    assert {one.name: one.watched for one in found.answers} == {"calm": 3, "shop": 0}
    assert "While they ran" not in text_of(found)


def test_an_iteration_is_placed_by_its_first_row_that_ran(tmp_path: Path) -> None:
    def rows_of(*some: tuple[int, Outcome, int]) -> dict[str, object]:
        rows = [
            row(number, outcome=outcome, due=0, started=started, ended=started + 5)
            for number, outcome, started in some
        ]
        columns = encode_rows(rows, (), 0)
        return {"workload": 0, "incarnation": "w", "columns": columns, "failures": []}

    directory = RunDirectory.create(str(tmp_path), "20260401-101500-abcd")
    with contextlib.closing(directory):
        directory.keep([rows_of((1, Outcome.DROPPED_LATE, 1), (2, Outcome.OK, 10))])
        directory.keep([rows_of((1, Outcome.OK, 30), (2, Outcome.OK, 70))])
        directory.keep([rows_of((1, Outcome.DROPPED_LATE, 90))])
        directory.write("summary.json", {"workloads": [{"name": "w", "warmup": {"seconds": 0}}]})

        features = of_iterations(directory).features
        found = iteration_counters(directory, features, {0: planted()})

    assert found is not None
    assert dict(zip(features.iteration.tolist(), found.started_s.tolist(), strict=True)) == {
        1: pytest.approx(30e-3),
        2: pytest.approx(10e-3),
    }
