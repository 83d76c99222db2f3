"""Traces in the format of `osprofiler trace show --json`.

The report's own times are in milliseconds and its names are cut at the first dash. It also contains
the original events, and only these are read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from osbench.edges.traces.model.spans import Trace
from osbench.edges.traces.sources.pairing import SpanEvent, event_of, pair

_RAW = "meta.raw_payload."


class OsprofilerReports:
    """Traces in parsed reports of `osprofiler trace show --json`, given in memory."""

    def __init__(
        self,
        reports: Sequence[Mapping[str, Any]],
        *,
        everything: bool = False,
        skipped: int = 0,
    ) -> None:
        """`everything` keeps arguments, parameters and queries.

        `skipped` is the number of reports that could not be read; malformed events are added to it.
        """
        self._reports = reports
        self._everything = everything
        #: Reports and events that could not be read.
        self.skipped = skipped

    def all(self) -> Iterator[Trace]:
        """Yield every trace of the reports; count malformed reports and events in `skipped`."""
        yield from pair(self._events(), everything=self._everything).values()

    def read(self, wanted: Collection[str]) -> Iterator[Trace]:
        """Yield the traces with these ids (keys as `trace_key` makes them).

        Parses all reports, and counts malformed ones in `skipped`, as `all` does.
        """
        ids = frozenset(wanted)
        return (trace for trace in self.all() if trace.trace_id in ids)

    def _events(self) -> Iterator[SpanEvent]:
        nodes: list[Any] = list(self._reports)
        while nodes:
            node = nodes.pop()
            if not isinstance(node, Mapping):
                self.skipped += 1
                continue
            children = node.get("children") or []
            if isinstance(children, list):
                nodes += children
            else:
                self.skipped += 1
            info = node.get("info")
            for name, written in info.items() if isinstance(info, Mapping) else ():
                if name.startswith(_RAW):
                    try:
                        yield event_of(written)
                    except ValueError:
                        self.skipped += 1
