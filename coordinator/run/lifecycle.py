"""A run from its first worker to its report: gathers workers, runs each group of workloads."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from osbench.common.errors import ContextError, FleetError, OsbenchError, StoreAway
from osbench.coordinator.dispatch.dispatcher import Dispatcher
from osbench.coordinator.fleet.assignment import divide
from osbench.coordinator.fleet.worker import WorkerHandle
from osbench.coordinator.hooks.executor import HookExecutor
from osbench.coordinator.report.builder import ReportBuilder, RunEnd, left_behind
from osbench.coordinator.report.run_report import RunReport
from osbench.coordinator.report.summary_json import to_json
from osbench.coordinator.report.timeline import to_timeline
from osbench.coordinator.results.workload_results import WorkloadResults
from osbench.coordinator.run import release
from osbench.coordinator.run.connection import Connection
from osbench.coordinator.run.disturbances import remarks_of
from osbench.coordinator.run.failover import Failover
from osbench.coordinator.run.load_loop import LoadLoop
from osbench.coordinator.run.plan import RunPlan, WorkloadPlan
from osbench.coordinator.run.services import RunServices, open_services
from osbench.coordinator.run.specification import specify
from osbench.coordinator.run.status import RunStatus
from osbench.coordinator.run.stop_rules import StopRules
from osbench.coordinator.run.trace_collection import collect_traces
from osbench.coordinator.run.workload import WorkloadRun
from osbench.coordinator.run.workload_outcome import outcome_of
from osbench.coordinator.run.workload_workers import WorkloadWorkers
from osbench.coordinator.sla.evaluator import SlaEvaluator
from osbench.coordinator.storage import failure
from osbench.coordinator.storage.checkpoint import Checkpoints
from osbench.coordinator.storage.manifest import describe
from osbench.coordinator.storage.progress import ProgressRecorder, Snapshot, contexts_at
from osbench.coordinator.storage.run_directory import RunDirectory
from osbench.coordinator.storage.timeline_file import write_timeline
from osbench.coordinator.traces.collection.collector import Collected

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class RunInterface:
    """How a run shows what it does."""

    #: Gets snapshots of contexts and load.
    progress: Callable[[Snapshot], None]
    #: Gets sentences on what the run waits for.
    say: Callable[[str], None] = lambda _: None


class Run:
    """One run. `interrupt` may be called from a signal handler at any time."""

    def __init__(self, plan: RunPlan, ui: RunInterface) -> None:
        self._plan = plan
        self._ui = ui
        self._status = RunStatus()

    def interrupt(self) -> int:
        """Drain (first call) or stop at once (second); returns how often it was called."""
        self._status.interruption.level += 1
        return self._status.interruption.level

    def execute(self, connection: Connection) -> dict[str, Any]:
        """Run everything; returns the summary (docs/results.schema.json), kept on disk too."""
        plan, started_at = self._plan, time.time()
        directory = RunDirectory.create(plan.conf.data_dir, plan.run_id)
        try:
            described = describe(
                plan.run_id, started_at, plan.task, list(plan.tags), plan.plugins, plan.deployment
            )
            directory.write("run.json", described)
            report = self._connected(connection, directory, started_at)
            summary = to_json(report)
            document = to_timeline(report, summary, plan.conf.benchmark.lag_limit_s)
            write_timeline(directory, {"complete": True, **document}, sync=True)
            directory.write("summary.json", summary)
        except BaseException as error:
            failure.keep(directory, error)
            raise
        finally:
            directory.close()
        return summary

    def _connected(
        self, connection: Connection, directory: RunDirectory, started_at: float
    ) -> RunReport:
        plan, status, begun = self._plan, self._status, time.monotonic()

        def on_context(what: str, done: int, planned: int) -> None:
            self._ui.progress(contexts_at(what, done, planned, time.monotonic() - begun))

        services = open_services(plan, connection, directory, on_context)
        try:
            services.channel.tend()
            services.port.decide([{"do": "open", "epoch": services.accounts.epoch + 1}])
            services.pool.epoch = services.controls.epoch = services.accounts.epoch
            builder = ReportBuilder(
                run_id=plan.run_id,
                task=plan.task,
                tags=plan.tags,
                started_at=started_at,
                lag_limit_s=plan.conf.benchmark.lag_limit_s,
            )
            load = _Load(plan, services, status, self._ui, builder)
            end = load.run(private=connection.local)
            load.await_spans()
            outcomes = [outcome_of(workload) for workload in load.workloads]
            collected = collect_traces(
                directory,
                outcomes,
                plan.deployment,
                plan.conf,
                wanted=lambda: not status.interruption.stops,
            )
            return builder.build(outcomes, collected, end)
        finally:
            release.release(services)


class _Load:
    """All load of a run, group by group."""

    def __init__(
        self,
        plan: RunPlan,
        services: RunServices,
        status: RunStatus,
        ui: RunInterface,
        builder: ReportBuilder,
    ) -> None:
        self._plan = plan
        self._builder = builder
        #: One for all workloads: it notes those that are under load at once together.
        self._progress = ProgressRecorder(ui.progress, services.directory)
        self._checkpoints = Checkpoints(services.directory, self._so_far)
        self._services = services
        self._status = status
        self._ui = ui
        self._failover = Failover(services)
        #: Those that were begun, by number.
        self.workloads: list[WorkloadRun] = []

    def run(self, *, private: bool) -> RunEnd:
        """Gather workers (`private`: those of local mode) and run every group.

        Raises OsbenchError where the run ends before there was load.
        """
        refused = broken = ""
        try:
            self._gather(private)
            for group in self._plan.groups:
                if self._status.stopped_for:
                    # what was never begun is not part of the report's sums
                    break
                self._run_group(group)
        except KeyboardInterrupt:
            LOG.info("interrupted before a load")
        except ContextError as error:
            if not self.workloads:
                left = left_behind(self._plan.run_id, self._services.contexts.left)
                raise ContextError("; ".join([str(error), *left])) from error
            refused = str(error)
        except OsbenchError as error:
            # once load was offered that is reported, with what was done
            if not any(workload.begun for workload in self.workloads):
                raise
            for workload in self.workloads:
                workload.abandon()
            broken = f"the run could not go on: {error}"
        return RunEnd(
            refused=refused,
            broken=broken,
            interrupted=self._status.interruption.drains,
            breach=self._status.breach,
            losses=tuple(self._status.losses),
            remarks=tuple(remarks_of(self._services)),
            left_behind=tuple(self._services.contexts.left),
        )

    def await_spans(self) -> None:
        """Let workers write out the spans of the workloads, where they have any."""
        if any(workload.plan.profiled for workload in self.workloads):
            release.await_spans(self._services, self._status)

    def _gather(self, private: bool) -> None:
        """Take workers enough for every group of workloads, before any of them begins."""
        request = self._plan.request(private=private)
        if request.count is not None and request.count < request.least:
            raise FleetError(
                f"{request.least} workloads of the task run at once, each on worker processes of "
                f"its own: --workers {request.count} is too few"
            )
        self._services.pool.gather(request, self._still_wanted, self._ui.say)
        for group in self._plan.groups:
            _divide(self._services.pool.present, group)

    def _still_wanted(self) -> None:
        self._services.check()
        if self._status.interruption.drains:
            raise KeyboardInterrupt

    def _poll(self) -> None:
        """Keep the workers ours while contexts take their time."""
        services = self._services
        with contextlib.suppress(StoreAway):
            services.channel.tend()
            services.pool.poll()
            self._failover.detect()
            services.controls.answer(services.pool.present)

    def _run_group(self, group: Sequence[WorkloadPlan]) -> None:
        """Set the contexts of workloads up, load at once, and undo them, whatever happens."""
        contexts = self._services.contexts
        earlier = list(self.workloads)
        with contextlib.ExitStack() as stack:
            made = [
                stack.enter_context(
                    contexts.around(
                        one.number,
                        one.workload,
                        check=self._still_wanted,
                        poll=self._poll,
                        unanswered=partial(self._failed_in, one.number),
                    )
                )
                for one in group
            ]
            parts = _divide(self._services.pool.present, group)
            for one, part in zip(group, parts, strict=True):
                for worker in part:
                    worker.workload = one.number
            ready = [
                contexts.ready(one.workload, context, self._poll)
                for one, context in zip(group, made, strict=True)
            ]
            begun = [self._begin(one, *given) for one, given in zip(group, ready, strict=True)]
            if any(workload.plan.profiled for workload in earlier):
                release.await_spans(self._services, self._status)
            for workload in earlier:
                workload.workers.freeze_spans()
            loop = LoadLoop(self._services, self._status, self._failover, begun)
            loop.run(self._checkpoints.perhaps)

    def _so_far(self) -> dict[str, Any]:
        """The timeline of a run that goes on."""
        outcomes = [outcome_of(workload) for workload in self.workloads]
        end = RunEnd(
            interrupted=self._status.interruption.drains,
            breach=self._status.breach,
            losses=tuple(self._status.losses),
            remarks=tuple(remarks_of(self._services)),
        )
        report = self._builder.build(outcomes, Collected(), end)
        return to_timeline(report, to_json(report), self._builder.lag_limit_s)

    def _failed_in(self, number: int) -> bool:
        """Some iteration of a workload did not end well."""
        if number >= len(self.workloads):
            return False
        results = self.workloads[number].results
        return not results.ledger.accounting().well

    def _begin(
        self, one: WorkloadPlan, args: dict[str, Any], context: dict[str, Any]
    ) -> WorkloadRun:
        """Put together what a workload needs, with the arguments its contexts have made."""
        plan, services, workload = self._plan, self._services, one.workload
        specification = specify(plan, one, args, context, len(services.pool.workers))
        results = WorkloadResults(
            idempotent=workload.idempotent,
            sla=SlaEvaluator(workload.sla, plan.plugins),
            warmup_s=workload.warmup_s,
        )
        services.accounts.register(one.number, results)
        run = WorkloadRun(
            plan=one,
            specification=specification,
            services=services,
            status=self._status,
            failover=self._failover,
            results=results,
            dispatcher=Dispatcher(
                services.port,
                results.ledger,
                one.number,
                is_open=one.runner.OPEN,
                max_lag_s=specification.max_lag_s,
                data=one.data,
                warmup_ns=results.warmup_ns,
            ),
            workers=WorkloadWorkers(services.pool, services.controls, one.number, one.name),
            rules=StopRules(
                self._status, results, one.name, abort_on_sla=plan.options.abort_on_sla
            ),
            hooks=HookExecutor(workload.hooks, plan.plugins, run=plan.run_id),
            progress=self._progress,
        )
        self.workloads.append(run)
        return run


def _divide(
    workers: Sequence[WorkerHandle], group: Sequence[WorkloadPlan]
) -> list[list[WorkerHandle]]:
    """The workers of each workload of a group. Raises FleetError where they are too few."""
    return divide(workers, group[0].subtask.title, [(one.name, one.runner) for one in group])
