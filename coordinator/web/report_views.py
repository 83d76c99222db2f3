"""The parts of reports that the web server shows."""

from __future__ import annotations

from typing import Any

from osbench.coordinator.report.run_facts import RunFacts
from osbench.coordinator.storage.run_directory import RunDirectory

#: Whether two runs can be compared.
COMPARES = False


def report(facts: RunFacts) -> str:
    """The report of a run that is over."""
    return f"<html><head></head><body><main>{overview(facts)}</main></body></html>"


def live(facts: RunFacts) -> str:
    """The same page of a run that goes on."""
    return report(facts)


def parts(facts: RunFacts) -> tuple[str, list[dict[str, Any]]]:
    """What a live page shows first, and the data of its charts."""
    return overview(facts), []


def overview(facts: RunFacts) -> str:
    return f"<p>{len(facts.summary['workloads'])} workloads</p>"


def comparison(first: RunDirectory, second: RunDirectory) -> str:
    """A page that compares two runs."""
    raise NotImplementedError
