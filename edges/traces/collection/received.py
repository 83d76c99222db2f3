"""Traces of a run that are not in a store: spans of services, and of workers from result blocks.

Spans of services were received by OTLP, or were queried from a backend.
"""

from __future__ import annotations

from collections.abc import Iterator

from osbench.coordinator.formatting import count
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.traces.collection.queried_traces import QUERIED
from osbench.edges.traces.model.spans import Trace
from osbench.edges.traces.receiving.otlp_receiver import SPOOL
from osbench.edges.traces.sources.files import merge
from osbench.edges.traces.sources.span_spool import SpanSpool, SpooledTraces
from osbench.edges.traces.sources.worker_spans import worker_spans

#: The file of the spans of workers, next to the received ones, while traces are read.
WORKERS = "from_workers"
#: It holds no more than the result blocks do.
_NO_LIMIT = 1 << 62


class ReceivedTraces:
    """Reads traces from spools: received spans, queried spans, and spans of workers.

    Quick if `get` is called in the order of the ids.
    """

    def __init__(self, directory: RunDirectory, *, everything: bool) -> None:
        """Write the spans of workers in result blocks to a new spool; open all spools of the run.

        `everything` keeps all attributes. Raises OSError, DamagedRun.
        """
        folder = directory.path / "traces"
        # of a collection that was broken off
        (folder / WORKERS).unlink(missing_ok=True)
        spool = SpanSpool(folder / WORKERS, _NO_LIMIT)
        try:
            for body in directory.blocks():
                if packed := body.get("spans"):
                    for trace_id, span in worker_spans(packed, everything=everything):
                        spool.add(trace_id, span)
            spool.flush()
        finally:
            spool.close()
        self._sources = [SpooledTraces(folder / name) for name in (WORKERS, SPOOL, QUERIED)]

    def get(self, trace_id: str) -> Trace | None:
        """Return a trace, merged from all spools; None if none has spans of it. Raises OSError."""
        parts = [part for source in self._sources if (part := source.get(trace_id)) is not None]
        return merge(parts) if len(parts) > 1 else next(iter(parts), None)

    def notes(self) -> Iterator[str]:
        """Yield notes on spans left out of traces with too many, and on damaged spools.

        Counts only the parts of spools that were read.
        """
        cut = sum(source.cut for source in self._sources)
        if cut:
            yield f"traces: {count(cut, 'span')} left out of traces with very many"
        if any(source.damaged for source in self._sources):
            yield "traces: a part of the received spans could not be read"
