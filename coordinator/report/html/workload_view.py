"""One workload of the page: what was asked and found, in words and rows."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from osbench.common.secrets.masking import mask, mask_text
from osbench.coordinator.formatting import plain
from osbench.coordinator.report.findings.own_lateness import lateness_note
from osbench.coordinator.report.html.criterion_rows import CriterionRow, criterion_rows
from osbench.coordinator.report.html.inline_graphics import (
    SPARK_BINS,
    LogScale,
    cpu_line,
    limit_bar,
    share_bar,
    spark,
)
from osbench.coordinator.report.html.output_views import OutputView, output_views
from osbench.coordinator.report.html.page_numbers import (
    NARROW,
    counted,
    instant_s,
    limit_text,
    short,
    spaced,
    time_text,
    whole,
)
from osbench.coordinator.report.html.time_charts import ChartData, charts_of
from osbench.coordinator.report.html.worker_rows import WorkerRow, worker_rows
from osbench.coordinator.report.html.workload_facts import WorkloadFacts

#: Rows of a table that are shown at once; the others are a click away.
SHOWN = 20
#: p95 at its worst counts as a finding from this multiple of its usual value on.
_BURST = 1.6
#: Events of a Poisson process of which 95 of 100 loads see one at least (the rule of three).
_SEEN = 3
_TEXT = 20_000
_FOLDERS = re.compile(r'File "/[^"\n]*?/(site-packages|osbench|python3\.\d+)/')


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A row of a table with its graphic."""

    row: Any
    bar: Markup
    more: Any = None
    line: Markup | str = ""


@dataclass(frozen=True, kw_only=True)
class ActionRow:
    """An atomic action."""

    name: str
    depth: int
    times: Mapping[str, Any]
    failed: int
    #: Of the time of all actions that are not within another.
    share: float | None
    bar: Markup


@dataclass(frozen=True, kw_only=True)
class ErrorRow:
    """A class of errors with an example."""

    type: str
    message: str
    count: int
    first_iteration: int | None
    traceback: str
    trace_id: str = ""
    iteration: int | None = None
    first_s: float | None = None
    last_s: float | None = None
    p50_s: float | None = None
    spark: Markup | str = ""


@dataclass(frozen=True, kw_only=True)
class StepRow:
    """A step of a context, or a firing of a hook."""

    name: str
    said: str
    ok: bool
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class WorkloadView:
    """A workload as the page shows it."""

    facts: WorkloadFacts
    criteria: list[CriterionRow]
    charts: ChartData
    load_words: str
    finding: str
    odd: WorkerRow | None
    times: list[tuple[str, str, Mapping[str, Any]]]
    criterion_bars: list[Markup]
    actions: list[ActionRow]
    action_axis: LogScale
    errors: list[ErrorRow]
    workers: list[Bar]
    contexts: list[StepRow]
    hooks: list[StepRow]
    outputs: list[OutputView] = field(default_factory=list)

    @property
    def failed_criteria(self) -> list[CriterionRow]:
        """The criteria that do not hold."""
        return [row for row in self.criteria if not row.ok]

    def criterion(self, key: str) -> CriterionRow | None:
        """The criterion of a key figure; the one that failed before the others."""
        found = [row for row in self.criteria if row.key == key]
        return min(found, key=lambda row: (row.ok, not row.close), default=None)

    @property
    def interval_note(self) -> str:
        """Why percentiles have no interval or no upper bound; "" if none of the times says it."""
        notes = (times.get("ci_note") for _, _, times in self.times)
        found = next((str(note) for note in notes if note), "")
        return found[:1].upper() + found[1:]

    @property
    def lateness_note(self) -> str:
        """Which percentiles hold lateness of the generator; "" if none does."""
        found = lateness_note(self.facts.summary) if self.facts.summary.get("latency") else ""
        return found[:1].upper() + found[1:]

    @property
    def seldom_s(self) -> float:
        """Seconds between events that one load in twenty misses all of; 0 without intervals."""
        times = self.facts.main_times
        return float(times.get("blocks", 0) * times.get("block_s", 0.0)) / _SEEN

    @property
    def spoilt_s(self) -> float:
        """Seconds in which the generator was late."""
        return float(sum(end - begin for begin, end, *_ in self.facts.list_of("spoilt")))

    @property
    def late_starts(self) -> int:
        """Iterations that started too late in them."""
        return int(sum(stretch[2] for stretch in self.facts.list_of("spoilt")))


