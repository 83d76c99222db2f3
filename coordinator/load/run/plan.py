"""The plan of a run: everything that follows from task and configuration, before any connection."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from oslo_config import cfg

from osbench.common.deployment.record import Deployment
from osbench.common.machine.cpu_quota import usable_cores
from osbench.common.plugin.iteration_rows import IterationRows
from osbench.common.plugin.plugins import Plugins
from osbench.common.plugin.runner import Runner
from osbench.common.plugin.scenario_plugin import ScenarioPlugin
from osbench.common.plugin.scripted_runner import ScriptedRunner
from osbench.common.ports import chance as secrets
from osbench.common.ports import clock as time
from osbench.common.task import Subtask, Task, Workload
from osbench.coordinator.formatting import distinct, titles
from osbench.coordinator.load.fleet.assignment import AskedUsers, WorkerNeeds, needs
from osbench.coordinator.load.fleet.worker_request import ANY_NUMBER, WorkerRequest
from osbench.coordinator.load.fleet.zones import NO_ZONES, ZoneShares
from osbench.coordinator.load.run.sampling import Sampling, planned_in_all, sampling
from osbench.coordinator.results.storage.progress import Snapshot
from osbench.coordinator.task.data_file import DataFile
from osbench.coordinator.task.taskfile.data import data_files
from osbench.coordinator.task.taskfile.users.virtual_users import user_files


@dataclass(frozen=True, kw_only=True)
class RunInterface:
    """Callbacks through which a run shows its progress and its messages to the user."""

    #: Gets snapshots of contexts and load.
    progress: Callable[[Snapshot], None]
    #: Gets messages on the things that the run waits for.
    say: Callable[[str], None] = lambda _: None


def new_run_id() -> str:
    """Return a new run id that sorts by time: UTC date and time, and four hexadecimal digits.

    Two of them are 256ths of the second, so that the last of several short runs is "last", and two
    are random.
    """
    now_s = time.time()
    second = time.strftime("%Y%m%d-%H%M%S-", time.gmtime(now_s))
    return f"{second}{int(256 * (now_s % 1)):02x}{secrets.token_hex(1)}"


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Settings of a run that the command line adds to task and configuration."""

    #: Worker processes to take, None for all that are free.
    workers: int | None = None
    #: Whether to take further ones, up to `workers`, while load runs; None for `[coordinator] join`
    #: without `workers`, else False.
    join: bool | None = None
    #: Longest wait for them, seconds; None for that of the configuration.
    wait_s: float | None = None
    #: Id of the run if it was given out before; "" for a new one.
    run_id: str = ""
    #: Tags in addition to the task's own.
    tags: tuple[str, ...] = ()
    #: Stop the load of all workloads once an SLA can't be met any more.
    abort_on_sla: bool = False
    #: End the run at a workload that cannot begin, instead of going on with the next.
    stop_on_error: bool = False
    #: Address at which spans are received by OTLP, ADDR:PORT; "" for `[traces] otlp_listen`.
    otlp: str = ""
    #: URL at which spans are queried; "" for `[traces] query_url`.
    traces_from: str = ""
    #: Parts of HTTP requests of iterations that workers note (`Specification.shown`).
    shown: int = 0


