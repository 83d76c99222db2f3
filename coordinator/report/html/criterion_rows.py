"""SLA criteria as rows: what was found beside what was asked, and the used share of the limit."""

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
    counted,
    limit_text,
    percent_text,
    rate_text,
    short,
    significant,
    spaced,
    time_text,
    whole,
)
from osbench.coordinator.report.html.workload_facts import WorkloadFacts

#: Percentiles that the summary has, by percent.
_KEYS = {50: "p50", 90: "p90", 95: "p95", 99: "p99", 99.9: "p999"}
#: A clause of the verdict of `percentile`: its name, and what was found.
_CLAUSE = re.compile(r"^(?P<name>.+?) (?P<found>\S+), allowed (?P<asked>\S+)$")


@dataclass(frozen=True, kw_only=True)
class CriterionRow:
    """One criterion, or one limit of it."""

    #: Such as "p95 of response time".
    criterion: str
    found: str
    asked: str
    ok: bool
    #: It holds, but its interval contains the limit.
    close: bool = False
    #: Found over asked; None where there is no such ratio.
    share: float | None = None
    basis: str = ""
    #: For the key figures: failure_rate, p95, p99, start_lag, throughput; "" for others.
    key: str = ""
    #: Seconds of the limit of a percentile of the time that counts, and its percent.
    limit_s: float | None = None
    percent: float | None = None


def criterion_rows(workload: WorkloadFacts) -> list[CriterionRow]:
    """All criteria of a workload, in the order of its verdicts."""
    configs = workload.asked.get("sla") or {}
    rows: list[CriterionRow] = []
    for verdict in workload.verdicts:
        name = str(verdict["criterion"])
        make = _ROWS.get(name)
        config = configs.get(name)
        made = list(make(workload, config, verdict)) if make and not _windowed(config) else []
        rows += made or [_plain_row(verdict)]
    return rows


def _windowed(config: Any) -> bool:
    """Windows are judged, of which the numbers of the whole load say nothing."""
    limits = config if isinstance(config, list) else [config]
    return any(isinstance(limit, Mapping) and "over_s" in limit for limit in limits)


def _plain_row(verdict: Mapping[str, Any]) -> CriterionRow:
    """A criterion of which only the sentence is known."""
    detail = spaced(mask_url(plain(str(verdict["detail"]), 500)))
    found, _, asked = detail.rpartition(", allowed ")
    if ";" in found:
        # several clauses, each with what is allowed
        found = ""
    return CriterionRow(
        criterion=str(verdict["criterion"]).replace("_", " "),
        found=found or detail,
        asked=f"at most {asked}" if found else "",
        ok=bool(verdict["success"]),
    )


def _failure_rate(
    workload: WorkloadFacts, config: Any, verdict: Mapping[str, Any]
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
        ok=bool(verdict["success"]),
        share=100 * share / high if high else (2.0 if share else 0.0),
        basis=f"{whole(workload.bad)} of {counted(workload.ran, 'iteration')}",
        key="failure_rate",
    )


def _percentile(
    workload: WorkloadFacts, config: Any, verdict: Mapping[str, Any]
) -> Iterator[CriterionRow]:
    limits = config if isinstance(config, list) else [config]
    clauses = str(verdict["detail"]).split("; ")
    for number, limit in enumerate(limits):
        if not isinstance(limit, Mapping):
            return
        said = clauses[number] if number < len(clauses) else ""
        yield _percentile_row(workload, limit, said, bool(verdict["success"]))


