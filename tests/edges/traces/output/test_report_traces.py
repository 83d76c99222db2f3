"""What reports get of traces, from run directories without a run."""

import json
from dataclasses import asdict

import pytest

from helpers.result_rows import row_of
from helpers.synthetic_traces import Fault, slow_query, traces
from osbench.common.protocol.columns import encode_rows
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.traces.analysis.digest import Digest, Survey
from osbench.edges.traces.collection.archive import Archive
from osbench.edges.traces.model.spans import uuid_form
from osbench.edges.traces.output.report_traces import report_traces


def workload(state="on", traced=0, **changes):
    times = {"ok": {"p50": 0.01, "p95": 0.012, "p99": 0.05}}
    return {
        "name": "Shop.buy",
        "warmup": {"seconds": 0.0},
        "tracing": {"state": state, "traced": traced},
        "offered": {"concurrency": 2, "rate_planned": None},
        "latency": {"service": times, "response": times},
        **changes,
    }


def summary_of(*workloads, notes=()):
    return {"workloads": list(workloads), "notes": list(notes)}


@pytest.fixture
def directory(tmp_path):
    found = RunDirectory.create(str(tmp_path), "20260401-a")
    yield found
    found.close()


def archived(directory, *groups, kept=lambda number: True, failed=None):
    """A run whose workloads have these traces; iterations count from 1."""
    failed = failed or {}
    survey = Survey()
    for group in groups:
        for trace in group:
            survey.add(trace)
    names = [f"Shop.buy ({at})" for at in range(len(groups))]
    digest, archive = Digest(survey, names), Archive(directory.path)
    for at, group in enumerate(groups):
        rows = []
        for number, trace in enumerate(group, 1):
            length = max(span.duration_ns for span in trace.spans)
            outcome = Outcome.FAILED if number in failed else Outcome.OK
            code = failed.get(number, 0)
            begun = number * 10**7
            extra = (bytes.fromhex(trace.trace_id), None, b"")
            rows.append(row_of(number, outcome, begun, begun, begun + length, 0, code, (), extra))
            if kept(number):
                archive.keep(trace)
            digest.add_iteration(
                trace, group=at, iteration=number, outcome=int(outcome), kept=kept(number)
            )
        failures = [[1, "ValueError", "no", "tb"], [2, "KeyError", "no", "tb"]]
        columns = encode_rows(rows, (), 0)
        directory.keep(
            [{"workload": at, "incarnation": "w", "columns": columns, "failures": failures}]
        )
    collection = {
        "traced": len(digest.coverage.services),
        "skipped": 0,
        "census": digest.coverage.to_dict(),
        "usual": [],
        "clocks": [asdict(one) for one in digest.clocks.skews],
        "ranking": [asdict(row) for row in digest.ranking.rows()],
    }
    archive.close(digest.table.close(), collection)


@pytest.mark.parametrize(
    ("one", "run", "reason"),
    [
        (workload("switched off"), {}, "tracing is switched off (enable_profiler)"),
        (
            workload("no key"),
            {"deployment": "lab"},
            "the deployment has no profiler_hmac_key; `run --otlp` and `--traces-from` need none",
        ),
        (
            workload("no key"),
            {},
            "tracing needs a deployment with a profiler_hmac_key, `run --otlp` or `--traces-from`",
        ),
        (
            workload("store not redis://"),
            {},
            "the deployment's profiler_conn_str is not the URL of a Redis",
        ),
        (workload("on"), {}, "no iteration was traced"),
        (
            workload("on", 3),
            {},
            "they were not collected, or none was found in the trace store",
        ),
    ],
)
def test_why_there_are_none(directory, one, run, reason):
    directory.write("run.json", run)
    directory.write("summary.json", {})

    (found,) = report_traces(directory, summary_of(one))

    assert (found.reason, found.picks, found.sentence) == (reason, (), "")
    assert found.traced == one["tracing"]["traced"]


def test_the_runs_own_note_is_the_reason_where_there_is_one(directory):
    directory.write("summary.json", {})
    note = "traces could not be collected: OSError: disk full"

    (found,) = report_traces(directory, summary_of(workload("on", 3), notes=["other", note]))

    assert found.reason == note


def test_a_run_that_goes_on_will_have_traces_and_one_that_was_killed_has_none(directory):
    summary = summary_of(workload("on", 3))

    (running,) = report_traces(directory, summary)
    directory.close()
    (killed,) = report_traces(directory, summary)

    assert running.reason == "traces are collected at the end of the run"
    assert killed.reason == "the run ended before its traces were collected"


def test_a_damaged_archive_is_a_reason_and_no_error(directory):
    archived(directory, list(traces(5)))
    (directory.path / "traces" / "features").write_bytes(b"broken")

    (found,) = report_traces(directory, summary_of(workload("on", 5)))

    assert found.reason.startswith("cannot read ")


def test_traces_that_were_cut_off_in_the_file_cost_only_themselves(directory):
    archived(directory, list(traces(40)))
    path = directory.path / "traces" / "kept"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])

    (found,) = report_traces(directory, summary_of(workload("on", 40)))

    assert found.picks
    assert all(pick.waterfall.rows for pick in found.picks)


def test_workloads_are_told_apart_and_too_few_traces_are_a_sentence(directory):
    slow = Fault(share=0.05, harm=slow_query)
    archived(directory, list(traces(800, slow)), list(traces(30, seed=2)), failed={7: 1, 8: 2})
    summary = summary_of(workload("on", 800), workload("on", 30))

    first, second = report_traces(directory, summary)

    assert "shop/api db SELECT prices" in first.sentence
    assert second.sentence.startswith("Too few slow traces for an explanation: ")
    assert second.sentence.endswith(" it takes 572 more traces of successful iterations.")
    assert first.best.startswith("Best place to work: halving s")
    assert second.picks and second.reason == ""
    for one in (first, second):
        assert set(one.error_examples) == {"ValueError", "KeyError"}
        assert {pick.iteration for pick in one.picks if pick.kind == "error"} == {7, 8}
    assert first.error_examples["KeyError"] == next(
        pick.trace_id for pick in first.picks if pick.iteration == 8
    )
    assert first.ranking == second.ranking
    ordered = [row.critical_s for row in first.ranking]
    assert ordered == sorted(ordered, reverse=True)


def test_only_kept_traces_are_told_of(directory):
    group = list(traces(200))
    archived(directory, group, kept=lambda number: number % 10 == 0)

    (found,) = report_traces(directory, summary_of(workload("on", 200)))

    assert found.kept == {
        uuid_form(trace.trace_id): number
        for number, trace in enumerate(group, 1)
        if number % 10 == 0
    }
    assert {pick.iteration % 10 for pick in found.picks} == {0}


def test_an_open_load_with_one_arrival_is_judged_by_response_time(directory):
    archived(directory, list(traces(1)))
    times = {"ok": {"p50": 0.01, "p95": 0.012, "p99": 0.05}}
    one = workload(
        "on",
        1,
        offered={"concurrency": None, "rate_planned": None},
        latency={"response": times},
    )

    (found,) = report_traces(directory, summary_of(one))

    assert [pick.iteration for pick in found.picks] == [1]


def test_an_archive_of_an_earlier_version_is_read(directory):
    archived(directory, list(traces(5)))
    path = directory.path / "traces" / "collection.json"
    old = json.loads(path.read_text())
    old["format"] = 1
    for row in old["ranking"]:
        del row["paused_s"]
    path.write_text(json.dumps(old))

    (found,) = report_traces(directory, summary_of(workload("on", 5)))

    assert found.picks
    assert found.pauses == 0
