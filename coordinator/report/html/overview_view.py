"""The first screen: the verdict, at most four reasons, key figures and the accounting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from osbench.common.outcomes import STATES
from osbench.common.secrets.url_masking import mask_url
from osbench.coordinator.report.html.criterion_rows import succeeded_text
from osbench.coordinator.report.html.inline_graphics import stacked
from osbench.coordinator.report.html.page_numbers import (
    DASH,
    NARROW,
    counted,
    limit_text,
    short,
    spaced,
    time_markup,
    time_text,
    whole,
    with_unit,
)
from osbench.coordinator.report.html.workload_view import WorkloadView
from osbench.coordinator.report.run_facts import CRASHED, FINISHED, RUNNING, RunFacts

_REASONS = 4
_NOT_OK = STATES[1:]


@dataclass(frozen=True, kw_only=True)
class VerdictWords:
    """What the run came to."""

    #: "", ok or warned: the colour of its border.
    look: str
    sign: str
    word: str
    #: What follows in bold, and behind it.
    strong: str = ""
    rest: str = ""


@dataclass(frozen=True, kw_only=True)
class Reason:
    """A sentence below the verdict."""

    #: ok, warn or err.
    look: str
    strong: str
    rest: str
    #: Anchor of the workload that it is about.
    anchor: str = ""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A key figure: a number, and what was asked of it."""

    head: str
    number: Markup
    note: str
    #: Said before the note in bold, with the colour of the figure.
    strong: str = ""
    #: bad, care or "".
    look: str = ""


@dataclass(frozen=True, kw_only=True)
class AccountingView:
    """Every planned iteration in one state."""

    planned: int
    counts: dict[str, int]
    bad: int
    bar: Markup
    lens: Markup
    #: Where the part that is not ok begins, percent.
    cut: float


@dataclass(frozen=True, kw_only=True)
class OverviewView:
    """The first screen."""

    verdict: VerdictWords
    reasons: list[Reason]
    figures: list[list[Figure]]
    accounting: AccountingView


def overview_of(facts: RunFacts, views: Sequence[WorkloadView]) -> OverviewView:
    """The first screen of a run."""
    return OverviewView(
        verdict=_verdict(facts, views),
        reasons=_reasons(facts, views),
        figures=[_figures(view, running=facts.state == RUNNING) for view in views],
        accounting=_accounting(views),
    )


def _verdict(facts: RunFacts, views: Sequence[WorkloadView]) -> VerdictWords:
    failed = [(view, row) for view in views for row in view.failed_criteria]
    total = sum(len(view.criteria) for view in views)
    code = facts.summary.get("exit_code")
    if facts.state == RUNNING:
        return _running(len(failed), total)
    if code == 2:
        said = _notes(facts, 1) or "The run could not do what was asked."
        return VerdictWords(look="", sign="✕", word="Not judged.", rest=said)
    if facts.state == CRASHED or code == 130 or (code == 3 and not failed):
        return _not_finished(facts)
    if failed:
        return _not_met(failed, total, len(views))
    return _met(total, code, sum(view.facts.count("dropped") for view in views))


def _not_finished(facts: RunFacts) -> VerdictWords:
    code = facts.summary.get("exit_code")
    said = "Not every planned iteration was carried out."
    if code == 130:
        said = "The run was interrupted."
    elif facts.state == CRASHED:
        said = "The run did not come to its end."
    rest = spaced(mask_url(facts.reason)) if facts.reason else _notes(facts, 1)
    return VerdictWords(look="", sign="✕", word="Not finished.", strong=said, rest=rest)


def _met(total: int, code: Any, dropped: int) -> VerdictWords:
    every = f"All {total} criteria held." if total > 1 else "The one criterion held."
    every = every if total else "No criteria were asked for."
    if dropped and code != 4:
        said = f"{counted(dropped, 'arrival')} {'was' if dropped == 1 else 'were'} dropped."
        word = "Met, but not for all of the load." if total else "Done, but not all of the load."
        return VerdictWords(look="warned", sign="!", word=word, strong=said, rest=every)
    if not total:
        return VerdictWords(look="ok", sign="✓", word="Done.", rest=every)
    if code == 4:
        word = "Met, but the load was not the one asked for."
        return VerdictWords(look="warned", sign="!", word=word, rest=every)
    return VerdictWords(look="ok", sign="✓", word="Met.", rest=every)


