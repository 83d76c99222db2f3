"""HTTP requests by the server that responded: by its address, or by a header of its responses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from osbench.common.protocol.columns import Columns
from osbench.common.protocol.exchanges import FALSE_BODY, OTHER_SERVERS, PHASES, servers_of
from osbench.common.task import Workload
from osbench.coordinator.results.accounting.breakdown import Breakdown, BreakdownFigures
from osbench.coordinator.results.accounting.worker_figures import WorkerFigures
from osbench.edges.breakdowns.part_times import PartTimes, rows_of

#: Names of requests without a complete response, and of responses whose server was not noted.
UNANSWERED, UNKNOWN = "(no response)", "(unknown)"
#: Most servers that have rows.
SERVERS = 200
#: Status codes of errors begin here.
_ERRORS = 400


class ServerRows(Breakdown):
    """Counts requests by server; a time is that of a complete response, with its connection."""

    def __init__(self, by: str) -> None:
        """`by`: "address", or the name of a header."""
        self._by = by
        self._servers: dict[str, PartTimes] = {}

    @classmethod
    def of(cls, workload: Workload, *, is_open: bool) -> Self | None:
        """Return the breakdown of a workload whose task has `http: {by: ...}`; else None."""
        by = str(workload.http.get("by", ""))
        return cls(by) if by else None

    def add(self, columns: Columns, worker: str) -> None:
        """Count all requests of the rows. Status codes from 400 on count as failed."""
        exchanges = columns.exchanges
        if not len(exchanges):
            return
        status = exchanges["status"]
        lasted = np.sum([exchanges[phase] for phase in PHASES], axis=0).astype(np.int64)
        well = (exchanges["rest"] > 0) & (status & FALSE_BODY == 0) & (status < _ERRORS)
        numbers = servers_of(exchanges["client"])
        # of a client that notes none, as for the services of a cloud
        numbers[(numbers == -1) & (exchanges["rest"] > 0)] = -2
        for number in np.unique(numbers).tolist():
            chosen = numbers == number
            ok = lasted[chosen & well]
            self._part(columns, number).add(ok, int(np.count_nonzero(chosen)) - len(ok))

    def _part(self, columns: Columns, number: int) -> PartTimes:
        name = UNKNOWN if number == -2 else UNANSWERED if number == -1 else columns.names[number]
        if name not in self._servers and len(self._servers) >= SERVERS:
            name = OTHER_SERVERS
        return self._servers.setdefault(name, PartTimes())

    def figures(self, workers: Sequence[WorkerFigures]) -> BreakdownFigures:
        """Return a row for each server, the most requested first."""
        ordered = sorted(self._servers.items(), key=lambda one: (-one[1].count, one[0]))
        return BreakdownFigures(by=self._by, of="requests", rows=rows_of(dict(ordered)))
