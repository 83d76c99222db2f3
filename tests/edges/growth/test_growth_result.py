"""The growth of requests, who is worst, and what is printed, written and judged."""

from __future__ import annotations

import io
import json
import math
import random
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from helpers.grown_runs import Laws, grown_run, grown_runs
from osbench.common.plugin.plugins import Plugins
from osbench.common.task import Task
from osbench.coordinator.task.taskfile import checked_task
from osbench.edges.growth.growth_json import growth_json
from osbench.edges.growth.growth_page import growth_page
from osbench.edges.growth.growth_result import GrowthResult
from osbench.edges.growth.growth_sentences import notes, short_answer
from osbench.edges.growth.growth_text import growth_markdown, show_growth
from osbench.edges.growth.growth_verdicts import GrowthVerdict, growth_verdicts
from osbench.edges.growth.laws import Law
from osbench.edges.growth.population_growth import growth_of
from osbench.edges.growth.request_figures import MedianFigure
from osbench.edges.growth.traced_counts import RequestKey

PORTS, STATUS, NAMES = (RequestKey(0, name) for name in ("ports", "status", "names"))
POPULATIONS = (100, 1000, 10_000)

N_PLUS_ONE: Laws = {
    "time": lambda n: 0.01 + 0.00018 * n,
    "spans": lambda n: 2 + n,
    "sql": lambda n: 1 + n,
    "calls": lambda n: 1,
    "bytes": lambda n: 150 + 20 * n,
    "kinds": lambda n: n,
}
STEADY: Laws = {
    "time": lambda n: 0.004,
    "spans": lambda n: 3,
    "sql": lambda n: 2,
    "calls": lambda n: 1,
    "bytes": lambda n: 120,
}
LISTED: Laws = {
    "time": lambda n: 0.004 + 0.00001 * n,
    "spans": lambda n: 2,
    "sql": lambda n: 1,
    "calls": lambda n: 1,
    "bytes": lambda n: 120 + 30 * n,
}
SHOP = {STATUS: STEADY, NAMES: LISTED, PORTS: N_PLUS_ONE}


def result_of(requests: Mapping[RequestKey, Laws], **more: Any) -> GrowthResult:
    """The growth of requests at three populations."""
    return growth_of(
        "Shop", grown_runs(POPULATIONS, requests), **{"predict": 50_000, "item": "port"} | more
    )


def printed(result: GrowthResult, verdicts: list[GrowthVerdict] | None = None) -> str:
    """The output on a terminal of 200 characters."""
    file = io.StringIO()
    show_growth(result, verdicts or [], Console(file=file, width=200))
    return file.getvalue()


def task_with(limits: Any) -> Task:
    """A task with a criterion."""
    workload = {
        "title": "Shop",
        "scenario": {"Dummy.dummy": {}},
        "runner": {"constant": {"times": 1, "concurrency": 1}},
        "sla": {"growth": limits},
    }
    return checked_task({"version": 2, "title": "Shop", "subtasks": [workload]}, "t", Plugins())


def verdict_of(limits: Any, result: GrowthResult) -> tuple[bool | None, str]:
    """The only verdict of a criterion."""
    (found,) = growth_verdicts(task_with(limits), result)
    return found.success, found.detail


def test_the_answer_names_the_request_that_makes_a_statement_for_each_member() -> None:
    assert re.fullmatch(
        r"ports makes 1\.0 SQL statements for each port: 9\.0\d s \([\d.]+ to [\d.]+ s\) at"
        r" 50,000\.",
        short_answer(result_of(SHOP)),
    )


def test_requests_are_ordered_by_growth() -> None:
    pairs: Laws = {**STEADY, "sql": lambda n: 1 + n * n / 1000}
    search: Laws = {**STEADY, "sql": lambda n: 2 + 3 * math.log2(n)}
    found = result_of({**SHOP, RequestKey(0, "pairs"): pairs, RequestKey(0, "search"): search})

    assert [one.name for one in found.requests] == ["pairs", "ports", "names", "search", "status"]
    assert short_answer(found).startswith(
        "pairs makes more SQL quadratically, 100,001 at 10,000; its time shows no growth yet"
    )


def test_a_list_that_returns_more_is_not_n_plus_one() -> None:
    result = result_of({NAMES: LISTED})
    (names,) = result.requests

    assert (names.is_n_plus_one, names.returns_more) == (False, True)
    assert short_answer(result).startswith(
        "names takes longer linearly, and returns more, 30 B for each port: "
    )


def test_nothing_that_grows_is_said_so() -> None:
    assert short_answer(result_of({STATUS: STEADY})) == (
        "No growth of a request was found from 100 to 10,000."
    )


