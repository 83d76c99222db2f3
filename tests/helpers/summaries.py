"""The summary of a run that nothing has run."""

from __future__ import annotations

from typing import Any

from osbench.coordinator.report.model.measure import measured_report
from osbench.coordinator.report.run_outcome import RunOutcome


def to_json(run: RunOutcome) -> dict[str, Any]:
    """The JSON object of a run, as `--json` prints and the run directory keeps it."""
    return measured_report(run).to_json()
