"""The causes that bound a load, judged by one table from measurements.

| cause | fault | evidence |
|---|---|---|
| worker_lost | generator | iterations lost or dropped with a worker |
| interpreter_lock | generator | a process used a core and could run nothing else; threads late |
| stopped | generator | a process could run nothing for a second and used no core |
| blocked_loop | generator | a scenario kept an event loop from running |
| open_files, ports, network_memory | generator | iterations failed for an error of the own system |
| other_programs | generator | late on a host that others keep busy |
| cpu_quota | generator | late in a container that its CPU quota throttled |
| generator_cpu | generator | late, or short of load, on cores that the workers keep busy |
| late | generator | late for another reason |
| dispatch | generator | nothing was late, users were free, and work came too late |
| max_concurrency | task | the task's own limit dropped arrivals, or made them late |
| service | service | all virtual users waited for responses, and nothing was late |

"Late" compares how late event loops and threads woke with `lag_limit_s` at p99, and with the
typical iteration: event loops at p50, threads at p95, since threads that wake often get the
interpreter's lock sooner than threads that compute.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from osbench.common.protocol import timers
from osbench.common.values.histogram import Histogram
from osbench.coordinator.formatting import count, plain, spaced
from osbench.coordinator.results.accounting.core_use import HostUse, host_uses
from osbench.coordinator.results.accounting.generator_delay import is_full
from osbench.coordinator.results.accounting.outcome import WorkloadOutcome
from osbench.coordinator.results.accounting.totals import NOT_MADE, Bound
from osbench.coordinator.results.accounting.worker_figures import WorkerFigures

GENERATOR, SERVICE, TASK = "generator", "service", "task"

#: Share of the plan that may be dropped.
DROPS_ALLOWED = 0.01
#: Share of the requested user-seconds that must not be spent waiting for work.
HELD_ASKED = 0.98
#: Share of the load's time for which a process may be blocked or stalled.
BLOCKED_ALLOWED = 0.01
#: Least wait for work of a user of a closed load, and least length of a load, seconds: below them
#: there is no verdict on the generator.
HELD_LEAST_S = 0.5
SHORTEST_S = 1.0
#: Part of `lag_limit_s` that loops and threads may typically be late, and share of the typical
#: iteration which that may be.
TYPICAL_PART = 0.05
TYPICAL_SHARE = 0.05
#: Threads that wait for a core for each one that has one: from here on cores are scarce.
SCARCE = 0.3
#: Ratio of the numbers of running iterations at the end of an open load and half-way, and least
#: number at the end, from which the service did not keep up.
OUTGROWN = 1.6
OUTGROWN_LEAST = 20
#: Cores that one process uses at most while its threads share the interpreter's lock, about.
ONE_CORE = 0.8
#: Share of the periods of a CPU quota in which a container may be throttled.
THROTTLED_ALLOWED = 0.05


@dataclass(frozen=True, kw_only=True)
class _Seen:
    """Measurements of one outcome, from which the causes in the module's table are judged."""

    planned: int
    drops: Counter[str]
    lost: int
    is_open: bool
    coroutines: bool
    held: float | None
    waited_s: float
    rate: float
    duration_s: float
    lag_limit_s: float
    #: The worker whose container its CPU quota throttled most, if that is too much.
    throttled: WorkerFigures | None
    start_lag_p99_s: float
    lag_typical_s: float
    lag_p99_s: float
    service_p50_s: float
    service_mean_s: float
    blocked: Counter[str]
    #: Time that event loops were watched for, seconds.
    watched_s: float
    stalls: Counter[str]
    resources: Counter[str]
    hosts: list[HostUse] = field(default_factory=list)
    #: CPU of the busiest worker process, and the threads of all that waited for a core.
    cpu: float = 0.0
    cpu_sum: float = 0.0
    waiting: float = 0.0
    #: Whether the Python of a worker was built without optimisation.
    unoptimised: bool = False
    #: All virtual users were busy.
    is_full: bool = False
    lost_workers: int = 0
    #: Iterations running half-way through an open load and at its end, at the same rate.
    running_half: float = 0.0
    running_end: float = 0.0

    @property
    def not_made(self) -> int:
        """Number of arrivals that workers dropped because they could not start them in time."""
        return self.drops["capacity"] + self.drops["late"]

    @property
    def drops_many(self) -> bool:
        return self.not_made > DROPS_ALLOWED * self.planned

    @property
    def typical_limit_s(self) -> float:
        """Limit of the typical wake-up lateness of event loops and threads, seconds."""
        return max(TYPICAL_PART * self.lag_limit_s, TYPICAL_SHARE * self.service_p50_s)

    @property
    def is_late(self) -> bool:
        """Return whether loops or threads woke too late; False for a load under `SHORTEST_S`."""
        if self.duration_s < SHORTEST_S:
            return False
        return self.lag_p99_s > self.lag_limit_s or self.lag_typical_s > self.typical_limit_s

    @property
    def starts_late(self) -> bool:
        return self.is_open and self.start_lag_p99_s > self.lag_limit_s

    @property
    def is_short(self) -> bool:
        """Return whether the load differed from the requested load: drops, late starts or waits."""
        held_back = self.held is not None and self.held < HELD_ASKED
        # in a load of seconds the wait for the first batches is a large share
        least_s = max(self.lag_limit_s, HELD_LEAST_S)
        return self.drops_many or self.starts_late or (held_back and self.waited_s > least_s)

    @property
    def crowded(self) -> HostUse | None:
        """The fullest host of which other programs use more than the workers; None without one."""
        return next((one for one in self.hosts if one.is_full and one.others > one.ours), None)

    @property
    def is_outgrown(self) -> bool:
        """Return whether ever more iterations of an open load ran at once."""
        grown = self.running_end > OUTGROWN * self.running_half
        return self.is_open and grown and self.running_end > OUTGROWN_LEAST

    @property
    def lacks_cores(self) -> bool:
        """Return whether many threads of workers waited for cores, or a host had no idle cores."""
        busy = max(self.cpu_sum, 0.01)
        return self.waiting > SCARCE * busy or any(host.is_full for host in self.hosts)


