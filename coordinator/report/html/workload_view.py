"""Computes the view of a workload on the page: its configuration and results, as texts and rows."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from osbench.common.secrets.masking import mask, mask_text
from osbench.coordinator.formatting import plain
from osbench.coordinator.report.action_order import by_time, naming_advice, spent_s
from osbench.coordinator.report.findings.own_lateness import lateness_note
from osbench.coordinator.report.html.criterion_rows import CriterionRow, criterion_rows
from osbench.coordinator.report.html.error_rows import ErrorRow, error_rows
from osbench.coordinator.report.html.inline_graphics import (
    LogScale,
    cpu_line,
    limit_bar,
    share_bar,
)
from osbench.coordinator.report.html.output_views import OutputView, output_views
from osbench.coordinator.report.html.page_numbers import (
    NARROW,
    counted_noun,
    instant_s,
    limit_text,
    short,
    spaced_text,
    time_text,
    whole,
)
from osbench.coordinator.report.html.time_charts import ChartData, charts_of
from osbench.coordinator.report.html.worker_rows import (
    FailingWorker,
    WorkerRow,
    failing_worker,
    worker_rows,
)
from osbench.coordinator.report.html.workload_facts import WorkloadFacts
from osbench.coordinator.report.model.model import WorkloadReport
from osbench.coordinator.report.model.time_figures import ByState, TimeFigures
from osbench.coordinator.report.model.workload_parts import ContextReport, HookResult, HookRun
from osbench.coordinator.report.statements.drill_statements import drill_statements
from osbench.coordinator.report.statements.search_statements import (
    search_headline,
    search_interval,
)
from osbench.coordinator.report.statements.statements import statements
from osbench.coordinator.results.accounting.marks import CONTROL, JOIN, LOSS, PHASE, STOP, WARMUP
from osbench.coordinator.results.statistics.action_paths import NESTED

#: Actions that are in the page; of more the JSON object has all.
ACTIONS = 200
#: p95 at its worst counts as a finding from this multiple of its usual value on.
_BURST = 1.6
#: Events of a Poisson process of which 95 of 100 loads see one at least (the rule of three).
_SEEN = 3
_TEXT = 20_000
#: Words by kind of mark; other kinds last a while.
_MEANWHILE: Mapping[str, str] = {
    LOSS: "{}",
    JOIN: "{}",
    STOP: "the load was stopped ({})",
    CONTROL: "the load was changed ({})",
    PHASE: "the fault of the drill was there",
}


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A row of a table with its graphic; for workers, a second graphic and a line of CPU."""

    row: Any
    bar: Markup
    more: Any = None
    line: Markup | str = ""


@dataclass(frozen=True, kw_only=True)
class ActionRow:
    """An atomic action as a row: calls, failures, times, fraction of the time of all, and a bar."""

    name: str
    depth: int
    #: Of calls that succeeded; if none did, of calls that failed or timed out: `of` has the state.
    times: TimeFigures
    of: str
    calls: int
    failed: int
    #: Of the time of all actions that are not within another.
    share: float | None
    bar: Markup


