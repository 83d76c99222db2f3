"""Why a workload of a run has no traces to show, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from osbench.coordinator.storage.run_directory import RunDirectory

_STATES = {
    "switched off": "tracing is switched off (enable_profiler)",
    "no key": "the deployment has no profiler_hmac_key",
    "store not redis://": "the deployment's profiler_conn_str is not the URL of a Redis",
}


def why_none(
    directory: RunDirectory, summary: Mapping[str, Any], workload: Mapping[str, Any]
) -> str:
    """Why a workload, a part of the summary of the run so far, has no traces."""
    state = str(workload["tracing"]["state"])
    if state == "no key" and not _deployment(directory):
        return "the run has no deployment, whose profiler_hmac_key tracing needs"
    if state != "on":
        return _STATES.get(state, state)
    if not workload["tracing"]["traced"]:
        return "no iteration was traced"
    if directory.read("summary.json") is None:
        return (
            "traces are collected at the end of the run"
            if directory.has_coordinator()
            else "the run ended before its traces were collected"
        )
    told = (str(note) for note in summary.get("notes", ()) if note.startswith("traces "))
    return next(told, "they were not collected, or none was found in the trace store")


def _deployment(directory: RunDirectory) -> bool:
    return bool((directory.read("run.json") or {}).get("deployment"))
