"""The staircase of the stages of a load, in the summary and as text."""

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from helpers import results_schema
from helpers.sample_reports import constant_workload, rps_workload, run_report
from helpers.summaries import to_json
from osbench.common.plugin.runner import Capacity
from osbench.coordinator.report.model import json_codec
from osbench.coordinator.report.model.model import Report
from osbench.coordinator.report.staircase.staircase import Staircase
from osbench.coordinator.report.staircase.staircase_text import STEPS, staircase_lines
from osbench.coordinator.report.text import render
from osbench.coordinator.results.accounting.search.trials import SearchOutcome, TrialFigures
from osbench.coordinator.results.accounting.stage_statistics import StageFigures
from osbench.coordinator.results.accounting.totals import Warmup
from osbench.edges.staircase.scalability import scalability


def stages(levels, terms=(100.0, 0.1, 0.004)):
    """Stages of 10 s at each level, whose throughput follows the law almost."""
    found = []
    for at, level in enumerate(levels):
        per_s = scalability(level, *terms) * (1.01 if at % 2 else 0.99)
        figures = StageFigures(
            from_s=10 * at,
            to_s=10 * at + 10,
            begin=level,
            end=level,
            ok=int(10 * per_s),
            failed=1,
            timed_out=2,
            dropped=0,
            ok_per_s=per_s + 5,
            ended_per_s=per_s,
            in_flight=level * 0.9,
            p50_s=level / per_s / 2,
            p95_s=level / per_s,
            p99_s=2 * level / per_s,
        )
        found.append(figures)
    return tuple(found)


LEVELS = (1, 2, 4, 8, 16, 32)


def summary_of(outcome):
    summary = json.loads(json.dumps(to_json(run_report(outcome)), allow_nan=False))
    results_schema.validate(summary)
    return summary


def staircase(outcome):
    return summary_of(outcome)["workloads"][0]["staircase"]


def text_of(outcome):
    file = io.StringIO()
    render(Report.from_json(summary_of(outcome)), Console(file=file, width=120), details=True)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_closed_loads_are_told_by_their_users_and_what_ended_in_each_stage():
    found = staircase(replace(constant_workload(), stages=stages(LEVELS)))

    assert found["is_open"] is False
    assert [step["load"] for step in found["steps"]] == [*LEVELS]
    assert [step["concurrency"] for step in found["steps"]] == [*LEVELS]
    assert found["steps"][0]["throughput"] == pytest.approx(99)
    assert found["steps"][0]["failed"] == 3
    assert found["knee"]["load"] == 8
    fit = found["fit"]
    assert fit["contention"]["low"] < 0.1 < fit["contention"]["high"]
    assert fit["peak_concurrency"]["value"] == pytest.approx(15, rel=0.1)


def test_open_loads_are_fitted_by_what_was_in_flight():
    found = staircase(replace(rps_workload(), stages=stages(LEVELS)))

    assert found["is_open"] is True
    assert [step["concurrency"] for step in found["steps"]] == pytest.approx(
        [0.9 * level for level in LEVELS]
    )


def test_ramps_pauses_and_stages_of_the_warm_up_are_no_steps():
    first, ramp, pause, *others = stages((4, 6, 8, 10, 12))
    made = (first, replace(ramp, begin=4), replace(pause, begin=0, end=0), *others)
    outcome = replace(constant_workload(), stages=made, warmup=Warmup(seconds=0.5, left_out=1))

    assert [step["load"] for step in staircase(outcome)["steps"]] == [10, 12]
    assert staircase(replace(outcome, stages=made[:4])) is None


def test_a_load_of_one_level_has_no_staircase():
    assert staircase(constant_workload()) is None
    assert not any("staircase" in line for line in text_of(constant_workload()))


