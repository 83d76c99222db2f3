"""Results of an engine, split into the contents of result blocks."""

from __future__ import annotations

import operator
from array import array
from dataclasses import dataclass
from typing import Any

from osbench.common.protocol.columns import ACTIONS, EXTRA, Row, changed_row, encode_rows
from osbench.common.values.intervals import Interval
from osbench.common.values.outcomes import Outcome
from osbench.worker.engine.asides import ForgottenAwait
from osbench.worker.engine.engine import Engine
from osbench.worker.engine.failures import printable

#: Most rows, and most bytes of outputs, of one block.
BLOCK_ROWS = 50_000
BLOCK_BYTES = 8 << 20

_ACTIONS = operator.itemgetter(ACTIONS)


@dataclass(frozen=True, kw_only=True)
class Contents:
    """The contents of one result block: rows of iterations, and returned numbers."""

    #: Fields of `osbench.common.protocol.messages.Block`.
    fields: dict[str, Any]
    #: Rows, and numbers that are settled by them or given back.
    rows: int
    settled: int
    #: No row was left over.
    whole: bool


class ResultSource:
    """The results of an engine that are in no block yet. Not thread-safe."""

    def __init__(self, engine: Engine, workload: int) -> None:
        self.workload = workload
        self._engine = engine
        self._cut_sent = 0
        self._want_sent = 0
        self._late_sent = 0
        #: Taken from the engine and not in a block yet; then the action names as they are sent.
        self._returned: list[Interval] = []
        self._fresh: list[list[Any]] = []
        self._names: list[str] = []
        self._lags = array("q")
        self._blocked: list[list[Any]] = []
        self._stalls: list[list[Any]] = []
        self._asides: list[list[Any]] = []

    @property
    def exhausted(self) -> bool:
        """Return whether the engine has stopped, and all its results are in blocks."""
        engine = self._engine
        return engine.stopped and not engine.unsettled and not engine.has_users_to_end

    def contents(self) -> Contents | None:
        """Return the contents of the next block; None if there is nothing to report.

        It has at most `BLOCK_ROWS` rows and about `BLOCK_BYTES`. Lateness, blocked times and stalls
        only come with rows. Until `stored` is called, the same results come again, and newer ones.
        """
        engine = self._engine
        waiting, life = len(engine.rows), engine.life[:BLOCK_ROWS]
        # returned numbers first: no row for them can be added later
        self._returned += engine.returned()
        rows = self._judged(_first(engine.rows, bulky=engine.bulky))
        failures = engine.body.failures
        # a failure is numbered before its row is appended, so none is missing here
        self._fresh += failures.fresh()
        engine.note_returned()
        self._asides += engine.body.asides.fresh()
        want, late = engine.want_ns - self._want_sent, engine.started_late - self._late_sent
        if not any((rows, self._returned, self._fresh, self._asides, want, late, life)):
            return None
        fields = {
            "workload": self.workload,
            "columns": encode_rows(rows, self._clean_names(), engine.t0_ns) if rows else {},
            "returned": list(self._returned),
            "failures": list(self._fresh),
            "want_ns": want,
            "cut": failures.cut - self._cut_sent,
            "started_late": late,
            "asides": list(self._asides),
        }
        if life:
            t0 = engine.t0_ns
            fields["life"] = [[kind, who, b - t0, e - t0, why] for kind, who, b, e, why in life]
        if rows:
            self._lags.extend(engine.lags())
            self._blocked += engine.blocked()
            self._stalls += engine.stalls()
            fields[engine.LAGS] = self._lags.tobytes()
            fields |= {"blocked": list(self._blocked), "stalls": list(self._stalls)}
        settled = len(rows) + sum(high - low for low, high in self._returned)
        return Contents(fields=fields, rows=len(rows), settled=settled, whole=len(rows) == waiting)

    def stored(self, contents: Contents) -> None:
        """Remove contents from the engine's results; called once their block is in the outbox."""
        if self._engine.forgotten:
            for row in self._engine.rows[: contents.rows]:
                self._engine.forgotten.pop(row[0], None)
        del self._engine.rows[: contents.rows]
        del self._engine.life[: len(contents.fields.get("life", ()))]
        self._engine.shipped += contents.settled
        self._returned, self._fresh, self._asides = [], [], []
        if "stalls" in contents.fields:
            self._lags, self._blocked, self._stalls = array("q"), [], []
        self._cut_sent += contents.fields["cut"]
        self._want_sent += contents.fields["want_ns"]
        self._late_sent += contents.fields["started_late"]

    def _judged(self, rows: list[Row]) -> list[Row]:
        """Return the rows; iterations that dropped a coroutine without awaiting it become failed.

        Only iterations that were successful are replaced, in a new list; their failures are
        numbered.
        """
        forgotten = self._engine.forgotten
        if not forgotten:
            return rows
        found = []
        for row in rows:
            iteration, outcome = row[:2]
            what = forgotten.get(iteration)
            if what is not None and outcome == Outcome.OK:
                failure = self._engine.body.failures.number(ForgottenAwait(what), what)
                found.append(changed_row(row, outcome=Outcome.FAILED, failure=failure))
            else:
                found.append(row)
        return found

    def _clean_names(self) -> list[str]:
        names = self._engine.action_names
        self._names += map(printable, names[len(self._names) :])
        return self._names


def _first(rows: list[Row], *, bulky: bool) -> list[Row]:
    """Return the first rows: at most `BLOCK_ROWS` and `BLOCK_BYTES`, but at least one, if any.

    `bulky`: rows may have outputs or exchanges, whose bytes count, too.
    """
    found = rows[:BLOCK_ROWS]
    if not bulky and sum(map(len, map(_ACTIONS, found))) <= BLOCK_BYTES:
        return found
    room = BLOCK_BYTES
    for at, row in enumerate(found):
        _, outputs, exchanges = row[EXTRA] or (b"", None, b"")
        room -= len(row[ACTIONS]) + len(exchanges) + (sum(map(len, outputs)) if outputs else 0)
        if room < 0 and at:
            return found[:at]
    return found
