"""Makes all statements on a workload, in the order in which the terminal shows them."""

from __future__ import annotations

from collections.abc import Iterator

from osbench.coordinator.report.model.model import WorkloadReport
from osbench.coordinator.report.statements.breakdown_statements import breakdown_statements
from osbench.coordinator.report.statements.counter_statements import counter_statements
from osbench.coordinator.report.statements.drill_statements import drill_statements
from osbench.coordinator.report.statements.iteration_statements import (
    check_statements,
    error_statements,
    output_statements,
    request_statements,
    trace_statements,
)
from osbench.coordinator.report.statements.load_statements import load_statements
from osbench.coordinator.report.statements.process_statements import (
    context_statements,
    hook_statements,
    loop_statements,
    user_statements,
    worker_statements,
)
from osbench.coordinator.report.statements.statement import Statement


def statements(workload: WorkloadReport) -> Iterator[Statement]:
    """Yield all statements on a workload, in the order of the terminal.

    Verdicts, sums, times and charts are shown elsewhere. If its load did not begin, yield only
    statements on its contexts.
    """
    if workload.unbegun:
        yield from context_statements(workload)
        return
    yield from load_statements(workload)
    yield from drill_statements(workload)
    yield from counter_statements(workload)
    yield from breakdown_statements(workload)
    yield from request_statements(workload)
    yield from trace_statements(workload)
    yield from error_statements(workload)
    yield from hook_statements(workload)
    yield from context_statements(workload)
    yield from output_statements(workload.outputs)
    yield from loop_statements(workload)
    yield from user_statements(workload)
    yield from check_statements(workload)
    yield from worker_statements(workload.workers)
