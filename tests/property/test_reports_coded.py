"""Reports are the same whether they were just measured or read from their JSON object."""

from __future__ import annotations

import json

from hypothesis import given, settings

from helpers.examples import examples
from helpers.random_outcomes import reports
from osbench.coordinator.report.model.measure import measured_report
from osbench.coordinator.report.model.model import Report
from osbench.coordinator.report.run_outcome import RunOutcome


@settings(max_examples=examples(150))
@given(reports())
def test_a_report_comes_back_from_its_json_object_with_all_that_it_has(run: RunOutcome) -> None:
    report = measured_report(run)
    text = json.dumps(report.to_json())

    found = Report.from_json(json.loads(text))

    assert json.dumps(found.to_json()) == text
    assert found.workloads == report.workloads