def _running(failed: int, total: int) -> VerdictWords:
    if failed:
        strong = f"{failed} of {total} criteria fail so far."
        return VerdictWords(look="", sign="✕", word="Running.", strong=strong)
    rest = f"All {total} criteria hold so far." if total else ""
    return VerdictWords(look="ok", sign="▸", word="Running.", rest=rest)


def _not_met(
    failed: Sequence[tuple[WorkloadView, Any]], total: int, workloads: int
) -> VerdictWords:
    titles = list(dict.fromkeys(view.facts.title for view, _ in failed))
    named = " and ".join(titles[:3]) + (" and others" if len(titles) > 3 else "")
    where = f", in {named}" if workloads > 1 else ""
    rows = [f"{row.criterion} {row.found} ({row.asked})" for _, row in failed[:_REASONS]]
    more = f"; and {len(failed) - _REASONS} more" if len(failed) > _REASONS else ""
    return VerdictWords(
        look="",
        sign="✕",
        word="Not met.",
        strong=f"{len(failed)} of {counted(total, 'criterion', 'criteria')} failed{where}:",
        rest="; ".join(rows) + more + ".",
    )


def _notes(facts: RunFacts, most: int) -> str:
    notes = facts.summary.get("notes") or ()
    return " ".join(spaced(mask_url(str(note))) for note in notes[:most])


def _reasons(facts: RunFacts, views: Sequence[WorkloadView]) -> list[Reason]:
    code = facts.summary.get("exit_code")
    found = [_spoilt(view) for view in views if view.late_starts]
    found += [_bound(view, bound) for view in views for bound in view.facts.bounds]
    if code == 5 or (code == 4 and not any(view.facts.bounds for view in views)):
        notes = [spaced(mask_url(str(note))) for note in facts.summary.get("notes") or ()]
        found += [Reason(look="warn", strong="", rest=note) for note in notes[:2]]
    failed = any(view.failed_criteria for view in views)
    if failed or facts.state == FINISHED:
        found += [_held(view) for view in views if view.criteria and not view.failed_criteria]
    lost = sum(view.facts.count("lost") for view in views)
    left = sum(view.facts.count("not_started") for view in views)
    end = [_missing(lost, left, code)] if (lost or left) and facts.state != RUNNING else []
    return [*found[: _REASONS - len(end)], *end]


def _bound(view: WorkloadView, bound: Mapping[str, Any]) -> Reason:
    said = spaced(mask_url(str(bound["sentence"])))
    look = "err" if bound["fault"] == "generator" else "warn"
    return Reason(look=look, strong="", rest=f"{view.facts.title}: {said}.")


def _spoilt(view: WorkloadView) -> Reason:
    facts = view.facts
    clean = facts.timeline.get("without_spoilt")
    starts = f"{counted(view.late_starts, 'start')} {'was' if view.late_starts == 1 else 'were'}"
    who = "The generator spoilt" if facts.is_generators else "Arrivals waited for users for"
    rest = f"{starts} more than {time_text(facts.lag_limit_s, 1)} late."
    if clean:
        rest += (
            f" Without those stretches p95 is {time_text(clean['p95_s'])}"
            f" and p99 {time_text(clean['p99_s'])}."
        )
    return Reason(
        look="warn",
        strong=f"{who} {short(view.spoilt_s)} of {limit_text(facts.elapsed_s)} of {facts.title}",
        rest=rest,
        anchor=facts.anchor,
    )


def _held(view: WorkloadView) -> Reason:
    rows = [f"{row.criterion} {row.found} ({row.asked})" for row in view.criteria[:4]]
    every = f"all {len(view.criteria)}" if len(view.criteria) > 1 else "its one criterion"
    more = f", and {len(view.criteria) - 4} more" if len(view.criteria) > 4 else ""
    return Reason(
        look="ok", strong="", rest=f"{view.facts.title} held {every}: {', '.join(rows)}{more}."
    )


def _missing(lost: int, left: int, code: Any) -> Reason:
    parts = []
    if lost:
        verb = "was" if lost == 1 else "were"
        parts.append(f"{counted(lost, 'iteration')} {verb} lost with a worker")
    if left:
        parts.append(f"{counted(left, 'iteration')} did not start")
    end = f": exit code {code}." if code is not None else "."
    return Reason(look="err", strong="", rest=" and ".join(parts) + end)


