"""Traces of each workload in a report: explanation and examples, or why there are none."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from osbench.common.errors import DamagedRun, OsbenchError
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.traces.analysis.explanation import Answer, explain
from osbench.edges.traces.analysis.notes import trace_notes
from osbench.edges.traces.analysis.ranking import Ranked
from osbench.edges.traces.analysis.what_if import best_places
from osbench.edges.traces.collection.archive import Archive
from osbench.edges.traces.collection.trace_set import TraceSet, is_open_load, of_run
from osbench.edges.traces.collection.traced_iterations import (
    TracedIterations,
    traced_iterations,
)
from osbench.edges.traces.model.spans import uuid_form
from osbench.edges.traces.output.trace_picks import ERROR, PickedTrace, chosen_traces
from osbench.edges.traces.output.waterfalls import ROWS, Waterfall, waterfall
from osbench.edges.traces.output.what_if_text import best_sentence

#: Rows of all waterfalls of a report together, about, and of each at least.
_ROWS, _LEAST_ROWS = 6000, 100


@dataclass(frozen=True, kw_only=True)
class TracePick:
    """An example trace of a workload in a report: its iteration, times and waterfall.

    Times are seconds; `due_s` and `started_s` count from t0, the start of the load.
    """

    #: For people: "slowest ok", "near p95", the class of the error, "slowest, 3 to 4 s".
    label: str
    #: max, p99, p95, p50, error or slow.
    kind: str
    iteration: int
    #: As OSProfiler writes it.
    trace_id: str
    #: ok, failed or timed_out; and the class of its error, or "".
    outcome: str
    error: str
    due_s: float
    started_s: float
    service_s: float
    response_s: float
    lag_s: float
    waterfall: Waterfall

    @property
    def cause(self) -> str:
        """Text on the work that took most of the critical path; "" if the path has no work."""
        return self.waterfall.cause


@dataclass(frozen=True, kw_only=True)
class WorkloadTraces:
    """Traces of one workload in a report: explanation, examples, or why there are none.

    Ranking, pauses and notes are of the whole run.
    """

    #: Scenario, and position of the workload in the run, from 0.
    name: str
    workload: int
    #: Reason if there is nothing to show; else "".
    reason: str = ""
    #: Iterations of this workload that were traced.
    traced: int = 0
    #: The explanation: a message; bands with causes, their intervals and their examples. The
    #: message is there, too, if there are too few traces for the rest.
    sentence: str = ""
    answer: Answer | None = None
    #: Gain of halving the span that matters most; "" if not known.
    best: str = ""
    picks: tuple[TracePick, ...] = ()
    #: Iterations by id of the traces that `trace show` finds in the run directory.
    kept: Mapping[str, int] = field(default_factory=dict)
    #: Trace ids by class of error.
    error_examples: Mapping[str, str] = field(default_factory=dict)
    #: Trace points of all traced iterations of the run, largest part of critical paths first.
    ranking: tuple[Ranked, ...] = ()
    #: Pauses of the scenarios of the run, which are in no time of the ranking; seconds.
    pauses: int = 0
    paused_s: float = 0.0
    #: Arguments, parameters, queries and messages were kept (`[traces] keep_arguments`).
    has_arguments: bool = False
    #: Messages on the quality of the traces of the run.
    notes: tuple[str, ...] = ()


def report_traces(directory: RunDirectory, summary: Mapping[str, Any]) -> list[WorkloadTraces]:
    """Return the traces of each workload of a run for a report, in the order of workloads.

    `summary` is the summary of the run so far. Only the run directory is read: the trace store may
    be gone. If traces are missing or cannot be read, the entries have the reason. The result is the
    same in every call. Raises DamagedRun.
    """
    workloads = summary["workloads"]
    try:
        if not Archive(directory.path, directory.files).exists:
            return _without(directory, summary)
        return _of(directory, of_run(directory), workloads)
    except DamagedRun:
        raise
    except OsbenchError as error:
        return _without(directory, summary, str(error))


def _without(
    directory: RunDirectory, summary: Mapping[str, Any], reason: str = ""
) -> list[WorkloadTraces]:
    return [
        WorkloadTraces(
            name=one["name"],
            workload=number,
            traced=one["tracing"]["traced"],
            reason=reason or why_none(directory, summary, one),
            # of a traced one it is in the archive, which is missing
            sentence="" if one["tracing"]["traced"] else one["tracing"].get("explanation", ""),
        )
        for number, one in enumerate(summary["workloads"])
    ]


def _of(
    directory: RunDirectory, trace_set: TraceSet, workloads: Sequence[Mapping[str, Any]]
) -> list[WorkloadTraces]:
    features = trace_set.features
    warmup = {at: int(one["warmup"]["seconds"] * 1e9) for at, one in enumerate(workloads)}
    ids = [features.traces[at] for at in np.flatnonzero(features.kept).tolist()]
    rows, _ = traced_iterations(directory, len(workloads), warmup, only=ids)
    picks = _picked_traces(rows, workloads)
    wanted = {_hex(rows, pick.at) for some in picks for pick in some}
    drawn = _waterfalls(directory, trace_set, wanted)
    explained = explain(features, trace_set.clocks, counters=trace_set.counters())
    answers = {answer.name: answer for answer in explained.answers}
    ranking = sorted(trace_set.ranking, key=lambda row: (-row.critical_s, row.service, row.name))
    notes = tuple(
        trace_notes(
            trace_set.coverage,
            trace_set.clocks,
            trace_set.skipped,
            by_otlp=trace_set.by_otlp,
            queried=trace_set.queried,
        )
    )
    found = []
    for number, (one, group) in enumerate(zip(workloads, features.groups, strict=True)):
        answer = answers.get(group)
        mine = np.flatnonzero(rows.workload == number)
        shown = [_pick(rows, pick, drawn) for pick in picks[number]]
        examples = tuple(pick for pick in shown if pick is not None)
        found.append(
            WorkloadTraces(
                name=one["name"],
                workload=number,
                reason="" if len(mine) or answer else why_none(directory, {}, one),
                traced=one["tracing"]["traced"],
                # if all traces of a workload are missing, its explanation is by times of the client
                sentence=answer.sentence if answer else one["tracing"].get("explanation", ""),
                answer=answer,
                best=best_sentence(best_places(features, group, 1)) if answer else "",
                picks=examples,
                kept={uuid_form(_hex(rows, at)): int(rows.iteration[at]) for at in mine.tolist()},
                error_examples={
                    pick.error: pick.trace_id for pick in examples if pick.kind == ERROR
                },
                ranking=tuple(ranking),
                pauses=trace_set.pauses,
                paused_s=trace_set.paused_s,
                has_arguments=trace_set.has_arguments,
                notes=notes,
            )
        )
    return found


def _picked_traces(
    rows: TracedIterations, workloads: Sequence[Mapping[str, Any]]
) -> list[list[PickedTrace]]:
    """Return for each workload the iterations whose traces are shown as examples.

    `rows` are traced iterations with kept traces; `workloads` are of the summary.
    """
    return chosen_traces(
        rows,
        _judged_by_response(workloads),
        list(map(_percentiles, workloads)),
        list(map(_error_examples, workloads)),
    )


def _waterfalls(
    directory: RunDirectory, trace_set: TraceSet, wanted: Collection[str]
) -> dict[str, Waterfall]:
    """Return the waterfalls of the traces `wanted` by id; traces that were not kept are missing.

    The more are wanted, the fewer rows each has.
    """
    limit = max(_LEAST_ROWS, min(ROWS, _ROWS // max(len(wanted), 1)))
    return {
        trace.trace_id: waterfall(trace_set, trace, limit)
        for trace in Archive(directory.path, directory.files).some(wanted)
    }


def _pick(
    rows: TracedIterations, pick: PickedTrace, drawn: Mapping[str, Waterfall]
) -> TracePick | None:
    at, trace_id = pick.at, _hex(rows, pick.at)
    if trace_id not in drawn:
        # the file of kept traces is damaged
        return None
    due, started = int(rows.due[at]), int(rows.started[at])
    return TracePick(
        label=pick.label,
        kind=pick.kind,
        iteration=int(rows.iteration[at]),
        trace_id=uuid_form(trace_id),
        outcome=Outcome(int(rows.outcome[at])).name.lower(),
        error=rows.errors[int(rows.error[at])],
        due_s=due / 1e9,
        started_s=started / 1e9,
        service_s=int(rows.service[at]) / 1e9,
        response_s=int(rows.response[at]) / 1e9,
        lag_s=(started - due) / 1e9,
        waterfall=drawn[trace_id],
    )


def _hex(rows: TracedIterations, at: int) -> str:
    return bytes(rows.traces[at]).hex()


def _judged_by_response(workloads: Sequence[Mapping[str, Any]]) -> dict[int, bool]:
    """Return by number whether a workload is judged by response time; True for open loads."""
    return {number: is_open_load(one["offered"]) for number, one in enumerate(workloads)}


def _percentiles(workload: Mapping[str, Any]) -> dict[str, float]:
    kind = "response" if is_open_load(workload["offered"]) else "service"
    found: dict[str, float] = workload["latency"][kind]["ok"]
    return found


def _error_examples(workload: Mapping[str, Any]) -> dict[str, int]:
    """Return by type of error the number of the iteration that the summary names as its example."""
    return {
        error["type"]: error["example_iteration"]
        for error in workload.get("errors", ())
        if error.get("example_iteration") is not None
    }


_STATES = {
    "switched off": "tracing is switched off (enable_profiler)",
    "sample rate 0": "no iteration is traced: [benchmark] profiler_sample_rate is 0",
    "no key": "the deployment has no profiler_hmac_key; `run --otlp` and `--traces-from` need none",
    "no store in the record": "the deployment has no profiler_conn_str: trace ids only",
    "store not redis://": "the deployment's profiler_conn_str is not the URL of a Redis",
}


def why_none(
    directory: RunDirectory, summary: Mapping[str, Any], workload: Mapping[str, Any]
) -> str:
    """Return text on why a workload has no traces.

    `workload` is its part of `summary`, the summary of the run so far; the run directory is read.
    """
    state = str(workload["tracing"]["state"])
    if state == "no key" and not _deployment(directory):
        return (
            "tracing needs a deployment with a profiler_hmac_key, `run --otlp` or `--traces-from`"
        )
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
