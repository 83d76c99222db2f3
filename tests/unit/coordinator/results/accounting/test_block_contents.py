"""Blocks that a run refused change nothing that is read from its directory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.result_rows import row
from helpers.stored_runs import block
from osbench.common.errors import Untrusted
from osbench.common.protocol.messages import Block
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.plugins.sla.evaluator import SlaEvaluator
from osbench.coordinator.report import iterations
from osbench.coordinator.results.accounting.block_contents import counted_rows
from osbench.coordinator.results.accounting.workload_results import WorkloadResults
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.rally.results import rally_rows
from osbench.edges.traces.collection.client_times import client_times
from osbench.edges.traces.collection.traced_iterations import traced_iterations

TRACE = bytes(range(16))
SPOILT: list[dict[str, Any]] = [
    {"columns": {"rows": 3}},
    {"failures": [[2**32, "ValueError", "", ""]]},
    {"returned": [[4, "six"]]},
    {"lags": b"123"},
    {"thread_lags": b"123"},
    {"blocked": [["a", -1]]},
    {"stalls": [["a"]]},
    {"asides": [["a", "b"]]},
    {"life": [[1, 1, 0]]},
]
#: The numbers of iterations that each reader finds.
READERS: dict[str, Callable[[RunDirectory], list[int]]] = {
    "rows": lambda run: [n for *_, rows in counted_rows(run) for n in rows.iteration.tolist()],
    "exports": lambda run: [one.iteration for one in iterations.iterations(run)],
    "rally": lambda run: [len(list(rally_rows.iterations(run, 0, 0.0)))] * 2,
    "traces": lambda run: traced_iterations(run, 1, {})[0].iteration.tolist(),
    "client": lambda run: client_times(run, ["w"], {}, [0]).features.iteration.tolist(),
}


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[RunDirectory]:
    found = RunDirectory.create(str(tmp_path), "20260401-a")
    found.write("run.json", {"workloads": [{}]})
    yield found
    found.close()


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize("spoilt", SPOILT, ids=lambda one: next(iter(one)))
def test_a_block_that_the_run_refused_is_in_no_figure(
    directory: RunDirectory, spoilt: dict[str, Any], read: Callable[[RunDirectory], list[int]]
) -> None:
    refused = block([row(1, trace=TRACE)]) | spoilt
    directory.keep([refused, block([row(number, trace=TRACE) for number in (2, 3)])])
    live = WorkloadResults(idempotent=False, sla=SlaEvaluator((), None))

    with pytest.raises(Untrusted):
        live.add(Block(run="r", membership="m", number=1, **refused))
    assert read(directory) in ([2, 3], [2, 2])


@pytest.mark.parametrize("workload", [-1, 1])
def test_a_block_of_a_workload_that_the_run_does_not_have_is_in_no_figure(
    directory: RunDirectory, workload: int
) -> None:
    directory.keep([block([row(1)], workload=workload), block([row(2)])])

    assert READERS["rows"](directory) == READERS["exports"](directory) == [2]


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_a_block_with_an_error_of_a_lacking_resource_counts(
    directory: RunDirectory, read: Callable[[RunDirectory], list[int]]
) -> None:
    lacking = (1, "OSError", "too many open files", "", "open files")
    failed = row(2, outcome=Outcome.FAILED, failure=1, trace=TRACE)
    directory.keep([block([failed, row(3, trace=TRACE)], failures=[lacking])])

    assert read(directory) in ([2, 3], [2, 2])