def view_of(facts: WorkloadFacts, first_outputs: Mapping[str, Any]) -> WorkloadView:
    """The view of a workload; `first_outputs` has the data of complete charts by title."""
    criteria = criterion_rows(facts)
    charts = charts_of(facts)
    workers = worker_rows(facts)
    axis = LogScale(
        value
        for timings in (facts.summary.get("actions") or {}).values()
        for value in (timings["ok"]["min"], timings["ok"]["max"])
    )
    return WorkloadView(
        facts=facts,
        criteria=criteria,
        charts=charts,
        load_words=load_words(facts),
        finding=_finding(facts, charts),
        odd=_oddest(workers),
        times=_time_rows(facts),
        criterion_bars=[_criterion_bar(row) for row in criteria],
        actions=_action_rows(facts, axis),
        action_axis=axis,
        errors=_error_rows(facts),
        workers=_worker_bars(workers, facts.elapsed_s),
        contexts=_context_rows(facts),
        hooks=_hook_rows(facts),
        outputs=output_views(facts.anchor, facts.summary.get("outputs") or {}, first_outputs),
    )


def load_words(facts: WorkloadFacts) -> str:
    """The load as the task asks for it: "stages, 5 → 12 → 18/s over 90 s"."""
    kind, config = facts.runner
    if not isinstance(config, Mapping):
        return kind
    if isinstance(config.get("stages"), Sequence):
        stages = config["stages"]
        of_users = "users" in stages[0]
        key, unit = ("users", " virtual users") if of_users else ("target", f"{NARROW}/s")
        rates = [config.get("start", 0), *(stage[key] for stage in stages)]
        whole = sum(float(stage["duration"]) for stage in stages)
        steps = [rates[0], *(b for a, b in itertools.pairwise(rates) if a != b)]
        arrow = " → ".join(short(float(rate)) for rate in steps)
        return f"{kind}, {arrow}{unit} over {limit_text(whole)}"
    parts = []
    if "concurrency" in config:
        parts.append(counted(int(config["concurrency"]), "virtual user"))
    if "rps" in config:
        parts.append(f"{_config_text(config['rps'])}{NARROW}/s")
    if "times" in config:
        parts.append(counted(int(config["times"]), "time"))
    if "duration" in config:
        parts.append(f"for {limit_text(float(config['duration']))}")
    return f"{kind}, {', '.join(parts)}" if parts else kind


def _config_text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {inner}" for name, inner in value.items())
    return str(value)


def _oddest(workers: Sequence[WorkerRow]) -> WorkerRow | None:
    """The worker that is named: the one that sees most more than others."""
    odd = [(row.odd.more_s, row) for row in workers if row.odd is not None]
    return max(odd, key=lambda one: one[0])[1] if odd else None


def _finding(facts: WorkloadFacts, charts: ChartData) -> str:
    """One sentence on p95 over time."""
    width_s = charts.bands.width_s
    known = [(row[0] or 0.0, row[4]) for row in charts.bands.rows if row[4] is not None]
    warm_s = float((facts.summary.get("warmup") or {}).get("seconds") or 0)
    known = [(middle, value) for middle, value in known if middle - width_s / 2 >= warm_s]
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
        if mark["kind"] == "warmup" or mark["from_s"] >= end or mark["to_s"] < begin:
            continue
        label = plain(str(mark["label"]), 60)
        said.append(label if mark["kind"] == "loss" else f"“{label}” ran")
    if any(stretch[0] < end and stretch[1] > begin for stretch in facts.list_of("spoilt")):
        late = "the generator was late" if facts.is_generators else "arrivals waited for users"
        said.append(late)
    return f", when {' and '.join(dict.fromkeys(said))}" if said else ""


def _time_rows(facts: WorkloadFacts) -> list[tuple[str, str, Mapping[str, Any]]]:
    response = ("Response time", "from due to end", facts.times("response"))
    service = ("Service time", "from start to end", facts.times("service"))
    first = [response, service] if facts.is_open else [service, response]
    rows = [*first, ("Start lag", "from due to start", facts.start_lag)]
    for state in ("failed", "timed_out"):
        times = facts.times(facts.kind, state)
        if times["count"]:
            words = state.replace("_", " ").capitalize()
            rows.append((words, f"{facts.kind} time", times))
    return rows


def _criterion_bar(row: CriterionRow) -> Markup:
    if row.share is None:
        return Markup("")
    return limit_bar(row.share, "b-bad" if not row.ok else "b-odd" if row.close else "b-mid")