def test_a_request_that_is_called_more_often_is_named() -> None:
    client: Laws = {**STEADY, "calls": lambda n: n}

    (found,) = result_of({STATUS: client}).requests

    assert found.is_n_plus_one
    assert "status is called 1.0 times for each port" in short_answer(result_of({STATUS: client}))


def test_the_table_has_a_row_for_each_request_and_details_name_the_statement() -> None:
    text = printed(result_of(SHOP))

    (row,) = [line for line in text.splitlines() if line.rstrip().endswith("N+1")]
    assert re.search(
        r"^ports +1\.81s +linear +0\.9\d \(.*\) +9\.0\d s \(.*\) +linear, 1\.0 each"
        r" +linear, 1\.0 each +linear, 20 B each +N\+1",
        row,
    )
    assert re.search(r"^status .* constant 2 .* no growth found *$", text, re.M)
    assert "ports: 1.0 for each port: db SELECT id FROM tags WHERE port = ?" in text
    assert "are assumed to differ by 10 %; --rounds 3 measures it" in text


def test_calls_within_an_action_have_rows_if_there_are_several() -> None:
    first, second = (RequestKey(0, "ports", f"GET /{name}") for name in ("a", "b"))
    single = result_of({PORTS: N_PLUS_ONE, first: N_PLUS_ONE})
    several = result_of({PORTS: N_PLUS_ONE, first: N_PLUS_ONE, second: STEADY})

    assert [one.name for one in single.requests] == ["GET /a"]
    assert {one.name for one in several.requests} == {"ports", "GET /a", "GET /b"}
    assert "ports > GET /b" in printed(several)


def test_times_are_left_out_if_the_generator_was_the_limit_and_counts_hold() -> None:
    runs = grown_runs(POPULATIONS, {PORTS: N_PLUS_ONE})
    limited = [grown_run(one, {PORTS: N_PLUS_ONE}, limited=True) for one in POPULATIONS[1:]]
    result = growth_of("Shop", [runs[0], *limited], predict=None, item="port")
    (ports,) = result.requests

    assert result.limited == (1000, 10_000)
    assert not result.times_judged
    assert ports.law("time") is Law.UNKNOWN
    assert ports.law("sql") is Law.LINEAR
    assert short_answer(result) == "ports makes 1.0 SQL statements for each port."
    assert "The load generator was the limit at 1,000: times there are left out" in "\n".join(
        notes(result)
    )


def test_a_generator_that_was_the_limit_everywhere_leaves_no_verdict_on_times() -> None:
    times: Laws = {"time": lambda n: 0.001 * n}
    result = growth_of(
        "Shop", grown_runs(POPULATIONS, {PORTS: times}, limited=True), predict=None, item="port"
    )

    assert "Times have no verdict: the load generator was the limit." in short_answer(result)


def test_rounds_measure_how_much_equal_runs_differ() -> None:
    runs = [
        grown_run(population, {STATUS: {"time": lambda n, factor=factor: 0.01 * factor}})
        for population in POPULATIONS
        for factor in (0.7, 1.0, 1.3)
    ]
    result = growth_of("Shop", runs, predict=None, item="port")

    assert result.spread_measured
    assert result.spread == pytest.approx(0.3, rel=0.01)
    assert "Medians of equal runs differ by 30 %" in "\n".join(notes(result))
    assert result.requests[0].law("time") is Law.CONSTANT


def test_notes_say_what_a_reader_must_know() -> None:
    runs = [
        grown_run(10, {PORTS: {"time": lambda n: 0.1}}, bad=5, ok=25),
        grown_run(20, {PORTS: N_PLUS_ONE}, incomplete=3),
        grown_run(30, {PORTS: N_PLUS_ONE}, counted=500, traced=9000, exit_code=3),
    ]
    both = "\n".join(notes(growth_of("Shop", runs, predict=None, item="port")))
    without = "\n".join(notes(growth_of("Shop", runs[:1] * 2, predict=None, item="port")))

    assert "5 of 30 iterations failed at 10 (run run-10)" in both
    assert "Run run-30 at 30 ended with exit code 3: iterations were lost" in both
    assert "No spans of the service at 10 (run run-10)" in both
    assert "3 traces of 33 at 20 lack spans, and are not counted" in both
    assert "Counts at 30 are of 500 of 9,000 traced iterations" in both
    assert "No spans of the service: only times are compared" in without


def test_medians_have_intervals_by_their_order() -> None:
    many = MedianFigure.of([float(number) for number in range(1, 100)])
    few = MedianFigure.of([3.0, 1.0, 2.0])

    assert many is not None
    assert (many.value, many.low, many.high) == (50, 39, 61)
    assert few is not None
    assert (few.value, few.low, few.high) == (2, 1, 3)
    assert MedianFigure.of([]) is None