@dataclass(frozen=True, kw_only=True)
class StepRow:
    """A set-up or cleanup of a context, or a firing of a hook, as a row: its result in words."""

    name: str
    said: str
    ok: bool
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class WorkloadView:
    """All views of one workload, from which its section of the page is rendered."""

    facts: WorkloadFacts
    criteria: list[CriterionRow]
    charts: ChartData
    load_words: str
    finding: str
    odd: WorkerRow | None
    #: The worker that failed a far greater fraction of its iterations than the others.
    failing: FailingWorker | None
    times: list[tuple[str, str, TimeFigures]]
    criterion_bars: list[Markup]
    actions: list[ActionRow]
    action_axis: LogScale
    #: Number of actions that are not shown.
    more_actions: int
    #: "" unless there are very many names.
    naming_advice: str
    errors: list[ErrorRow]
    workers: list[Bar]
    contexts: list[StepRow]
    hooks: list[StepRow]
    #: Labels and texts of statements without another place on the page; a label stands once.
    further: list[tuple[str, str]]
    outputs: list[OutputView] = field(default_factory=list)

    @property
    def report(self) -> WorkloadReport:
        """The workload's part of the report."""
        return self.facts.report

    @property
    def failed_criteria(self) -> list[CriterionRow]:
        """The rows of SLA criteria that failed, in order."""
        return [row for row in self.criteria if not row.ok]

    def criterion(self, key: str) -> CriterionRow | None:
        """Return the row of the criterion that limits the figure `key`, such as p95; or None.

        Of several, a failed one is taken first, then one close to its limit, then the one on the
        kind of time by which the load is judged.
        """
        found = [row for row in self.criteria if row.key == key]
        kind = self.report.kind
        return min(
            found, key=lambda row: (row.ok, not row.close, row.kind not in ("", kind)), default=None
        )

    @property
    def interval_note(self) -> str:
        """Reason why percentiles lack an interval or an upper bound, as a message; or ""."""
        found = next((times.ci_note for _, _, times in self.times if times.ci_note), "")
        return found[:1].upper() + found[1:]

    @property
    def lateness_note(self) -> str:
        """A message on percentiles that include lateness of the generator; "" if none do."""
        found = lateness_note(self.report)
        return found[:1].upper() + found[1:]

    @property
    def search_words(self) -> tuple[str, str]:
        """Result of a search and the capacity's interval, as two messages; each "" if not known."""
        if not self.report.search:
            return "", ""
        found = search_headline(self.report.search), search_interval(self.report.search)
        headline, interval = (spaced_text(mask_text(text[:1].upper() + text[1:])) for text in found)
        return headline, interval

    @property
    def drill_words(self) -> list[str]:
        """Messages on the problem and the results of a drill; empty without a drill."""
        told = drill_statements(self.report, phases=False)
        found = [spaced_text(mask_text(one.text)) for one in told]
        return [text[:1].upper() + text[1:] for text in found]

    @property
    def seldom_s(self) -> float:
        """Mean seconds between rare events of which one load in twenty sees none; 0 if not known.

        Rarer events may be missing from the figures.
        """
        times = self.report.main_times
        return times.blocks * times.block_s / _SEEN

    @property
    def spoilt_s(self) -> float:
        """Seconds of load in which iterations started too late, summed."""
        return float(sum(end - begin for begin, end, *_ in self.facts.list_of("spoilt")))

    @property
    def late_starts(self) -> int:
        """Number of iterations that started later than the limit, in stretches of late starts."""
        return int(sum(stretch[2] for stretch in self.facts.list_of("spoilt")))


def view_of(facts: WorkloadFacts, first_outputs: Mapping[tuple[str, str], Any]) -> WorkloadView:
    """Compute all views of a workload.

    `first_outputs`: data of complete charts by (title, plug-in).
    """
    criteria = criterion_rows(facts)
    charts = charts_of(facts)
    workers = worker_rows(facts)
    told = [_told_times(timings)[1] for timings in facts.report.actions.values()]
    axis = LogScale(value for times in told for value in (times.min, times.max))
    return WorkloadView(
        facts=facts,
        criteria=criteria,
        charts=charts,
        load_words=load_words(facts),
        finding=_finding(facts, charts),
        odd=_oddest(workers),
        failing=failing_worker(workers),
        times=_time_rows(facts.report),
        criterion_bars=[_criterion_bar(row) for row in criteria],
        actions=_action_rows(facts.report.actions, axis),
        action_axis=axis,
        more_actions=max(0, len(facts.report.actions) - ACTIONS),
        naming_advice=naming_advice(facts.report.actions),
        errors=error_rows(facts),
        workers=_worker_bars(workers, facts.elapsed_s),
        contexts=_context_rows(facts.report.contexts),
        hooks=_hook_rows(facts.report.hooks),
        further=_further_rows(facts.report),
        outputs=output_views(facts.anchor, facts.report.outputs, first_outputs),
    )


def load_words(facts: WorkloadFacts) -> str:
    """Return the requested load in words: "stages, 5 → 12 → 18/s over 90 s".

    The type of the runner alone if none of its settings is known, or if they are not numbers.
    """
    runner = facts.report.runner
    try:
        words = _config_words(runner.config)
    except (TypeError, ValueError, LookupError, ArithmeticError):
        # a plug-in's settings may have the names of ours, and other types
        words = ""
    return f"{runner.type}, {words}" if words else runner.type


