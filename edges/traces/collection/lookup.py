"""Finds one trace: among the kept traces of a run, in a file, or in the trace store."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from osbench.common.errors import DeploymentError, StoreError, UsageError
from osbench.coordinator.formatting import distinct, plain
from osbench.coordinator.report.kept_traces import TraceLocations
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.traces.analysis.digest import digest_of
from osbench.edges.traces.analysis.features import NO_GROUP
from osbench.edges.traces.collection.archive import Archive
from osbench.edges.traces.collection.trace_set import TraceSet, of_file, of_run
from osbench.edges.traces.collection.traced_iterations import traced_iterations
from osbench.edges.traces.model.spans import Trace, is_trace_key, trace_key
from osbench.edges.traces.sources.redis_store import RedisTraces

#: Most digits of an iteration number; longer ones are the beginning of a trace id.
_DIGITS = 11


def find_trace(
    locations: TraceLocations,
    which: str,
    run: str | None,
    workload: str | None,
    file: Path | None,
    *,
    damaged: bool = False,
) -> tuple[Trace, TraceSet, int | None]:
    """Return a trace, its trace set, and the number of its iteration if known.

    `which` is an iteration number, a trace id or the beginning of a trace id. It may have a prefix
    `RUN:`; without a prefix and `run`, the last run is meant. `workload` is a name, or a position
    from 0; None for any. With `file` only that file is searched, by id; other options are unused.

    A trace that the run has not kept is read from the trace store, by number or complete id.
    `damaged`: a run whose files are cut or changed is read as far as possible. Raises UsageError if
    there is no such trace, run or workload, several traces match, or the store or `file` cannot be
    read; OsbenchError if files of the run cannot be read.
    """
    if file is not None:
        trace_set = of_file(file)
        return _only(trace_set, id_beginning(which), shlex.quote(str(file))), trace_set, None
    run, which = _run_and_which(which, run)
    trace_id = id_beginning(which)
    directory = RunDirectory.find(str(locations.data_dir), run)
    if damaged:
        directory.accept_damage()
    number = int(which) if which.isdecimal() and len(which) <= _DIGITS else None
    if not Archive(directory.path, directory.files).exists:
        return _from_store(locations, directory, number, which, workload)
    trace_set = of_run(directory)
    if number is not None:
        trace_id = _id_of(trace_set, directory, which, workload)
    try:
        found = _only(trace_set, trace_id, directory.path.name)
    except UsageError:
        if is_trace_key(trace_id):
            return _from_store(locations, directory, number, trace_id, workload)
        raise
    features = trace_set.features
    if found.trace_id in features.traces:
        at = features.traces.index(found.trace_id)
        return found, _named_after_workload(trace_set, at), int(features.iteration[at])
    return found, trace_set, number


def id_beginning(text: str) -> str:
    """Return a trace id, or its beginning, in the form used as key.

    Raises UsageError if it has no characters, so that it would fit each trace.
    """
    found = trace_key(text)
    if not found:
        raise UsageError(
            f"{text!r} is neither an iteration number nor a trace id: write 42, or the beginning of"
            " an id, such as 4f3c"
        )
    return found


def _named_after_workload(trace_set: TraceSet, at: int) -> TraceSet:
    """Return a copy of the set named "WORKLOAD in RUN", with the workload of row `at`.

    Returns the set unchanged if the run has one workload, or the row has no group.
    """
    features = trace_set.features
    if len(features.groups) <= 1 or features.group[at] < 0:
        return trace_set
    return replace(trace_set, name=f"{features.groups[features.group[at]]} in {trace_set.name}")


def _run_and_which(which: str, run: str | None) -> tuple[str, str]:
    before, colon, after = which.rpartition(":")
    if not colon:
        return run or "last", which
    if not before:
        raise UsageError(f"{which!r} has no run before the colon: write RUN:42, or last:42")
    if not after:
        raise UsageError(
            f"{which!r} has no iteration or trace id after the colon: write RUN:42, or RUN:4f3c"
        )
    if run is not None:
        raise UsageError(
            f"the run is named twice: {before!r} and --run {run}; leave one of them out"
        )
    return before, after


def _position(workload: str | None, names: Sequence[str], where: str) -> int | None:
    if workload is None:
        return None
    if workload in names:
        return list(names).index(workload)
    if workload.isdecimal() and int(workload) < len(names):
        return int(workload)
    known = ", ".join(f"{position} {plain(name)}" for position, name in enumerate(names))
    raise UsageError(f"{where} has no workload {workload}; choose from {known}")


def _id_of(trace_set: TraceSet, directory: RunDirectory, which: str, workload: str | None) -> str:
    """Return the trace id of iteration `which`, else the only id that begins with `which`.

    `workload`: its name or position; None for any, else beginnings of ids do not count. Raises
    UsageError if there is no such id or workload, or if several workloads have the iteration.
    """
    features, number = trace_set.features, int(which)
    position = _position(workload, features.groups, trace_set.name)
    rows = np.flatnonzero(features.iteration == number)
    if position is not None:
        in_it = features.group[rows] == position
        if not in_it.any() and (features.group[rows] == NO_GROUP).any():
            # kept but not in the random sample: only the results show its workload
            return _id_in_results(directory, number, workload)
        rows = rows[in_it]
    if not len(rows):
        begun = [one for one in features.traces if one.startswith(which)]
        if len(begun) == 1 and workload is None:
            return begun[0]
        raise UsageError(
            f"iteration {number} of {trace_set.name} has no trace: it was not sampled, did not run,"
            f" or was part of the warm-up; `osbench-coord trace explain {directory.path.name}` "
            "names some that have one"
        )
    if len(rows) > 1:
        raise UsageError(f"iteration {number} is in several workloads; choose with --workload")
    return features.traces[int(rows[0])]


def _only(trace_set: TraceSet, begin: str, source: str) -> Trace:
    found = [trace for trace in trace_set.traces() if trace.trace_id.startswith(begin)]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(
            f"{begin!r} could be any of {len(found)} traces of {trace_set.name}; give more of its "
            "id"
        )
    raise UsageError(
        f"{trace_set.name} has kept no trace {begin!r}; `osbench-coord trace explain {source}` "
        "names some"
    )


def _from_store(
    locations: TraceLocations,
    directory: RunDirectory,
    number: int | None,
    which: str,
    workload: str | None,
) -> tuple[Trace, TraceSet, int | None]:
    trace_id = trace_key(which)
    if number is not None:
        trace_id = _id_in_results(directory, number, workload)
    name = (directory.read("run.json") or {}).get("deployment")
    refusal = UsageError(f"run {directory.path.name} has kept no trace {trace_id!r}")
    try:
        conn_str = locations.deployments.get(name).profiler_conn_str if name else None
        if not conn_str:
            raise refusal
        found = list(RedisTraces(conn_str).read([trace_id]))
    except (DeploymentError, StoreError) as error:
        raise UsageError(
            f"{refusal}; the trace store of its deployment cannot be read: {error}; check its "
            "profiler_conn_str"
        ) from None
    if not found:
        raise UsageError(
            f"{refusal}, and the trace store of its deployment does not have it either; "
            f"`osbench-coord trace explain {directory.path.name}` names some"
        )
    digest = digest_of(found)
    trace_set = TraceSet(
        name=f"{directory.path.name}, from the trace store",
        features=digest.table.close(),
        clocks=digest.clocks,
        usual=digest.usual,
        coverage=digest.coverage,
        ranking=(),
        traces=lambda: iter(found),
        traced=1,
        skipped=0,
    )
    return found[0], trace_set, number


def _id_in_results(directory: RunDirectory, number: int, workload: str | None) -> str:
    asked = (directory.read("run.json") or {}).get("workloads", [])
    # runs of older releases have no names
    names = distinct([str(one.get("name") or one.get("scenario") or "") for one in asked])
    position = _position(workload, names, f"run {directory.path.name}")
    rows, _ = traced_iterations(directory, len(names), {})
    chosen = rows.iteration == number
    if position is not None:
        chosen &= rows.workload == position
    at = np.flatnonzero(chosen)
    if len(at) != 1:
        raise UsageError(
            f"{len(at)} traced iterations of run {directory.path.name} have the number {number}"
            + ("; choose with --workload" if len(at) else "")
        )
    return rows.ids()[int(at[0])]
