"""Result blocks as two workers would send them, made from a few patterns without much CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from osbench.common.protocol.columns import encode_rows, row
from osbench.common.protocol.envelope import Signer
from osbench.common.protocol.messages import Block
from osbench.common.values.intervals import Intervals
from osbench.common.values.outcomes import Outcome

RUN = "bench"
WORKERS = ("host.1", "host.2")
#: One row in a hundred failed, one in a hundred is traced.
ONE_IN = 100
#: Blocks that differ, and so many rows of them at least; more are the same with other numbers.
_PATTERNS = 8
_PATTERN_ROWS = 20_000
#: Rows end out of order by as many places, as with so many virtual users.
_DISORDER = 64

Ints = NDArray[np.int64]


class Stream:
    """Signed blocks of a fixed number of rows, one worker after the other, numbers from 1."""

    def __init__(self, rows: int, signer: Signer) -> None:
        self.rows = rows
        self._signer = signer
        random = np.random.default_rng(1)
        count = max(_PATTERNS, _PATTERN_ROWS // rows)
        self._patterns = [_pattern(rows, random) for _ in range(count)]

    def numbers(self, block: int) -> tuple[str, Intervals]:
        """The worker and the iteration numbers of a block, which counts from 0."""
        first = 1 + block * self.rows
        return WORKERS[block % len(WORKERS)], Intervals([(first, first + self.rows)])

    def signed(self, block: int) -> bytes:
        """A block as it lies in the result stream."""
        columns = dict(self._patterns[block % len(self._patterns)])
        first = 1 + block * self.rows
        for name in columns.keys() & {"iteration", "traced"}:
            columns[name] = (np.frombuffer(columns[name], "<i8") + first).tobytes()
        turn = block // len(WORKERS)
        message = Block(
            run=RUN,
            membership=WORKERS[block % len(WORKERS)],
            incarnation=WORKERS[block % len(WORKERS)],
            number=1 + turn,
            workload=0,
            columns=columns,
            failures=[[1, "ValueError", "as planned", "Traceback"]] if turn == 0 else [],
        )
        return self._signer.sign(Block.KIND, message.body())

    def values(self) -> Ints:
        """Nanoseconds that go into each of five histograms, a line a histogram.

        Service time, response time, start lag, and the two actions of every row.
        """
        found = []
        for columns in self._patterns:
            due, started, ended = (
                np.frombuffer(columns[name], "<i8") for name in ("due", "started", "ended")
            )
            service = ended - started
            found.append(np.stack([service, ended - due, started - due, service - 2, service - 4]))
        return np.concatenate(found, axis=1)


def _pattern(rows: int, random: np.random.Generator) -> dict[str, Any]:
    order = np.argsort(np.arange(rows) + random.random(rows) * _DISORDER)
    started = np.sort(random.integers(0, 10**9, rows))[order]
    ended = started + random.lognormal(16, 1, rows).astype(np.int64)
    lag = random.lognormal(11, 1, rows).astype(np.int64)
    chance = random.random((2, rows)) < 1 / ONE_IN
    found = []
    for at in range(rows):
        begin, end = int(started[at]), int(ended[at])
        actions = [0, -1, begin + 1, end - 1, 0, 1, 0, begin + 2, end - 2, 0]
        outcome = Outcome.FAILED if chance[0, at] else Outcome.OK
        extra = (random.bytes(16), None, b"") if chance[1, at] else None
        due = begin - int(lag[at])
        failure = int(chance[0, at])
        found.append(
            row(
                iteration=int(order[at]),
                outcome=int(outcome),
                due=due,
                started=begin,
                ended=end,
                failure=failure,
                actions=actions,
                extra=extra,
            )
        )
    return encode_rows(found, ("outer", "inner"), 0)
