"""Makes the notes of a run from facts: its end, its disturbances and its workloads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from osbench.coordinator.formatting import count, duration, plain, spaced
from osbench.coordinator.report.findings.observations import observations
from osbench.coordinator.report.run_outcome import Breach, Disturbances, RunEnd
from osbench.coordinator.results.accounting.outcome import WorkloadOutcome
from osbench.coordinator.results.accounting.workload_requests import other_clients

#: Begin of the note on a load that was cut short, by cause.
_CUT_SHORT = {
    "abort": "aborted",
    "no_users": "the load was ended: no virtual user could begin",
    "runner_failed": "the load was ended: the runner's own code failed",
    "runner_lost": "the load was ended",
}


def notes_of(
    run_id: str,
    named: Sequence[tuple[str, WorkloadOutcome]],
    end: RunEnd,
    found: Sequence[str],
) -> Iterator[str]:
    """Yield the notes on a run: its end, losses, loads, `found` by watchers, hooks, workloads.

    `named`: outcomes with distinct names of their workloads.
    """
    yield from (f"{name} could not begin: {one.error}" for name, one in named if one.error)
    yield from (f"{name} was not begun: {one.not_begun}" for name, one in named if one.not_begun)
    if end.broken:
        yield end.broken
    if end.interrupted and not any(one.begun for _, one in named):
        yield "interrupted before there was load"
    if end.breach is not None:
        yield f"aborted for a failed SLA: {_breach_text(end.breach, named)}"
    yield from end.losses
    yield from _disturbances(end.disturbances)
    yield from (f"{name}: {bound.sentence}" for name, one in named for bound in one.bounds)
    yield from found
    lives = [(name, one.statistics.lives) for name, one in named]
    yield from (f"{name}: {one.shortfall}" for name, one in lives if one.shortfall)
    yield from failed_hooks(named)
    again = f"; `osbench-coord cleanup {run_id}` tries again"
    # cleanup cannot undo a context without the results that it needs
    yield from (text + again * (not text.endswith("context by hand")) for text in end.left_behind)
    for of_workload in (_ending, observations, _other_clients, _false_bodies):
        yield from (f"{name}: {text}" for name, one in named for text in of_workload(one))


def _breach_text(breach: Breach, named: Sequence[tuple[str, WorkloadOutcome]]) -> str:
    """Return the criterion, and the reason unless a verdict at the end has one."""
    verdicts = [
        verdict for _, one in named if one.name == breach.workload for verdict in one.verdicts
    ]
    if any(not one.success and one.criterion == breach.criterion for one in verdicts):
        return f"{breach.workload}: {breach.criterion}"
    return str(breach)


def failed_hooks(named: Sequence[tuple[str, WorkloadOutcome]]) -> Iterator[str]:
    """Yield a note for each hook of the workloads that failed."""
    for name, one in named:
        yield from (f"{name}: {text}" for hook in one.hooks if (text := hook.failure()))


def _disturbances(found: Disturbances) -> Iterator[str]:
    if found.resumptions:
        times = _times(found.resumptions)
        yield f"the run was resumed {times}, after its coordinator had ended"
    if found.rollbacks:
        times = _times(found.rollbacks)
        yield f"Redis had lost data of the run {times}; the run continued from its own records"
    if found.undelivered:
        blocks = count(sum(found.undelivered.values()), "result block")
        names = ", ".join(sorted(map(plain, found.undelivered)))
        yield (
            f"{blocks} did not arrive from {names}: no figure of this report includes them, and "
            "iterations without any other record count as lost"
        )
    for host, (back_s, forward_s) in found.clock_steps.items():
        yield from _clock_notes(plain(host), back_s, forward_s)
    if found.refused:
        reasons = ", ".join(f"{plain(reason)}: {times}" for reason, times in found.refused.items())
        yield f"messages were refused ({reasons}) and ignored"
    for worker, reason in found.departed.items():
        yield f"worker {plain(worker)} {reason} and got no more work"
    for aside, number in found.asides:
        yield f"{plain(aside)} ({count(number, 'time')})"
    if found.log_cut:
        entries = count(found.log_cut, "entry was", "entries were")
        yield f"in the logs and output of workers {entries} too many or too long, and not kept"
    if found.started_late:
        iterations = count(found.started_late, "iteration")
        yield f"{iterations} started after their lease had ended: their worker was delayed"


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _clock_notes(host: str, back_s: float, forward_s: float) -> Iterator[str]:
    """Yield notes on a host whose wall clock was set; `host` is printable, steps are seconds."""
    if back_s:
        yield (
            f"the wall clock of {host} was set back by {back_s:,.1f} s during the run: dates of "
            "the report, of logs and of spans may be out of order; durations are right"
        )
    if forward_s:
        yield (
            f"the wall clock of {host} was set forward by {forward_s:,.1f} s during the run, or "
            "the host slept: dates lie further apart than durations say"
        )


def _ending(outcome: WorkloadOutcome) -> Iterator[str]:
    statistics, warmup, offered = outcome.statistics, outcome.warmup, outcome.offered
    if warmup.seconds and warmup.left_out and not statistics.ran:
        yield (
            f"the warm-up of {duration(warmup.seconds)} is longer than the load: none of its "
            f"{warmup.left_out} iterations is in any statistic; shorten it or lengthen the load"
        )
    if timed_out := statistics.count("timed_out"):
        yield (
            f"{count(timed_out, 'iteration')} timed out after {spaced(outcome.timeout_s)}, the "
            "`timeout` of the runner"
        )
    if outcome.idle_workers:
        workers = len(outcome.workers)
        yield (
            f"{outcome.runner.name} starts its iterations itself, in one process of one worker: "
            f"{outcome.idle_workers} of {workers} took no part"
        )
    if begin := _CUT_SHORT.get(offered.cut_short or ""):
        yield f"{begin}: {outcome.cut_short_by}"
    if outcome.data_used_up:
        yield f"the load ended with the last row of {outcome.data_used_up}"


def _other_clients(outcome: WorkloadOutcome) -> Iterator[str]:
    requests = outcome.statistics.requests
    whole = requests.sum()
    for one in other_clients(requests):
        why = f": {one['why']}" if one["why"] else ""
        yield (
            f"{one['client']} made {count(one['requests'])} of {count(whole.own + whole.others)} "
            f"requests, which costs more CPU{why}"
        )


def _false_bodies(outcome: WorkloadOutcome) -> Iterator[str]:
    number = outcome.statistics.requests.sum().false_bodies
    if number:
        yield (
            f"{count(number, 'response has', 'responses have')} a body that is cut short or not in "
            "the content coding that its head names; an iteration that reads it fails"
        )
