"""The page of runs that nothing has run: finished, going on, crashed, hostile, empty."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from helpers.report_facts import facts_of
from helpers.sample_loads import all_kinds, drill_workload
from helpers.sample_reports import constant_workload, full_report, run_report
from helpers.shown_page import page_of, shown_page
from osbench.coordinator.report.html import live_parts
from osbench.coordinator.report.html.page_assets import policy
from osbench.coordinator.report.html.workload_facts import workloads_of
from osbench.coordinator.report.model.model import CRASHED, FINISHED, RUNNING
from osbench.coordinator.report.page_facts import gather
from osbench.coordinator.report.staircase.staircase import StaircaseStep, staircase_of
from osbench.coordinator.results.accounting.marks import Mark
from osbench.coordinator.results.accounting.totals import Offered

Golden = Callable[[str, str], None]


def data_of(html: str) -> dict[str, Any]:
    """The data that the page's script reads."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)
    assert found
    data: dict[str, Any] = json.loads(found.group(1))
    return data


def test_the_policy_admits_the_page_s_own_blocks_and_no_other(tmp_path: Path) -> None:
    html = page_of(facts_of(tmp_path))
    blocks = re.findall(r"<(script|style)>(.*?)</\1>", html, re.S)

    assert len(blocks) == 3
    for _, block in blocks:
        digest = base64.b64encode(hashlib.sha256(block.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy(live=False)
    assert "default-src 'none'" in html
    assert "connect-src" not in policy(live=False)
    assert "connect-src 'self'" in policy(live=True)


@pytest.mark.parametrize("live", [False, True], ids=["report", "live"])
def test_a_page_looks_like_its_golden_file(golden: Golden, tmp_path: Path, live: bool) -> None:
    state = RUNNING if live else FINISHED
    page = page_of(facts_of(tmp_path, all_kinds(), state=state), live=live)

    golden("page-live.html" if live else "page.html", shown_page(page))


@pytest.mark.parametrize("live", [False, True], ids=["report", "live"])
def test_figures_without_another_place_are_in_a_table(tmp_path: Path, live: bool) -> None:
    state = RUNNING if live else FINISHED

    html = page_of(facts_of(tmp_path, all_kinds(), state=state), live=live)

    part = html.partition('id="w2"')[2].partition(">Further figures</a></h3>")[2]
    rows = re.findall(r"<tr>(.*?)</tr>", part.partition("</table>")[0])
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]
    texts = {label: text for label, text in cells if label}
    assert {"load", "warm-up", "planned", "users", "checks", "workers"} <= texts.keys()
    assert texts["checks"] == "shipped: failed 171 of 1,710 times"
    assert "1 of 8 could never start" in texts["users"]
    assert "service time 55.0\u202fms (plan 20.0\u202fms)" in texts["planned"]
    assert ["", "1 x on_start: Refused: no [b]account[/b] left"] in cells


def test_where_the_time_of_requests_goes_is_shown_where_there_were_any(tmp_path: Path) -> None:
    html = page_of(facts_of(tmp_path))
    heading = "Where the time of requests goes</a></h3>"

    # the first workload of two made requests
    assert html.count(heading) == 1
    table = re.sub(r"<[^>]+>", " ", html.partition(heading)[2].partition("</table>")[0])
    assert "name lookup" in table
    assert "20 / 928" in table
    assert "50 requests more were made by libcurl (option proxies), which" in html


def test_requests_of_other_clients_alone_have_no_table(tmp_path: Path) -> None:
    facts = facts_of(tmp_path)
    summary = json.loads(json.dumps(facts.summary))
    requests = summary["workloads"][0]["requests"]
    for one in (requests["total"], *requests["actions"].values()):
        one["requests"] = 0

    html = page_of(replace(facts, summary=summary))

    part = html.partition("Where the time of requests goes</a></h3>")[2].partition("<h3")[0]
    assert "<table" not in part.partition("</p>")[0]
    assert "50 requests were made by libcurl (option proxies), which measures no phases." in part


def test_requests_of_very_many_actions_fold(tmp_path: Path) -> None:
    facts = facts_of(tmp_path)
    summary = json.loads(json.dumps(facts.summary))
    requests = summary["workloads"][0]["requests"]
    requests["actions"] = {f"<b>{number}": requests["total"] for number in range(23)}

    html = page_of(replace(facts, summary=summary))

    part = html.partition("Where the time of requests goes</a></h3>")[2].partition("<h3")[0]
    assert part.count("&lt;b&gt;") == 23
    assert "3 others</summary>" in part


def test_how_late_event_loops_were_stands_below_the_workers_that_had_some(tmp_path: Path) -> None:
    html = page_of(facts_of(tmp_path)).replace("\u202f", " ")
    said = re.sub(r"<[^>]+>", "", html)

    assert said.count("Virtual users share an event loop") == 1
    assert (
        "It was late by 1.5 ms at the median, 3.0 ms at p99 and 3.0 ms at most. The scenario "
        "blocked it for 150 ms: 90 ms at shop.py:12 (Shop.pay), 60 ms at shop.py:30 (Shop.pack); "
        "all users of the worker waited meanwhile."
    ) in said


def test_two_calls_give_the_same_bytes(tmp_path: Path) -> None:
    facts = facts_of(tmp_path)

    assert page_of(facts) == page_of(facts)


def test_the_sum_and_what_failed_are_told(tmp_path: Path) -> None:
    html = page_of(facts_of(tmp_path))

    assert "Not met." in html
    assert "1,011 iterations were planned</b>" in html
    assert "failure rate 0.601" in html
    assert "1 iteration was lost with a worker and 2 iterations did not start: exit code 3." in html
    assert "GatewayTimeout" in html


def test_data_cannot_end_the_element_it_stands_in(tmp_path: Path) -> None:
    hostile = "</script><img src=x onerror=alert(1)>\u2028"
    facts = facts_of(tmp_path, changes={"task": hostile})
    facts.summary["workloads"][0]["subtask"] = hostile

    html = page_of(facts)

    assert data_of(html)["names"][0] == hostile.replace("\u2028", "\\u2028")
    # the library of the charts has one in its tooltips
    assert "<img" not in re.sub(r"<script>.*?</script>", "", html, flags=re.S)
    assert "\u2028" not in data_of_text(html)


def data_of_text(html: str) -> str:
    begin = html.index('id="data">')
    return html[begin : html.index("</script>", begin)]


def test_secrets_of_tasks_are_masked(tmp_path: Path) -> None:
    facts = facts_of(tmp_path)
    facts.manifest["workloads"][0]["args"] = {
        "password": "hunter2",
        "url": "http://me:hunter2@shop/x?token=hunter2",
    }

    html = page_of(facts)

    assert "hunter2" not in html
    assert "***" in html
    assert "/somewhere" not in html


def test_outputs_of_every_kind_have_a_table_or_a_text(tmp_path: Path) -> None:
    html = page_of(facts_of(tmp_path))
    figures = {one["figure"] for one in data_of(html)["outputs"]}

    assert figures == {"stacked", "pie"}
    for title in ("The StatsTable", "The StackedArea", "The Pie", "Log"):
        assert f"<figcaption>{title} " in html
    assert "95%ile" in html


def test_all_three_times_with_their_intervals_are_there(tmp_path: Path) -> None:
    html = page_of(facts_of(tmp_path))

    for name in ("Response time", "Service time", "Start lag"):
        assert name in html
    assert "from scheduled to end" in html
    assert "Below each percentile its 95\u202f% interval." in html


def test_why_a_percentile_has_no_upper_bound_stands_once(tmp_path: Path) -> None:
    facts = facts_of(tmp_path)
    times = facts.summary["workloads"][0]["latency"]
    for kind in ("response", "service"):
        times[kind]["ok"]["ci"]["p99"] = [0.1, None]
        times[kind]["ok"]["ci_note"] = "no upper bound of p99: too few moments"
        times[kind]["ok"].update(blocks=40, block_s=3.0)

    html = page_of(facts)

    assert html.count("No upper bound of p99: too few moments.") == 1
    assert html.count('<div class="ci">at least</div>') == 2
    assert (
        "Trouble that comes less often than every 40\u202fs may be missing from this load." in html
    )


@pytest.mark.parametrize(
    ("code", "state", "said"),
    [
        (0, "finished", "✓ Met."),
        (4, "finished", "! Met, but the load was not the one requested."),
        (2, "finished", "✕ Not judged."),
        (130, "finished", "✕ Not finished."),
        (3, "finished", "✕ Not finished."),
        (None, CRASHED, "✕ Not finished."),
        (None, RUNNING, "▸ Running."),
    ],
)
def test_the_verdict_is_that_of_the_exit_code(
    tmp_path: Path, code: int | None, state: str, said: str
) -> None:
    facts = facts_of(
        tmp_path,
        run_report(constant_workload()),
        sla=({"failure_rate": {"max": 0}},),
        state=state,
        reason="its coordinator was killed" if state == CRASHED else "",
        changes={"exit_code": code},
    )

    html = page_of(facts)

    assert f'<strong class="word">{said}</strong>' in html
    if state == CRASHED:
        assert "its coordinator was killed" in html


def test_a_run_without_workloads_says_why(tmp_path: Path) -> None:
    facts = facts_of(
        tmp_path,
        state=CRASHED,
        reason="the deployment is gone",
        changes={"workloads": [], "exit_code": 2, "notes": ["the deployment is gone"]},
    )

    html = page_of(facts)

    assert "Not judged." in html
    assert html.count("the deployment is gone") >= 1
    assert "NaN" not in data_of_text(html)


def test_the_live_page_has_places_for_what_updates_it(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, state=RUNNING)
    html = page_of(facts, live=True)
    overview, charts = live_parts(gather(facts, live=True))

    assert "globalThis.osbench" in html
    assert "globalThis.osbench" not in page_of(facts)
    assert len(charts) == len(full_report().workloads)
    for chart in charts:
        assert chart["html"]
        for name in chart["html"]:
            assert f'id="{name}"' in html
        json.dumps(chart, allow_nan=False)
    assert "<h1>" in overview
    assert 'id="traces"' not in html


def test_the_data_is_json_that_browsers_read(tmp_path: Path) -> None:
    data = data_of(page_of(facts_of(tmp_path)))

    json.dumps(data, allow_nan=False)
    first = data["workloads"][0]
    assert first["open"]
    assert sum(cell[2] for cell in first["heat"]["cells"]) == 992
    assert len(first["failed"]) == 6
    assert first["bands"]["rows"]
    assert first["curve"][-1][1] == pytest.approx(234.669722)


def test_many_workloads_are_chosen_from_a_list(tmp_path: Path) -> None:
    few = page_of(facts_of(tmp_path / "few", run_report(*[constant_workload()] * 3)))
    many = page_of(facts_of(tmp_path / "many", run_report(*[constant_workload()] * 14)))

    assert 'id="jump"' not in few
    assert "met all criteria with no failure" not in few
    assert 'id="jump"' in many
    assert "14 workloads, and all of them met all criteria with no failure</summary>" in many
    assert "Dummy.dummy [13]" in many


def test_an_action_that_always_failed_has_the_times_of_its_failures(tmp_path: Path) -> None:
    facts = facts_of(tmp_path)
    summary = json.loads(json.dumps(facts.summary))
    actions = summary["workloads"][0]["actions"]
    like = actions["keystone_v3.create_token"]
    none = dict.fromkeys(like["ok"]) | {"count": 0, "ci": {}, "blocks": 0, "block_s": 0.0}
    failed = like["ok"] | {"count": 7, "p50": 0.123}
    actions["shop.buy"] = {"ok": none, "failed": failed, "timed_out": none}

    html = page_of(replace(facts, summary=summary))

    rows = html.partition(">Atomic actions</a></h3>")[2].partition("</table>")[0].split("<tr>")
    (row,) = [" ".join(re.sub(r"<[^>]+>", " ", one).split()) for one in rows if "shop.buy" in one]
    assert row.startswith("shop.buy always failed: times of calls that failed 7 7 ")
    assert "123 ms" in row
    assert html.count("always failed: times") == 1


def test_names_of_very_many_actions_are_not_all_in_the_page(tmp_path: Path) -> None:
    facts = facts_of(tmp_path)
    summary = json.loads(json.dumps(facts.summary))
    like = next(iter(summary["workloads"][0]["actions"].values()))
    some = {f"get-{number:03}": like for number in range(23)}
    very_many = {f"get-{number:04}": like for number in range(2000)}

    pages = []
    for actions in (some, very_many):
        summary["workloads"][0]["actions"] = actions
        html = page_of(replace(facts, summary=summary))
        pages.append(html.partition(">Atomic actions</a></h3>")[2].partition("<h3")[0])

    assert [page.count(">get-") for page in pages] == [23, 200]
    assert "Give each kind of request one name" not in pages[0]
    assert "3 others</summary>" in pages[0]
    assert "has the other 1,800. More than 200 names of actions:" in pages[1]
    assert "`name` of a step of HttpFlow" in pages[1]


def test_sections_without_content_are_left_out(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, run_report(constant_workload()))
    facts.summary["workloads"][0].update(sla=[], actions={}, errors=[], workers=[], hooks=[])

    html = page_of(facts)

    heads = re.findall(r"<h3[^>]*><a[^>]*>(.*?)</a></h3>", html)
    assert "Times" in heads
    left_out = {"Criteria", "Atomic actions", "Errors", "Hooks", "Notes"}
    assert not left_out & set(heads)


def test_one_iteration_is_a_figure_and_no_chart(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, run_report(constant_workload()))
    facts.summary["workloads"][0]["accounting"].update(planned=1, ok=1)

    html = page_of(facts)

    assert "Charts and percentiles need more." in html
    assert 'id="w1-load"' not in html


def test_an_open_load_with_one_arrival_is_an_open_load(tmp_path: Path) -> None:
    once = replace(constant_workload(), offered=Offered(duration_s=0.013))
    facts = facts_of(tmp_path, run_report(once))

    html = page_of(facts)

    assert "Dummy.dummy, open load" in html
    assert "too few arrivals for a rate" in html
    assert [one.report.kind for one in workloads_of(gather(facts))] == ["response"]


def test_a_phase_without_its_resources_is_not_said_to_have_left_none(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, run_report(drill_workload()))
    drill = facts.summary["workloads"][0]["drill"]
    for phase in drill["phases"]:
        phase.update(left={}, leaving_share=None, leaving_ci=None)
    drill["left"]["unplaced"] = "blocks is damaged"

    html = shown_page(page_of(facts))

    assert "Phases lack resources left in error: blocks is damaged." in html
    table = html[html.index(">left in error<") :].partition("</table>")[0]
    assert table.count("\N{EN DASH}</td>") == len(drill["phases"])


LOADS = [10, 20, 30, 40, 50, 60]


def test_a_load_of_several_levels_has_a_staircase_with_its_table(tmp_path: Path) -> None:
    facts = facts_of(tmp_path)
    summary = json.loads(json.dumps(facts.summary))
    steps = [
        StaircaseStep(
            load=load,
            throughput=min(load, 35.0),
            p50_s=0.1,
            p95_s=0.1 if at < 4 else 0.1 * at,
            p99_s=None if at == 1 else 0.9,
            concurrency=at,
            count=100,
            failed=at // 6,
        )
        for at, load in enumerate(LOADS, 1)
    ]
    stairs = staircase_of(steps, is_open=True)
    assert stairs is not None
    summary["workloads"][0]["staircase"] = asdict(stairs)

    html = page_of(replace(facts, summary=summary))
    live = page_of(replace(facts, summary=summary, state=RUNNING), live=True)

    assert html.count(">Staircase</a></h3>") == 1
    part = html.partition(">Staircase</a></h3>")[2].partition('<div id="w1-tables">')[0]
    rows = part.partition("<tbody>")[2].partition("</tbody>")[0].split("</tr>")[:-1]
    assert re.findall(r'<th scope="row"[^>]*>(\d+)<', "".join(rows)) == [str(n) for n in LOADS]
    assert ["knee" in row for row in rows] == [False, False, True, False, False, False]
    assert stairs.knee_sentence in part
    assert stairs.fit_sentence in part
    assert 'id="w1-steps"' in part
    assert 'id="w1-stept"' in part
    drawn = data_of(html)["workloads"][0]["staircase"]
    assert [step["load"] for step in drawn["steps"]] == LOADS
    # what the live page replaces would take the charts away
    assert ">Staircase</a></h3>" not in live


def test_a_search_has_its_trials_and_what_grew_in_tables(tmp_path: Path) -> None:
    facts = facts_of(tmp_path)
    summary = json.loads(json.dumps(facts.summary))
    trial = {"from_s": 0.0, "to_s": 9.0, "ok": 90, "failed": 0, "timed_out": 0, "dropped": 3,
             "ok_per_s": 9.5, "p50_s": 0.1, "p95_s": 0.2, "p99_s": None, "concurrency": 2.0,
             "actions": {}}  # fmt: skip
    limit = "percentile: p95 of response time 900ms, allowed 500ms"
    refused = f"{limit} (KeyError: http://buyer:hunter2@shop <b>)"
    trials = [
        trial | {"rate": 20.0, "held": True, "cause": "", "detail": ""},
        trial | {"rate": 20.5, "held": False, "cause": "disturbed", "detail": "4 were lost"},
        trial | {"rate": 41.0, "held": False, "cause": "sla", "detail": refused},
    ]
    summary["workloads"][0]["sla"] = [
        {"criterion": "search", "success": True, "detail": "capacity 30.5/s; at 41/s p95 0.9 s"}
    ]
    summary["workloads"][0]["search"] = {
        "kind": "found", "rate": 30.5, "low": 29.0, "high": 32.0, "precise": True, "held": 20.0,
        "broke": 41.0, "limit": None, "trials": trials, "traces": "More time in wsgi.",
        "grown": [{"action": "shop.buy", "before_s": 0.1, "after_s": 0.9}],
        "grown_spans": [{"span": "wsgi > db", "before_s": 0.05, "after_s": 0.8}],
    }  # fmt: skip

    html = page_of(replace(facts, summary=summary))
    live = page_of(replace(facts, summary=summary, state=RUNNING), live=True)

    assert html.count(">Search for the capacity</a></h3>") == 1
    part = html.partition(">Search for the capacity</a></h3>")[2].partition('<div id="w1-tables">')[
        0
    ]
    told = " ".join(re.sub(r"<[^>]+>", " ", part).replace("\u202f", " ").split())
    assert "20/s sustained with p95 ≤ 500 ms; 41/s not: 900 ms." in told
    assert "Capacity 30.5/s, with 95 % between 29.0 and 32.0/s." in told
    assert re.findall(r"([\d.]+) (sustained|not sustained|says nothing) ", told) == [
        ("20", "sustained"), ("20.5", "says nothing"), ("41", "not sustained")
    ]  # fmt: skip
    assert "shop.buy 100 ms 900 ms" in told
    assert "More time in wsgi." in told
    assert "wsgi &gt; db 50.0 ms 800 ms" in told
    assert "hunter2" not in part
    assert "&lt;b&gt;" in part
    assert ">Search for the capacity</a></h3>" not in live


def test_a_search_for_users_has_no_rate_as_its_load(tmp_path: Path) -> None:
    facts = facts_of(tmp_path)
    summary = json.loads(json.dumps(facts.summary))
    trial = {"from_s": 0.0, "to_s": 9.0, "ok": 90, "failed": 0, "timed_out": 0, "dropped": 0,
             "ok_per_s": 9.5, "p50_s": 0.1, "p95_s": 0.2, "p99_s": 0.3, "concurrency": 2.0,
             "actions": {}, "cause": "", "detail": ""}  # fmt: skip
    trials = [
        trial | {"rate": 1200.0, "held": True},
        trial | {"rate": 1400.0, "held": False, "cause": "sla", "detail": "good: 3 % were good"},
    ]
    summary["workloads"][0]["search"] = {
        "kind": "found", "rate": 1210.0, "low": 1200.0, "high": 1300.0, "precise": True,
        "held": 1200.0, "broke": 1400.0, "unit": "users", "limit": None, "trials": trials,
        "grown": [{"action": "shop.buy", "before_s": 0.1, "after_s": 0.9}],
    }  # fmt: skip

    html = page_of(replace(facts, summary=summary))

    told = " ".join(re.sub(r"<[^>]+>", " ", html).replace("\u202f", " ").split())
    assert "1,200 users sustained; 1,400 users not: good: 3 % were good." in told
    assert "Capacity 1,210 users, with 95 % between 1,200 and 1,300 users; 9.50 ok/s" in told
    assert "at 1,200 users at 1,400 users" in told
    assert re.search(r"1,200 +users ✓ the highest sustained number of users", told)
    part = html.partition(">Search for the capacity</a></h3>")[2].partition('<div id="w1-tables">')
    assert "target/s" not in part[0]


def test_a_live_page_has_no_sums_that_stay_as_they_were(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, all_kinds(), state=RUNNING)

    html, file = page_of(facts, live=True), page_of(facts)

    assert 'class="account"' not in html
    assert "iterations were sent to workers</b> so far; the sum fills as they end." in file
    assert "Sums by workload" not in html
    assert "Sums by workload" in page_of(facts_of(tmp_path, all_kinds()))


@pytest.mark.parametrize(
    ("kind", "label", "told"),
    [
        ("control", "paused", "the load was changed (paused)"),
        ("stop", "aborted", "the load was stopped (aborted)"),
        ("loss", "b-1 lost", "b-1 lost"),
        ("hook", "sync", "“sync” ran"),
    ],
)
def test_the_worst_stretch_has_what_happened_then(
    tmp_path: Path, kind: str, label: str, told: str
) -> None:
    report = all_kinds()
    first, *others = report.workloads
    mark = Mark(kind=kind, from_s=6.2, to_s=6.2, label=label, text=label)
    changed = replace(report, workloads=(replace(first, marks=(mark,)), *others))

    html = page_of(facts_of(tmp_path, changed))

    assert f"at its worst, 6\u202fs to 6.5\u202fs into the load, when {told}.</p>" in html
