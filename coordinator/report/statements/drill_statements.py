"""Statements on a drill: its phases, failures, and the time of recovery."""

from __future__ import annotations

from collections.abc import Iterator

from osbench.coordinator.formatting import count, duration, plain, three_digits
from osbench.coordinator.report.model.model import WorkloadReport
from osbench.coordinator.report.statements.statement import Look, Statement, statement_of
from osbench.coordinator.results.accounting.drill_figures import (
    Bounds,
    DrillFigures,
    LeftKind,
    PhaseFigures,
    SlowLimit,
)


def drill_statements(workload: WorkloadReport, *, phases: bool = True) -> Iterator[Statement]:
    """Yield statements on a drill: its phases, its problem, its results, iterations in no phase.

    Nothing for loads without a drill. Without `phases` their figures are left out.
    """
    drill = workload.drill
    if drill is None:
        return
    for phase in drill.phases if phases else ():
        yield statement_of("drill", _phase(phase), in_short=True)
    if drill.problem:
        yield statement_of("drill", plain(drill.problem, 500), Look.BAD)
    for text in (*drill_results(drill), *left_results(drill)):
        yield statement_of("drill", text, Look.STRONG, in_short=True)
    for text in (drill.generator, *left_doubts(drill)):
        if text:
            yield statement_of("drill", text, Look.BAD)
    if elsewhere := elsewhere_text(workload, drill):
        yield statement_of("drill", elsewhere)


def drill_results(drill: DrillFigures) -> Iterator[str]:
    """Yield messages on failures since the fault and on recovery; nothing if no fault has begun."""
    if drill.fault_s is None:
        return
    if drill.overload is not None:
        yield from (plain(text, 500) for text in drill.overload.get("sentences", ()))
        return
    text = f"{count(drill.bad, 'iteration')} did not succeed from the fault on"
    if drill.bad_beyond is not None and drill.bad_beyond_ci is not None and drill.bad:
        more, low, high = (
            count(round(number or 0.0)) for number in (drill.bad_beyond, *drill.bad_beyond_ci)
        )
        text += f", {more} more than at the share before it (95 %: {low} to {high})"
    yield text
    if drill.recovery_s is None:
        yield drill.doubt
    elif not drill.recovery_s:
        text = f"no effect lasted: an outage of {duration(drill.unseen_s)} would have been seen"
        slow = [f"{_over(one)} for {duration(one.unseen_s)}" for one in drill.limits]
        yield f"{text}, or a {' or '.join(slow)}" if slow else text
    else:
        text = f"recovered {duration(drill.recovery_s)} after the fault began"
        if drill.recovery_ci is not None:
            low_s, high_s = drill.recovery_ci
            text += f" (95 %: {duration(low_s)} to {duration(high_s)})"
        if drill.after_s is not None:
            since_s = drill.fault_s + drill.recovery_s - drill.after_s
            side = "after" if since_s >= 0 else "before"
            text += f", {duration(abs(since_s))} {side} the hook that ends the fault fired"
        yield text
    if drill.limits:
        limits = " or ".join(
            f"{_over(one)} (before: {duration(one.before_s)})" for one in drill.limits
        )
        yield (
            f"slow means {limits}: above the usual range before the fault, and at least a tenth"
            " slower"
        )


def _over(limit: SlowLimit) -> str:
    return f"p{limit.percent:g} above {duration(limit.limit_s)}"


def left_results(drill: DrillFigures) -> Iterator[str]:
    """Yield one message on resources left in error or changing; nothing if no kind was listed."""
    left = drill.left
    if left is None or not left.kinds:
        return
    text = f"{count(left.count, 'resource')} left in error"
    if not left.count:
        yield f"{text}, of {', '.join(one.kind for one in left.kinds)}"
        return
    parts = [f"{_number(one.kind, one.count)} ({_states(one)})" for one in left.kinds if one.count]
    text += f": {', '.join(parts)}"
    if changing := sum(one.changing for one in left.kinds):
        text += f"; {count(changing)} still changing after {duration(left.waited_s)} of waiting"
    if outside := left.count - sum(sum(phase.left.values()) for phase in drill.phases):
        text += f"; {count(outside)} in no phase"
    yield plain(text, 500)


def left_doubts(drill: DrillFigures) -> Iterator[str]:
    """Yield messages on resources left in error that are unknown or in no phase, if searched."""
    if drill.left is None:
        return
    if drill.left.doubt:
        yield plain(drill.left.doubt, 500)
    if drill.left.unplaced:
        yield plain(f"phases lack resources left in error: {drill.left.unplaced}", 500)


def _states(left: LeftKind) -> str:
    if len(left.states) == 1:
        return next(iter(left.states))
    return ", ".join(f"{count(number)} {state}" for state, number in left.states.items())


def _number(kind: str, number: int) -> str:
    return count(number, kind.removesuffix("s"))


def elsewhere_text(workload: WorkloadReport, drill: DrillFigures) -> str:
    """Return a message on planned iterations in no phase, with numbers by reason; or ""."""
    sums = workload.accounting
    parts = [
        (workload.warmup.left_out, "of the warm-up"),
        (sums.lost, "lost"),
        (sums.not_started, "not started"),
    ]
    counted = sum(phase.count for phase in drill.phases)
    left = sums.planned - counted - sum(number for number, _ in parts)
    # of a run that goes on, some have not ended either
    dropped = sums.dropped - sum(phase.dropped for phase in drill.phases)
    parts.append((max(0, min(left, dropped)), "dropped with a worker or the coordinator"))
    told = ", ".join(f"{count(number)} {words}" for number, words in parts if number)
    whole = count(sum(number for number, _ in parts), "iteration")
    return f"{whole} in no phase: {told}" if told else ""


def _phase(phase: PhaseFigures) -> str:
    span = f"{phase.name}, {phase.from_s:.4g} s to {phase.to_s:.4g} s"
    if not phase.count:
        return f"{span}: no iterations"
    bad = (("failed", phase.failed), ("timed out", phase.timed_out), ("dropped", phase.dropped))
    parts = [count(phase.count, "iteration")]
    parts += [f"{count(number)} {word}" for word, number in bad if number]
    if phase.bad and phase.bad_share is not None:
        parts[-1] += f" ({_percent(phase.bad_share, phase.bad_ci)})"
    if phase.ok_per_s is not None:
        parts.append(f"{three_digits(phase.ok_per_s)} ok/s")
    times = (("p50", phase.p50_s), ("p90", phase.p90_s), ("p99", phase.p99_s))
    parts += [_time(name, value, phase.ci.get(name)) for name, value in times if value is not None]
    if phase.left:
        left = " and ".join(_number(kind, number) for kind, number in phase.left.items())
        parts.append(f"left {left} in error")
        if phase.leaving_share is not None:
            share = _percent(phase.leaving_share, phase.leaving_ci)
            parts[-1] += f" (iterations that did: {share})"
    return f"{span}: {', '.join(parts)}"


def _percent(share: float, bounds: Bounds | None) -> str:
    text = f"{three_digits(100 * share)} %"
    if bounds is None:
        return text
    low, high = (100 * (bound or 0.0) for bound in bounds)
    return f"{text}, 95 %: {three_digits(low)} to {three_digits(high)} %"


def _time(name: str, value: float, bounds: Bounds | None) -> str:
    text = f"{name} {duration(value)}"
    if not bounds:
        return text
    low, high = bounds[0], bounds[1]
    if high is None:
        return f"{text} (at least {duration(low)})"
    return f"{text} ({duration(low)} to {duration(high)})"
