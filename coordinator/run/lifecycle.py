"""A run: gathers workers, conducts each workload, and leaves a report and nothing else."""

from __future__ import annotations

import contextlib
import itertools
import logging
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from oslo_config import cfg

from osbench.common.clock import measure
from osbench.common.deployment.record import Deployment
from osbench.common.errors import ContextError, FleetError, OsbenchError, StoreAway
from osbench.common.plugin.plugins import Plugins
from osbench.common.protocol import broker
from osbench.common.protocol.envelope import Sealer, Vault
from osbench.common.protocol.redis_client import connect, server_run_id
from osbench.common.protocol.store import RedisStore
from osbench.common.task import Subtask, Task, Workload
from osbench.coordinator.contexts.context_stack import ContextStack
from osbench.coordinator.contexts.state_store import ContextStateStore
from osbench.coordinator.dispatch.specification import specify
from osbench.coordinator.fleet.assignment import divide, needs, runner_of, together
from osbench.coordinator.fleet.pool import Fleet
from osbench.coordinator.hooks.executor import HookExecutor
from osbench.coordinator.report.model import RunReport
from osbench.coordinator.report.summary_json import to_json
from osbench.coordinator.results.workload_results import Book
from osbench.coordinator.run import release
from osbench.coordinator.run.closing import Closing, Piece
from osbench.coordinator.run.connection import Connection
from osbench.coordinator.run.load_loop import Concert
from osbench.coordinator.run.sampling import planned_in_all, sampling
from osbench.coordinator.run.state import Interruption, RunState
from osbench.coordinator.run.trace_collection import collect_traces
from osbench.coordinator.run.workload import Conductor
from osbench.coordinator.sla.evaluator import Criteria
from osbench.coordinator.storage import failure
from osbench.coordinator.storage.manifest import describe
from osbench.coordinator.storage.progress import Noted, Snapshot, contexts_at
from osbench.coordinator.storage.run_directory import RunDirectory
from osbench.coordinator.taskfile.data import data_files
from osbench.coordinator.transport.channel import Channel, Controls
from osbench.coordinator.transport.receiver import Reader

LOG = logging.getLogger(__name__)


