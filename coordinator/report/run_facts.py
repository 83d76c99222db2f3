"""Reads the facts on a run, whether it is finished, goes on or has crashed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from osbench.common.errors import UsageError
from osbench.coordinator.report.model.model import CRASHED, FINISHED, RUNNING, Report
from osbench.coordinator.results.storage import failure
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.coordinator.results.storage.run_documents import (
    SUMMARY_FORMAT,
    read_timeline,
    summary_of,
)


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """A run as its directory describes it: state, request, summary and timeline."""

    directory: RunDirectory
    #: run.json: the request for the run.
    manifest: Mapping[str, Any]
    #: `report` as a JSON object, as it was stored.
    summary: Mapping[str, Any]
    #: See `report.timeline`; None if the run has none.
    timeline: Mapping[str, Any] | None
    #: RUNNING, FINISHED or CRASHED.
    state: str
    #: Reason if it ended without a summary; "" for others.
    reason: str = ""

    @property
    def run_id(self) -> str:
        """Id of the run: the name of its directory."""
        return self.directory.path.name

    @cached_property
    def report(self) -> Report:
        """The report; for an unfinished run, the numbers so far; cached. Raises DamagedRun."""
        return Report.from_json(self.summary)


def read_facts(directory: RunDirectory) -> RunFacts:
    """Read request, summary, timeline and state of a run from its directory.

    Without a summary, the last timeline has the numbers so far, or there are no workloads. Raises
    UsageError if run.json is missing or the summary has another format, DamagedRun for damage.
    """
    # read first: a run that ends in between is then seen as running, with its summary
    running = directory.has_coordinator()
    summary = summary_of(directory)
    manifest = directory.read("run.json")
    timeline = read_timeline(directory)
    if manifest is None:
        raise UsageError(
            f"{directory.path} is not the directory of a run, which has a run.json; `osbench-coord "
            "runs list` shows runs"
        )
    reason = ""
    if summary is not None:
        state = FINISHED
    else:
        state = RUNNING if running else CRASHED
        reason = "" if running else failure.reason(directory)
        summary = timeline["summary"] if timeline else _empty(directory, manifest, reason)
    return RunFacts(
        directory=directory,
        manifest=manifest,
        summary=summary,
        timeline=timeline,
        state=state,
        reason=reason,
    )


def _empty(directory: RunDirectory, manifest: Mapping[str, Any], reason: str) -> dict[str, Any]:
    """Return a summary without workloads for a run that has none; `reason`, if any, is its note."""
    return {
        "format": SUMMARY_FORMAT,
        "run_id": directory.path.name,
        "task": manifest["task"],
        "description": manifest["description"],
        "tags": manifest["tags"],
        "started_at": None,
        "finished_at": None,
        "exit_code": failure.exit_code(directory),
        "exit_meaning": "",
        "notes": [reason] if reason else [],
        "workloads": [],
    }