def load_bounds(
    outcome: WorkloadOutcome, lag_limit_s: float, *, interrupted: bool = False
) -> tuple[Bound, ...]:
    """Return the causes that bound a workload's load, by the module's table; empty if none did.

    `lag_limit_s`: greatest allowed start lag and wake-up lateness at p99, seconds. `interrupted`:
    the user ended the run, so iterations lost without a lost worker do not count.
    """
    seen = _load_facts(outcome, lag_limit_s, interrupted=interrupted)
    found = [*_of_processes(seen)]
    if seen.is_late and not found:
        found.append(_why_late(seen))
    if seen.lost:
        found.append(
            Bound(
                cause="worker_lost",
                fault=GENERATOR,
                sentence=f"{count(seen.lost)} of {count(seen.planned)} iterations were lost or"
                " dropped with a worker or the coordinator",
            )
        )
    own = seen.drops["max_concurrency"]
    if own > DROPS_ALLOWED * seen.planned or (own > seen.not_made and seen.starts_late):
        found.append(_max_concurrency(seen, own))
    if seen.is_short and not found:
        found.append(_why_short(seen))
    if seen.is_outgrown and not found:
        found.append(
            Bound(
                cause="service",
                fault=SERVICE,
                sentence="the service did not keep up with the arrivals: "
                f"{count(round(seen.running_end))} iterations ran when the last arrived, "
                f"{count(round(seen.running_half))} half-way",
            )
        )
    return tuple(found)


def _load_facts(outcome: WorkloadOutcome, lag_limit_s: float, *, interrupted: bool) -> _Seen:
    statistics, offered, workers = outcome.statistics, outcome.offered, outcome.workers
    accounting = outcome.accounting
    not_made = sum(accounting.drops.get(reason, 0) for reason in NOT_MADE)
    lost_workers = sum(worker.lost for worker in workers)
    # iterations that the user does not wait for were lost with no worker
    abandoned = interrupted and not lost_workers
    service, lags = statistics.service.ok, (statistics.loop_lag, statistics.thread_lag)
    cpu = [(worker.cpu_mean or 0.0) for worker in workers]
    half, end = statistics.profile.backlog() if offered.is_open else (0.0, 0.0)
    return _Seen(
        planned=accounting.planned,
        drops=Counter(accounting.drops),
        lost=0 if abandoned else accounting.lost + not_made,
        is_open=offered.is_open,
        # coroutine scenarios of few users run on threads
        coroutines=outcome.coroutines and not (lags[1].count and not lags[0].count),
        held=offered.concurrency_held,
        waited_s=offered.waited_s or 0.0,
        rate=offered.rate_planned or 0.0,
        duration_s=offered.duration_s,
        lag_limit_s=lag_limit_s,
        throttled=_throttled_worker(workers),
        start_lag_p99_s=_at(statistics.start_lag, 99),
        lag_typical_s=max(_at(statistics.loop_lag, 50), _at(statistics.thread_lag, 95)),
        lag_p99_s=outcome.delay.late_s(99),
        service_p50_s=_at(service, 50),
        service_mean_s=service.mean / 1e9 if service.count else 0.0,
        blocked=statistics.blocked,
        watched_s=statistics.loop_lag.count * timers.LOOP_BEAT_S,
        stalls=statistics.stalls,
        resources=statistics.errors.lacking(),
        hosts=host_uses(workers),
        cpu=max(cpu, default=0.0),
        cpu_sum=sum(cpu),
        waiting=sum(worker.waiting or 0.0 for worker in workers),
        unoptimised=any(worker.unoptimised for worker in workers),
        is_full=is_full(
            statistics, accounting.drops, sum(worker.virtual_users for worker in workers)
        ),
        lost_workers=lost_workers,
        running_half=half,
        running_end=end,
    )


