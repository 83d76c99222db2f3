"""A finished run with an iteration of each kind, for tests of what is made from iterations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgpack
import numpy as np

from helpers.result_rows import MS, row, row_of
from helpers.sample_reports import constant_workload, run_report
from helpers.stored_runs import RUN, T0_AT, WORKER
from helpers.summaries import to_json
from osbench.common.protocol.columns import encode_rows
from osbench.common.protocol.exchanges import OWN, OWN_TWICE, pack_exchange, pack_other
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.report.stored_run import StoredRun
from osbench.coordinator.results.accounting.worker_figures import WorkerFigures
from osbench.coordinator.results.storage.run_directory import RunDirectory

NAMES = ("shop.buy", "http.post", "libcurl: option proxies")
#: Seconds of warm-up of the first workload.
WARMUP_S = 0.05
#: The iteration that has everything.
WHOLE = 4
_TRACE = bytes(range(16))
_OTHER = "node2.9.bb"
#: Number, type, message and traceback; a message is text that a spreadsheet would run.
_FAILURES = (
    (1, "GatewayTimeout", 'HTTP 504, "no"\r\nanswer', 'File "x.py", line 1\n'),
    (2, "IterationTimeout", "no end after 2 s", "f()"),
    (3, "", "=1+1", ""),
)
_STEPS = [
    *(0, -1, 101 * MS, 130 * MS, 0),
    *(1, 0, 105 * MS, 125 * MS, 1),
    # never ended
    *(1, 0, 126 * MS, 0, 0),
]
_REQUESTS = (
    pack_exchange(1, OWN, 20_000, 300_000, 2 * MS, 15 * MS, 200_000, 310, 1207, 200)
    + pack_exchange(0, OWN_TWICE, 0, 0, 0, 4 * MS, 0, 12, 0, 0)
    + pack_other(-1, 2, false_body=True)
)
_CHART = {"title": "Rows", "chart_plugin": "StatsTable", "data": [["read", 7]]}
_OUTPUT = msgpack.packb({"kind": "additive", "item": _CHART})
#: Of the first worker, of the second, and those of the second workload.
_ROWS = (
    [
        row(1, due=0, started=1, ended=31),
        row(2, due=50, started=50, ended=62, idle=5, trace=bytes([255] * 16)),
        row(3, due=60, outcome=Outcome.FAILED, started=60, ended=90, failure=1),
        row_of(
            *(WHOLE, Outcome.FAILED, 99 * MS, 101 * MS, 131 * MS, 3 * MS, 1),
            *(_STEPS, (_TRACE, [_OUTPUT], _REQUESTS)),
        ),
    ],
    [
        row(5, due=20, outcome=Outcome.TIMED_OUT, started=21, ended=2021, failure=2),
        row(6, due=49, outcome=Outcome.DROPPED_LATE, started=149, ended=149),
        row(
            7, due=3_600_000, outcome=Outcome.FAILED, started=3_600_001, ended=3_600_002, failure=3
        ),
        row(8, due=70, outcome=Outcome.FAILED, started=70, ended=71, failure=9),
        row(9, due=80, outcome=Outcome.DROPPED_CAPACITY),
    ],
    [row(1, due=-1, started=0, ended=10_000_000)],
)


def sample_run(data: Path) -> StoredRun:
    """The run: two workloads, two workers, the first workload with a warm-up."""
    directory = RunDirectory.create(str(data), RUN)
    scenarios = ("Shop.buy", "Dummy.dummy")
    workloads = [{"scenario": name, "name": name} for name in scenarios]
    workloads[0]["warmup"] = WARMUP_S
    directory.write("run.json", {"run_id": RUN, "task": "Nightly", "workloads": workloads})
    directory.decide({"do": "start", "workload": n, "t0_at": T0_AT + 100 * n} for n in range(2))
    of_first, of_second, of_other = _ROWS
    directory.keep([_body(of_first, 0, WORKER), _body(of_second, 0, _OTHER)])
    dues = np.array([90 * MS, -(1 << 60)], "<i8").tobytes()
    drop = {"do": "drop", "workload": 0, "numbers": [[10, 12]], "why": "worker_lost"}
    directory.decide([{**drop, "dues": dues}])
    # the third iteration again, which is stale
    directory.keep([_body(of_other, 1, WORKER), _body([of_first[2]], 0, _OTHER)])
    workers = (
        WorkerFigures(incarnation=WORKER, host="node1", pid=7, label="=rack"),
        WorkerFigures(incarnation=_OTHER, host="node2", pid=9),
    )
    one = replace(constant_workload(), workers=workers)
    outcomes = (replace(one, name=name, scenario=name, t0_at=T0_AT) for name in scenarios)
    summary = to_json(run_report(*outcomes))
    directory.write("summary.json", summary)
    directory.close()
    return StoredRun(directory, summary)


def _body(rows: list[Any], workload: int, worker: str) -> Mapping[str, Any]:
    return {
        "workload": workload,
        "incarnation": worker,
        "columns": encode_rows(rows, NAMES, 0),
        "failures": [list(one) for one in _FAILURES],
    }
