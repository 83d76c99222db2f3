"""Statements on the load: target, offered rate, bounds, throughput, stages, trials and plan."""

from __future__ import annotations

from collections.abc import Iterator

from osbench.coordinator.formatting import count, duration, plain, three_digits
from osbench.coordinator.report.model.model import WorkloadReport
from osbench.coordinator.report.staircase.staircase_text import staircase_lines
from osbench.coordinator.report.statements.search_statements import (
    percentile_texts,
    search_statements,
)
from osbench.coordinator.report.statements.statement import Look, Statement, each, statement_of
from osbench.coordinator.results.accounting.stage_statistics import StageFigures
from osbench.coordinator.results.accounting.totals import Offered

#: Stages that have a line each.
STAGES = 20
#: Counts in addition to the sum, with a noun.
_BESIDES = (
    ("reruns", "rerun"),
    ("late", "late result"),
    ("stale", "stale result"),
    ("duplicates", "duplicate block"),
    ("refused", "refused message"),
)


def load_statements(workload: WorkloadReport) -> Iterator[Statement]:
    """Yield statements on the load: target, drops, offered load, bounds, warm-up and throughput.

    Then its results by stage or trial, the comparison with its plan, and its staircase.
    """
    if workload.targets:
        yield statement_of("target", plain(", ".join(workload.targets)))
    accounting = workload.accounting
    if accounting.dropped:
        reasons = (f"{count(n)} {reason}" for reason, n in accounting.drops.items() if n)
        yield statement_of("dropped", ", ".join(reasons), on_page=True, in_short=True)
    besides = [(getattr(accounting, name), noun) for name, noun in _BESIDES]
    counted = [count(number, noun) for number, noun in besides if number]
    if counted:
        yield statement_of("besides", ", ".join(counted), on_page=True, in_short=True)
    never = workload.users.never_started if workload.users else 0
    yield statement_of(
        "load",
        _load(workload.offered, never),
        on_page=True,
        in_short=bool(workload.offered.cut_short or never),
    )
    yield from _bounds(workload)
    if workload.warmup.seconds:
        left_out = count(workload.warmup.left_out, "iteration")
        yield statement_of(
            "warm-up",
            f"{left_out} of the first {duration(workload.warmup.seconds)} count only in"
            " the sum above",
            on_page=True,
            in_short=True,
        )
    throughput = workload.throughput
    if throughput.ok_per_s is not None:
        rate, span = three_digits(throughput.ok_per_s), duration(throughput.span_s)
        yield statement_of("throughput", f"{rate} ok/s over {span}", on_page=True)
    if workload.search:
        yield from search_statements(workload.search)
    yield from _stages(workload)
    yield from _plan(workload)
    if workload.staircase:
        yield from each("staircase", staircase_lines(workload.staircase))


def _load(offered: Offered, never_started: int) -> str:
    parts = []
    if offered.concurrency is not None:
        users, held = count(offered.concurrency, "virtual user"), offered.concurrency_held
        text = f"{users} requested"
        if never_started:
            text += f", {count(never_started)} could never start"
        if held is not None:
            # users that did not start have no time that could be sustained
            who = " by the others" if never_started else ""
            text += f", {100 * held:.1f} % sustained{who}"
        parts.append(text)
    if offered.rate_planned is not None:
        started = offered.rate_offered
        text = f"{three_digits(offered.rate_planned)}/s planned"
        parts.append(text + ("" if started is None else f", {three_digits(started)}/s started"))
    parts.append(f"{duration(offered.duration_s)} long")
    if offered.cut_short:
        parts.append(f"cut short: {plain(offered.cut_short)}")
    return "; ".join(parts)


def _bounds(workload: WorkloadReport) -> Iterator[Statement]:
    if workload.bounds:
        told = [f"{plain(one.cause).replace('_', ' ')} ({one.fault})" for one in workload.bounds]
        look = Look.BAD if workload.is_generators else Look.WARNING
        yield statement_of("bound by", ", ".join(told), look)


def _stages(workload: WorkloadReport) -> Iterator[Statement]:
    stages = workload.stages
    unit = "/s" if workload.is_open else " users"
    yield from each("stages", (_stage(stage, unit) for stage in stages[:STAGES]))
    if len(stages) > STAGES:
        yield statement_of("stages", f"and {count(len(stages) - STAGES, 'more stage')}")


def _stage(stage: StageFigures, unit: str) -> str:
    begin, end = stage.begin, stage.end
    asked = f"{end:g}{unit}" if begin == end else f"{begin:g} to {end:g}{unit}"
    bad = (
        ("failed", stage.failed),
        ("timed out", stage.timed_out),
        ("dropped", stage.dropped),
    )
    parts = [f"{three_digits(stage.ok_per_s)} ok/s"]
    parts += [f"{count(number)} {word}" for word, number in bad if number]
    span = f"{stage.from_s:.4g} s to {stage.to_s:.4g} s"
    return f"{span}, {asked}: {', '.join(parts + percentile_texts(stage))}"


def _plan(workload: WorkloadReport) -> Iterator[Statement]:
    """Yield a statement that compares the run with the prediction of `plan`, and great differences.

    Nothing without a prediction.
    """
    plan = workload.plan
    if plan is None:
        return
    shown = (
        ("workers", plan.workers, "{:g}".format),
        ("CPU per iteration", plan.cost_s, duration),
        ("service time", plan.service_s, duration),
        ("users at once", plan.users, three_digits),
        ("CPU of a worker", plan.cpu, "{:.0%}".format),
    )
    parts = [
        f"{name} {text(one.measured)} (plan {text(one.planned)})"
        for name, one, text in shown
        if one.measured is not None
    ]
    differences = (plain(sentence, 500) for sentence in plan.differences)
    yield statement_of("planned", "; ".join(parts), on_page=True)
    yield from each("planned", differences, on_page=True, in_short=True)