def test_the_text_has_a_row_a_step_and_marks_the_knee():
    lines = text_of(replace(constant_workload(), stages=stages(LEVELS)))

    (at,) = (at for at, line in enumerate(lines) if line.strip().startswith("staircase"))
    table = [line.split() for line in lines[at : at + 7]]
    assert table[0] == ["staircase", "users", "ok/s", "in", "flight", "p50", "p95", "p99", "failed"]
    assert [row[0] for row in table[1:]] == [str(level) for level in LEVELS]
    assert [row[-1] for row in table[1:]] == ["3", "3", "3", "knee", "3", "3"]
    rest = " ".join(" ".join(lines[at + 7 :]).split())
    assert rest.startswith("The knee is near 8 users, between 4 and 16 users: ")
    assert "than throughput. Universal Scalability Law: lambda" in rest


def test_steps_without_an_iteration_that_ended_well_have_dashes():
    nothing = {"ok": 0, "ended_per_s": 0.0, "p50_s": None, "p95_s": None, "p99_s": None}
    made = tuple(replace(stage, **nothing) for stage in stages((2, 4)))

    lines = text_of(replace(constant_workload(), stages=made))

    assert any(line.split() == ["2", "0", "2.00", "-", "-", "-", "3"] for line in lines)


def test_a_long_staircase_is_told_by_steps_all_over_it():
    found = staircase(replace(constant_workload(), stages=stages(range(1, 101))))

    lines = list(staircase_lines(json_codec.from_json(Staircase, found)))

    assert len(lines) == 1 + STEPS + 3
    assert lines[1].split()[0] == "1"
    assert lines[STEPS].split()[0] == "96"
    assert lines[STEPS + 1] == "and 80 more steps"


def test_summaries_of_older_releases_have_no_staircase():
    summary = summary_of(constant_workload())
    del summary["workloads"][0]["staircase"]
    file = io.StringIO()

    render(Report.from_json(summary), Console(file=file, width=120), details=True)

    assert "staircase" not in file.getvalue()


def trial(rate, p95_s, cause="", ok=100):
    return TrialFigures(
        rate=rate,
        held=not cause,
        cause=cause,
        detail=cause and "p95 is too high",
        from_s=1.0,
        to_s=11.0,
        ok=ok,
        failed=1,
        timed_out=0,
        dropped=0,
        ok_per_s=ok / 10,
        p50_s=None if p95_s is None else p95_s / 2,
        p95_s=p95_s,
        p99_s=p95_s,
        concurrency=rate / 10,
        actions={"look": 0.25},
    )


SEARCH = SearchOutcome(
    capacity=Capacity(kind="found", rate=15.5, low=14.0, high=17.0, held=15.0, broke=20.0),
    trials=(
        trial(10.0, 0.1),
        trial(20.0, 0.9, "sla"),
        trial(15.0, 0.2, ok=150),
        trial(15.0, 0.4, ok=170),
        trial(17.0, None, "disturbed", ok=0),
    ),
    limit="at 20.0/s there was no core left",
    grown=(("look", 0.25, 0.75),),
)


def test_trials_of_a_search_are_steps_and_those_of_one_rate_one_step():
    found = staircase(replace(rps_workload(), search=SEARCH))

    steps = [(one["load"], one["throughput"], one["p95_s"], one["count"]) for one in found["steps"]]
    assert steps == [(10, 10, 0.1, 100), (15, 16, pytest.approx(0.3), 320), (20, 10, 0.9, 100)]


def test_a_search_is_told_with_its_trials():
    summary = summary_of(replace(rps_workload(), search=SEARCH))
    console = Console(file=io.StringIO(), width=160)

    render(Report.from_json(summary), console, details=True)

    assert summary["workloads"][0]["search"]["limit"] == "at 20.0/s there was no core left"
    text = " ".join(console.file.getvalue().split())
    assert (
        "capacity 15.5/s, with 95 % between 14.0 and 17.0/s"
        " look grew from 250ms to 750ms on average"
    ) in text
    assert (
        "trials 10/s sustained: 10.0 ok/s, p50 50.0ms, p95 100ms, p99 100ms 20/s not sustained: "
        in text
    )
    assert "17/s says nothing: 0 ok/s, disturbed" in text or "17/s says nothing: 0" in text