def _config_words(config: Any) -> str:
    """Return the settings of a runner in words; "" if none is known.

    Raises TypeError, ValueError, LookupError or ArithmeticError for other types of settings.
    """
    if not isinstance(config, Mapping):
        return ""
    if isinstance(config.get("stages"), Sequence):
        stages = config["stages"]
        of_users = "users" in stages[0]
        key, unit = ("users", " virtual users") if of_users else ("target", f"{NARROW}/s")
        rates = [config.get("start", 0), *(stage[key] for stage in stages)]
        whole = sum(float(stage["duration"]) for stage in stages)
        steps = [rates[0], *(b for a, b in itertools.pairwise(rates) if a != b)]
        arrow = " → ".join(short(float(rate)) for rate in steps)
        return f"{arrow}{unit} over {limit_text(whole)}"
    parts = []
    if "concurrency" in config:
        parts.append(counted_noun(int(config["concurrency"]), "virtual user"))
    if "rps" in config:
        parts.append(f"{_config_text(config['rps'])}{NARROW}/s")
    if "times" in config:
        parts.append(counted_noun(int(config["times"]), "time"))
    if "duration" in config:
        parts.append(f"for {limit_text(float(config['duration']))}")
    return ", ".join(parts)


def _config_text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {inner}" for name, inner in value.items())
    return str(value)


def _oddest(workers: Sequence[WorkerRow]) -> WorkerRow | None:
    """Return the worker that is slower than others by most seconds; None if no worker is marked."""
    odd = [(row.odd.more_s, row) for row in workers if row.odd is not None]
    return max(odd, key=lambda one: one[0])[1] if odd else None


