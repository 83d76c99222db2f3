"""Statements on processes of a workload: hooks, contexts, virtual users, loops, workers, hosts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

from osbench.coordinator.formatting import count, duration, plain, three_digits
from osbench.coordinator.report.model.model import WorkloadReport
from osbench.coordinator.report.model.time_figures import BriefTimes
from osbench.coordinator.report.model.workload_parts import ContextStepReport, HookRun, UserTimes
from osbench.coordinator.report.statements.statement import (
    Look,
    Phrase,
    Statement,
    each,
    statement_of,
)
from osbench.coordinator.results.accounting.core_use import host_uses
from osbench.coordinator.results.accounting.worker_figures import WorkerFigures

#: Most hosts that are named, and most hosts whose load is shown.
_HOSTS = 4
#: Lost workers that are named.
_LOST = 6
#: Kinds of errors of virtual users that are shown.
_USER_ERRORS = 3


def hook_statements(workload: WorkloadReport) -> Iterator[Statement]:
    """Return an iterator of a statement per hook: firings by status, and the first error."""
    return (Statement("hooks", _hook(hook)) for hook in workload.hooks)


def _hook(hook: HookRun) -> tuple[Phrase, ...]:
    # a damaged summary may lack either
    name, trigger = next(iter(hook.action), "?"), next(iter(hook.trigger), "?")
    counts = hook.summary.items()
    ended = ", ".join(f"{count(n)} {status.replace('_', ' ')}" for status, n in counts)
    text = Phrase(f"{plain(name)} by {plain(trigger)}: {ended or 'did not fire'}")
    errors = [result.error for result in hook.results if result.error is not None]
    return (text, Phrase(f"; {plain(errors[0].msg)}", Look.BAD)) if errors else (text,)


def context_statements(workload: WorkloadReport) -> Iterator[Statement]:
    """Yield a statement per context: how long set-up and cleanup took, or why a step failed."""
    for context in workload.contexts:
        setup, cleanup = _step(context.setup, "set up"), _step(context.cleanup, "undone")
        yield Statement("contexts", (Phrase(plain(context.name)), setup, cleanup))


def _step(step: ContextStepReport | None, done: str) -> Phrase:
    if step is None:
        return Phrase(f", not {done}", Look.BAD)
    if step.error is not None:
        return Phrase(f", not {done}: {plain(step.error.msg)}", Look.BAD)
    if not (step.started_at and step.finished_at):
        return Phrase(f", {done}")
    begun, ended = map(datetime.fromisoformat, (step.started_at, step.finished_at))
    return Phrase(f", {done} in {duration((ended - begun).total_seconds())}")


def loop_statements(workload: WorkloadReport) -> Iterator[Statement]:
    """Yield statements on lateness of threads and event loops, if known, and on blocked loops."""
    if workload.threads:
        yield statement_of("delay", f"threads {_lateness(workload.threads.lag)}", on_page=True)
    loops = workload.loops
    if loops is None:
        return
    text = f"event loops {_lateness(loops.lag)}"
    if loops.blocked:
        worst = loops.blocked[0]
        text += (
            f"; the scenario blocked them for {duration(loops.blocked_s)}, of that "
            f"{duration(worst.seconds)} at {plain(worst.place)}"
        )
    yield statement_of("delay", text)


def _lateness(lag: BriefTimes) -> str:
    known = [(key, seconds) for key, seconds in (("p50", lag.p50), ("p99", lag.p99))]
    told = [f"{duration(seconds)} at {key}" for key, seconds in known if seconds is not None]
    return ", ".join([*told, f"{duration(lag.max)} at most"])


def user_statements(workload: WorkloadReport) -> Iterator[Statement]:
    """Yield statements on starts and ends of virtual users, and their most frequent errors.

    At most `_USER_ERRORS` errors. Nothing if virtual users do nothing but iterations.
    """
    users = workload.users
    if users is None:
        return
    parts = [f"{count(users.started)} started{_took(users.start_s)}"]
    if users.never_started:
        never, tried = count(users.never_started), count(users.tried)
        parts.append(f"{never} of {tried} could never start")
    if users.start_failures:
        parts.append(f"{count(users.start_failures)} attempts to start failed")
    if users.stopped:
        parts.append(f"{count(users.stopped)} stopped{_took(users.stop_s)}")
    if users.stop_failures:
        parts.append(f"{count(users.stop_failures)} failed to stop")
    if users.replaced:
        parts.append(f"{count(users.replaced)} replaced after a timeout")
    wrong = users.never_started or users.start_failures or users.stop_failures
    yield statement_of("users", "; ".join(parts), on_page=True, in_short=bool(wrong))
    for error in users.errors[:_USER_ERRORS]:
        text = f"{error.what}: {error.type}: {error.message}".partition("\n")[0]
        yield statement_of(
            "users", f"{count(error.count)} x {plain(text)}", on_page=True, in_short=True
        )


def _took(times: UserTimes | None) -> str:
    if times is None:
        return ""
    return f" (in {duration(times.p50)} at p50, {duration(times.max)} at most)"


def worker_statements(workers: Sequence[WorkerFigures]) -> Iterator[Statement]:
    """Yield statements on the hosts of workers, their use of cores, and lost workers.

    Nothing without workers.
    """
    if workers:
        yield statement_of("workers", _places(workers))
        yield from each("workers", _cores(workers), on_page=True)
    lost = [worker for worker in workers if worker.lost]
    if lost:
        yield statement_of("workers", _given_up(lost), Look.BAD)


def _places(workers: Sequence[WorkerFigures]) -> str:
    hosts = Counter(plain(worker.host or "?") for worker in workers)
    if len(hosts) > _HOSTS:
        return f"{count(hosts.total(), 'process', 'processes')} on {len(hosts)} hosts"
    return ", ".join(f"{count(n, 'process', 'processes')} on {host}" for host, n in hosts.items())


def _cores(workers: Sequence[WorkerFigures]) -> Iterator[str]:
    """Yield a message on CPU of workers, waits for cores, throttling and load of hosts.

    Nothing if the CPU is not known.
    """
    cpu = [one.cpu_mean for one in workers if one.cpu_mean is not None]
    if not cpu:
        return
    text = f"CPU {sum(cpu):.2f} cores (busiest process {max(cpu):.2f})"
    waiting = [one.waiting for one in workers if one.waiting is not None]
    if waiting:
        text += f"; {sum(waiting):.2f} threads waited for a core on average"
    hosts = [
        f"host {plain(host.host)}: {three_digits(host.used)} of {host.cores} cores used"
        for host in host_uses(workers)[:_HOSTS]
    ]
    throttled = max((one.throttled or 0.0 for one in workers), default=0.0)
    if throttled:
        text += f"; throttled in {100 * throttled:.0f} % of the periods of their CPU quota"
    if hosts:
        text += f"; {', '.join(hosts)}"
    yield text


def _given_up(lost: Sequence[WorkerFigures]) -> str:
    named = ", ".join(plain(f"{one.host}:{one.pid}") for one in lost[:_LOST])
    more = f" and {len(lost) - _LOST} others" if len(lost) > _LOST else ""
    return f"{count(len(lost))} of them lost: {named}{more}"