def _figures(view: WorkloadView, *, running: bool) -> list[Figure]:
    facts = view.facts
    times = facts.main_times
    return [
        _load_figure(view),
        _succeeded(view, running=running),
        _time_figure("Median", times.get("p50"), f"{facts.kind} time"),
        _limited(view, "p95"),
        _limited(view, "p99"),
        _lag_figure(view),
    ]


def _time_figure(head: str, seconds: float | None, note: str) -> Figure:
    return Figure(head=head, number=time_markup(seconds), note=note)


def _load_figure(view: WorkloadView) -> Figure:
    offered = view.facts.offered
    if view.facts.is_open:
        started = offered.get("rate_offered")
        number = with_unit(short(started), "/s") if started is not None else escape(DASH)
        planned = offered.get("rate_planned")
        asked = "too few arrivals for a rate"
        if planned is not None:
            asked = f"of {short(planned)}{NARROW}/s asked"
        return Figure(head="Load offered", number=number, note=asked)
    users, held = offered.get("concurrency"), offered.get("concurrency_held")
    if users is None:
        return Figure(head="Load offered", number=escape(DASH), note="")
    busy = users * held if held is not None else None
    number = with_unit(short(busy), "users") if busy is not None else escape(DASH)
    return Figure(head="Load offered", number=number, note=f"of {whole(users)} asked")


def _succeeded(view: WorkloadView, *, running: bool) -> Figure:
    facts = view.facts
    text = succeeded_text(facts, running=running)
    number = with_unit(text, "%") if text != DASH else escape(DASH)
    said = f"{whole(facts.bad)} of {whole(facts.ran)} failed"
    row = view.criterion("failure_rate")
    if facts.missing and not running:
        planned, ok = whole(facts.count("planned")), row is None or row.ok
        strong = f"{'!' if ok else '✕'} {whole(facts.missing)} of {planned} did not run"
        look = "care" if ok else "bad"
        return Figure(head="Succeeded", number=number, note=said, strong=strong, look=look)
    if row is not None and not row.ok:
        return Figure(head="Succeeded", number=number, note="", strong=f"✕ {said}", look="bad")
    return Figure(head="Succeeded", number=number, note=f"✓ {said}" if row else said)


def _limited(view: WorkloadView, key: str) -> Figure:
    number = time_markup(view.facts.main_times.get(key))
    row = view.criterion(key)
    if row is None:
        return Figure(head=key, number=number, note="no limit asked")
    if not row.ok:
        return Figure(head=key, number=number, note="", strong=f"✕ {row.asked}", look="bad")
    if row.close:
        note = row.asked.replace("at most ", "its ")
        return Figure(head=key, number=number, note=note, strong="! close to", look="care")
    return Figure(head=key, number=number, note=f"✓ {row.asked}")


def _lag_figure(view: WorkloadView) -> Figure:
    facts = view.facts
    lag = facts.start_lag.get("p99")
    number = time_markup(lag, 2)
    row = view.criterion("start_lag")
    head = "p99 start lag"
    if row is not None and not row.ok:
        return Figure(head=head, number=number, note="", strong="✕ generator was late", look="bad")
    if lag is None:
        return Figure(head=head, number=number, note="")
    if lag > facts.lag_limit_s and not facts.is_generators:
        return Figure(head=head, number=number, note="", strong="! all users busy", look="care")
    if lag > facts.lag_limit_s:
        return Figure(head=head, number=number, note="", strong="! generator was late", look="care")
    return Figure(head=head, number=number, note="✓ generator kept up")


def _accounting(views: Sequence[WorkloadView]) -> AccountingView:
    counts = {state: sum(view.facts.count(state) for view in views) for state in STATES}
    planned = sum(view.facts.count("planned") for view in views)
    bad = sum(counts[state] for state in _NOT_OK)
    known = counts["ok"] + bad
    return AccountingView(
        planned=planned,
        counts=counts,
        bad=bad,
        bar=stacked(counts, label=f"{whole(counts['ok'])} of {whole(known)} ok"),
        lens=stacked(counts, _NOT_OK, f"{whole(bad)} not ok, magnified") if bad else Markup(""),
        cut=100 * counts["ok"] / known if known else 0.0,
    )
