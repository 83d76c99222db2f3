"""A run: gathers workers, conducts each workload, and leaves a report and nothing else."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import logging
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from oslo_config import cfg

from osbench import __version__
from osbench.common import broker
from osbench.common.clock import measure
from osbench.common.deployment import Deployment
from osbench.common.envelope import Sealer, Vault
from osbench.common.errors import ContextError, FleetError, OsbenchError, StoreAway
from osbench.common.messages import Specification
from osbench.common.plugin_names import NATIVE
from osbench.common.plugins import Plugins
from osbench.common.redis_client import connect, handshake
from osbench.common.runner import Runner
from osbench.common.store import RedisStore
from osbench.common.task import Subtask, Task, Workload
from osbench.coordinator import ending
from osbench.coordinator.book import Book
from osbench.coordinator.channel import Channel, Controls
from osbench.coordinator.closing import Closing, Piece
from osbench.coordinator.concert import Concert
from osbench.coordinator.conductor import Conductor
from osbench.coordinator.connection import Connection
from osbench.coordinator.contexts.chain import Contexts
from osbench.coordinator.contexts.objects import Objects
from osbench.coordinator.criteria import Criteria
from osbench.coordinator.fleet import Fleet
from osbench.coordinator.hooks.firing import Hooks
from osbench.coordinator.member import Member
from osbench.coordinator.parts import needs, runner_of, split_workers, together
from osbench.coordinator.profiling import sampling
from osbench.coordinator.reader import Reader
from osbench.coordinator.report.model import RunReport
from osbench.coordinator.report.summary import to_json
from osbench.coordinator.rundir import RunDirectory
from osbench.coordinator.state import Interruption, RunState, Snapshot, contexts_at
from osbench.coordinator.taskfile.data import data_files
from osbench.coordinator.tracing import collect_traces

LOG = logging.getLogger(__name__)

#: Workers ship results at most this often, seconds; with many workers less often.
SHIP_S = 0.2
SHIP_S_PER_WORKER = 0.004
#: At least this often where a run is to abort on SLA failure.
SHIP_ABORT_S = 1.0
#: Longest wait for workers to write out their spans, and to leave, at the end, seconds.
FAREWELL_S = 3.0
#: In a longer ramp, seconds, it means little that workers learn of new users with a heartbeat.
LONG_RAMP_S = 60.0
#: Between two notes of where the run is, seconds.
STATUS_S = 1.0


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


class Noted:
    """Passes snapshots on, and leaves the last of every second in the run directory."""

    def __init__(self, progress: Callable[[Snapshot], None], directory: RunDirectory) -> None:
        self._progress = progress
        self._directory = directory
        self._written = 0.0

    def __call__(self, snapshot: Snapshot) -> None:
        """Show and, once a second, write."""
        self._progress(snapshot)
        if time.monotonic() - self._written >= STATUS_S:
            self._written = time.monotonic()
            self._directory.write("status.json", dataclasses.asdict(snapshot), sync=False)


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
            directory.write("run.json", self._described(started_at))
            report = self._run(directory, started_at)
            summary = to_json(report)
            directory.write("summary.json", summary)
        except BaseException as error:
            ending.keep(directory, error)
            raise
        finally:
            directory.close()
        return summary

    def _tags(self) -> list[str]:
        return list(dict.fromkeys((*self._task.tags, *self._options.tags)))

    def _described(self, started_at: float) -> dict[str, Any]:
        return {
            "run_id": self.run_id,
            "osbench": __version__,
            "started_at": started_at,
            "task": self._task.title,
            "description": self._task.description,
            "source": self._task.source,
            "tags": self._tags(),
            "deployment": self._deployment.name if self._deployment else None,
            "workloads": [
                {
                    "scenario": workload.scenario,
                    "scenario_source": self._plugins.scenario(workload.scenario).source,
                    "args": dict(workload.args),
                    "runner": {workload.runner.name: workload.runner.config},
                    "sla": {named.name: named.config for named in workload.sla},
                    "idempotent": workload.idempotent,
                    "warmup": workload.warmup_s,
                    "args_from": workload.args_from,
                }
                for workload in self._task.workloads
            ],
        }

    def _run(self, directory: RunDirectory, started_at: float) -> RunReport:
        connection = self._connection
        timeout_s = self._conf.messaging.redis_timeout_s
        client = connect(connection.redis_url, timeout_s)
        sealer = Sealer(connection.keyring)
        fleet = Fleet(client, sealer, self.run_id)
        store = RedisStore(client, self.run_id)
        channel = Channel(
            store=store,
            sealer=sealer,
            vault=Vault(connection.keyring),
            app=broker.application(connection.broker_url),
            run_id=self.run_id,
            epoch=secrets.token_hex(8),
        )
        boot = handshake(client)
        state = RunState(
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
            boot=boot,
            greet=lambda: handshake(client),
            batch_ids=itertools.count(1),
            reader=Reader(channel, fleet, directory),
            contexts=Contexts(
                Objects(directory.path, Path(self._conf.data_dir), self.run_id, self._deployment),
                self._plugins,
                self._tell,
            ),
            abort_on_sla=self._options.abort_on_sla,
        )
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
            store.open({"epoch": channel.epoch, "boot": boot, "state": "running"})
            directory.decide([{"do": "open", "epoch": channel.epoch, "boot": boot}])
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
            self._say_farewell(state)
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
            self._clear(state)

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
            check=self._still_wanted,
            # the workers of local mode come by themselves
            say=_nothing if self._connection.local else self._say,
        )
        for subtask in self._task.subtasks:
            for group in together(subtask):
                self._parts(list(state.fleet.members.values()), subtask, group)

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
                        number, workload, check=self._still_wanted, poll=partial(_poll, state)
                    )
                )
                for number, workload in enumerate(group, first)
            ]
            members = [member for member in state.fleet.members.values() if not member.fenced]
            for number, part in enumerate(self._parts(members, subtask, group), first):
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
            if any(piece.sampling.rate for piece in earlier):
                self._say_farewell(state)
            for piece in earlier:
                piece.conductor.crew.freeze_spans()
            Concert(state, conductors).run()

    def _parts(
        self, members: Sequence[Member], subtask: Subtask, group: Sequence[Workload]
    ) -> list[list[Member]]:
        """The workers of each workload. Raises FleetError where they are too few."""
        if len(group) == 1:
            return [list(members)]
        runners = [runner_of(workload, self._plugins) for workload in group]
        found = split_workers([member.beat.capacity for member in members], runners)
        if found is None:
            asked = ", ".join(
                f"{workload.scenario} {'any number' if runner.OPEN else runner.concurrency}"
                for workload, runner in zip(group, runners, strict=True)
            )
            capacities = ", ".join(str(member.beat.capacity) for member in members)
            raise FleetError(
                f"{subtask.title}: its workloads run at once, each on worker processes of its "
                f"own. They ask for virtual users ({asked}); the {len(members)} workers have "
                f"{capacities}. Start more with osbench-worker, or with larger --virtual-users"
            )
        return [[members[position] for position in part] for part in found]

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
        sampled = sampling(workload, self._deployment, self._conf, runner.planned)
        specification = self._specification(
            number, workload, runner, state, args, context, sampled.rate
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
            hooks=Hooks(workload.hooks, self._plugins, run=self.run_id),
            data=self._data.get(number),
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

    def _specification(
        self,
        number: int,
        workload: Workload,
        runner: Runner,
        state: RunState,
        args: dict[str, Any],
        context: dict[str, Any],
        sample_rate: float,
    ) -> Specification:
        plugin = self._plugins.scenario(workload.scenario)
        data = self._data.get(number)
        return Specification(
            run=self.run_id,
            workload=number,
            # the worker does not know whose plug-in this run prefers
            scenario=workload.scenario if plugin.source == NATIVE else plugin.address,
            args=args,
            timeout_s=runner.timeout_s,
            open=runner.OPEN,
            max_concurrency=runner.concurrency if runner.OPEN else 0,
            max_lag_s=self._conf.benchmark.max_lag_s,
            context={**context, "task": {"uuid": self.run_id}},
            deployment=self._deployment.to_dict() if self._deployment else {},
            source_hash=plugin.source_hash,
            sample_rate=sample_rate,
            eager_s=runner.ramp_up_s if runner.ramp_up_s <= LONG_RAMP_S else 0.0,
            columns=data.header if data is not None else [],
            rows_key=data.key if data is not None else b"",
            ship_interval_s=self._ship_interval_s(len(state.fleet.members)),
        )

    def _ship_interval_s(self, workers: int) -> float:
        interval_s = max(SHIP_S, SHIP_S_PER_WORKER * workers)
        # an SLA failure is seen in what was shipped
        return min(interval_s, SHIP_ABORT_S) if self._options.abort_on_sla else interval_s

    # the end

    def _say_farewell(self, state: RunState) -> None:
        """Let workers write out their spans, so that the report can count them."""
        members = [m for m in state.fleet.members.values() if not m.fenced]
        deadline = time.monotonic() + FAREWELL_S
        # heartbeats that were sent under load, and not read yet, know nothing of its end
        with contextlib.suppress(OsbenchError):
            state.fleet.poll()
        marks = {member: member.beat.beat for member in members}
        while time.monotonic() < deadline and not self._interruption.level >= 2:
            with contextlib.suppress(OsbenchError):
                state.fleet.poll()
            if all(m.beat.beat > marks[m] and not m.beat.spans[2] for m in members):
                return
            time.sleep(0.05)

    def _clear(self, state: RunState) -> None:
        """Free the workers and remove the run's keys."""
        members = list(state.fleet.members.values())
        try:
            state.controls.change(members, released=True)
            deadline = time.monotonic() + FAREWELL_S
            while time.monotonic() < deadline:
                state.fleet.poll()
                if all(m.fenced or m.beat.run != self.run_id for m in members):
                    break
                time.sleep(0.05)
            state.fleet.release()
            state.channel.store.close([member.incarnation for member in members])
        except OsbenchError as error:
            LOG.warning("the run's keys could not be removed: %s", error)


def _nothing(sentence: str) -> None:
    """Not worth a word."""


def _poll(state: RunState) -> None:
    """Keep the workers ours while contexts take their time."""
    with contextlib.suppress(StoreAway):
        state.fleet.poll()
