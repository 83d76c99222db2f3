"""The traces that a run has kept, for exporters and for `run --once`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from rich.console import Console

from osbench.coordinator.report.kept_traces import TraceLocations
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.traces.collection.archive import Archive
from osbench.edges.traces.collection.lookup import find_trace
from osbench.edges.traces.output.trace_view import print_trace
from osbench.edges.traces.sources.otlp import to_otlp

#: Traces of an export request: some hundred kB.
_TRACES = 100


class StoredTraces:
    """Reads the traces of runs from their directories."""

    def export_requests(self, directory: RunDirectory) -> Iterator[dict[str, Any]]:
        """Yield a run's kept traces as export requests of OTLP/JSON, up to `_TRACES` in each.

        Raises DamagedRun.
        """
        traces = Archive(directory.path, directory.files).traces()
        while some := list(itertools.islice(traces, _TRACES)):
            yield to_otlp(some)

    def print_spans(
        self, locations: TraceLocations, run_id: str, trace_id: str, console: Console
    ) -> None:
        """Print a trace of a run as a tree of spans. Raises OsbenchError if it cannot be read."""
        found, trace_set, iteration = find_trace(locations, trace_id, run_id, None, None)
        print_trace(found, trace_set, iteration, console)