def test_a_cold_cache_in_an_iteration_leaves_counts_exact() -> None:
    # GET /v2.0/ports of a Neutron with 10,000 ports
    neutron = MedianFigure.of_counts([199.0, *[104.0] * 7])
    fewer = MedianFigure.of_counts([199.0, *[104.0] * 6])
    mixed = MedianFigure.of_counts([104.0, 104.0, 199.0, 104.0, 199.0, 199.0, 104.0, 199.0])

    assert neutron == MedianFigure(value=104, low=104, high=104)
    assert fewer == MedianFigure(value=104, low=104, high=199)
    assert mixed is not None
    assert (mixed.low, mixed.high) == (104, 199)
    assert MedianFigure.of_counts([]) is None
    assert MedianFigure.of_counts([7.0]) == MedianFigure(value=7, low=7, high=7)


@pytest.mark.parametrize("number", [8, 13, 20, 50])
@pytest.mark.parametrize("share", [0.05, 0.2, 0.35])
def test_intervals_of_counts_hold_the_count_of_most_iterations(number: int, share: float) -> None:
    chance = random.Random(f"{number} {share}")
    inside = 0
    for _ in range(400):
        counts = [14.0 + 95 * (chance.random() < share) for _ in range(number)]
        found = MedianFigure.of_counts(counts)
        assert found is not None
        inside += found.low <= 14 <= found.high

    assert inside >= 0.95 * 400


def result_with_cold_caches(iterations: int) -> GrowthResult:
    """The growth of a request whose first iteration at each population makes 95 more statements."""
    runs = grown_runs(POPULATIONS, SHOP)
    for at, run in enumerate(runs):
        (figures,) = [one for key, one in run.requests.items() if key == PORTS]
        assert figures.sql is not None
        counts = [4 + run.population / 100] * (iterations - 1)
        sql = MedianFigure.of_counts([*counts, counts[0] + 95])
        cold = replace(figures, sql=sql, spans=sql, time=None, bytes=None)
        runs[at] = replace(run, requests={PORTS: cold})
    return growth_of("Shop", runs, predict=None, item="port")


def test_counts_that_differ_between_iterations_are_unclear_and_not_constant() -> None:
    clear, unclear = result_with_cold_caches(8), result_with_cold_caches(5)
    limits = {"sql": {"exponent": {"max": 0.1}}}

    assert clear.requests[0].law("sql") is Law.LINEAR
    assert verdict_of(limits, clear)[0] is False
    assert unclear.requests[0].law("sql") is Law.UNCLEAR
    success, detail = verdict_of(limits, unclear)
    assert success is None
    assert "SQL statements are 5 to 104 by population" in detail
    assert "make more iterations, or leave the first ones out by `warmup`" in detail
    assert verdict_of({"sql": {"law": "constant"}}, unclear)[0] is None
    assert short_answer(unclear) == (
        "No growth of a request was found from 100 to 10,000; ports is unclear."
    )
    text = printed(unclear)
    assert re.search(r"^ports .* unclear, 104 .* unclear *$", text, re.M), text
    assert detail.removeprefix("sql: ") in " ".join(text.split())


def test_an_exponent_above_its_limit_misses_the_criterion() -> None:
    result = result_of(SHOP)

    assert verdict_of({"spans": {"exponent": {"max": 0.1}}}, result) == (
        False,
        "spans: ports has exponent 1.00, allowed 0.1",
    )
    assert verdict_of({"action": "status", "spans": {"exponent": {"max": 0.1}}}, result) == (
        True,
        "spans: exponent at most 0.00, allowed 0.1",
    )


def test_a_law_that_is_faster_than_allowed_misses_the_criterion() -> None:
    result = result_of(SHOP)

    assert verdict_of({"sql": {"law": "logarithmic"}}, result) == (
        False,
        "sql: ports is linear, allowed logarithmic",
    )
    assert verdict_of({"sql": {"law": "linear"}}, result)[0] is True


def test_each_measure_of_each_element_is_judged() -> None:
    limits = [{"time": {"law": "linear"}, "sql": {"law": "constant"}}, {"bytes": {"law": "linear"}}]

    found = growth_verdicts(task_with(limits), result_of(SHOP))

    assert [(one.success, one.detail.split(":")[0]) for one in found] == [
        (True, "time"),
        (False, "sql"),
        (True, "bytes"),
    ]


