"""Makes the table of iterations for the page's script: all iterations of a run, or useful ones."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from osbench.common.secrets.masking import mask_text
from osbench.coordinator.formatting import plain
from osbench.coordinator.report.page_facts import PageFacts, TableRow

_OUTCOMES = {"ok": 0, "failed": 1, "timed_out": 2}
_NOT_TRACED = bytes(16)
#: Letters of a message.
_LETTERS = 300


@dataclass(frozen=True, kw_only=True)
class IterationTable:
    """The iterations of a run, or some, as columns for the page's script."""

    complete: bool
    #: Number of iterations in it, and of iterations that ran.
    rows: int
    of: int
    columns: dict[str, Any]


class _Reasons:
    """Collects the reasons why iterations failed; equal reasons have one text."""

    def __init__(self) -> None:
        self.texts = [""]
        self._places: dict[tuple[str, str, str, int], int] = {("", "", "", 0): 0}

    def place(self, row: TableRow) -> int:
        """Return the index of a row's reason in `texts`, which may grow; 0 for a success."""
        if row.outcome == "ok":
            return 0
        key = (row.error_type, row.error, row.step, row.status)
        if key not in self._places:
            self._places[key] = len(self.texts)
            self.texts.append(_reason(row))
        return self._places[key]


def _reason(row: TableRow) -> str:
    message = plain(mask_text(row.error), _LETTERS)
    said = ": ".join(part for part in (plain(row.error_type), message) if part)
    where = plain(mask_text(row.step), 80)
    # messages mostly have both already
    where = "" if where in said else where
    status = f"status {row.status}" if row.status and str(row.status) not in said else ""
    return " · ".join(part for part in (where, status, said) if part)


def table_of(facts: PageFacts, shown: Mapping[str, str]) -> IterationTable:
    """Return the table of the iterations of a page; `shown`: ids of its waterfalls by trace id.

    Rows are sorted by workload and number; dropped iterations have none. If an iteration occurs
    twice, the last row is used.
    """
    complete, listed = facts.rows_are_all, facts.rows
    unique = {(row.workload, row.iteration): row for row in listed if row.outcome in _OUTCOMES}
    ordered = [unique[key] for key in sorted(unique)]
    reasons = _Reasons()
    traces = b"".join(UUID(row.trace_id).bytes if row.trace_id else _NOT_TRACED for row in ordered)
    return IterationTable(
        complete=complete,
        rows=len(ordered),
        of=sum(one.ran for one in facts.report.workloads),
        columns={
            "complete": complete,
            "workload": [row.workload for row in ordered],
            "iteration": [row.iteration for row in ordered],
            "outcome": [_OUTCOMES[row.outcome] for row in ordered],
            # milliseconds, and tenths of them
            "due": [round(row.due_s * 1e3) for row in ordered],
            "latency": [round(row.latency_s * 1e4) for row in ordered],
            # place in `reasons`; that of place 0 is none
            "reason": [reasons.place(row) for row in ordered],
            "reasons": reasons.texts,
            "traces": base64.b64encode(traces).decode(),
            "shown": {UUID(trace).hex: anchor for trace, anchor in sorted(shown.items())},
        },
    )
