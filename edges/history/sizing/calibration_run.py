"""Runs a calibration: a short, low load that measures the cost of a task's iterations."""

from __future__ import annotations

import contextlib
import os
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import msgpack

from osbench.common.errors import CalibrationError, OsbenchError
from osbench.coordinator.formatting import count
from osbench.coordinator.front.cli.one_run import Interrupts, execute_plan
from osbench.coordinator.front.cli.progress_display import Progress
from osbench.coordinator.load.run.plan import RunOptions, RunPlan, new_run_id, plan_run
from osbench.coordinator.report.model.model import Report, WorkloadReport
from osbench.coordinator.results.accounting.block_contents import counted_rows
from osbench.coordinator.results.storage.control_requests import ask
from osbench.coordinator.results.storage.progress import Snapshot
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.history.sizing.calibration_task import (
    TAG,
    Calibration,
    calibration_of,
    calibration_task,
)
from osbench.edges.history.sizing.iteration_cost import (
    IterationCost,
    ProcessSample,
    measured_cost,
)

#: Share of iterations that may end badly: their cost is not that of a good one.
FAILED_ALLOWED = 0.5


@dataclass(frozen=True, kw_only=True)
class Calibrated:
    """The result of a calibration: id of its run, and the cost of an iteration of each workload."""

    run_id: str
    #: By number of the workload.
    costs: tuple[IterationCost, ...]


class CalibrationProgress(Progress):
    """Progress of a calibration run: shows it, and samples the one worker process under load.

    It also requests a higher rate for each open workload, once, when the median service time is
    known.
    """

    def __init__(
        self, directory: RunDirectory, loads: Sequence[Calibration], *, quiet: bool
    ) -> None:
        super().__init__(quiet=quiet)
        self._directory = directory
        self._loads = loads
        #: Open workloads whose rate was raised.
        self._raised: set[int] = set()
        #: By number of the workload.
        self.samples: dict[int, list[ProcessSample]] = defaultdict(list)

    def __call__(self, snapshot: Snapshot) -> None:
        """Show a snapshot of the run; under load also add a `ProcessSample` to `samples`.

        Of an open load, the first call after the low-load phase with a known median service time
        requests a higher rate, in a background thread. No sample is taken of a process that has
        ended.
        """
        super().__call__(snapshot)
        if snapshot.elapsed_s < 0 or not snapshot.rows:
            return
        pid = int(snapshot.rows[0].name.rpartition(":")[2])
        # the process may be gone
        with contextlib.suppress(OSError, ValueError, IndexError):
            self.samples[snapshot.workload].append(_sample(pid, snapshot.elapsed_s))
        load = self._loads[snapshot.workload]
        known = snapshot.p50_s is not None and snapshot.elapsed_s >= load.phases.alone_s
        if load.is_open and known and snapshot.workload not in self._raised:
            self._raised.add(snapshot.workload)
            request = {
                "workload": str(snapshot.workload),
                "rate": load.risen_rate(snapshot.p50_s or 0.0),
            }
            # the thread that shows snapshots also replies to the request
            Thread(target=self._ask, args=(request,), daemon=True).start()

    def _ask(self, request: Mapping[str, Any]) -> None:
        # if it is refused because the load is over, the rate stays low
        with contextlib.suppress(OsbenchError):
            ask(self._directory, request)


def _sample(pid: int, at_s: float) -> ProcessSample:
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return ProcessSample(
        at_s=at_s,
        # the clock of the CPU time of another process, as clock_getcpuclockid(3) makes it
        cpu_s=time.clock_gettime((~pid << 3) | 2),
        memory_bytes=pages * os.sysconf("SC_PAGE_SIZE"),
        files=sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()),
    )


def calibrate(plan: RunPlan, lasts_s: float, *, quiet: bool) -> Calibrated:
    """Run a calibration of all workloads: `lasts_s` seconds of low load on the service for each.

    It is a separate run in the data directory, with one local worker process. Sets Redis and broker
    in `plan.conf` to private servers. Raises CalibrationError if no iteration of a workload ends or
    most fail, OsbenchError if the run has no report, KeyboardInterrupt if it was interrupted.
    """
    conf = plan.conf
    conf.set_override("redis_url", "", "messaging")
    conf.set_override("broker_url", "", "messaging")
    loads = [calibration_of(one.workload, one.runner, lasts_s) for one in plan.workloads]
    task = calibration_task(plan.task, loads)
    options = RunOptions(workers=1, run_id=new_run_id(), tags=(TAG,))
    cut = plan_run(task, plan.plugins, plan.deployment, conf, options)
    directory = RunDirectory.of(conf.data_dir, cut.run_id)
    progress = CalibrationProgress(directory, loads, quiet=quiet)
    users = max(one.phases.users for one in loads)
    rate = max(one.rate for one in loads)
    progress.say(
        f"calibration: {lasts_s:g} s of real load on the service for each workload, by at most "
        f"{count(users, 'virtual user')} and {rate:g} iterations per second"
    )
    report = execute_plan(cut, progress, Interrupts())
    if report.exit_code == 130:
        raise KeyboardInterrupt
    costs = tuple(
        _cost(directory, number, load, progress.samples[number], report)
        for number, load in enumerate(loads)
    )
    return Calibrated(run_id=cut.run_id, costs=costs)


def _cost(
    directory: RunDirectory,
    number: int,
    load: Calibration,
    samples: Sequence[ProcessSample],
    report: Report,
) -> IterationCost:
    workloads = report.workloads
    if number >= len(workloads):
        raise CalibrationError(_refusal(directory, f"workload {number}", "it was not started"))
    workload = workloads[number]
    name = workload.name
    if workload.error:
        raise CalibrationError(_refusal(directory, name, workload.error))
    requests = workload.requests.total if workload.requests else None
    bodies = [body for body in directory.blocks() if body["workload"] == number]
    cost = measured_cost(
        (columns for one, _, columns in counted_rows(directory) if one == number),
        samples,
        load.phases,
        sum(len(msgpack.packb(body)) for body in bodies),
        requests.new_connections if requests and not requests.by_other_clients else None,
    )
    bad = workload.bad
    error = _first_error(workload)
    if cost is None and not bad:
        lasts_s = load.phases.end_s - load.phases.idle_s
        why = f"no iteration ended within {lasts_s:g} s: give a longer --calibrate-s"
        raise CalibrationError(_refusal(directory, name, why))
    if cost is None or cost.failed > FAILED_ALLOWED * cost.iterations:
        why = (
            f"{bad} of {workload.ran} iterations did not end well{error}. Their cost is not "
            "typical; `osbench-coord run --once` shows one"
        )
        raise CalibrationError(_refusal(directory, name, why))
    return cost


def _first_error(workload: WorkloadReport) -> str:
    errors = workload.errors
    return f", most with {errors[0].type}: {errors[0].message[:200]}" if errors else ""


def _refusal(directory: RunDirectory, name: str, why: str) -> str:
    return f"calibration of {name} gave no figures: {why} (run {directory.path.name})"