def new_run_id() -> str:
    """An id that sorts by time: date, time, and some random digits."""
    return time.strftime("%Y%m%d-%H%M%S-", time.gmtime()) + secrets.token_hex(2)


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What the command line adds to task and configuration."""

    #: Worker processes to take, None for all that are free.
    workers: int | None
    #: Longest wait for them, seconds.
    wait_s: float
    #: Id of the run where it was given out before; "" for a new one.
    run_id: str = ""
    #: Tags beside the task's own.
    tags: tuple[str, ...] = ()
    #: Stop the load of all workloads once an SLA can't be met any more.
    abort_on_sla: bool = False


class Run:
    """One run from first worker to report."""

    def __init__(
        self,
        *,
        task: Task,
        plugins: Plugins,
        deployment: Deployment | None,
        conf: cfg.ConfigOpts,
        options: RunOptions,
        connection: Connection,
        interruption: Interruption,
        progress: Callable[[Snapshot], None],
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`progress` gets snapshots of the load, `say` sentences on what the run waits for."""
        self.run_id = options.run_id or new_run_id()
        self._task = task
        self._plugins = plugins
        self._deployment = deployment
        self._conf = conf
        self._options = options
        self._connection = connection
        self._interruption = interruption
        self._progress = progress
        self._say = say
        self._began = time.monotonic()
        self._data = data_files(task)
        self._pieces: list[Piece] = []
        #: Why the run could not go on to its end.
        self._broken = ""
        #: Why a later workload could not begin.
        self._refused = ""

    def execute(self) -> dict[str, Any]:
        """Run everything; answers the summary (docs/results.schema.json), kept on disk too."""
        started_at = time.time()
        directory = RunDirectory.create(self._conf.data_dir, self.run_id)
        try:
            described = describe(
                self.run_id, started_at, self._task, self._tags(), self._plugins, self._deployment
            )
            directory.write("run.json", described)
            report = self._run(directory, started_at)
            summary = to_json(report)
            directory.write("summary.json", summary)
        except BaseException as error:
            failure.keep(directory, error)
            raise
        finally:
            directory.close()
        return summary

    def _tags(self) -> list[str]:
        return list(dict.fromkeys((*self._task.tags, *self._options.tags)))

    def _run(self, directory: RunDirectory, started_at: float) -> RunReport:
        state = self._state(directory)
        closing = Closing(
            run_id=self.run_id,
            task=self._task,
            tags=self._tags(),
            conf=self._conf,
            plugins=self._plugins,
            started_at=started_at,
        )
        try:
            # the head stands before the first worker is marked: its session begins with it
            session = {"epoch": state.channel.epoch, "boot": state.boot}
            state.channel.store.open({**session, "state": "running"})
            directory.decide([{"do": "open", **session}])
            try:
                self._gather(state)
                self._conduct_all(state)
            except KeyboardInterrupt:
                LOG.info("interrupted before a load")
            except ContextError as error:
                if not self._pieces:
                    raise ContextError("; ".join([str(error), *closing.left(state)])) from error
                self._refused = str(error)
            except OsbenchError as error:
                self._cut_short(error)
            _await_spans(state, self._pieces)
            collected = collect_traces(
                directory,
                self._pieces,
                self._deployment,
                self._conf,
                wanted=lambda: self._interruption.level < 2,
            )
            return closing.report(
                state, self._pieces, collected, refused=self._refused, broken=self._broken
            )
        finally:
            release.release(state)

    def _state(self, directory: RunDirectory) -> RunState:
        """What the workloads of this run share. Raises StoreAway, StoreError."""
        connection = self._connection
        timeout_s = self._conf.messaging.redis_timeout_s
        client = connect(connection.redis_url, timeout_s)
        sealer = Sealer(connection.keyring)
        fleet = Fleet(client, sealer, self.run_id)
        channel = Channel(
            store=RedisStore(client, self.run_id),
            sealer=sealer,
            vault=Vault(connection.keyring),
            app=broker.application(connection.broker_url),
            run_id=self.run_id,
            epoch=secrets.token_hex(8),
        )
        return RunState(
            channel=channel,
            controls=Controls(channel),
            fleet=fleet,
            directory=directory,
            offset=measure(client),
            interruption=self._interruption,
            lost_after_s=self._conf.coordinator.worker_lost_after_s,
            wait_s=self._options.wait_s,
            patience_s=self._conf.messaging.patience_s,
            check=connection.check,
            boot=server_run_id(client),
            greet=lambda: server_run_id(client),
            batch_ids=itertools.count(1),
            reader=Reader(channel, fleet, directory),
            contexts=ContextStack(
                ContextStateStore(
                    directory.path, Path(self._conf.data_dir), self.run_id, self._deployment
                ),
                self._plugins,
                self._tell,
            ),
            abort_on_sla=self._options.abort_on_sla,
        )

    def _gather(self, state: RunState) -> None:
        """Take workers enough for every group of workloads, before any of them begins."""
        asked = needs(self._task, self._plugins)
        if self._options.workers is not None and self._options.workers < asked.workers:
            raise FleetError(
                f"{asked.workers} workloads of the task run at once, each on worker processes of "
                f"its own: --workers {self._options.workers} is too few"
            )
        state.fleet.gather(
            count=self._options.workers,
            least=asked.workers,
            users=asked.users,
            wait_s=self._options.wait_s,
            private=self._connection.local,
            check=self._still_wanted,
            say=self._say,
        )
        for subtask in self._task.subtasks:
            for group in together(subtask):
                divide(list(state.fleet.members.values()), subtask, group, self._plugins)

    def _tell(self, what: str, done: int, planned: int) -> None:
        """Show how far a context is."""
        self._progress(contexts_at(what, done, planned, time.monotonic() - self._began))

    def _still_wanted(self) -> None:
        self._connection.check()
        if self._interruption.level:
            raise KeyboardInterrupt

    def _conduct_all(self, state: RunState) -> None:
        number = 0
        for subtask in self._task.subtasks:
            for group in together(subtask):
                if self._interruption.level or state.breach:
                    # what was never begun is not part of the report's sums
                    return
                self._conduct(state, number, subtask, group)
                number += len(group)

    def _conduct(
        self, state: RunState, first: int, subtask: Subtask, group: Sequence[Workload]
    ) -> None:
        """Set the contexts of workloads up, load at once, and undo them, whatever happens."""
        earlier = list(self._pieces)
        with contextlib.ExitStack() as stack:
            made = [
                stack.enter_context(
                    state.contexts.around(
                        number,
                        workload,
                        check=self._still_wanted,
                        poll=partial(_poll, state),
                        unanswered=partial(self._unanswered, number),
                    )
                )
                for number, workload in enumerate(group, first)
            ]
            members = [member for member in state.fleet.members.values() if not member.fenced]
            for number, part in enumerate(divide(members, subtask, group, self._plugins), first):
                for member in part:
                    member.workload = number
            ready = [
                state.contexts.ready(workload, context, partial(_poll, state))
                for workload, context in zip(group, made, strict=True)
            ]
            conductors = [
                self._conductor(state, number, subtask, workload, *given)
                for number, (workload, given) in enumerate(zip(group, ready, strict=True), first)
            ]
            _await_spans(state, earlier)
            for piece in earlier:
                piece.conductor.crew.freeze_spans()
            Concert(state, conductors).run()

    @cached_property
    def _planned(self) -> int:
        """Iterations of the whole task that are profiled, as far as their number is known."""
        workloads = (
            (one, runner_of(one, self._plugins).planned)
            for part in self._task.subtasks
            for one in part.workloads
        )
        return planned_in_all(workloads, self._deployment, self._conf)

    def _unanswered(self, number: int) -> bool:
        begun = number < len(self._pieces)
        return begun and not self._pieces[number].conductor.book.ledger.accounting().well

    def _conductor(
        self,
        state: RunState,
        number: int,
        subtask: Subtask,
        workload: Workload,
        args: dict[str, Any],
        context: dict[str, Any],
    ) -> Conductor:
        runner = runner_of(workload, self._plugins)
        sampled = sampling(workload, self._deployment, self._conf, runner.planned, self._planned)
        data = self._data.get(number)
        specification = specify(
            state,
            number,
            workload,
            plugin=self._plugins.scenario(workload.scenario),
            runner=runner,
            args=args,
            context=context,
            data=data,
            deployment=self._deployment,
            conf=self._conf,
            sample_rate=sampled.rate,
        )
        conductor = Conductor(
            state,
            specification,
            runner,
            book=Book(
                idempotent=workload.idempotent,
                criteria=Criteria(workload.sla, self._plugins),
                warmup_s=workload.warmup_s,
            ),
            progress=Noted(self._progress, state.directory),
            hooks=HookExecutor(workload.hooks, self._plugins, run=self.run_id),
            data=data,
        )
        self._pieces.append(
            Piece(
                subtask=subtask,
                workload=workload,
                conductor=conductor,
                sampling=sampled,
            )
        )
        return conductor

    def _cut_short(self, error: OsbenchError) -> None:
        """The run cannot go on. Once load was offered that is reported, with what was done."""
        if not any(piece.conductor.begun for piece in self._pieces):
            raise error
        for piece in self._pieces:
            piece.conductor.abandon()
        self._broken = f"the run could not go on: {error}"


def _await_spans(state: RunState, pieces: Sequence[Piece]) -> None:
    """Let workers write out the spans of workloads, where they have any."""
    if any(piece.sampling.rate for piece in pieces):
        release.await_spans(state)


def _poll(state: RunState) -> None:
    """Keep the workers ours while contexts take their time."""
    with contextlib.suppress(StoreAway):
        state.fleet.poll()
