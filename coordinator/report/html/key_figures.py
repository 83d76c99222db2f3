"""Makes the key figures of a workload for the first screen, each with limit or request."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup, escape

from osbench.coordinator.report.html.criterion_rows import limit_of, succeeded_text
from osbench.coordinator.report.html.page_numbers import (
    DASH,
    NARROW,
    counted_noun,
    limit_text,
    short,
    time_markup,
    whole,
    with_unit,
)
from osbench.coordinator.report.html.workload_view import WorkloadView
from osbench.coordinator.report.model.workload_parts import SearchReport
from osbench.coordinator.results.accounting.search.capacity_sentence import kind_text
from osbench.coordinator.results.accounting.search.trials import DISTURBED, TrialFigures


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A key figure with its heading, a note such as its limit, and its colour."""

    head: str
    number: Markup
    note: str
    #: Said before the note in bold, with the colour of the figure.
    strong: str = ""
    #: bad, care or "".
    look: str = ""


def key_figures(view: WorkloadView, *, running: bool) -> list[Figure]:
    """Return the key figures of a workload: load, success, median, p95, p99, start lag.

    `running`: the run goes on. A search has `search_figures` instead.
    """
    if search := view.report.search:
        return search_figures(view, search, running=running)
    report = view.report
    return [
        _load_figure(view),
        _success_figure(view, running=running),
        _time_figure("Median", report.main_times.p50, f"{report.kind} time"),
        _percentile_figure(view, "p95"),
        _percentile_figure(view, "p99"),
        _lag_figure(view),
    ]


def search_figures(view: WorkloadView, search: SearchReport, *, running: bool) -> list[Figure]:
    """Return the key figures of a search: load, success, percentiles at that load, start lag.

    The load is the highest sustained one, else the lowest that was tried. `running`: the run goes
    on.
    """
    trial = _told_trial(search)
    percentiles = [_trial_figure(view, trial, key, search.unit) for key in ("p50", "p95", "p99")]
    return [
        _rate_figure(trial, search.unit),
        _success_figure(view, running=running),
        *percentiles,
        _lag_figure(view),
    ]


def _told_trial(search: SearchReport) -> TrialFigures | None:
    rate = search.broke if search.held is None else search.held
    known = [one for one in search.trials if one.rate == rate and one.cause != DISTURBED]
    # a rate may have been tried several times
    return next((one for one in known if one.held == (search.held is not None)), None)


def _rate_figure(trial: TrialFigures | None, unit: str) -> Figure:
    head, kind = "Load offered", kind_text(unit)
    if trial is None:
        return Figure(head=head, number=escape(DASH), note=f"no {kind} was judged")
    number = with_unit(short(trial.rate), "/s")
    if unit == "users":
        number = with_unit(whole(trial.rate), "user" if trial.rate == 1 else unit)
    if trial.held:
        return Figure(head=head, number=number, note=f"✓ the highest sustained {kind}")
    strong = f"✕ the lowest {kind} was not sustained"
    return Figure(head=head, number=number, note="", strong=strong, look="bad")


def _trial_figure(view: WorkloadView, trial: TrialFigures | None, key: str, unit: str) -> Figure:
    head = "Median" if key == "p50" else key
    if trial is None:
        return Figure(head=head, number=escape(DASH), note="")
    seconds = {"p50": trial.p50_s, "p95": trial.p95_s, "p99": trial.p99_s}[key]
    at = f"at {short(trial.rate)}{NARROW}/s"
    if unit == "users":
        at = f"at {counted_noun(round(trial.rate), 'user')}"
    number = time_markup(seconds)
    limit_s = limit_of(view.facts, key)
    if limit_s is None:
        no_limit = "" if key == "p50" else ", no limit set"
        if limit_of(view.facts, key, "service") is not None:
            no_limit = ", the limit is on service time"
        return Figure(head=head, number=number, note=f"response time {at}{no_limit}")
    asked = f"at most {limit_text(limit_s)}"
    if seconds is None or seconds > limit_s:
        return Figure(head=head, number=number, note=at, strong=f"✕ {asked}", look="bad")
    return Figure(head=head, number=number, note=f"✓ {asked}, {at}")


def _time_figure(head: str, seconds: float | None, note: str) -> Figure:
    return Figure(head=head, number=time_markup(seconds), note=note)


def _load_figure(view: WorkloadView) -> Figure:
    offered = view.report.offered
    if offered.is_open:
        started = offered.rate_offered
        number = with_unit(short(started), "/s") if started is not None else escape(DASH)
        planned = offered.rate_planned
        asked = "too few arrivals for a rate"
        if planned is not None:
            asked = f"of {short(planned)}{NARROW}/s requested"
        return Figure(head="Load offered", number=number, note=asked)
    users, held = offered.concurrency, offered.concurrency_held
    if users is None:
        return Figure(head="Load offered", number=escape(DASH), note="")
    lives = view.report.users
    able = max(0, users - lives.never_started) if lives else users
    busy = able * held if held is not None else None
    number = with_unit(short(busy), "users") if busy is not None else escape(DASH)
    return Figure(head="Load offered", number=number, note=f"of {whole(users)} requested")


def _success_figure(view: WorkloadView, *, running: bool) -> Figure:
    report = view.report
    text = succeeded_text(report, running=running)
    number = with_unit(text, "%") if text != DASH else escape(DASH)
    said = f"{whole(report.bad)} of {whole(report.ran)} failed"
    row = view.criterion("failure_rate")
    if report.missing and not running:
        planned, ok = whole(report.accounting.planned), row is None or row.ok
        strong = f"{'!' if ok else '✕'} {whole(report.missing)} of {planned} did not run"
        look = "care" if ok else "bad"
        return Figure(head="Succeeded", number=number, note=said, strong=strong, look=look)
    if row is not None and not row.ok:
        return Figure(head="Succeeded", number=number, note="", strong=f"✕ {said}", look="bad")
    return Figure(head="Succeeded", number=number, note=f"✓ {said}" if row else said)


def _percentile_figure(view: WorkloadView, key: str) -> Figure:
    report, row = view.report, view.criterion(key)
    if row is None:
        number = time_markup(report.main_times.percentile(key))
        return Figure(head=key, number=number, note="no limit set")
    # the time that has a limit is the one to be seen, and named if it is not that of the median
    number = time_markup(report.times(row.kind).percentile(key))
    of = "" if row.kind == report.kind else f"{row.kind} time"
    if not row.ok:
        return Figure(head=key, number=number, note=of, strong=f"✕ {row.asked}", look="bad")
    if row.close:
        note = ", ".join(filter(None, (row.asked.replace("at most ", "its "), of)))
        return Figure(head=key, number=number, note=note, strong="! may be over", look="care")
    return Figure(head=key, number=number, note=", ".join(filter(None, (f"✓ {row.asked}", of))))


def _lag_figure(view: WorkloadView) -> Figure:
    facts = view.facts
    report = view.report
    lag, is_generators = report.start_lag.p99, report.is_generators
    number = time_markup(lag, 2)
    row = view.criterion("start_lag")
    head = "p99 start lag"
    if row is not None and not row.ok:
        return Figure(head=head, number=number, note="", strong="✕ generator was late", look="bad")
    if lag is None:
        return Figure(head=head, number=number, note="")
    if lag > facts.lag_limit_s and not is_generators:
        return Figure(head=head, number=number, note="", strong="! all users in use", look="care")
    if lag > facts.lag_limit_s:
        return Figure(head=head, number=number, note="", strong="! generator was late", look="care")
    return Figure(head=head, number=number, note="✓ generator kept up")
