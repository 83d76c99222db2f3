"""A run from its first worker to its report: gathers workers, runs each group of workloads.

A resumed run takes the same steps: it folds journal and blocks first, and repeats no step that they
record.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from osbench.common.errors import OsbenchError, Superseded
from osbench.common.ports import clock as time
from osbench.coordinator.load.run import release
from osbench.coordinator.load.run.connection import Connection
from osbench.coordinator.load.run.plan import RunInterface, RunPlan
from osbench.coordinator.load.run.resumption.endings import leaves_resumable, leaves_workers
from osbench.coordinator.load.run.resumption.taking_up import take_up
from osbench.coordinator.load.run.run_files import write_begin, write_charts, write_report
from osbench.coordinator.load.run.run_load import RunLoad
from osbench.coordinator.load.run.services import RunServices, open_services
from osbench.coordinator.load.run.status import RunStatus
from osbench.coordinator.load.run.watcher import WatchedRun
from osbench.coordinator.load.run.watchers import Watchers
from osbench.coordinator.load.run.workload.span_verdicts import selections_of, with_span_verdicts
from osbench.coordinator.report.model.measure import measured_report
from osbench.coordinator.report.model.model import Report
from osbench.coordinator.report.run_outcome import RunOutcome
from osbench.coordinator.results.storage import failure, resumable
from osbench.coordinator.results.storage.run_directory import RunDirectory

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

    def execute(self, connection: Connection) -> Report:
        """Execute the run in a new run directory; return its report, also written to disk.

        A run that an error cuts off under load has a report, too, and stays resumable if it can go
        on. Another error is noted in the directory (except Superseded), then raised. Before, raises
        UsageError or PluginError for a watcher, OsbenchError if there can be no directory.
        """
        plan, started_at = self._plan, time.time()
        watchers = Watchers(plan, resumed=False)
        directory = RunDirectory.create(plan.conf.data_dir, plan.run_id)

        def begin() -> None:
            # before anything that another coordinator would have to know of
            write_begin(plan, connection, directory, started_at)

        return self._report(connection, directory, started_at, begin, watchers)

    def resume(self, connection: Connection, directory: RunDirectory, started_at: float) -> Report:
        """Resume a run whose coordinator has ended; return the report, as `execute` does.

        `directory` was locked by the caller and is closed at the end. `started_at`: when the run
        began, seconds since 1970.
        """
        self._resumed = True

        def begin() -> None:
            resumable.begin_again(directory)

        watchers = Watchers(self._plan, resumed=True)
        return self._report(connection, directory, started_at, begin, watchers)

    def _report(
        self,
        connection: Connection,
        directory: RunDirectory,
        started_at: float,
        begin: Callable[[], None],
        watchers: Watchers,
    ) -> Report:
        try:
            begin()
            connection.keep_in(directory.path)
            outcome = self._outcome(connection, directory, started_at, watchers)
            report = measured_report(outcome)
            write_charts(self._plan, directory, outcome, report)
            if self._cut_off is not None:
                failure.keep(directory, self._cut_off, resumable=True)
            write_report(directory, report)
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
        return report

    def _waits(self, error: BaseException) -> bool:
        drains = self._status.interruption.drains
        return leaves_workers(error, resumed=self._resumed, drains=drains)

    def _stays_resumable(self, error: BaseException) -> bool:
        begun = self._resumed or bool(self._starts)
        return leaves_resumable(error, begun=begun, workers_left=self._waits(error))

    def _outcome(
        self,
        connection: Connection,
        directory: RunDirectory,
        started_at: float,
        watchers: Watchers,
    ) -> RunOutcome:
        """Bear the load, release the workers, collect facts of watchers; return all outcomes.

        `_cut_off` is the error that ended the load, if it can be resumed. Raises OsbenchError if
        the run ends before there was load.
        """
        plan, status = self._plan, self._status
        services = open_services(plan, connection, directory, self._ui)
        self._starts = services.accounts.t0_at
        run = WatchedRun(
            plan=plan,
            directory=directory,
            now_s=services.clock.now_s,
            wanted=lambda: not status.interruption.stops,
        )
        for said in watchers.begin(run):
            self._ui.say(said)
        try:
            earlier = take_up(plan, services)
            load = RunLoad(
                plan, services, status, self._ui, started_at, earlier, self._waits, watchers
            )
            load.run_groups(private=connection.local)
            self._cut_off = load.cut_off
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
            connection.end_workers()
        found = watchers.collect(load.outcomes(), selections_of(load.workloads))
        outcomes = with_span_verdicts(load.workloads, found.outcomes, found.spans)
        return load.builder.build(outcomes, found.notes, load.end())

    def _release(self, services: RunServices) -> None:
        wish, away = self._status.interruption, self._status.redis_away
        if wish.stops and away:
            LOG.warning("%s is unreachable: workers do not hear that the run is over", away)
            return
        # a worker that is unreachable for a moment hears of the end with the first try only
        hurries = wish.stops or (wish.drains and away)
        release.release(services, 0.0 if hurries else release.RELEASE_AWAY_S)
