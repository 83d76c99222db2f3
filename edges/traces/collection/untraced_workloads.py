"""Explains workloads without traces by the times that the client measured of HTTP requests."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from osbench.common.secrets.masking import error_text
from osbench.coordinator.formatting import distinct
from osbench.coordinator.results.accounting.outcome import WorkloadOutcome
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.traces.analysis.comparison import Comparison, LoadParts, compare_parts, due_in
from osbench.edges.traces.analysis.explanation import explain
from osbench.edges.traces.analysis.resource_causes import IterationCounters
from osbench.edges.traces.collection.client_times import ClientTimes, client_times
from osbench.edges.traces.collection.collected import Collected
from osbench.edges.traces.collection.iteration_counters import counters_of, iteration_counters

LOG = logging.getLogger(__name__)


def with_client_times(
    directory: RunDirectory,
    outcomes: Sequence[WorkloadOutcome],
    collected: Collected,
    wanted: Callable[[], bool],
    *,
    queried: bool = False,
) -> Collected:
    """Return `collected` with results for workloads without traces, from times measured by clients.

    Added are the reasons for slow iterations (texts) or, for searches of capacity, comparisons of
    two rates. Workloads without HTTP requests in actions get neither. With `queried` (traces were
    queried), a traced workload without such a text counts as untraced, too. Reading ends early if
    `wanted` returns False. Errors are logged and become notes.
    """
    names = distinct([one.name for one in outcomes])
    before = collected.sentences or ("",) * len(names)
    requests = [one.statistics.requests for one in outcomes]
    only = [
        number
        for number, one in enumerate(outcomes)
        if requests[number].actions and (not one.tracing.traced or (queried and not before[number]))
    ]
    if not only:
        return collected
    warmup_ns = {at: int(one.warmup.seconds * 1e9) for at, one in enumerate(outcomes)}
    try:
        times = client_times(directory, names, warmup_ns, only, wanted)
        beside = iteration_counters(directory, times.features, counters_of(outcomes))
        sentences = _sentences(times, names, outcomes, beside)
        comparisons = {
            number: _comparison(times, names[number], number, parts)
            for number, parts in compared_parts(outcomes).items()
            if number in only
        }
    except Exception as error:
        LOG.exception("iterations could not be explained")
        note = f"iterations could not be explained: {error_text(error)}"
        return replace(collected, notes=(*collected.notes, note))
    return replace(
        collected,
        sentences=tuple(
            one or sentences.get(name, "") for one, name in zip(before, names, strict=True)
        ),
        comparisons={**collected.comparisons, **comparisons},
    )


def compared_parts(outcomes: Sequence[WorkloadOutcome]) -> Mapping[int, LoadParts]:
    """Return (rate that held, next rate) as parts of the load, by number of the workload.

    Workloads that did not search for a capacity, or found no such pair, are missing.
    """
    return {
        number: parts
        for number, one in enumerate(outcomes)
        if one.search is not None and (parts := one.search.parts) is not None
    }


def _sentences(
    times: ClientTimes,
    names: Sequence[str],
    outcomes: Sequence[WorkloadOutcome],
    beside: IterationCounters | None,
) -> Mapping[str, str]:
    """Return by name of the workload a text on why its iterations are slow.

    `beside`: counters of the system under test, if there are any. Workloads with too few slow
    iterations are missing, and so are searches for a capacity: their slow iterations are those at
    the highest rates.
    """
    searches = {name for name, one in zip(names, outcomes, strict=True) if one.search is not None}
    return {
        answer.name: answer.sentence
        for answer in explain(times.features, counters=beside).answers
        if answer.described_band is not None and answer.name not in searches
    }


def _comparison(times: ClientTimes, name: str, number: int, parts: LoadParts) -> Comparison:
    mine = times.features.group == number
    numbers, due = times.features.iteration[mine], times.due[mine]
    before, after = (due_in(numbers, due, part) for part in parts)
    return compare_parts(times.features, name, before, after)
