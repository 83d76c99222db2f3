import json
from typing import Any

import jsonschema
import pytest

from helpers import results_schema
from helpers.sample_loads import all_kinds
from helpers.sample_reports import constant_workload, full_report, rps_workload, run_report
from helpers.summaries import to_json
from osbench.common.errors import Problem, StoreUnreachable, TaskError
from osbench.coordinator.report.error_json import to_error_json
from osbench.coordinator.results.accounting.workload_statistics import WorkloadStatistics

STATES = ("ok", "failed", "timed_out", "dropped", "lost", "not_started")


def validate(document):
    """Check a document as a reader of the file would see it."""
    text = json.dumps(document, allow_nan=False)
    results_schema.validate(json.loads(text))


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(results_schema.SCHEMA)


def rounded(value: Any) -> Any:
    """Round floats to 12 digits: the last ones differ between processors and between libraries."""
    if isinstance(value, float):
        return float(f"{value:.12g}")
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list | tuple) else value


def test_a_run_fits_the_schema_and_its_golden_file(golden):
    summary = to_json(full_report())

    validate(summary)
    golden("summary.json", json.dumps(rounded(summary), indent=1) + "\n")


def test_workloads_of_all_kinds_fit_the_schema_and_their_golden_file(golden):
    summary = to_json(all_kinds())

    validate(summary)
    golden("all-kinds.json", json.dumps(rounded(summary), indent=1) + "\n")


def test_states_sum_to_the_plan():
    accounting = to_json(full_report())["workloads"][0]["accounting"]

    assert sum(accounting[state] for state in STATES) == accounting["planned"] == 1003


def test_times_are_seconds():
    workload = to_json(run_report(constant_workload()))["workloads"][0]

    service = workload["latency"]["service"]["ok"]
    assert service["count"] == 8
    assert service["min"] == service["max"] == service["mean"] == pytest.approx(0.005)
    assert workload["latency"]["response"]["ok"]["max"] == pytest.approx(0.013)
    assert workload["start_lag"]["max"] == pytest.approx(0.008)
    assert workload["throughput"]["ok_per_s"] == pytest.approx(8 / 0.012)


def test_percentiles_that_few_iterations_cannot_support_have_no_interval():
    few = to_json(run_report(constant_workload()))["workloads"][0]["latency"]
    many = to_json(run_report(rps_workload()))["workloads"][0]["latency"]
    few, many = few["service"]["ok"], many["service"]["ok"]

    assert few["p99"] == pytest.approx(0.005)
    assert few["ci"] == dict.fromkeys(few["ci"])
    low, high = many["ci"]["p95"]
    assert low <= many["p95"] <= high
    assert many["ci"]["p999"] == [many["p99"], None]
    assert (few["blocks"], many["blocks"]) == (0, 40)
    assert many["block_s"] == pytest.approx(0.25, rel=0.1)
    assert few["ci_note"] == "no intervals: iterations were scheduled over less than 5 s"
    assert many["ci_note"].startswith("no upper bound of p99: ")


def test_exemplars_are_slowest_first_and_carry_osprofiler_ids():
    exemplars = to_json(run_report(rps_workload()))["workloads"][0]["exemplars"]

    times = [exemplar["service_s"] for exemplar in exemplars]
    assert times == sorted(times, reverse=True)
    assert {exemplar["outcome"] for exemplar in exemplars} == {"ok", "failed"}
    slowest = exemplars[0]
    assert int(slowest["trace_id"].replace("-", ""), 16) == slowest["iteration"]


def test_a_workload_that_never_started_fits_the_schema():
    workload = constant_workload()
    empty = type(workload)(**{**vars(workload), "statistics": WorkloadStatistics()})

    summary = to_json(run_report(empty, exit_code=3))

    validate(summary)
    assert summary["workloads"][0]["latency"]["service"]["ok"]["p50"] is None
    assert summary["workloads"][0]["throughput"]["ok_per_s"] is None


def test_a_task_error_lists_its_problems():
    problems = [
        Problem("subtasks[0].runner", "unknown runner 'constnt'"),
        Problem("", "'title' is required"),
    ]

    document = to_error_json(TaskError("task.yaml", problems))

    validate(document)
    assert document["exit_code"] == 2
    assert document["error"]["message"] == "task.yaml: 2 problems"
    assert document["error"]["problems"][0] == {
        "place": "subtasks[0].runner",
        "message": "unknown runner 'constnt'",
    }


def test_any_other_error_has_its_message_and_exit_code():
    document = to_error_json(StoreUnreachable("Redis at redis://db:6379 does not respond"))

    validate(document)
    assert document["exit_code"] == 3
    assert document["error"]["message"] == "Redis at redis://db:6379 does not respond"


@pytest.mark.parametrize("change", [{"exit_code": 7}, {"surprise": 1}, {"workloads": [{}]}])
def test_the_schema_refuses_what_no_run_prints(change):
    summary = {**to_json(full_report()), **change}

    with pytest.raises(jsonschema.ValidationError):
        validate(summary)
