"""All load of a run, group by group: workers, contexts, and the load itself."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from osbench.common.errors import (
    ContextError,
    FleetError,
    OsbenchError,
    StorageError,
    StoreUnreachable,
    Superseded,
)
from osbench.common.plugin.scripted_runner import scripted_part
from osbench.common.ports import clock as time
from osbench.common.secrets.url_masking import mask_url
from osbench.coordinator.load.dispatch.dispatcher import Dispatcher
from osbench.coordinator.load.dispatch.open_load import ArrivalRules
from osbench.coordinator.load.fleet.assignment import divide
from osbench.coordinator.load.fleet.worker import WorkerHandle
from osbench.coordinator.load.run import release
from osbench.coordinator.load.run.disturbances import disturbances_of, refusals_of
from osbench.coordinator.load.run.failover import Failover
from osbench.coordinator.load.run.load_loop import LoadLoop
from osbench.coordinator.load.run.plan import RunInterface, RunPlan, WorkloadPlan
from osbench.coordinator.load.run.resumption import outcome_notes
from osbench.coordinator.load.run.resumption.earlier_run import EarlierRun
from osbench.coordinator.load.run.services import RunServices
from osbench.coordinator.load.run.specification import specify
from osbench.coordinator.load.run.status import RunStatus
from osbench.coordinator.load.run.watchers import Watchers
from osbench.coordinator.load.run.workload.left_resources import note_left
from osbench.coordinator.load.run.workload.load_hooks import LoadHooks
from osbench.coordinator.load.run.workload.stop_rules import StopRules
from osbench.coordinator.load.run.workload.workload_outcome import outcome_of
from osbench.coordinator.load.run.workload.workload_run import WorkloadRun
from osbench.coordinator.load.run.workload.workload_workers import WorkloadWorkers
from osbench.coordinator.report.builder import OutcomeBuilder
from osbench.coordinator.report.model.measure import measured_report
from osbench.coordinator.report.report_section import plan_section
from osbench.coordinator.report.run_outcome import RunEnd
from osbench.coordinator.report.timeline import to_timeline
from osbench.coordinator.results.accounting.outcome import WorkloadOutcome
from osbench.coordinator.results.storage.checkpoint import Checkpoints
from osbench.coordinator.results.storage.progress import ProgressRecorder, contexts_at

LOG = logging.getLogger(__name__)

#: Longest wait of a resumed load for its earlier workers, and interval of polls, seconds.
REJOIN_S = 2.0
REJOIN_POLL_S = 0.05


class RunLoad:
    """Runs all load of a run: gathers workers, runs each group of workloads, takes checkpoints."""

    def __init__(
        self,
        plan: RunPlan,
        services: RunServices,
        status: RunStatus,
        ui: RunInterface,
        started_at: float,
        earlier: EarlierRun,
        kept: Callable[[BaseException], bool],
        watchers: Watchers,
    ) -> None:
        """`kept` returns whether an exception leaves workers and contexts for `resume`.

        `started_at`: when the run began, seconds since 1970. `earlier` is the state under earlier
        coordinators; `watchers` learn of the loads with each checkpoint.
        """
        self._plan = plan
        self._earlier = earlier
        self._kept = kept
        #: Makes the outcomes of checkpoints and of the end.
        self.builder = OutcomeBuilder(
            run_id=plan.run_id,
            task=plan.task,
            tags=plan.tags,
            started_at=started_at,
            lag_limit_s=plan.conf.benchmark.lag_limit_s,
            plan_section=plan_section(plan.task, plan.conf.data_dir),
        )
        self._watchers = watchers
        #: One recorder for all workloads: it records workloads under load together.
        self._progress = ProgressRecorder(ui.progress, services.directory)
        self._notes = outcome_notes.NotesFile(services.directory)
        #: By number: workloads that are over, whose spans are counted.
        self._over: dict[int, WorkloadOutcome] = {}
        self._checkpoints = Checkpoints(services.directory, self._so_far)
        self._services = services
        self._status = status
        self._ui = ui
        self._failover = Failover(services)
        #: Workloads that were begun, in order; in a resumed run, workloads that were over too.
        self.workloads: list[WorkloadRun] = []
        #: Error that ended the load before its time, if the run can be resumed.
        self.cut_off: OsbenchError | None = None
        #: Cause if the run ended before its time; else "".
        self._broken = ""

    def run_groups(self, *, private: bool) -> None:
        """Gather workers, run the groups in turn, and close the workloads that were not reached.

        `private`: workers of local mode. An error after a load has begun is noted for the report
        and logged; an interrupt raises nothing. Raises OsbenchError if the run ends before there
        was load, Superseded if another coordinator has taken over the run.
        """
        try:
            groups = self._pass_over()
            if groups:
                self._assemble(groups, private)
            for group in groups:
                if self._status.stopped_for and not self._still_runs(group):
                    break
                try:
                    self._run_group(group)
                except ContextError as error:
                    self._fail(group, str(error))
                    if self._plan.options.stop_on_error:
                        break
        except KeyboardInterrupt:
            LOG.info("interrupted before a load")
        except Superseded:
            raise
        except OsbenchError as error:
            # once load was offered, it is reported in spite of the error
            if not any(workload.begun for workload in self.workloads):
                raise
            again = self._kept(error)
            for workload in self.workloads:
                workload.abandon(resumable=again)
            told = str(self._services.explained(error))
            self._broken = f"the run could not continue: {told}"
            if again:
                self.cut_off = error
                between = "\n" if "\n" in told else "; "
                self._broken += f"{between}{self._ways_on()}"
            LOG.error("%s", self._broken)
        self._add_the_rest()

    def end(self) -> RunEnd:
        """Return how the run has ended, as known now: cause, losses, disturbances, leftovers."""
        return RunEnd(
            broken=self._broken,
            interrupted=self._status.interruption.drains,
            breach=self._status.breach,
            losses=(*self._earlier.problems, *self._services.history.losses()),
            disturbances=disturbances_of(self._services),
            left_behind=tuple(self._services.contexts.left),
        )

    def _ways_on(self) -> str:
        run_id = self._plan.run_id
        resume = f"`osbench-coord resume {run_id}` continues it"
        if not self._services.contexts.holds:
            return resume
        return f"{resume}, `osbench-coord cleanup {run_id}` undoes its contexts instead"

    def await_spans(self) -> None:
        """Wait until workers have written out their spans; return at once if no workload is traced.

        Waits a few seconds at most.
        """
        if any(workload.plan.profiled for workload in self.workloads):
            release.await_spans(self._services, self._status)

    def _pass_over(self) -> list[Sequence[WorkloadPlan]]:
        """Return the groups that are still to be run; restore the workloads of finished groups.

        Finished groups are the first ones whose loads an earlier coordinator has closed. Their
        contexts are undone.
        """
        groups: list[Sequence[WorkloadPlan]] = list(self._plan.groups)
        while groups and all(self._earlier.is_over(one.number) for one in groups[0]):
            for one in groups.pop(0):
                self._judge_drill(self._take_over(one))
                self._services.contexts.finish(
                    one.number, poll=self._poll, unanswered=partial(self._failed_in, one.number)
                )
        return groups

    def _take_over(self, one: WorkloadPlan) -> WorkloadRun:
        """Create the run of a workload whose load an earlier coordinator has begun or closed.

        Adds it to `workloads`, and restores its start time and the due times of its arrivals.
        Judges its SLA again if it had begun, unless it is a drill; this may stop the load of the
        run.
        """
        run = self._begin(one, dict(one.workload.args), {})
        run.restore(self._services.accounts.t0_at.get(one.number, 0.0))
        for first, part in self._earlier.dues(one.number):
            run.dispatcher.restore(first, part)
        if run.begun and not run.search_due:
            run.rules.judge_end()
        return run

    def _judge_drill(self, run: WorkloadRun) -> None:
        """Search the resources in error of a drill whose load is over, then judge its SLA.

        Does nothing for other loads, and once that is done. This may stop the load of the run.
        Raises StorageError.
        """
        if run.search_due:
            run.search_due = False
            note_left(run, self._poll)
            if run.begun:
                run.rules.judge_end()

    def _assemble(self, groups: Sequence[Sequence[WorkloadPlan]], private: bool) -> None:
        """Gather workers for the remaining groups, or wait for the workers of a resumed load.

        Gathers in local mode, and if the first group has no load yet. Else waits at most REJOIN_S
        seconds for the workers of its load, then goes on without them, with a message if none is
        left. Raises FleetError, KeyboardInterrupt.
        """
        if not private:
            self._failover.most_workers = self._plan.most_workers
        elif self._plan.options.join:
            raise FleetError(
                "--join takes shared workers, and local mode has its own: set [messaging] "
                "redis_url, or leave --join out"
            )
        if private or self._earlier.t0_at(groups[0]) is None:
            self._gather(groups, private)
            return
        # its load goes on with the workers that are there; others replace missing ones
        pool, deadline = self._services.pool, time.monotonic() + REJOIN_S
        while time.monotonic() < deadline:
            self._still_awaited()
            # the load waits for Redis with more patience
            with contextlib.suppress(StoreUnreachable):
                pool.poll()
                if pool.present and not pool.hesitant:
                    return
            time.sleep(REJOIN_POLL_S)
        if any(one.session for one in pool.workers.values()):
            return
        if self._status.interruption.drains:
            # workers that have left the run may still deliver their blocks
            return
        address = mask_url(str(self._plan.conf.messaging.redis_url))
        self._ui.say(
            f"no worker of the run is heard at {address}: its load continues with free workers; "
            f"if none comes within {self._services.limits.wait_s:g} s, the run ends with the "
            "reported results"
        )

    def _gather(self, groups: Sequence[Sequence[WorkloadPlan]], private: bool) -> None:
        """Gather workers of the run, and check that they suffice for every group of workloads.

        `private`: of local mode. Raises FleetError if there are too few, KeyboardInterrupt if the
        user ends the run.
        """
        request = self._plan.request(private=private)
        if request.count is not None and request.count < request.least:
            at_once = request.least == self._plan.needs.workers
            parts = "workloads of the task run at once" if at_once else "zones have shares"
            raise FleetError(
                f"{request.least} {parts}, each on its own worker processes; give --workers "
                f"{request.least} or more, not {request.count}"
            )
        services = self._services
        patience_s = services.limits.patience_s
        services.pool.gather(request, self._still_wanted, self._ui.say, patience_s)
        for group in groups:
            _divide(self._services.pool.present, group)

    def _still_wanted(self) -> None:
        self._services.check()
        if self._status.interruption.drains:
            raise KeyboardInterrupt

    def _still_runs(self, group: Sequence[WorkloadPlan]) -> bool:
        """Return whether the group's load has begun, and the user has not stopped it at once."""
        begun = self._earlier.t0_at(group) is not None
        return begun and not self._status.interruption.stops

    def _still_awaited(self) -> None:
        """Raise KeyboardInterrupt if a load in progress is to stop at once: after a second Ctrl-C.

        Unlike `_still_wanted`, this lets its workers end their iterations after a first Ctrl-C.
        Also raises the error of a local process that has died.
        """
        self._services.check()
        if self._status.interruption.stops:
            raise KeyboardInterrupt

    def _poll(self, undoing: bool) -> None:
        """Acknowledge heartbeats, which keeps workers in the run while contexts are made or undone.

        Called repeatedly by the contexts; shows their progress, too, and detects lost workers.
        Raises KeyboardInterrupt after a second Ctrl-C; if `undoing`, only after a third, or
        `UNDO_S` seconds after an earlier one.
        """
        services, wish = self._services, self._status.interruption
        if wish.leaves(time.monotonic()) if undoing else wish.stops:
            raise KeyboardInterrupt
        if silent := services.contexts.silent:
            self._progress(contexts_at(*silent))
        with contextlib.suppress(StoreUnreachable):
            services.channel.tend()
            services.pool.poll()
            self._failover.detect()
            services.controls.answer(services.pool.present)

    def _run_group(self, group: Sequence[WorkloadPlan]) -> None:
        """Set up the contexts of a group, run its loads together, and undo the contexts.

        Goes on with a load that an earlier coordinator began. Raises ContextError if the group
        cannot begin, OsbenchError if its load cannot go on.
        """
        contexts = self._services.contexts
        earlier = list(self.workloads)
        t0_at = self._earlier.t0_at(group)
        if t0_at is not None and any(contexts.is_over(one.number) for one in group):
            self._end_without_contexts(group)
        with contextlib.ExitStack() as stack:
            made = [
                stack.enter_context(
                    contexts.around(
                        one.number,
                        one.workload,
                        check=self._still_wanted if t0_at is None else self._still_awaited,
                        poll=self._poll,
                        unanswered=partial(self._failed_in, one.number),
                        kept=self._kept,
                    )
                )
                for one in group
            ]
            self._assign_workers(group, resumed=t0_at is not None)
            ready = [
                contexts.ready(one.number, one.workload, context, self._poll)
                for one, context in zip(group, made, strict=True)
            ]
            runs = [
                self._take_over(one)
                if self._earlier.is_over(one.number)
                else self._begin(one, *given)
                for one, given in zip(group, ready, strict=True)
            ]
            open_ones = [one for one in runs if not one.closed]
            self._end_spans(earlier)
            loop = LoadLoop(self._services, self._status, self._failover, open_ones, self._note)
            if t0_at is not None:
                loop.resume(t0_at, self._earlier, self._checkpoints.perhaps)
            else:
                loop.run(self._checkpoints.perhaps)
            for one in runs:
                self._judge_drill(one)
            self._note()

    def _assign_workers(self, group: Sequence[WorkloadPlan], *, resumed: bool) -> None:
        """Assign the workers of the run to the workloads of a group; sends nothing.

        `resumed`: each workload gets the workers that it had, and new ones are shared out. Else
        raises FleetError as `divide` does.
        """
        pool = self._services.pool
        if resumed:
            parts = self._earlier.parts(pool.present, group)
        else:
            parts = _divide(pool.present, group)
        for one in group:
            for mid in self._earlier.serving(one.number):
                pool.workers[mid].workload = one.number
        for one, part in zip(group, parts, strict=True):
            for worker in part:
                worker.workload = one.number

    def _end_spans(self, earlier: Sequence[WorkloadRun]) -> None:
        """Wait for the last spans of finished workloads, then freeze their counts and notes.

        `earlier`: the workloads begun before the present group. Waits a few seconds at most, and
        only if a workload among them is traced.
        """
        if any(one.plan.profiled for one in earlier if one.number not in self._over):
            release.await_spans(self._services, self._status)
        for workload in earlier:
            if workload.number in self._over:
                continue
            workload.workers.freeze_spans()
            # later changes of it are counted, and in the report, but not worth a look at each of
            # thousands of workloads whenever the notes are written
            found = self._over[workload.number] = self._outcome(workload)
            self._notes.settle(workload.number, outcome_notes.notes_of(found))

    def _end_without_contexts(self, group: Sequence[WorkloadPlan]) -> None:
        """Close the loads of a group whose contexts were being undone when its coordinator ended.

        Undoes the rest of the contexts; always raises ContextError.
        """
        for one in group:
            run = self._take_over(one)
            if run.closed:
                self._judge_drill(run)
            run.abandon(resumable=False)
            self._services.contexts.finish(one.number, poll=self._poll)
        raise ContextError(
            "the load cannot continue, as its contexts were being undone; run the task again"
        )

    def _fail(self, group: Sequence[WorkloadPlan], why: str) -> None:
        """Note `why` as the error of each workload of a group, log it, and close the open ones."""
        there = {run.plan.number: run for run in self.workloads}
        for one in group:
            run = there.get(one.number) or self._begin(one, dict(one.workload.args), {})
            run.error = why
            run.abandon(resumable=False)
            LOG.error("%s could not begin: %s", one.name, why)
        self._note()

    def _add_the_rest(self) -> None:
        """Close the workloads that the run did not reach, with the reason, for the report.

        Workloads that an earlier coordinator had begun are reported with their results.
        """
        there = {run.plan.number for run in self.workloads}
        for one in self._plan.workloads:
            if one.number in there:
                continue
            if self._earlier.has_begun(one.number):
                again = self.cut_off is not None
                self._take_over(one).abandon(resumable=again)
                if not again:
                    self._services.contexts.finish(one.number, poll=self._poll)
                continue
            run = self._begin(one, dict(one.workload.args), {})
            run.not_begun = self._why_ended()
            # a run that is resumed begins with it
            run.abandon(resumable=True)

    def _why_ended(self) -> str:
        if self._broken:
            return "the run could not continue"
        if self._status.interruption.drains:
            return "the run was interrupted before"
        if self._status.breach:
            return "the run was stopped for a failed SLA before"
        return "the run ended at a workload that could not begin"

    def outcomes(self) -> list[WorkloadOutcome]:
        """Return the outcomes of the workloads so far, with the notes of earlier coordinators.

        In the order of `workloads`.
        """
        return [self._outcome(run) for run in self.workloads]

    def _outcome(self, run: WorkloadRun) -> WorkloadOutcome:
        return self._earlier.carried_on(run.number, outcome_of(run))

    def _note(self) -> list[WorkloadOutcome]:
        """Save figures that a resuming coordinator needs to the file `notes`; return all outcomes.

        The outcomes are in the order of `workloads`. A failed write is ignored.
        """
        fresh = {
            run.number: self._outcome(run) for run in self.workloads if run.number not in self._over
        }
        notes = outcome_notes.RunNotes(
            workloads={number: outcome_notes.notes_of(one) for number, one in fresh.items()},
            refusals=refusals_of(self._services),
            rollbacks=self._services.channel.rollbacks,
        )
        with contextlib.suppress(StorageError):
            self._notes.write(notes)
        known = {**self._over, **fresh}
        return [known[run.number] for run in self.workloads]

    def _so_far(self) -> dict[str, Any]:
        """Return the document of the file `timeline`, of the run so far; saves the notes, too.

        Called for each checkpoint.
        """
        outcomes = self._note()
        troubles = self._watchers.look(outcomes)
        report = self.builder.build(outcomes, (), self.end())
        document = to_timeline(report, measured_report(report).to_json(), self.builder.lag_limit_s)
        return {**document, "troubles": troubles}

    def _failed_in(self, number: int) -> bool:
        """Return whether workload `number` has granted iterations and not all of them succeeded."""
        results = self._services.accounts.results[number]
        return results.ledger.allotted > 0 and not results.ledger.accounting().well

    def _begin(
        self, one: WorkloadPlan, args: dict[str, Any], context: dict[str, Any]
    ) -> WorkloadRun:
        """Create the run of a workload and add it to `workloads`; sends nothing.

        `args` and `context`: its arguments and context object, as its contexts left them.
        """
        plan, services = self._plan, self._services
        specification = specify(plan, one, args, context, len(services.pool.workers))
        results = services.accounts.results[one.number]
        run = WorkloadRun(
            plan=one,
            specification=specification,
            services=services,
            status=self._status,
            failover=self._failover,
            results=results,
            dispatcher=(scripted_part("dispatcher") if one.is_scripted else Dispatcher)(
                services.port,
                results.ledger,
                one.number,
                arrivals=ArrivalRules(
                    max_lag_s=specification.max_lag_s,
                    warmup_ns=results.warmup_ns,
                    planned_s=one.runner.planned_s,
                    zones=one.zones,
                )
                if one.runner.OPEN
                else None,
                data=one.data,
            ),
            workers=WorkloadWorkers(
                services.pool,
                services.controls,
                one.number,
                one.name,
                self._earlier.size(one.number),
                coroutines=one.coroutines,
            ),
            rules=StopRules(
                self._status,
                results,
                one.name,
                partial(self._note_stop, one.number),
                abort_on_sla=plan.options.abort_on_sla,
            ),
            hooks=LoadHooks(services, one, plan.plugins, plan.run_id),
            progress=self._progress,
            cpu=self._earlier.cpu(one.number),
        )
        self.workloads.append(run)
        return run

    def _note_stop(self, number: int, why: str, at_s: float) -> None:
        stop = {"do": "stop", "workload": number, "at_s": at_s, "why": why}
        self._services.port.note(stop)


def _divide(
    workers: Sequence[WorkerHandle], group: Sequence[WorkloadPlan]
) -> list[list[WorkerHandle]]:
    return divide(workers, group[0].subtask.title, [one.asked for one in group])
