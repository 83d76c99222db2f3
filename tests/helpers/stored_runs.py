"""Run directories with known rows, for tests of what is made from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from helpers.result_rows import row
from helpers.sample_reports import FAILURES, constant_workload, run_report
from helpers.summaries import to_json
from osbench.common.protocol.columns import decode_rows, encode_rows
from osbench.common.values.outcomes import DROP_REASONS, Outcome
from osbench.coordinator.report.stored_run import StoredRun
from osbench.coordinator.report.timeline import to_timeline
from osbench.coordinator.results.accounting.outcome import WorkloadOutcome
from osbench.coordinator.results.accounting.totals import Accounting
from osbench.coordinator.results.accounting.worker_figures import WorkerFigures
from osbench.coordinator.results.accounting.workload_statistics import WorkloadStatistics
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_documents import write_timeline

RUN = "20260401-120000-ab12cd"
WORKER = "node1.7.aa"
#: When the load of workload 0 began; each other begins 100 s later.
T0_AT = 1775044801.25

Row = tuple[Any, ...]

#: Iterations of 20 ms each, one in ten of them failed; the fifth was dropped.
ROWS = [
    row(
        at,
        due=100 * at,
        started=100 * at + (0 if at == 5 else 1),
        ended=100 * at + (0 if at == 5 else 21),
        outcome=Outcome.DROPPED_LATE if at == 5 else Outcome.FAILED if at % 10 == 0 else Outcome.OK,
        failure=1 if at % 10 == 0 else 0,
    )
    for at in range(1, 41)
]


def block(
    rows: Iterable[Row], *, workload: int = 0, worker: str = WORKER, failures: Any = ()
) -> dict[str, Any]:
    """The body of a result block."""
    kept = list(rows)
    return {
        "workload": workload,
        "incarnation": worker,
        "columns": encode_rows(kept, (), 0) if kept else {},
        "failures": [list(one) for one in failures],
    }


def stored_run(
    data_dir: Path, *workloads: Iterable[Row], timeline: bool = True, **changes: Any
) -> StoredRun:
    """A finished run whose workloads have these rows; `changes` are those of the outcomes."""
    directory = RunDirectory.create(str(data_dir), RUN)
    listed = [list(rows) for rows in workloads]
    texts = [(one.number, one.etype, one.message, one.traceback) for one in FAILURES]
    directory.write(
        "run.json", {"run_id": RUN, "task": "Nightly", "workloads": [{} for _ in listed]}
    )
    directory.decide(
        {"do": "start", "workload": number, "t0_at": T0_AT + 100 * number}
        for number in range(len(listed))
    )
    directory.keep(
        block(rows, workload=number, failures=texts) for number, rows in enumerate(listed)
    )
    report = run_report(
        *(
            _outcome(rows, {"t0_at": T0_AT + 100 * number, **changes})
            for number, rows in enumerate(listed)
        )
    )
    summary = to_json(report)
    if timeline:
        write_timeline(directory, {"complete": True, **to_timeline(report, summary, 1)}, sync=False)
    directory.write("summary.json", summary)
    directory.close()
    return StoredRun(directory, summary)


def _outcome(rows: list[Row], changes: Mapping[str, Any]) -> WorkloadOutcome:
    made = WorkloadStatistics()
    made.add_failures(WORKER, FAILURES)
    made.add(decode_rows(encode_rows(rows, (), 0)), worker=WORKER)
    counts = Counter(Outcome(row[1]) for row in rows)
    drops = {word: counts[outcome] for outcome, word in DROP_REASONS.items() if counts[outcome]}
    accounting = Accounting(
        planned=len(rows),
        ok=counts[Outcome.OK],
        failed=counts[Outcome.FAILED],
        timed_out=counts[Outcome.TIMED_OUT],
        dropped=sum(drops.values()),
        drops=drops,
    )
    workers = (WorkerFigures(incarnation=WORKER, host="node1", pid=7, label="=rack"),)
    outcome = replace(constant_workload(), statistics=made, accounting=accounting, workers=workers)
    return replace(outcome, **changes)