def _throttled_worker(workers: Sequence[WorkerFigures]) -> WorkerFigures | None:
    worst = max(workers, key=lambda worker: worker.throttled or 0.0, default=None)
    return worst if worst and (worst.throttled or 0.0) > THROTTLED_ALLOWED else None


def _at(histogram: Histogram, percent: float) -> float:
    """Return a percentile (0 to 100) of a histogram in seconds; 0 if it is empty."""
    return histogram.percentile(percent) / 1e9 if histogram.count else 0.0


def _of_processes(seen: _Seen) -> Iterator[Bound]:
    """Yield causes in workers: lock kept, stopped, loop blocked, no files or ports left."""
    allowed_s = max(BLOCKED_ALLOWED * seen.duration_s, seen.lag_limit_s)
    lock_s, stopped_s = (seen.stalls[cause] / 1e9 for cause in ("lock", "stopped"))
    if lock_s > allowed_s:
        yield Bound(
            cause="interpreter_lock",
            fault=GENERATOR,
            sentence=f"the scenario kept the interpreter's lock of a worker for {spaced(lock_s)}: "
            "no other virtual user and no heartbeat of that process could run then; let C "
            "code release the lock, or run it in a separate process",
        )
    if stopped_s > allowed_s:
        yield Bound(
            cause="stopped",
            fault=GENERATOR,
            sentence=f"a worker process did not run for {spaced(stopped_s)}: it was stopped, its "
            "host stood still, or C code slept with the interpreter's lock",
        )
    blocked_s = seen.blocked.total() / 1e9
    # in a load of seconds the first imports of a scenario are a large share and mean nothing
    if blocked_s > max(BLOCKED_ALLOWED * seen.watched_s, seen.lag_limit_s):
        ((place, lasted),) = seen.blocked.most_common(1)
        yield Bound(
            cause="blocked_loop",
            fault=GENERATOR,
            sentence=f"the scenario blocked the event loop of its workers for {blocked_s:.2f} s, "
            f"of that {lasted / 1e9:.2f} s at {place}: all virtual users of a process waited "
            "then; await the blocking call, or make it by `await self.run_blocking(...)`",
        )
    for resource, failed in seen.resources.most_common():
        cause, remedy = _RESOURCES.get(resource, (resource.replace(" ", "_"), "take more workers"))
        yield Bound(
            cause=cause,
            fault=GENERATOR,
            sentence=f"{count(failed, 'iteration')} failed because the workers had no more "
            f"{plain(resource)}: {remedy}",
        )


#: Cause and remedy by the resource that workers had used up.
_RESOURCES = {
    "open files": ("open_files", "raise their limit (ulimit -n, LimitNOFILE=), or add workers"),
    "ports": ("ports", "keep connections alive, or add hosts or addresses"),
    "memory of the network": ("network_memory", "add hosts"),
}