def _finding(facts: WorkloadFacts, charts: ChartData) -> str:
    """Return a message on p95 over time: its usual and worst value, with events at its worst.

    "" if fewer than three bins after the warm-up have a p95.
    """
    width_s = charts.bands.width_s
    known = [(row[0] or 0.0, row[4]) for row in charts.bands.rows if row[4] is not None]
    warmup = facts.report.warmup
    known = [(middle, value) for middle, value in known if middle - width_s / 2 >= warmup.seconds]
    if len(known) < 3:
        return ""
    usual = sorted(value for _, value in known)[len(known) // 2] / 1e3
    at, worst = max(known, key=lambda one: one[1])
    worst /= 1e3
    if worst <= _BURST * usual:
        return f"p95 stays near {time_text(usual)} throughout, at worst {time_text(worst)}."
    begin, end = max(0.0, at - width_s / 2), at + width_s / 2
    when = _meanwhile(facts, begin, end)
    return (
        f"p95 is usually {time_text(usual)}, and {time_text(worst)} at its worst, "
        f"{instant_s(begin)} to {instant_s(end)} into the load{when}."
    )


def _meanwhile(facts: WorkloadFacts, begin: float, end: float) -> str:
    said = []
    for mark in facts.list_of("marks"):
        if mark["kind"] == WARMUP or mark["from_s"] >= end or mark["to_s"] < begin:
            continue
        label = plain(str(mark["label"]), 60)
        said.append(_MEANWHILE.get(mark["kind"], "“{}” ran").format(label))
    if any(stretch[0] < end and stretch[1] > begin for stretch in facts.list_of("spoilt")):
        ours = facts.report.is_generators
        said.append("the generator was late" if ours else "arrivals waited for users")
    return f", when {' and '.join(dict.fromkeys(said))}" if said else ""


def _time_rows(report: WorkloadReport) -> list[tuple[str, str, TimeFigures]]:
    response = ("Response time", "from scheduled to end", report.times("response"))
    service = ("Service time", "from start to end", report.times("service"))
    first = [response, service] if report.is_open else [service, response]
    rows = [*first, ("Start lag", "from scheduled to start", report.start_lag)]
    for state in ("failed", "timed_out"):
        times = report.times(report.kind, state)
        if times.count:
            words = state.replace("_", " ").capitalize()
            rows.append((words, f"{report.kind} time", times))
    return rows


def _criterion_bar(row: CriterionRow) -> Markup:
    if row.share is None:
        return Markup("")
    return limit_bar(row.share, "b-bad" if not row.ok else "b-odd" if row.close else "b-mid")


def _action_rows(actions: Mapping[str, ByState], axis: LogScale) -> list[ActionRow]:
    whole = sum(spent_s(timings) for path, timings in actions.items() if NESTED not in path)
    return [_action_row(path, actions[path], axis, whole) for path in by_time(actions)[:ACTIONS]]


def _action_row(path: str, timings: ByState, axis: LogScale, whole: float) -> ActionRow:
    of, times = _told_times(timings)
    spread = [times.min, times.p50, times.p95, times.p99, times.max]
    known = [value for value in spread if value is not None] if times.count else []
    failed = timings.failed.count + timings.timed_out.count
    return ActionRow(
        name=path,
        depth=path.count(NESTED),
        times=times,
        of=of,
        calls=timings.ok.count + failed,
        failed=failed,
        share=spent_s(timings) / whole if whole and NESTED not in path else None,
        bar=axis.spread(known, "b-bad" if of else "b-mid") if known else Markup(""),
    )


def _told_times(timings: ByState) -> tuple[str, TimeFigures]:
    """Return (state, times) of an action to show: of successes, with "", if there are any.

    Else of failures or timeouts, whichever are more; "failed" or "timed out". Without calls, the
    empty times of successes.
    """
    if timings.ok.count or not (timings.failed.count or timings.timed_out.count):
        return "", timings.ok
    if timings.failed.count >= timings.timed_out.count:
        return "failed", timings.failed
    return "timed out", timings.timed_out


def _worker_bars(rows: Sequence[WorkerRow], end_s: float) -> list[Bar]:
    axis = LogScale(value for row in rows for value in (row.least_s, row.most_s))
    most = max((row.share for row in rows), default=1) or 1
    return [
        Bar(
            row=row,
            bar=_worker_bar(row, axis),
            more=share_bar(row.share / most, "b-tail"),
            line=cpu_line(row.cpu, end_s, f"CPU of {row.label} {row.pid} over the load"),
        )
        for row in rows
    ]


def _worker_bar(row: WorkerRow, axis: LogScale) -> Markup:
    if row.p50_s is None:
        return Markup("")
    known = (row.least_s, row.p50_s, row.p95_s, row.p99_s, row.most_s)
    return axis.spread([value or 0.0 for value in known], "b-odd" if row.odd else "b-mid")


def _context_rows(contexts: Sequence[ContextReport]) -> list[StepRow]:
    rows = []
    for context in contexts:
        for found, done in ((context.setup, "set up"), (context.cleanup, "undone")):
            error = found.error if found is not None else None
            ok = found is not None and error is None
            text = mask_text(f"{error.etype}: {error.msg}") if error else ""
            said = done if ok else f"not {done}"
            rows.append(StepRow(name=context.name, said=said, ok=ok, text=text))
    return rows


def _further_rows(report: WorkloadReport) -> list[tuple[str, str]]:
    rows, last = [], ""
    for one in statements(report):
        if one.on_page:
            rows.append(("" if one.label == last else one.label, spaced_text(mask_text(one.text))))
            last = one.label
    return rows


def _hook_rows(hooks: Sequence[HookRun]) -> list[StepRow]:
    rows = []
    for hook in hooks:
        name = hook.description or next(iter(hook.action), "hook")
        for result in hook.results:
            event = result.triggered_by
            at = f"at iteration {whole(event.value)}"
            if event.event_type == "time":
                at = f"at {instant_s(event.value)}"
            rows.append(
                StepRow(
                    name=plain(mask_text(name)),
                    said=f"{result.status.replace('_', ' ')}, {at}",
                    ok=result.status == "success",
                    text=_hook_text(result),
                )
            )
    return rows


def _hook_text(result: HookResult) -> str:
    if result.error:
        return spaced_text(mask_text(f"{result.error.etype}: {result.error.msg}"))
    texts = []
    for chart in (result.output or {}).get("complete") or ():
        data = mask(chart.get("data"))
        lines = data if isinstance(data, list) else [data]
        texts += [str(line) for line in lines if isinstance(line, str)]
    return mask_text("\n".join(texts))[:_TEXT]
