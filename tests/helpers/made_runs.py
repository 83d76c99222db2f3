"""Run directories with any number of iterations, made without running anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from helpers.sample_reports import rps_workload, run_report
from helpers.summaries import to_json
from osbench.common.plugin.plugins import Plugins
from osbench.common.protocol.messages import Block
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.plugins.sla.evaluator import SlaEvaluator
from osbench.coordinator.report.timeline import to_timeline
from osbench.coordinator.results.accounting.totals import Accounting, Offered, Tracing
from osbench.coordinator.results.accounting.worker_figures import WorkerFigures
from osbench.coordinator.results.accounting.workload_results import WorkloadResults
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_documents import write_summary, write_timeline

ROWS = 10_000
RUN = "20260401-101500-abcd"


def blocks_of(
    count: int, rate: float, workers: int = 2, seed: int = 1, run: str = RUN
) -> Iterator[Block]:
    """Result blocks of `count` iterations at `rate` a second; 1 % fail, each has a trace id."""
    chance = np.random.default_rng(seed)
    numbers = dict.fromkeys(range(workers), 0)
    for begin in range(0, count, ROWS):
        worker = begin // ROWS % workers
        numbers[worker] += 1
        iterations = np.arange(begin + 1, min(begin + ROWS, count) + 1)
        name = f"host-{worker}.{worker}.aa"
        yield replace(_block(iterations, rate, name, numbers[worker], chance), run=run)


def _block(
    iterations: np.ndarray, rate: float, worker: str, number: int, chance: np.random.Generator
) -> Block:
    rows = len(iterations)
    due = (iterations * (1e9 / rate)).astype("<i8")
    started = due + chance.integers(10_000, 500_000, rows)
    slow = 1 + 4 * (chance.random(rows) < 0.02)
    took = (chance.lognormal(np.log(40e6), 0.4, rows) * slow).astype("<i8")
    failed = chance.random(rows) < 0.01
    outcome = np.where(failed, Outcome.FAILED, Outcome.OK).astype(np.uint8)
    columns: dict[str, Any] = {
        "rows": rows,
        "t0": 0,
        "iteration": iterations.astype("<i8").tobytes(),
        "outcome": outcome.tobytes(),
        "due": due.tobytes(),
        "started": started.astype("<i8").tobytes(),
        "ended": (started + took).astype("<i8").tobytes(),
        "failure": failed.astype("<u4").tobytes(),
        "traced": iterations.astype("<i8").tobytes(),
        "traces": chance.bytes(16 * rows),
    }
    failures = [[1, "GatewayTimeout", "HTTP 504", "Traceback (most recent call last):\n"]]
    return Block(
        run=RUN,
        membership="m",
        incarnation=worker,
        number=number,
        workload=0,
        columns=columns,
        failures=failures if number == 1 else [],
    )


def made_run(
    data: Path,
    count: int,
    rate: float = 1000.0,
    *,
    run: str = RUN,
    seed: int = 1,
    more: Callable[[RunDirectory], None] = lambda _: None,
) -> RunDirectory:
    """A finished run with `count` iterations in one workload, in the data directory `data`.

    `more` adds to the directory before the summary is written.
    """
    directory = RunDirectory.create(str(data), run)
    results = WorkloadResults(idempotent=False, sla=SlaEvaluator((), Plugins()))
    for batch, block in enumerate(blocks_of(count, rate, seed=seed, run=run)):
        numbers = results.ledger.allot_new(block.columns["rows"])
        results.ledger.cut(block.incarnation, batch, numbers)
        directory.keep([block.body()])
        results.add(block)
    statistics = results.statistics
    workers = tuple(
        WorkerFigures(
            incarnation=name,
            host=name.partition(".")[0],
            pid=1,
            version="0",
            offset_s=0.0,
            uncertainty_s=0.0,
            iterations=part.iterations,
            cpu_mean=0.5,
            cpu_max=0.7,
        )
        for name, part in sorted(statistics.over_time.workers.items())
    )
    outcome = replace(
        rps_workload(),
        statistics=statistics,
        accounting=Accounting(
            planned=count, ok=statistics.count("ok"), failed=statistics.count("failed")
        ),
        offered=Offered(duration_s=count / rate, rate_planned=rate, rate_offered=rate),
        tracing=Tracing(state="on", traced=statistics.traced),
        workers=workers,
        hooks=(),
        contexts=(),
        verdicts=(),
        asked=((0.0, rate),),
        t0_at=1_775_038_500.0,
        elapsed_s=count / rate,
    )
    report = run_report(outcome)
    summary = to_json(report)
    manifest = {
        "run_id": directory.path.name,
        "osbench": "0",
        "digests": 1,
        "started_at": 1_775_038_500.0,
        "task": report.title,
        "description": "",
        "source": "task.yaml",
        "tags": [],
        "deployment": None,
        "workloads": [],
    }
    directory.write("run.json", manifest)
    write_timeline(directory, {"complete": True, **to_timeline(report, summary, 0.1)}, sync=False)
    more(directory)
    write_summary(directory, {**summary, "run_id": run})
    directory.close()
    return directory