def _why_late(seen: _Seen) -> Bound:
    """Return the cause why event loops or threads were late: the first that applies.

    Other programs on a full host, a CPU quota, the interpreter lock, busy cores; else the cause
    `late`, which only names the lateness.
    """
    what = "event loops" if seen.coroutines else "threads"
    typical = "p50" if seen.coroutines else "p95"
    late = (
        f"the {what} of the workers were late by {spaced(seen.lag_typical_s)} at {typical} and "
        f"{spaced(seen.lag_p99_s)} at p99"
    )
    full = [host for host in seen.hosts if host.is_full]
    if seen.crowded is not None:
        return _other_programs(seen.crowded, late)
    if seen.throttled is not None:
        return Bound(
            cause="cpu_quota",
            fault=GENERATOR,
            sentence=f"{late}: the container of {plain(seen.throttled.host)} has a CPU quota of"
            f" {seen.throttled.quota:g} cores, which throttled it in"
            f" {100 * (seen.throttled.throttled or 0.0):.0f} % of its periods; raise the quota, or"
            " take fewer worker processes in it, and more containers",
        )
    if not seen.coroutines and seen.cpu > ONE_CORE and not full:
        return Bound(
            cause="interpreter_lock",
            fault=GENERATOR,
            sentence=f"{late}: they share the interpreter's lock of their process, and the busiest "
            f"process used {seen.cpu:.2f} cores; take more worker processes with fewer virtual "
            "users each",
        )
    if seen.lacks_cores or seen.cpu > ONE_CORE:
        return Bound(cause="generator_cpu", fault=GENERATOR, sentence=f"{late}; {_cpu(seen)}")
    limit = f"lag_limit_s ({seen.lag_limit_s:g} s)"
    if seen.lag_p99_s <= seen.lag_limit_s:
        limit = f"the limit at {typical} ({spaced(seen.typical_limit_s)})"
    return Bound(
        cause="late",
        fault=GENERATOR,
        sentence=f"{late}, above {limit}: add workers, or take fewer virtual users",
    )


def _other_programs(host: HostUse, what: str) -> Bound:
    return Bound(
        cause="other_programs",
        fault=GENERATOR,
        sentence=f"{what}: other programs used {host.others:.1f} of the {host.cores} cores of "
        f"{plain(host.host)}, the workers {host.ours:.1f}; take dedicated hosts",
    )


def _cpu(seen: _Seen) -> str:
    faster = ", or take a Python that is built with optimisation" if seen.unoptimised else ""
    return (
        f"the workers used {seen.cpu_sum:.1f} cores, {seen.cpu:.2f} the busiest process, and "
        f"{seen.waiting:.1f} threads waited for a core on average: add worker processes while "
        f"cores are idle, and hosts then{faster}"
    )


def _max_concurrency(seen: _Seen, dropped: int) -> Bound:
    needed = math.ceil(seen.rate * seen.service_mean_s)
    return Bound(
        cause="max_concurrency",
        fault=TASK,
        sentence=f"the task's own max_concurrency was the limit: {count(dropped)} of "
        f"{count(seen.planned)} arrivals were dropped for it; the requested rate needs at least "
        f"{needed} virtual users at once",
    )


def _why_short(seen: _Seen) -> Bound:
    """Return the cause why a load was short although no event loop or thread was late.

    Open load: the service if all users were busy and no host full, other programs, busy cores, else
    `dispatch` (work came too late). Closed load: lost workers, other programs, else `dispatch`.
    """
    if seen.is_open:
        missing = _missing(seen)
        full = [host for host in seen.hosts if host.is_full]
        if seen.is_full and not full:
            return Bound(
                cause="service",
                fault=SERVICE,
                sentence=f"the service did not respond in time: {missing} because all virtual "
                "users waited for it (event loops and threads were at most "
                f"{spaced(seen.lag_p99_s)} late at p99)",
            )
        if seen.crowded is not None:
            return _other_programs(seen.crowded, missing)
        if seen.lacks_cores or (seen.coroutines and seen.cpu > ONE_CORE):
            return Bound(
                cause="generator_cpu", fault=GENERATOR, sentence=f"{missing}; {_cpu(seen)}"
            )
        return Bound(
            cause="dispatch",
            fault=GENERATOR,
            sentence=f"{missing} although virtual users were free: the workers could not keep up; "
            "add workers",
        )
    return _why_users_waited(seen)


def _why_users_waited(seen: _Seen) -> Bound:
    held = seen.held or 0.0
    if seen.crowded is not None and not seen.lost_workers:
        return _other_programs(seen.crowded, f"the sustained concurrency is {held:.1%}")
    if seen.lost_workers:
        return Bound(
            cause="worker_lost",
            fault=GENERATOR,
            sentence=f"the sustained concurrency is {held:.1%}: workers lost: {seen.lost_workers}",
        )
    return Bound(
        cause="dispatch",
        fault=GENERATOR,
        sentence=f"the sustained concurrency is {held:.1%}: a virtual user waited "
        f"{seen.waited_s:.2f} s for work, or had no worker",
    )


def _missing(seen: _Seen) -> str:
    if seen.drops_many:
        return (
            f"{count(seen.not_made)} of {count(seen.planned)} arrivals could not be started in time"
        )
    return f"p99 start lag is {spaced(seen.start_lag_p99_s)}"
