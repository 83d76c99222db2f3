"""The files that a run writes of itself: at its begin, and at its end."""

from __future__ import annotations

import logging

from osbench.common.errors import StorageError
from osbench.coordinator.load.run.connection import Connection
from osbench.coordinator.load.run.plan import RunPlan
from osbench.coordinator.load.run.resumption import plan_file, run_request
from osbench.coordinator.report.model.model import Report
from osbench.coordinator.report.run_outcome import RunOutcome
from osbench.coordinator.report.timeline import to_timeline
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_documents import (
    describe,
    write_summary,
    write_timeline,
)

LOG = logging.getLogger(__name__)


def write_begin(
    plan: RunPlan, connection: Connection, directory: RunDirectory, started_at: float
) -> None:
    """Write all that another coordinator needs to go on, then run.json. Raises OsbenchError.

    `started_at`: seconds since 1970-01-01 UTC.
    """
    plan_file.save(plan, connection, directory, started_at)
    run_request.save(plan, directory)
    described = describe(
        plan.run_id, started_at, plan.task, list(plan.tags), plan.plugins, plan.deployment
    )
    directory.write("run.json", described)


def write_charts(
    plan: RunPlan, directory: RunDirectory, outcome: RunOutcome, report: Report
) -> None:
    """Write the timeline of a run that is over.

    A failure is logged: the numbers do not wait for charts.
    """
    document = to_timeline(outcome, report.to_json(), plan.conf.benchmark.lag_limit_s)
    try:
        write_timeline(directory, {"complete": True, **document}, sync=True)
    except StorageError as error:
        LOG.warning("%s", error)


def write_report(directory: RunDirectory, report: Report) -> None:
    """Write summary.json: from then on the run is finished. Raises StorageError."""
    write_summary(directory, report.to_json())