def test_an_exponent_of_times_must_be_above_its_limit_beyond_chance() -> None:
    slow: Laws = {"time": lambda n: 0.01 + 0.0000022 * n}
    result = result_of({PORTS: slow})
    exponent = result.requests[0].measures["time"].fit.exponent

    assert exponent is not None
    assert 0.2 < exponent.low < 0.4 < exponent.value
    assert verdict_of({"time": {"exponent": {"max": 0.4}}}, result)[0] is True
    assert verdict_of({"time": {"exponent": {"max": 0.2}}}, result)[0] is False


def test_a_criterion_without_spans_fails() -> None:
    success, detail = verdict_of({"sql": {"law": "linear"}}, result_of({PORTS: {"time": float}}))

    assert (success, detail) == (
        False,
        "sql: not measured at two populations, so that it cannot be judged",
    )


def test_a_criterion_on_times_has_no_verdict_if_the_generator_was_the_limit() -> None:
    runs = grown_runs(POPULATIONS, SHOP, limited=True)
    result = growth_of("Shop", runs, predict=None, item="port")

    assert verdict_of({"time": {"exponent": {"max": 0.1}}}, result)[0] is None
    assert verdict_of({"spans": {"exponent": {"max": 0.1}}}, result)[0] is False


def test_two_populations_judge_no_law_but_constant() -> None:
    result = growth_of("Shop", grown_runs((10, 100), SHOP), predict=None, item="port")

    assert verdict_of({"sql": {"law": "constant"}}, result)[0] is False
    assert verdict_of({"sql": {"law": "quadratic"}}, result)[0] is None


def test_json_has_all_numbers() -> None:
    result = result_of(SHOP)
    verdicts = growth_verdicts(task_with({"sql": {"law": "constant"}}), result)

    found = json.loads(json.dumps(growth_json(result, verdicts, 1), allow_nan=False))

    assert (found["exit_code"], found["populations"], found["predict"]) == (
        *(1, [100, 1000, 10_000]),
        50_000,
    )
    assert found["sentence"] == short_answer(result)
    worst = found["requests"][0]
    assert (worst["action"], worst["n_plus_one"], worst["returns_more"]) == ("ports", True, True)
    sql = worst["measures"]["sql"]
    assert (sql["law"], sql["slope"]) == ("linear", pytest.approx(1.0))
    assert sql["points"][2] == {
        "population": 10_000,
        "value": 10_001,
        "low": 10_001,
        "high": 10_001,
    }
    assert found["criteria"][0]["success"] is False
    assert [run["run_id"] for run in found["runs"]] == ["run-100", "run-1000", "run-10000"]


def test_markdown_shows_no_formatting_of_names() -> None:
    hostile = RequestKey(0, "<b>|`x`@all")

    text = growth_markdown(result_of({hostile: N_PLUS_ONE}), [])

    assert "<b>" not in text
    assert "@all" not in text
    assert "\\|\\`x\\`" in text
    assert len({line.count(" | ") for line in text.splitlines() if line.startswith("| ")}) == 1


def test_the_page_draws_each_request_and_runs_no_script() -> None:
    hostile = RequestKey(0, "</style><script>alert(1)</script>")
    page = growth_page(result_of({**SHOP, hostile: N_PLUS_ONE}), [])

    assert "<script" not in page
    assert "default-src 'none'" in page
    # time, statements and spans of four requests
    assert page.count("<svg") == 12
    assert "nan" not in re.sub(r"<style>.*?</style>", "", page, flags=re.S)


def test_the_page_draws_values_of_zero_and_unknown_measures() -> None:
    zero: Laws = {"time": lambda n: 0.0, "spans": lambda n: 0, "sql": lambda n: n - 100}

    page = growth_page(result_of({PORTS: zero}), [])

    assert page.count("<svg") == 3


def test_rows_of_several_workloads_are_named_by_them() -> None:
    requests = {RequestKey(0, "get"): STEADY, RequestKey(1, "get"): N_PLUS_ONE}
    runs = grown_runs(POPULATIONS, requests, workloads=("Status", "List"))
    text = printed(growth_of("Shop", runs, predict=None, item="port"))

    assert re.findall(r"^(\w+): get +[\d.]+m?s", text, re.M) == ["List", "Status"]


def test_populations_next_to_each_other_give_finite_numbers() -> None:
    jump: Laws = {"spans": lambda n: 1 if n == 10 else 10**9 * n, "sql": lambda n: n == 12}
    runs = grown_runs((10, 11, 12), {PORTS: jump})
    result = growth_of("Shop", runs, predict=10**9, item="port")

    assert json.dumps(growth_json(result, [], 0), allow_nan=False)
    assert growth_page(result, [])


def test_the_name_of_a_member_cannot_steer_a_terminal() -> None:
    result = growth_of("Shop", grown_runs(POPULATIONS, SHOP), predict=None, item="\x1b[2Jport")

    assert "\x1b" not in printed(result)
