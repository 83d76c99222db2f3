"""Makes rows of a table from SLA criteria: value, limit, and the used fraction of the limit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from osbench.common.secrets.url_masking import mask_url
from osbench.coordinator.formatting import plain
from osbench.coordinator.report.html.page_numbers import (
    DASH,
    NARROW,
    counted_noun,
    limit_text,
    percent_text,
    rate_text,
    short,
    significant,
    spaced_text,
    time_text,
    whole,
)
from osbench.coordinator.report.html.workload_facts import WorkloadFacts
from osbench.coordinator.report.model.model import WorkloadReport
from osbench.coordinator.report.model.time_figures import Bounds, ByState
from osbench.coordinator.report.model.workload_parts import SlaVerdict
from osbench.coordinator.report.statements.search_statements import search_headline

#: Percentiles that the summary has, by percent.
_KEYS = {50: "p50", 90: "p90", 95: "p95", 99: "p99", 99.9: "p999"}
#: Part of a limit from which a value without an upper bound may as well be over it.
CLOSE = 0.5
#: A clause of the verdict of `percentile`: its name, and its value.
_CLAUSE = re.compile(r"^(?P<name>.+?) (?P<found>\S+), allowed (?P<asked>\S+)$")


@dataclass(frozen=True, kw_only=True)
class CriterionRow:
    """An SLA criterion, or one limit of it, as a row: texts, whether it is met, and its numbers."""

    #: Such as "p95 of response time".
    criterion: str
    found: str
    asked: str
    ok: bool
    #: It holds, but may as well not: its interval contains the limit.
    close: bool = False
    #: Value divided by limit; None if there is no such ratio.
    share: float | None = None
    basis: str = ""
    #: For the key figures: failure_rate, p95, p99, start_lag, throughput; "" for others.
    key: str = ""
    #: Kind of time of a percentile of iterations: response or service; "" for others.
    kind: str = ""
    #: Seconds of the limit of a percentile of the time that counts, and its percent.
    limit_s: float | None = None
    percent: float | None = None


def criterion_rows(workload: WorkloadFacts) -> list[CriterionRow]:
    """Return the rows of all SLA criteria of a workload, in the order of its verdicts.

    A criterion has a row for each of its limits. It has one row with the verdict's message if it
    judges windows of time, or the report has no figures of its kind.
    """
    configs = workload.asked.get("sla") or {}
    rows: list[CriterionRow] = []
    for verdict in workload.report.sla:
        make, config = _ROWS.get(verdict.criterion), configs.get(verdict.criterion)
        made = []
        if make and not _has_windows(config):
            made = list(make(workload.report, config, verdict))
        rows += made or [_plain_row(verdict)]
    return rows


def _has_windows(config: Any) -> bool:
    """Figures of the whole load do not show the verdict of windows (`over_s`)."""
    limits = config if isinstance(config, list) else [config]
    return any(isinstance(limit, Mapping) and "over_s" in limit for limit in limits)


def _plain_row(verdict: SlaVerdict) -> CriterionRow:
    """Return the row of a criterion from its verdict's message, without ratio and interval.

    If the message has a single part ", allowed ...", that is the row's limit.
    """
    detail = spaced_text(mask_url(plain(verdict.detail, 500)))
    found, _, asked = detail.rpartition(", allowed ")
    if ";" in found:
        # several clauses, each with its limit
        found = ""
    return CriterionRow(
        criterion=verdict.criterion.replace("_", " "),
        found=found or detail,
        asked=f"at most {asked}" if found else "",
        ok=verdict.success,
    )


def _failure_rate(
    workload: WorkloadReport, config: Any, verdict: SlaVerdict
) -> Iterator[CriterionRow]:
    if not workload.ran:
        return
    # the criterion that a task without one gets allows no failure
    config = config if isinstance(config, Mapping) else {"max": 0}
    low, high = float(config.get("min", 0)), float(config.get("max", 100))
    share = workload.bad / workload.ran
    asked = f"at most {short(high)}{NARROW}%"
    if low:
        asked = f"{short(low)} to {short(high)}{NARROW}%"
    yield CriterionRow(
        criterion="failure rate",
        found=percent_text(share, 3),
        asked=asked,
        ok=verdict.success,
        share=100 * share / high if high else None,
        basis=f"{whole(workload.bad)} of {counted_noun(workload.ran, 'iteration')}",
        key="failure_rate",
    )


def _percentile(
    workload: WorkloadReport, config: Any, verdict: SlaVerdict
) -> Iterator[CriterionRow]:
    limits = config if isinstance(config, list) else [config]
    clauses = verdict.detail.split("; ")
    for number, limit in enumerate(limits):
        if not isinstance(limit, Mapping):
            return
        said = clauses[number] if number < len(clauses) else ""
        yield _percentile_row(workload, limit, said, verdict.success)


def _percentile_row(
    workload: WorkloadReport, limit: Mapping[str, Any], said: str, success: bool
) -> CriterionRow:
    percent, most = float(limit["p"]), float(limit["max_s"])
    action, kind = limit.get("action"), str(limit.get("of", "service"))
    times = workload.times(kind)
    if action:
        times = workload.actions.get(action, ByState()).ok
    key = _KEYS.get(percent)
    value = times.max if percent == 100 else times.percentile(key) if key else None
    interval = times.ci.get(key) if key else None
    found = time_text(value) if value is not None else _measured_text(said)
    is_main = not action and kind == workload.kind
    ok = value <= most if value is not None else success
    return CriterionRow(
        criterion=f"p{percent:g} of {action or kind + ' time'}",
        found=found,
        asked=f"at most {limit_text(most)}",
        ok=ok,
        close=bool(ok and _is_close(value, interval, most)),
        share=value / most if value is not None else None,
        basis=_interval_words(interval) if value is not None else "",
        key="" if action else key or "",
        kind="" if action else kind,
        limit_s=most if is_main else None,
        percent=percent if is_main else None,
    )


def _measured_text(said: str) -> str:
    """Return the measured value in a clause of a verdict of `percentile`.

    If the clause has no value, return its reason.
    """
    clause = _CLAUSE.match(said)
    return spaced_text(clause["found"] if clause else said.partition(": ")[2] or said)


def _start_lag(
    workload: WorkloadReport, config: Any, verdict: SlaVerdict
) -> Iterator[CriterionRow]:
    if not isinstance(config, Mapping):
        return
    percent, most = float(config.get("p", 99)), float(config["max_s"])
    key = _KEYS.get(percent)
    value = workload.start_lag.percentile(key) if key else None
    if key is None or value is None:
        return
    interval = workload.start_lag.ci.get(key)
    yield CriterionRow(
        criterion=f"p{percent:g} of start lag",
        found=time_text(value),
        asked=f"at most {limit_text(most)}",
        ok=verdict.success,
        close=bool(verdict.success and _is_close(value, interval, most)),
        share=value / most,
        basis=_interval_words(interval),
        key="start_lag" if percent == 99 else "",
    )


def _throughput(
    workload: WorkloadReport, config: Any, verdict: SlaVerdict
) -> Iterator[CriterionRow]:
    rate = workload.throughput.ok_per_s
    if rate is None or not isinstance(config, Mapping):
        return
    least = float(config["min"])
    yield CriterionRow(
        criterion="throughput",
        found=rate_text(rate),
        asked=f"at least {rate_text(least)}",
        ok=verdict.success,
        share=least / rate if rate else None,
        basis=f"{counted_noun(workload.accounting.ok, 'iteration')} ok "
        f"in {time_text(workload.throughput.span_s)}",
        key="throughput",
    )


def _mean(workload: WorkloadReport, config: Any, verdict: SlaVerdict) -> Iterator[CriterionRow]:
    value = workload.times("service").mean
    if value is None or not isinstance(config, int | float):
        return
    yield CriterionRow(
        criterion="mean of service time",
        found=time_text(value),
        asked=f"at most {limit_text(float(config))}",
        ok=verdict.success,
        share=value / float(config),
        basis=f"{counted_noun(workload.accounting.ok, 'iteration')} ok",
    )


def _is_close(value_s: float | None, interval: Bounds | None, limit_s: float) -> bool:
    """Return whether an interval contains a limit.

    One without an upper bound would contain every limit above it: then the value has to be at least
    `CLOSE` of the limit.
    """
    if not interval or value_s is None:
        return False
    low, high = interval
    if high is None:
        return value_s >= CLOSE * limit_s
    return (low or 0.0) <= limit_s <= high


def _interval_words(interval: Bounds | None) -> str:
    if not interval:
        return "no interval"
    if interval[1] is None:
        return f"at least {time_text(interval[0])} (95{NARROW}%), no upper bound"
    return f"95{NARROW}% interval {time_text(interval[0])} to {time_text(interval[1])}"


def _search(workload: WorkloadReport, config: Any, verdict: SlaVerdict) -> Iterator[CriterionRow]:
    if workload.search:
        found = spaced_text(mask_url(search_headline(workload.search)))
        yield CriterionRow(criterion="search", found=found, asked="", ok=verdict.success)


_ROWS = {
    "failure_rate": _failure_rate,
    "percentile": _percentile,
    "start_lag": _start_lag,
    "throughput": _throughput,
    "search": _search,
    "max_avg_duration": _mean,
}


def limit_of(workload: WorkloadFacts, key: str, kind: str = "") -> float | None:
    """Return the task's first limit, in seconds, for `key` such as p95; None if there is none.

    `kind`: "response" or "service" time; by default response for open loads, else service. Limits
    of actions or of windows do not count.
    """
    limits = (workload.asked.get("sla") or {}).get("percentile")
    for limit in limits if isinstance(limits, list) else [limits]:
        if isinstance(limit, Mapping) and not limit.get("action") and not _has_windows(limit):
            is_asked = limit.get("of", "service") == (kind or workload.report.kind)
            if is_asked and _KEYS.get(float(limit["p"])) == key:
                return float(limit["max_s"])
    return None


def succeeded_text(workload: WorkloadReport, *, running: bool = False) -> str:
    """Return the percentage of planned iterations that succeeded, without sign; "100" only for all.

    `running`: of the iterations that ran instead. A dash if there are none.
    """
    left = 0 if running else workload.missing
    short, whole = workload.bad + left, workload.ran + left
    if not whole:
        return DASH
    if not short:
        return "100"
    text = significant(100 - 100 * short / whole, 4)
    return "99.99" if text.startswith("100") else text
