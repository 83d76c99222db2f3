"""Number of worker processes and hosts that a load needs, and the load of each. No I/O.

Users of an open load follow Little's law (L = rate x time in system; Little, Operations Research 9,
1961). Their number varies: in a system without waiting it has a Poisson distribution
(M/G/infinity), so that the mean and three times its root are enough nearly all the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt

from osbench.common.plugin.runner import split
from osbench.edges.history.sizing.iteration_cost import IterationCost
from osbench.edges.history.sizing.load_levels import LoadLevel

#: Memory of the supervisor of a host, bytes (docs/operations.md, Sizing).
SUPERVISOR_BYTES = 45_000_000
#: For how long a closed connection keeps its local port, seconds (TCP TIME_WAIT in Linux).
TIME_WAIT_S = 60.0
#: The least share of a core that is left for iterations, whatever a process takes for itself.
_LEAST_SHARE = 0.05
#: Computed share of a core of the coordinator: for a block of results, and for each of its rows
#: (docs/bench.md); workers send blocks at these intervals, seconds.
_BLOCK_CPU_S = 125e-6
_ROW_CPU_S = 0.4e-6
_SHIP_S = 0.2
_SHIP_S_PER_WORKER = 0.004


@dataclass(frozen=True, kw_only=True)
class HostLimits:
    """Resources assumed of one host of workers, and limits of one worker process on it."""

    #: Cores, and so worker processes, of each.
    cores: int
    #: Share of a core that a worker process is to take at most.
    utilisation: float
    #: Virtual users that a process carries as threads (`[worker] virtual_users`), and as
    #: coroutines.
    virtual_users: int
    coroutines: int
    #: File descriptors that a process may open, and local ports of a host.
    open_files: int
    ports: int


@dataclass(frozen=True, kw_only=True)
class LevelNeeds:
    """Needs of one level of a load, at its peak: rate, users, cores and worker processes."""

    from_s: float
    to_s: float | None
    begin: float
    end: float
    #: Iterations per second at the peak; of a closed load the most that its users can make.
    rate: float
    #: Virtual users with an iteration in hand: on average, and nearly always at most.
    users: float
    users_peak: int
    #: Cores that iterations take.
    cores: float
    #: Worker processes for its CPU time, and for its users.
    processes_cpu: int
    processes_users: int

    @property
    def processes(self) -> int:
        """Return the number of worker processes that the level needs, at least 1."""
        return max(1, self.processes_cpu, self.processes_users)


@dataclass(frozen=True, kw_only=True)
class WorkloadNeeds:
    """Needs of one workload by levels, the cost of its iteration, and the maxima over levels."""

    name: str
    scenario: str
    runner: str
    is_open: bool
    #: Virtual users that a process carries.
    users_each: int
    cost: IterationCost
    levels: tuple[LevelNeeds, ...]

    @property
    def processes(self) -> int:
        """Return the greatest number of worker processes that a level needs; at least 1."""
        return max((one.processes for one in self.levels), default=1)

    @property
    def limited_by(self) -> str:
        """Return the resource that decides `processes`: "CPU" or "users"; "nothing" if it is 1."""
        if self.processes == 1:
            return "nothing"
        cpu = max(one.processes_cpu for one in self.levels)
        return "CPU" if cpu == self.processes else "users"

    @property
    def rate(self) -> float:
        """Return the highest number of iterations per second over all levels; 0 without levels."""
        return max((one.rate for one in self.levels), default=0.0)

    @property
    def users_peak(self) -> int:
        """Return the most virtual users with an iteration in hand, over levels; 0 without any."""
        return max((one.users_peak for one in self.levels), default=0)

    def shares(self, processes: int) -> list[float]:
        """Return a list of the load of each of `processes` worker processes at the peak.

        Arrivals per second of an open load, equal parts; else virtual users, integers.
        """
        if self.is_open:
            return [self.rate / processes] * processes
        return [float(one) for one in split(self.users_peak, [self.users_each] * processes)]


@dataclass(frozen=True, kw_only=True)
class TaskNeeds:
    """Needs of a task: workloads that run in parallel add up; of groups the largest counts.

    Memory and files are of the workload that needs most.
    """

    processes: int
    hosts: int
    #: Of a host that has all its processes.
    host_processes: int
    host_memory_bytes: int
    #: Of one process.
    process_memory_bytes: int
    process_files: int
    #: Local ports of a host that are in use or not free yet; None: connections are not known.
    host_ports: int | None
    #: Results through Redis.
    redis_bytes_per_s: float
    #: Computed share of a core.
    coordinator_cpu: float


def workload_needs(
    name: str,
    scenario: str,
    runner: str,
    levels: Sequence[LoadLevel],
    cost: IterationCost,
    limits: HostLimits,
    pace: UserPace | None,
    *,
    coroutines: bool,
) -> WorkloadNeeds:
    """Compute the worker processes, users and cores that a workload needs, level by level.

    `levels`: the requested load. `limits`: of a process. `pace`: of a closed load, None for an open
    one. `coroutines`: its virtual users are coroutines, not threads.
    """
    users_each = limits.coroutines if coroutines else limits.virtual_users
    return WorkloadNeeds(
        name=name,
        scenario=scenario,
        runner=runner,
        is_open=pace is None,
        users_each=users_each,
        cost=cost,
        levels=tuple(_level(one, cost, limits.utilisation, users_each, pace) for one in levels),
    )


@dataclass(frozen=True, kw_only=True)
class UserPace:
    """Limits on starts of iterations by virtual users of a closed load: think time and rate."""

    #: Mean time between two iterations of a user, seconds.
    think_s: float = 0.0
    #: Iterations per second over all users at most; 0 means no limit.
    max_rate: float = 0.0


def _level(
    level: LoadLevel,
    cost: IterationCost,
    utilisation: float,
    users_each: int,
    pace: UserPace | None,
) -> LevelNeeds:
    if pace is None:
        rate = level.peak
        users = rate * cost.held_s
        users_peak = ceil(users + 3 * sqrt(users))
    else:
        users_peak = ceil(level.peak)
        # a user that has only to compute is busy for the CPU time itself
        rate = users_peak / max(cost.held_s + pace.think_s, cost.cpu_s, 1e-9)
        rate = min(rate, pace.max_rate) if pace.max_rate else rate
        users = min(float(users_peak), rate * cost.held_s)
    cores = rate * cost.cpu_s
    share = max(_LEAST_SHARE, utilisation - cost.idle_cpu)
    by_cpu = ceil(round(cores / share, 9))
    return LevelNeeds(
        from_s=level.from_s,
        to_s=level.to_s,
        begin=level.begin,
        end=level.end,
        rate=rate,
        users=users,
        users_peak=users_peak,
        cores=cores,
        # a process without a virtual user would have nothing to do
        processes_cpu=by_cpu if pace is None else min(by_cpu, users_peak),
        processes_users=ceil(users_peak / users_each),
    )


def task_needs(groups: Sequence[Sequence[WorkloadNeeds]], limits: HostLimits) -> TaskNeeds:
    """Return the needs of a task from its groups of workloads; a group's workloads run in parallel.

    There must be a workload. Groups run one after another. Processes, ports, bytes per second and
    coordinator's CPU are summed in a group, then the greatest counts; memory and files are of the
    workload that needs most.
    """
    processes = max(sum(one.processes for one in group) for group in groups)
    host_processes = min(processes, limits.cores)
    each = [one for group in groups for one in group]
    memory = max(
        one.cost.memory_bytes + _users_of_process(one) * one.cost.memory_user_bytes for one in each
    )
    files = max(one.cost.files + ceil(_users_of_process(one) * one.cost.files_user) for one in each)
    rate = max(sum(one.rate for one in group) for group in groups)
    ports = [_ports(group, host_processes) for group in groups]
    return TaskNeeds(
        processes=processes,
        hosts=ceil(processes / limits.cores),
        host_processes=host_processes,
        host_memory_bytes=SUPERVISOR_BYTES + host_processes * memory,
        process_memory_bytes=memory,
        process_files=files,
        host_ports=max((one for one in ports if one is not None), default=None),
        redis_bytes_per_s=max(
            sum(one.rate * one.cost.result_bytes for one in group) for group in groups
        ),
        coordinator_cpu=_coordinator_cpu(processes, rate),
    )


def _users_of_process(one: WorkloadNeeds) -> int:
    return ceil(one.users_peak / one.processes)


def _ports(group: Sequence[WorkloadNeeds], host_processes: int) -> int | None:
    """Return the most local ports that `host_processes` processes of a group use on one host.

    Ports of open connections and of closed ones in TIME_WAIT. Workloads whose number of new
    connections is unknown are left out; None if there is no other.
    """
    loads = []
    for one in group:
        if one.cost.new_connections is not None:
            closed = one.rate * one.cost.new_connections * TIME_WAIT_S
            used = closed + one.users_peak * one.cost.files_user
            loads.append((used / one.processes, one.processes))
    if not loads:
        return None
    found, left = 0.0, host_processes
    # the processes of one host may use most
    for each, processes in sorted(loads, reverse=True):
        found += each * min(left, processes)
        left -= min(left, processes)
    return ceil(round(found, 6))


def _coordinator_cpu(processes: int, rate: float) -> float:
    blocks_per_s = processes / max(_SHIP_S, _SHIP_S_PER_WORKER * processes)
    return blocks_per_s * _BLOCK_CPU_S + rate * _ROW_CPU_S
