"""Statements on a search for the capacity: the sustained load, its interval, and the trials."""

from __future__ import annotations

import re
from collections.abc import Iterator
from statistics import fmean
from typing import NamedTuple

from osbench.coordinator.formatting import count, duration, plain, seconds_of, three_digits
from osbench.coordinator.report.model.workload_parts import SearchReport
from osbench.coordinator.report.statements.statement import Look, Statement, each, statement_of
from osbench.coordinator.results.accounting.search.capacity_sentence import (
    kind_text,
    load_text,
    range_text,
)
from osbench.coordinator.results.accounting.search.trials import DISTURBED, TrialFigures
from osbench.coordinator.results.accounting.stage_statistics import StageFigures

#: Trials that have a line each.
TRIALS = 20
#: Actions that grew at the end of a search, as many are shown.
GROWN = 3
#: Divisor of the lowest load for a new `low`, if even that load was not sustained.
_LOWER = 4
#: A limit that was judged, in the detail of a trial.
_LIMIT = re.compile(
    r"(?:^|[:;] )(?P<name>p[\d.]+ of [^;:]+?) (?P<found>[\d.,]+ ?[a-z]+), "
    r"allowed (?P<asked>[\d.,]+ ?[a-z]+)"
)


class _Limit(NamedTuple):
    """A percentile limit that a trial broke, as texts: criterion, value found, value allowed."""

    name: str
    found: str
    asked: str


def search_headline(search: SearchReport) -> str:
    """Return the sustained load and the next failure: "9/s sustained with p95 <= 2s; 12/s not: 3s".

    If no load was sustained, the lowest load, why it was not, and a lower one to try if that is
    advised. Also says if there was no trial, or the search was stopped before its end.
    """
    broken = next((one for one in search.trials if _is_broken(one, search.broke)), None)
    limit = _broken_limit(broken.detail) if broken else None
    why = plain(broken.detail, 200) if broken else ""
    if search.held is None and search.broke is None:
        return "the search ended before its first trial"
    if search.held is None:
        text = _none_held(search, limit, why)
    elif search.broke is None:
        held, tried = trimmed_text(search.held, search.unit), kind_text(search.unit)
        text = f"{held} sustained, the highest {tried} that was tried"
        text += f": {search.advice}" if search.advice else ""
    else:
        held, broke = (trimmed_text(one, search.unit) for one in (search.held, search.broke))
        text = f"{held} sustained; {broke} not{': ' if why else ''}{why}"
        if limit:
            text = f"{held} sustained with {limit.name} <= {limit.asked}; "
            text += f"{broke} not: {limit.found}"
    ended = "; the search was stopped before its end" if search.kind == "unfinished" else ""
    return f"{text}{ended}"


def _none_held(search: SearchReport, limit: _Limit | None, why: str) -> str:
    assert search.broke is not None
    lowest = trimmed_text(search.broke, search.unit)
    text = f"no {kind_text(search.unit)} was sustained; at {lowest}, the lowest"
    if limit:
        text += f", {limit.name} was {limit.found} (at most {limit.asked})"
    elif why:
        text += f": {why}"
    if search.advice:
        lower = search.broke / _LOWER
        if search.unit == "users":
            lower = max(1.0, lower // 1)
        if lower < search.broke:
            text += f"{'; ' if why and not limit else ': '}try low: {_number(lower)}"
    return text


def search_interval(search: SearchReport) -> str:
    """Return the capacity with its 95 % interval as a message; "" if the capacity is not known."""
    if search.rate is None or search.low is None or search.high is None:
        return ""
    between = range_text(search.low, search.high, search.unit)
    text = f"capacity {load_text(search.rate, search.unit)}, with 95 % between {between}"
    at = [one.ok_per_s for one in search.trials if one.held and one.rate == search.held]
    if at and search.held is not None and search.unit == "users":
        text += f"; {three_digits(fmean(at))} ok/s at {load_text(search.held, search.unit)}"
    if search.kind != "unfinished" and not search.precise:
        text += "; less precise than requested: hold longer, or allow more trials"
    return text


def trimmed_text(load: float, unit: str) -> str:
    """Return a load with its unit, a rate without zeros at the end: "9/s", "12 users"."""
    return load_text(load, unit) if unit == "users" else f"{_number(load)}/s"


def _number(rate: float) -> str:
    return three_digits(rate).removesuffix(".00").removesuffix(".0")


def _is_broken(trial: TrialFigures, rate: float | None) -> bool:
    return trial.rate == rate and not trial.held and trial.cause != DISTURBED


def _broken_limit(detail: str) -> _Limit | None:
    """Return the first percentile limit that was exceeded, from a trial's detail, or None."""
    for match in _LIMIT.finditer(plain(detail, 2000)):
        found, asked = seconds_of(match["found"]), seconds_of(match["asked"])
        if found is not None and asked is not None and found > asked:
            name = match["name"].removesuffix(" of response time")
            return _Limit(name, match["found"], match["asked"])
    return None


def search_statements(search: SearchReport) -> Iterator[Statement]:
    """Yield statements on a search: result, interval, actions and spans that grew, and trials.

    At most `GROWN` actions and `TRIALS` trials, and the number of other trials.
    """
    yield statement_of("capacity", search_headline(search), Look.STRONG, in_short=True)
    if interval := search_interval(search):
        yield statement_of("capacity", interval, in_short=True)
    for grown in search.grown[:GROWN]:
        before, after = duration(grown.before_s), duration(grown.after_s)
        yield statement_of(
            "capacity",
            f"{plain(grown.action)} grew from {before} to {after} on average",
            in_short=True,
        )
    if search.traces and search.held is not None and search.broke is not None:
        loads = range_text(search.held, search.broke, search.unit, "to")
        text = f"from {loads}: {plain(search.traces, 500)}"
        yield statement_of("capacity", text, in_short=True)
    for span in search.grown_spans:
        before, after = duration(span.before_s), duration(span.after_s)
        yield statement_of("capacity", f"{plain(span.span)}: {before} on average, then {after}")
    trials = (_trial(trial, search.unit) for trial in search.trials[:TRIALS])
    yield from each("trials", trials)
    if len(search.trials) > TRIALS:
        yield statement_of("trials", f"and {count(len(search.trials) - TRIALS, 'more trial')}")


def _trial(trial: TrialFigures, unit: str) -> str:
    load = load_text(trial.rate, unit) if unit == "users" else f"{trial.rate:g}/s"
    told = f"{load} {'sustained' if trial.held else 'not sustained'}"
    if trial.cause == DISTURBED:
        told = f"{load} says nothing"
    parts = [f"{three_digits(trial.ok_per_s)} ok/s", *percentile_texts(trial)]
    parts += [plain(trial.detail, 200)] if trial.detail else []
    return f"{told}: {', '.join(parts)}"


def percentile_texts(figures: StageFigures | TrialFigures) -> list[str]:
    """Return p50, p95 and p99 of a stage or trial, such as "p50 12ms"; [] without successes."""
    if not figures.ok:
        return []
    times = (("p50", figures.p50_s), ("p95", figures.p95_s), ("p99", figures.p99_s))
    return [f"{name} {duration(seconds)}" for name, seconds in times]
