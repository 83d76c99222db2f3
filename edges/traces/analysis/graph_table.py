"""Wait graphs (which event waited for which) of traces with parallel branches, in bounded
memory.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

#: Most numbers of all graphs: 16 MB. If there are more, a random part of the traces has graphs.
NUMBERS = 2_000_000
#: Most numbers of one graph.
_LARGEST = 100_000
_HASHES = 2**32

#: Stands for a graph that is too large.
_TOO_LARGE = array("q", [-1])


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphTable:
    """Packed wait graphs (which event waited for which) by trace, as the feature table has them.

    Of all traces, or of a random part if memory did not suffice; empty without parallel branches.
    """

    #: Traces whose hash is below this are the random part.
    below: int
    #: Position of each trace's graph in `numbers`, and the end.
    begin: Ints
    numbers: Ints

    def graph(self, at: int) -> Ints:
        """Return the packed wait graph of the trace in row `at`.

        Empty if the trace has no parallel branches, or is not in the random part; `_TOO_LARGE` if
        it was too large.
        """
        found: Ints = self.numbers[self.begin[at] : self.begin[at + 1]]
        return found

    def replayable(self, traces: Sequence[str], rows: Ints) -> Ints:
        """Return the part of `rows` whose graph is known: in the random part, and not too large.

        In the random part, the graph of a trace without parallel branches counts as known.
        """
        if self.below < _HASHES:
            rows = rows[[_hash(traces[at]) < self.below for at in rows.tolist()]]
        first = np.append(self.numbers, 0)[self.begin[rows]]
        sizes = self.begin[rows + 1] - self.begin[rows]
        found: Ints = rows[(sizes != 1) | (first != _TOO_LARGE[0])]
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the table as a dictionary for msgpack, arrays as bytes."""
        return {
            "below": self.below,
            "begin": self.begin.astype("<i8").tobytes(),
            "numbers": self.numbers.astype("<i8").tobytes(),
        }

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> GraphTable:
        """Return the table from the dictionary that `to_dict` made.

        Raises KeyError, TypeError, ValueError if the dictionary has another form.
        """
        return cls(
            below=int(form["below"]),
            begin=np.frombuffer(form["begin"], "<i8"),
            numbers=np.frombuffer(form["numbers"], "<i8"),
        )


class GraphRows:
    """Builds the table of wait graphs: each `add` adds a trace, `close` returns the table."""

    def __init__(self, most: int = NUMBERS) -> None:
        self._most = most
        self._below = _HASHES
        self._hashes = array("Q")
        self._graphs: dict[int, array[int]] = {}
        self._size = 0

    def add(self, trace_id: str, packed: Sequence[int]) -> None:
        """Add the graph of the next trace; empty if the trace has no parallel branches.

        While all graphs together exceed the limit, the graphs of a random half of the remaining
        traces are removed. Later graphs of the removed part are not added. A mark replaces a graph
        that is too large.
        """
        number, at = _hash(trace_id), len(self._hashes)
        self._hashes.append(number)
        if not packed or number >= self._below:
            return
        graph = array("q", packed) if len(packed) <= _LARGEST else _TOO_LARGE
        self._graphs[at] = graph
        self._size += len(graph)
        while self._size > self._most:
            self._below //= 2
            kept = {
                row: one for row, one in self._graphs.items() if self._hashes[row] < self._below
            }
            self._graphs, self._size = kept, sum(map(len, kept.values()))

    def close(self) -> GraphTable:
        """Return the finished table; the builder is not used any more."""
        numbers = array("q")
        begin = array("q", [0])
        for at in range(len(self._hashes)):
            numbers.extend(self._graphs.get(at, ()))
            begin.append(len(numbers))
        return GraphTable(
            below=self._below,
            begin=np.array(begin, np.int64),
            numbers=np.array(numbers, np.int64),
        )


def _hash(trace_id: str) -> int:
    # ids in files need not be random
    return crc32(trace_id.encode("utf-8", "replace"))