def _action_rows(facts: WorkloadFacts, axis: LogScale) -> list[ActionRow]:
    actions = facts.summary.get("actions") or {}
    spent = {path: _spent(timings["ok"]) for path, timings in actions.items()}
    whole = sum(seconds for path, seconds in spent.items() if " > " not in path)
    rows = []
    for path, timings in actions.items():
        times = timings["ok"]
        failed = timings["failed"]["count"] + timings["timed_out"]["count"]
        known = times["count"] and times["min"] is not None
        spread = [times[name] for name in ("min", "p50", "p95", "p99", "max")] if known else []
        rows.append(
            ActionRow(
                name=path,
                depth=path.count(" > "),
                times=times,
                failed=failed,
                share=spent[path] / whole if whole and " > " not in path else None,
                bar=axis.spread(spread) if spread else Markup(""),
            )
        )
    return sorted(rows, key=lambda row: _order(row.name, spent))


def _order(path: str, spent: Mapping[str, float]) -> list[tuple[float, str]]:
    """The longest first, those within another below it."""
    parts = path.split(" > ")
    outer = [" > ".join(parts[: end + 1]) for end in range(len(parts))]
    return [(-spent.get(name, 0.0), name) for name in outer]


def _spent(times: Mapping[str, Any]) -> float:
    return float((times["mean"] or 0) * times["count"])


def _error_rows(facts: WorkloadFacts) -> list[ErrorRow]:
    examples = facts.timeline.get("error_examples") or {}
    rows = []
    for error in facts.summary.get("errors") or ():
        found = examples.get(error["type"]) or {}
        label = f"over the {time_text(facts.elapsed_s)} of the load"
        rows.append(
            ErrorRow(
                type=plain(str(error["type"])),
                message=mask_text(str(error["message"]))[:1000],
                count=int(error["count"]),
                first_iteration=error.get("first_iteration"),
                traceback=_without_folders(str(error.get("traceback") or "")),
                trace_id=str(error.get("trace_id") or found.get("trace_id") or ""),
                iteration=error.get("example_iteration", found.get("iteration")),
                first_s=found.get("first_s"),
                last_s=found.get("last_s"),
                p50_s=found.get("p50_s"),
                spark=spark(_over_time(found, facts.elapsed_s), label) if found else Markup(""),
            )
        )
    return rows


def _without_folders(traceback: str) -> str:
    """Without where things are installed: a report travels."""
    return mask_text(_FOLDERS.sub(r'File ".../\1/', traceback))[:_TEXT]


def _over_time(example: Mapping[str, Any], elapsed_s: float) -> list[int]:
    """How often an error happened, in SPARK_BINS parts of the load."""
    found = [0] * SPARK_BINS
    width_s = float(example.get("bin_s") or 0)
    for number, count in enumerate(example.get("counts") or ()):
        at = (number + 0.5) * width_s / max(elapsed_s, width_s, 1e-9)
        found[min(int(at * SPARK_BINS), SPARK_BINS - 1)] += count
    return found


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


def _context_rows(facts: WorkloadFacts) -> list[StepRow]:
    rows = []
    for context in facts.summary.get("contexts") or ():
        for step, done in (("setup", "set up"), ("cleanup", "undone")):
            found = context.get(step)
            error = (found or {}).get("error")
            said = f"not {done}" if found is None or error else done
            text = mask_text(f"{error['etype']}: {error['msg']}") if error else ""
            ok = found is not None and not error
            rows.append(StepRow(name=context["name"], said=said, ok=ok, text=text))
    return rows


def _hook_rows(facts: WorkloadFacts) -> list[StepRow]:
    rows = []
    for hook in facts.summary.get("hooks") or ():
        name = hook.get("description") or next(iter(hook["action"]), "hook")
        for result in hook["results"]:
            event = result["triggered_by"]
            at = f"at iteration {whole(event['value'])}"
            if event["event_type"] == "time":
                at = f"at {instant_s(event['value'])}"
            rows.append(
                StepRow(
                    name=plain(mask_text(str(name))),
                    said=f"{str(result['status']).replace('_', ' ')}, {at}",
                    ok=result["status"] == "success",
                    text=_hook_text(result),
                )
            )
    return rows


def _hook_text(result: Mapping[str, Any]) -> str:
    error = result.get("error")
    if error:
        return spaced(mask_text(f"{error.get('etype', '')}: {error.get('msg', '')}"))
    texts = []
    for chart in (result.get("output") or {}).get("complete") or ():
        data = mask(chart.get("data"))
        lines = data if isinstance(data, list) else [data]
        texts += [str(line) for line in lines if isinstance(line, str)]
    return mask_text("\n".join(texts))[:_TEXT]