@dataclass(frozen=True, kw_only=True)
class WorkloadPlan:
    """Plan of a workload: its scenario, runner, sampling and data; made once, by `plan_run`."""

    #: Counts the workloads of the run from 0.
    number: int
    #: The name in messages and live views, of which a run has no two.
    name: str
    #: Its name on pages.
    title: str
    subtask: Subtask
    workload: Workload
    scenario: ScenarioPlugin
    #: Whose plug-in each SLA criterion is.
    sla_sources: tuple[str, ...]
    runner: Runner
    #: Which of its iterations are profiled.
    sampling: Sampling
    data: IterationRows | None
    #: Data file whose rows go to virtual users.
    user_data: DataFile | None = None
    #: Divides the load among the zones of workers.
    zones: ZoneShares = NO_ZONES

    @property
    def users(self) -> int:
        """The number of virtual users that the workload needs to begin; 1 if the runner is open."""
        return 1 if self.runner.OPEN else self.runner.concurrency

    @property
    def asked(self) -> AskedUsers:
        """The request for virtual users: name of the workload, their number, and their kind.

        The kind is open or closed, coroutines or threads.
        """
        return AskedUsers(
            name=self.name,
            count=self.users,
            is_open=self.runner.OPEN,
            coroutines=self.coroutines,
        )

    @property
    def is_scripted(self) -> bool:
        """Return whether the runner's own code starts iterations, in one worker process."""
        return isinstance(self.runner, ScriptedRunner)

    @property
    def coroutines(self) -> bool:
        """Return whether virtual users are coroutines instead of threads."""
        return self.scenario.is_coroutine and not self.is_scripted

    @property
    def profiled(self) -> bool:
        """Return whether iterations are sampled for traces: the sampling rate is above 0."""
        return self.sampling.rate > 0


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """The plan of a run, computed once from task and configuration."""

    run_id: str
    task: Task
    tags: tuple[str, ...]
    plugins: Plugins
    deployment: Deployment | None
    conf: cfg.ConfigOpts
    options: RunOptions
    #: In the order of the task; the workloads of a group are under load at once.
    groups: tuple[tuple[WorkloadPlan, ...], ...]
    needs: WorkerNeeds

    @property
    def workloads(self) -> Iterator[WorkloadPlan]:
        """All workloads, in the order of the task, which is that of their numbers."""
        for group in self.groups:
            yield from group

    @property
    def worker_modules(self) -> list[str]:
        """Return the modules of osbench that worker processes import for the scenarios, sorted."""
        found = set()
        for one in self.workloads:
            cls = one.scenario.cls
            found |= {cls.__module__, *cls.WORKER_MODULES}
        return sorted(name for name in found if name.startswith("osbench."))

    @property
    def zones(self) -> ZoneShares:
        """The zones of all workloads, with their shares of all loads."""
        return ZoneShares(*(workload.zones for workload in self.task.workloads))

    @property
    def lasts_s(self) -> float | None:
        """Planned duration of all load, seconds; None if a runner does not know its own.

        Groups run one after another: the sum of the longest workload of each.
        """
        found = [[one.runner.planned_s for one in group] for group in self.groups]
        known = [[one for one in group if one is not None] for group in found]
        return sum(map(max, known)) if known == found else None

    @property
    def otlp_address(self) -> str:
        """Address at which spans are received by OTLP, ADDR:PORT; "" for none."""
        return str(self.options.otlp or self.conf.traces.otlp_listen)

    @property
    def query_url(self) -> str:
        """URL at which spans are queried at the end; "" for none."""
        return str(self.options.traces_from or self.conf.traces.query_url)

    @property
    def by_otlp(self) -> bool:
        """Return whether the run receives spans by OTLP, or queries them at a URL.

        Tracing then needs no HMAC key and no trace store of OSProfiler.
        """
        return bool(self.otlp_address or self.query_url)

    @property
    def local_processes(self) -> int:
        """The number of worker processes of local mode: as requested, else as configured.

        Without either: one per core, but no more than the largest group has virtual users if all
        runners are closed, and at least as many as a group has workloads.
        """
        wanted = self.options.workers or self.conf.worker.processes
        if wanted:
            return int(wanted)
        cores = usable_cores()
        some_open = any(one.runner.OPEN for one in self.workloads)
        return max(self.needs.workers, cores if some_open else min(cores, self.needs.users))

    @property
    def local_users(self) -> int:
        """The capacity of each worker process of local mode, in virtual users that are threads.

        As configured, or more if the task needs more.
        """
        each = -(-self.needs.threads // self.local_processes)
        return max(int(self.conf.worker.virtual_users), each, self.needs.threads_alone)

    @property
    def wait_s(self) -> float:
        """Longest wait for workers, seconds: of the command line, else of the configuration."""
        wait_s = self.options.wait_s
        return float(self.conf.coordinator.wait_for_workers_s if wait_s is None else wait_s)

    @property
    def most_workers(self) -> int:
        """Worker processes up to which the run takes new ones under load; 0 if it takes none."""
        most, join = self.options.workers, self.options.join
        if join is None:
            join = most is None and bool(self.conf.coordinator.join)
        return (ANY_NUMBER if most is None else most) if join else 0

    def request(self, *, private: bool) -> WorkerRequest:
        """Return the request for workers of the run: how many, for which load, how long to wait.

        `private`: of local mode, all its processes; else as many as the command line says, or None
        for all free workers.
        """
        return WorkerRequest(
            count=self.local_processes if private else self.options.workers,
            least=self.needs.workers if private else max(self.needs.workers, len(self.zones.names)),
            # workloads that run at once are given all their workers before
            grows=bool(self.options.join) and not private and self.needs.workers == 1,
            threads=self.needs.threads,
            coroutines=self.needs.coroutines,
            wait_s=self.wait_s,
            private=private,
            # workers of local mode have no labels
            zones=NO_ZONES if private else self.zones,
        )


def plan_run(
    task: Task,
    plugins: Plugins,
    deployment: Deployment | None,
    conf: cfg.ConfigOpts,
    options: RunOptions,
    data: Mapping[int, IterationRows] | None = None,
    user_data: Mapping[int, DataFile] | None = None,
) -> RunPlan:
    """Plan a run of a checked task; reads missing data files, connects to nothing.

    `data`, `user_data`: the data files of workloads, for iterations and for virtual users, by
    number of the workload; None if they are still to be read. Raises TaskError if a file cannot be
    used.
    """
    if data is None:
        data = data_files(task)
    if user_data is None:
        user_data = user_files(task)
    traces = conf.traces
    otlp = bool(options.otlp or traces.otlp_listen or options.traces_from or traces.query_url)
    plans = list(_plans(task, plugins, deployment, conf, data, user_data, otlp=otlp))
    groups = tuple(_groups(task, plans))
    return RunPlan(
        run_id=options.run_id or new_run_id(),
        task=task,
        tags=tuple(dict.fromkeys((*task.tags, *options.tags))),
        plugins=plugins,
        deployment=deployment,
        conf=conf,
        options=options,
        groups=groups,
        needs=needs([[one.asked for one in group] for group in groups]),
    )


def _plans(
    task: Task,
    plugins: Plugins,
    deployment: Deployment | None,
    conf: cfg.ConfigOpts,
    data: Mapping[int, IterationRows],
    user_data: Mapping[int, DataFile],
    *,
    otlp: bool,
) -> Iterator[WorkloadPlan]:
    """Yield the plan of each workload, in the order of the task.

    `data` and `user_data`: data files by number of the workload. `otlp`: spans come by OTLP or are
    queried. The sampling rate of a workload depends on the planned iterations of all workloads.
    """
    runners = [runner_of(workload, plugins) for workload in task.workloads]
    pairs = list(zip(task.workloads, runners, strict=True))
    scenarios = [plugins.scenario(workload.scenario) for workload in task.workloads]
    in_all = planned_in_all(
        (
            (workload, runner.planned, scenario.enable_profiler)
            for (workload, runner), scenario in zip(pairs, scenarios, strict=True)
        ),
        deployment,
        conf,
    )
    subtasks = [subtask for subtask in task.subtasks for _ in subtask.workloads]
    within = zip(subtasks, task.workloads, strict=True)
    shown = titles((one.named, subtask.title, one.name) for subtask, one in within)
    names = distinct([workload.name for workload in task.workloads])
    for number, (subtask, (workload, runner)) in enumerate(zip(subtasks, pairs, strict=True)):
        yield WorkloadPlan(
            number=number,
            name=names[number],
            title=shown[number],
            subtask=subtask,
            workload=workload,
            scenario=scenarios[number],
            sla_sources=tuple(plugins.find("sla", one.name).source for one in workload.sla),
            runner=runner,
            sampling=sampling(
                workload,
                deployment,
                conf,
                runner.planned,
                in_all,
                otlp=otlp,
                of_source=scenarios[number].enable_profiler,
            ),
            data=data[number] if number in data else runner.rows(),
            user_data=user_data.get(number),
            zones=ZoneShares(workload.zones),
        )


def runner_of(workload: Workload, plugins: Plugins) -> Runner:
    """Create the runner of a checked workload from its configuration."""
    kind = plugins.get("runner", workload.runner.name)
    assert issubclass(kind, Runner)
    return kind(workload.runner.config)


def _groups(task: Task, plans: Sequence[WorkloadPlan]) -> Iterator[tuple[WorkloadPlan, ...]]:
    at = 0
    for subtask in task.subtasks:
        mine = tuple(plans[at : at + len(subtask.workloads)])
        at += len(mine)
        if subtask.run_in_parallel:
            yield mine
        else:
            yield from ((one,) for one in mine)
