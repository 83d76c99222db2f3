"""The first screen: key figures with their limits, reasons, and the accounting."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from helpers.report_facts import facts_of
from helpers.sample_loads import all_kinds, search_workload
from helpers.sample_reports import constant_workload, run_report
from helpers.summaries import to_json
from osbench.coordinator.report.html.key_figures import Figure
from osbench.coordinator.report.html.overview_view import OverviewView, overview_of
from osbench.coordinator.report.html.workload_facts import workloads_of
from osbench.coordinator.report.html.workload_view import view_of
from osbench.coordinator.report.page_facts import gather


def overview(folder: Path, *, changes: Any = None, **workload: Any) -> OverviewView:
    """The first screen of a closed workload; `workload` replaces values of its summary."""
    facts = facts_of(folder, run_report(constant_workload()), sla=(), changes=changes)
    facts.summary["workloads"][0].update(workload)
    return overview_of(facts, [view_of(one, {}) for one in workloads_of(gather(facts))])


def shown(view: OverviewView) -> dict[str, str]:
    """Numbers of the key figures by their head."""
    (row,) = view.rows
    return {one.head: re.sub("<[^>]*>|\u202f", "", str(one.number)) for one in row.figures}


def figure(view: OverviewView, head: str) -> Figure:
    (row,) = view.rows
    return next(one for one in row.figures if one.head == head)


def times(**values: Any) -> dict[str, Any]:
    return {"count": 8, "ci": {}, **dict.fromkeys(("min", "mean", "max", "p999")), **values}


@pytest.mark.parametrize(
    ("code", "said"), [(0, "✓ Done."), (4, "! Done, but the load was not the one requested.")]
)
def test_a_run_without_criteria_is_done_and_says_if_its_load_was_another(
    tmp_path: Path, code: int, said: str
) -> None:
    verdict = overview(tmp_path, changes={"exit_code": code}, sla=[]).verdict

    assert f"{verdict.sign} {verdict.word}" == said


def test_each_percentile_stands_below_its_own_name(tmp_path: Path) -> None:
    ok = times(p50=0.001, p90=0.002, p95=0.003, p99=0.004)

    view = overview(tmp_path, latency={"service": {"ok": ok}})

    found = shown(view)
    assert (found["Median"], found["p95"], found["p99"]) == ("1.00ms", "3.00ms", "4.00ms")


@pytest.mark.parametrize(
    ("offered", "number", "note"),
    [
        ({"concurrency": 200, "concurrency_held": 0.25}, "50users", "of 200 requested"),
        ({"concurrency": 200, "concurrency_held": None}, "\u2013", "of 200 requested"),
        (
            {"concurrency": None, "rate_planned": 100.0, "rate_offered": 80.0},
            "80/s",
            "of 100\u202f/s requested",
        ),
        (
            {"concurrency": None, "rate_planned": None, "rate_offered": None},
            "\u2013",
            "too few arrivals for a rate",
        ),
    ],
)
def test_the_load_that_was_offered_stands_beside_what_was_asked(
    tmp_path: Path, offered: dict[str, Any], number: str, note: str
) -> None:
    view = overview(tmp_path, offered=offered)

    assert shown(view)["Load offered"] == number
    assert figure(view, "Load offered").note == note


def limited(folder: Path, *, kind: str, max_s: float, ci: tuple[float, float]) -> OverviewView:
    """The first screen of a closed load with a limit on p95: 143 ms of service time, 158 of
    response time.
    """
    limits = {"percentile": {"p": 95, "max_s": max_s, "of": kind}}
    facts = facts_of(folder, run_report(constant_workload()), sla=(limits,))
    workload = facts.summary["workloads"][0]
    workload["latency"] = {
        "service": {"ok": times(p50=0.1, p90=0.12, p95=0.143, p99=0.15)},
        "response": {"ok": times(p50=0.11, p90=0.13, p95=0.158, p99=0.17)},
    }
    workload["latency"][kind]["ok"]["ci"] = {"p95": ci}
    workload["sla"] = [{"criterion": "percentile", "success": max_s > 0.16, "detail": ""}]
    facts.summary["exit_code"] = 0
    gathered = gather(facts)
    return overview_of(gathered, [view_of(one, {}) for one in workloads_of(gathered)])


@pytest.mark.parametrize(
    ("kind", "max_s", "number", "said"),
    [
        ("response", 0.25, "158ms", "✓ at most 250\u202fms, response time"),
        ("response", 0.15, "158ms", "✕ at most 150\u202fmsresponse time"),
        ("service", 0.25, "143ms", "✓ at most 250\u202fms"),
    ],
)
def test_the_percentile_that_has_a_limit_is_the_one_that_is_shown(
    tmp_path: Path, kind: str, max_s: float, number: str, said: str
) -> None:
    view = limited(tmp_path, kind=kind, max_s=max_s, ci=(0.13, 0.16))

    found = figure(view, "p95")
    assert shown(view)["p95"] == number
    assert found.strong + found.note == said
    assert figure(view, "p99").note == "no limit set"


@pytest.mark.parametrize(
    ("high", "said"),
    [
        (0.24, "The one criterion is met."),
        (0.26, "The one criterion is met, but p95 of service time may as well be over its limit."),
    ],
)
def test_the_verdict_names_a_criterion_that_may_as_well_not_be_met(
    tmp_path: Path, high: float, said: str
) -> None:
    assert limited(tmp_path, kind="service", max_s=0.25, ci=(0.1, high)).verdict.rest == said


def test_users_that_could_never_start_offer_no_load(tmp_path: Path) -> None:
    users = to_json(all_kinds())["workloads"][1]["users"]
    offered = {"concurrency": 8, "concurrency_held": 1.0}

    view = overview(tmp_path, offered=offered, users={**users, "never_started": 3})

    assert shown(view)["Load offered"] == "5users"
    assert figure(view, "Load offered").note == "of 8 requested"


@pytest.mark.parametrize(
    ("lag_s", "said"),
    [(0.09, "✓ generator kept up"), (0.11, "! generator was late")],
)
def test_a_generator_that_is_late_is_told_without_a_criterion(
    tmp_path: Path, lag_s: float, said: str
) -> None:
    view = overview(tmp_path, start_lag=times(p99=lag_s))

    lag = figure(view, "p99 start lag")
    assert lag.strong + lag.note == said


def test_what_is_not_ok_begins_where_ok_ends(tmp_path: Path) -> None:
    counts = {"planned": 8, "ok": 6, "failed": 2}

    view = overview(tmp_path, accounting=counts)

    assert (view.accounting.cut, view.accounting.bad) == (75, 2)


@pytest.mark.parametrize(("code", "told"), [(0, False), (4, True), (5, True)])
def test_notes_are_reasons_where_the_load_was_not_the_one_asked_for(
    tmp_path: Path, code: int, told: bool
) -> None:
    view = overview(tmp_path, changes={"exit_code": code, "notes": ["Worker b-1 was slow."]})

    assert ("Worker b-1 was slow." in [one.rest for one in view.reasons]) is told


def searched(folder: Path, *rates: float, held: float | None, broke: float) -> OverviewView:
    """The first screen of a search whose p95 is a thousandth of the rate, at most 50 ms."""
    limits = {"percentile": {"p": 95, "max_s": 0.05, "of": "response"}}
    facts = facts_of(folder, run_report(search_workload()), sla=(limits,))
    search = facts.summary["workloads"][0]["search"]
    like = search["trials"][0]
    search["trials"] = [
        like
        | {"rate": rate, "held": held is not None and rate <= held, "p95_s": rate / 1000}
        | {"cause": "sla", "detail": f"percentile: p95 of response time {rate}ms, allowed 50ms"}
        for rate in rates
    ]
    kind = "found" if held else "below"
    search.update(kind=kind, held=held, broke=broke, advice="" if held else "lower `low`")
    workload = facts.summary["workloads"][0]
    workload["sla"] = [{"criterion": "search", "success": bool(held), "detail": "as stored"}]
    facts.summary["exit_code"] = 0 if held else 1
    gathered = gather(facts)
    return overview_of(gathered, [view_of(one, {}) for one in workloads_of(gathered)])


def test_figures_of_a_search_are_those_of_the_rate_that_held(tmp_path: Path) -> None:
    view = searched(tmp_path, 20.0, 40.0, 60.0, held=40, broke=60)

    assert (shown(view)["Load offered"], shown(view)["p95"]) == ("40/s", "40.0ms")
    assert figure(view, "p95").note == "✓ at most 50\u202fms, at 40\u202f/s"
    (held,) = view.reasons
    assert "40/s sustained with p95 ≤ 50\u202fms; 60/s not: 60.0\u202fms" in held.rest


def test_the_limit_that_no_rate_of_a_search_held_is_a_failed_figure(tmp_path: Path) -> None:
    view = searched(tmp_path, 87.0, held=None, broke=87)

    failed = figure(view, "p95")
    assert (failed.look, failed.strong) == ("bad", "✕ at most 50\u202fms")
    assert figure(view, "Load offered").look == "bad"
    assert figure(view, "p99").note == "response time at 87\u202f/s, no limit set"
    assert "no rate was sustained; at 87/s, the lowest, p95 was 87.0\u202fms" in view.verdict.rest
    assert "()" not in view.verdict.rest
