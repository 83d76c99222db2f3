"""The parts of reports that the web server shows."""

from __future__ import annotations

from typing import Any

from osbench.coordinator.comparison.compared_run import earlier_runs, read_compared_run
from osbench.coordinator.comparison.comparing import compare_sides
from osbench.coordinator.comparison.comparison_page import compare_page
from osbench.coordinator.comparison.evidence import Evidence
from osbench.coordinator.report.html.page import live_parts, render_page, render_report
from osbench.coordinator.report.run_facts import RunFacts
from osbench.coordinator.storage.run_directory import RunDirectory


def report(facts: RunFacts) -> str:
    """The report of a run that is over."""
    return render_report(facts)


def live(facts: RunFacts) -> str:
    """The same page of a run that goes on."""
    return render_page(facts, live=True)


def parts(facts: RunFacts) -> tuple[str, list[dict[str, Any]]]:
    """What a live page shows first, and the data of its charts."""
    return live_parts(facts)


def comparison(data_dir: str, first: RunDirectory, second: RunDirectory) -> str:
    """A page that compares two runs, the earlier one first. Raises UsageError."""
    names = sorted((first, second), key=lambda one: one.path.name)
    before, after = ([read_compared_run(one)] for one in names)
    history = earlier_runs(data_dir, [*before, *after])
    return compare_page(compare_sides(Evidence(before=before, after=after, history=history)))
