"""A run from its first worker to its report: gathers workers, runs each group of workloads.

A resumed run takes the same steps: it folds journal and blocks first, and repeats no step that they
record.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from osbench.common.errors import (
    DamagedRun,
    DirectoryRemoved,
    FleetError,
    OlderCopy,
    OsbenchError,
    StorageError,
    StoreLost,
    StoreUnreachable,
    Superseded,
)
from osbench.common.plugin.runner import SearchingRunner
from osbench.common.ports import clock as time
from osbench.coordinator.load.local.server import ServerDied
from osbench.coordinator.load.run import disturbances, release
from osbench.coordinator.load.run.connection import Connection
from osbench.coordinator.load.run.plan import RunInterface, RunPlan, WorkloadPlan
from osbench.coordinator.load.run.resumption import plan_file, run_request
from osbench.coordinator.load.run.resumption.earlier_run import EarlierRun
from osbench.coordinator.load.run.run_load import RunLoad
from osbench.coordinator.load.run.services import RunServices, open_services
from osbench.coordinator.load.run.status import RunStatus
from osbench.coordinator.load.run.watcher import WatchedRun
from osbench.coordinator.load.run.watchers import Watchers
from osbench.coordinator.load.run.workload.span_verdicts import selections_of, with_span_verdicts
from osbench.coordinator.plugins.sla.evaluator import SlaEvaluator
from osbench.coordinator.report.builder import ReportBuilder
from osbench.coordinator.report.model.measure import measured_report
from osbench.coordinator.report.report_section import plan_section
from osbench.coordinator.report.run_outcome import RunOutcome
from osbench.coordinator.report.timeline import to_timeline
from osbench.coordinator.results.accounting.abort_rule import AbortRule
from osbench.coordinator.results.accounting.drill_statistics import DrillStatistics
from osbench.coordinator.results.accounting.search.trials import Trials
from osbench.coordinator.results.accounting.stage_statistics import StageStatistics
from osbench.coordinator.results.accounting.workload_results import WorkloadResults
from osbench.coordinator.results.accounting.workload_statistics import WorkloadStatistics
from osbench.coordinator.results.storage import failure, resumable
from osbench.coordinator.results.storage.progress import contexts_at
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_documents import (
    describe,
    write_summary,
    write_timeline,
)

LOG = logging.getLogger(__name__)


class Run:
    """A run of a plan, from its first worker to its report; executed or resumed once.

    `interrupt` may be called from a signal handler at any time.
    """

    def __init__(self, plan: RunPlan, ui: RunInterface) -> None:
        self._plan = plan
        self._ui = ui
        self._status = RunStatus()
        self._resumed = False
        #: When loads began, Redis time in seconds since 1970, by workload.
        self._starts: Mapping[int, float] = {}
        #: The error that ends the run before its time, if the run can be resumed.
        self._cut_off: OsbenchError | None = None

    def interrupt(self) -> int:
        """Count an interrupt by the user; return the count: 1 drains the load, 2 stops it at once.

        From 3 on, contexts are undone even while iterations run.
        """
        self._status.interruption.level += 1
        return self._status.interruption.level

    def execute(self, connection: Connection) -> dict[str, Any]:
        """Execute the run in a new run directory; return its summary, also written to disk.

        The summary fits docs/results.schema.json. A run that is cut off under load has a summary,
        too, and stays resumable. An error that ends the run without a report is noted in the
        directory, then raised. Raises UsageError if spans cannot be received or queried.
        """
        plan, started_at = self._plan, time.time()
        watchers = Watchers(plan, resumed=False)
        directory = RunDirectory.create(plan.conf.data_dir, plan.run_id)

        def begin() -> None:
            # before anything that another coordinator would have to know of
            plan_file.save(plan, connection, directory, started_at)
            run_request.save(plan, directory)
            described = describe(
                plan.run_id, started_at, plan.task, list(plan.tags), plan.plugins, plan.deployment
            )
            directory.write("run.json", described)

        return self._through(connection, directory, started_at, begin, watchers)

    def resume(
        self, connection: Connection, directory: RunDirectory, started_at: float
    ) -> dict[str, Any]:
        """Resume a run whose coordinator has ended; return the summary, as `execute` does.

        `directory` was locked by the caller and is closed at the end. `started_at`: when the run
        began, seconds since 1970.
        """
        self._resumed = True
        return self._through(
            connection,
            directory,
            started_at,
            lambda: resumable.begin_again(directory),
            Watchers(self._plan, resumed=True),
        )

    def _through(
        self,
        connection: Connection,
        directory: RunDirectory,
        started_at: float,
        begin: Callable[[], None],
        watchers: Watchers,
    ) -> dict[str, Any]:
        plan = self._plan
        try:
            begin()
            connection.keep_in(directory.path)
            report = self._connected(connection, directory, started_at, watchers)
            summary = measured_report(report).to_json()
            document = to_timeline(report, summary, plan.conf.benchmark.lag_limit_s)
            try:
                write_timeline(directory, {"complete": True, **document}, sync=True)
            except StorageError as error:
                # a failure of charts does not withhold the numbers
                LOG.warning("%s", error)
            if self._cut_off is not None:
                failure.keep(directory, self._cut_off, resumable=True)
            write_summary(directory, summary)
            if self._cut_off is None:
                # a receiver of spans writes until then
                watchers.end(resumable=False)
                resumable.forget(directory)
        except Superseded:
            # all that is on disk is another coordinator's
            raise
        except BaseException as error:
            stays = self._stays_resumable(error)
            told = connection.explained(error)
            failure.keep(directory, told, resumable=stays)
            if not stays:
                watchers.end(resumable=False)
                resumable.forget(directory)
            if told is not error:
                raise told from error
            raise
        finally:
            watchers.end(resumable=True)
            directory.close()
        return summary

    def _waits(self, error: BaseException) -> bool:
        """Return whether `error` leaves workers and contexts as they are, for another coordinator.

        True for lost servers and disks and a damaged run, and for missing workers of a resumed run,
        unless the user has ended the run. True if another coordinator has the run, False if its
        directory was removed.
        """
        if isinstance(error, Superseded):
            return True
        # a resumed run would find nothing
        if isinstance(error, DirectoryRemoved):
            return False
        lasting = isinstance(
            error, StoreUnreachable | StoreLost | StorageError | ServerDied | DamagedRun
        )
        # on a second try there may be workers
        alone = self._resumed and isinstance(error, FleetError)
        return (lasting or alone) and not self._status.interruption.drains

    def _stays_resumable(self, error: BaseException) -> bool:
        """Return whether the run may be resumed from its directory after `error`.

        True for errors of `_waits`, for unforeseen exceptions, and for any error once a load had
        begun. False if the directory is an older copy, or was removed.
        """
        # the run itself goes on elsewhere, or from its own files
        if isinstance(error, OlderCopy):
            return False
        accident = not isinstance(error, OsbenchError | KeyboardInterrupt)
        # a load that had begun is to have its report, whatever ended this try
        begun = self._resumed or bool(self._starts)
        return self._waits(error) or accident or (begun and not isinstance(error, DirectoryRemoved))

    def _connected(
        self,
        connection: Connection,
        directory: RunDirectory,
        started_at: float,
        watchers: Watchers,
    ) -> RunOutcome:
        plan, begun = self._plan, time.monotonic()

        def on_context(what: str, done: int, planned: int) -> None:
            self._ui.progress(contexts_at(what, done, planned, time.monotonic() - begun))

        services = open_services(plan, connection, directory, on_context)
        self._starts = services.accounts.t0_at
        status = self._status
        run = WatchedRun(
            plan=plan,
            directory=directory,
            now_s=services.clock.now_s,
            wanted=lambda: not status.interruption.stops,
        )
        for said in watchers.begin(run):
            self._ui.say(said)
        try:
            builder, load = self._loaded(services, connection, directory, started_at, watchers)
            load.await_spans()
            watchers.load_over()
        except BaseException as error:
            # workers that wait for `resume` keep their unacknowledged results
            if not self._waits(error):
                self._release(services)
            raise
        if self._cut_off is None:
            # results that they still deliver are in the report
            self._release(services)
        found = watchers.collect(load.outcomes(), selections_of(load.workloads))
        outcomes = with_span_verdicts(load.workloads, found.outcomes, found.spans)
        return builder.build(outcomes, found.notes, load.end())

    def _release(self, services: RunServices) -> None:
        wish, away = self._status.interruption, self._status.redis_away
        if wish.stops and away:
            LOG.warning("%s is unreachable: workers do not hear that the run is over", away)
            return
        # a worker that is unreachable for a moment hears of the end with the first try only
        hurries = wish.stops or (wish.drains and away)
        release.release(services, 0.0 if hurries else release.RELEASE_AWAY_S)

    def _loaded(
        self,
        services: RunServices,
        connection: Connection,
        directory: RunDirectory,
        started_at: float,
        watchers: Watchers,
    ) -> tuple[ReportBuilder, RunLoad]:
        """Restore the state of earlier coordinators from disk, then run the remaining groups.

        Journals that a coordinator has opened the run. Returns the builder of the report, and the
        load that has ended; `_cut_off` is its error if it can be resumed. Raises OsbenchError if
        the run ends before there was load.
        """
        plan, status, accounts = self._plan, self._status, services.accounts
        for one in plan.workloads:
            accounts.register(one.number, _results_of(one, plan))
        accounts.fold(directory, services.history.apply)
        earlier = EarlierRun(directory, accounts)
        disturbances.restore(services, earlier.notes)
        services.channel.tend()
        services.port.decide([{"do": "open", "run": plan.run_id, "epoch": accounts.epoch + 1}])
        services.key_notes.look()
        services.pool.epoch = services.controls.epoch = accounts.epoch
        for membership in accounts.memberships.values():
            services.pool.restore(membership)
        builder = ReportBuilder(
            run_id=plan.run_id,
            task=plan.task,
            tags=plan.tags,
            started_at=started_at,
            lag_limit_s=plan.conf.benchmark.lag_limit_s,
            plan_section=plan_section(plan.task, plan.conf.data_dir),
        )
        load = RunLoad(plan, services, status, self._ui, builder, earlier, self._waits, watchers)
        load.run(private=connection.local)
        self._cut_off = load.cut_off
        return builder, load


def _results_of(one: WorkloadPlan, plan: RunPlan) -> WorkloadResults:
    workload, runner = one.workload, one.runner
    asked = runner.asked() if runner.STAGED else runner.asked()[:1]
    trials = None
    if isinstance(runner, SearchingRunner):
        criteria = partial(SlaEvaluator, workload.sla, plan.plugins)
        trials = Trials(runner, criteria, plan.conf.benchmark.lag_limit_s)
    return WorkloadResults(
        idempotent=workload.idempotent,
        sla=SlaEvaluator(workload.sla, plan.plugins),
        warmup_s=workload.warmup_s,
        abort=AbortRule(workload.abort) if workload.abort else None,
        stages=StageStatistics(asked, is_open=runner.OPEN, lasts_s=runner.lasts_s),
        trials=trials,
        statistics=WorkloadStatistics(
            is_open=runner.OPEN,
            planned_s=runner.planned_s,
            drill=DrillStatistics(workload.phases, workload.warmup_s) if workload.phases else None,
        ),
    )