def _percentile_row(
    workload: WorkloadFacts, limit: Mapping[str, Any], said: str, success: bool
) -> CriterionRow:
    percent, most = float(limit["p"]), float(limit["max_s"])
    action, kind = limit.get("action"), str(limit.get("of", "service"))
    times = workload.times(kind)
    if action:
        actions = workload.summary.get("actions") or {}
        times = (actions.get(action) or {}).get("ok") or {}
    key = _KEYS.get(percent)
    value = times.get("max") if percent == 100 else times.get(key) if key else None
    interval = (times.get("ci") or {}).get(key)
    clause = _CLAUSE.match(said)
    found = time_text(value) if value is not None else spaced(clause["found"] if clause else said)
    is_main = not action and kind == workload.kind
    ok = value <= most if value is not None else success
    return CriterionRow(
        criterion=f"p{percent:g} of {action or kind + ' time'}",
        found=found,
        asked=f"at most {limit_text(most)}",
        ok=ok,
        close=bool(ok and _contains(interval, most)),
        share=value / most if value is not None else None,
        basis=_interval_words(interval) if value is not None else "",
        key=key if is_main and key else "",
        limit_s=most if is_main else None,
        percent=percent if is_main else None,
    )


def _start_lag(
    workload: WorkloadFacts, config: Any, verdict: Mapping[str, Any]
) -> Iterator[CriterionRow]:
    if not isinstance(config, Mapping):
        return
    percent, most = float(config.get("p", 99)), float(config["max_s"])
    key = _KEYS.get(percent)
    value = workload.start_lag.get(key) if key else None
    if value is None:
        return
    interval = (workload.start_lag.get("ci") or {}).get(key)
    yield CriterionRow(
        criterion=f"p{percent:g} of start lag",
        found=time_text(value),
        asked=f"at most {limit_text(most)}",
        ok=bool(verdict["success"]),
        close=bool(verdict["success"] and _contains(interval, most)),
        share=value / most,
        basis=_interval_words(interval),
        key="start_lag" if percent == 99 else "",
    )


def _throughput(
    workload: WorkloadFacts, config: Any, verdict: Mapping[str, Any]
) -> Iterator[CriterionRow]:
    throughput = workload.summary.get("throughput") or {}
    rate = throughput.get("ok_per_s")
    if rate is None or not isinstance(config, Mapping):
        return
    least = float(config["min"])
    yield CriterionRow(
        criterion="throughput",
        found=rate_text(rate),
        asked=f"at least {rate_text(least)}",
        ok=bool(verdict["success"]),
        share=least / rate if rate else None,
        basis=f"{counted(workload.count('ok'), 'iteration')} ok "
        f"in {time_text(throughput.get('span_s'))}",
        key="throughput",
    )


def _mean(
    workload: WorkloadFacts, config: Any, verdict: Mapping[str, Any]
) -> Iterator[CriterionRow]:
    value = workload.times("service").get("mean")
    if value is None or not isinstance(config, int | float):
        return
    yield CriterionRow(
        criterion="mean of service time",
        found=time_text(value),
        asked=f"at most {limit_text(float(config))}",
        ok=bool(verdict["success"]),
        share=value / float(config),
        basis=f"{counted(workload.count('ok'), 'iteration')} ok",
    )


def _contains(interval: Any, limit_s: float) -> bool:
    if not interval:
        return False
    low, high = interval
    return low <= limit_s and (high is None or limit_s <= high)


def _interval_words(interval: Any) -> str:
    if not interval:
        return "no interval"
    if interval[1] is None:
        return f"at least {time_text(interval[0])} (95{NARROW}%), no upper bound"
    return f"95{NARROW}% interval {time_text(interval[0])} to {time_text(interval[1])}"


_ROWS = {
    "failure_rate": _failure_rate,
    "percentile": _percentile,
    "start_lag": _start_lag,
    "throughput": _throughput,
    "max_avg_duration": _mean,
}


def succeeded_text(workload: WorkloadFacts, *, running: bool = False) -> str:
    """Share of the planned iterations that ended well, in percent; 100 only if all did.

    Of a run that goes on, the share of those that have ended.
    """
    left = 0 if running else workload.missing
    short, whole = workload.bad + left, workload.ran + left
    if not whole:
        return DASH
    if not short:
        return "100"
    text = significant(100 - 100 * short / whole, 4)
    return "99.99" if text.startswith("100") else text
