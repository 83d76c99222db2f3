"""The feature table, one row per trace: how much of its time was spent on which work.

After Canopy (Kaldor et al., SOSP 2017): features are extracted from each trace once, and analyses
use only their table. A row takes some hundred bytes, so that a whole run can be explained although
only some of its traces are kept.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osbench.common.values.outcomes import Outcome
from osbench.edges.traces.analysis.graph_table import GraphRows, GraphTable
from osbench.edges.traces.model.clock_skew import Clocks
from osbench.edges.traces.model.critical_path import (
    Path,
    PathSegment,
    is_pause,
    paused_on,
)
from osbench.edges.traces.model.span_keys import SpanKey, Vocabulary, key_of
from osbench.edges.traces.model.tree import Tree
from osbench.edges.traces.model.wait_graph import FIXED, WaitGraph, has_branches

Ints = NDArray[np.int64]

#: Group of traces that are shown, but not compared.
NO_GROUP = -1

#: Units of a row: a trace, or an iteration that only the client has measured.
TRACE, ITERATION = "trace", "iteration"

#: Limit on distinct shapes; others are -1.
SHAPES = 1000


@dataclass(frozen=True, kw_only=True, eq=False)
class Features:
    """The feature table: how much time of each trace was spent on which work.

    Arrays have one element per trace (row) unless stated otherwise. An entry is the time of one
    trace at one place; a place is a key (service, name, detail) on a host.
    """

    keys: tuple[SpanKey, ...]
    #: Number of the key and host of each place.
    places: tuple[tuple[int, str], ...]
    #: Names of the groups in which traces are compared: a workload, or a kind of root.
    groups: tuple[str, ...]
    #: Keys in the order of their first occurrence on a critical path.
    shapes: tuple[tuple[int, ...], ...]
    #: "" for iterations without one.
    traces: tuple[str, ...]
    group: Ints
    #: -1 if the trace is not of an iteration.
    iteration: Ints
    #: Values of `Outcome`.
    outcome: Ints
    #: Nanoseconds, without pauses of the scenario.
    total: Ints
    #: Number of the shape; -1 above the limit.
    shape: Ints
    #: Every span has start and stop.
    whole: NDArray[np.bool_]
    #: Its spans are kept.
    kept: NDArray[np.bool_]
    #: Position of each trace's first entry, and the end; one more element than traces.
    begin: Ints
    #: By entry: place, nanoseconds on the critical path, calls on it.
    place: Ints
    time: Ints
    calls: Ints
    unit: str = TRACE
    #: None of runs of earlier versions.
    graphs: GraphTable | None = None

    def __len__(self) -> int:
        return len(self.traces)

    def rows(self) -> Ints:
        """Return the row (position of the trace) of each entry."""
        return np.repeat(np.arange(len(self)), np.diff(self.begin))

    def entries_of(self, rows: Ints) -> NDArray[np.bool_]:
        """Return for each entry whether its trace is among `rows`."""
        inside = np.zeros(len(self), bool)
        inside[rows] = True
        return inside[self.rows()]

    def key_of_place(self) -> Ints:
        """Return the number of the key (position in `keys`) of each place."""
        return np.array([key for key, _ in self.places], np.int64)

    def dense(self, rows: Ints, values: Ints) -> NDArray[np.float64]:
        """Return a table of `values` summed by key: a line per trace in `rows`, a column per key.

        `values` has one number per entry of this feature table, such as `time` or `calls`. Lines
        are in the order of `rows`.
        """
        line = np.full(len(self), -1)
        line[rows] = np.arange(len(rows))
        at = line[self.rows()]
        inside = at >= 0
        size = len(self.keys)
        flat = at[inside] * size + self.key_of_place()[self.place[inside]]
        weights = values[inside].astype(np.float64)
        summed = np.bincount(flat, weights, len(rows) * size)
        return np.asarray(summed.reshape(len(rows), size), np.float64)

    def mean(self, rows: Ints, values: Ints) -> NDArray[np.float64]:
        """Return for each key the mean over the traces `rows` of the sum of its `values`.

        `values` has one number per entry of this feature table, such as `time`. Traces without the
        key count as 0.
        """
        at = self.entries_of(rows)
        keys = self.key_of_place()[self.place[at]]
        summed = np.bincount(keys, values[at], minlength=len(self.keys))
        return np.asarray(summed / max(len(rows), 1), np.float64)

    def occurrence(self, rows: Ints) -> NDArray[np.float64]:
        """Return for each key which fraction (0 to 1) of the traces `rows` have an entry of it."""
        at = self.entries_of(rows)
        keys = self.key_of_place()[self.place[at]]
        # several places of a trace may have the same key
        pairs = np.unique(self.rows()[at] * len(self.keys) + keys)
        found = np.bincount(pairs % max(len(self.keys), 1), minlength=len(self.keys))
        return np.asarray(found / max(len(rows), 1), np.float64)

    def to_dict(self) -> dict[str, Any]:
        """Return the table as a dictionary for msgpack, arrays as bytes, without `unit`."""
        return {
            "keys": self.keys,
            "places": self.places,
            "groups": self.groups,
            "shapes": self.shapes,
            "traces": self.traces,
            **{name: getattr(self, name).astype("<i8").tobytes() for name in _ARRAYS},
            **{name: getattr(self, name).tobytes() for name in _FLAGS},
            "graphs": self.graphs.to_dict() if self.graphs is not None else None,
        }

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Features:
        """Return the table from the dictionary that `to_dict` made; its unit is `TRACE`.

        Raises KeyError, TypeError, ValueError if the dictionary has another form.
        """
        arrays: dict[str, Any] = {name: np.frombuffer(form[name], "<i8") for name in _ARRAYS}
        return cls(
            keys=tuple(SpanKey(*key) for key in form["keys"]),
            places=tuple((int(key), str(host)) for key, host in form["places"]),
            groups=tuple(form["groups"]),
            shapes=tuple(tuple(shape) for shape in form["shapes"]),
            traces=tuple(form["traces"]),
            **arrays,
            whole=np.frombuffer(form["whole"], np.bool_),
            kept=np.frombuffer(form["kept"], np.bool_),
            graphs=GraphTable.from_dict(form["graphs"]) if form.get("graphs") else None,
        )


_ARRAYS = ("group", "iteration", "outcome", "total", "shape", "begin", "place", "time", "calls")
_FLAGS = ("whole", "kept")

_START = itemgetter(2)


class FeatureTable:
    """Builds the feature table: `add` adds a row for a root of a trace, `close` returns it."""

    def __init__(self, groups: Sequence[str] = (), clocks: Clocks | None = None) -> None:
        self._clocks = clocks or Clocks()
        self._graphs = GraphRows()
        self._vocabulary = Vocabulary()
        self._places: dict[tuple[int, str], int] = {}
        self._groups = {name: number for number, name in enumerate(groups)}
        self._shapes: dict[tuple[int, ...], int] = {}
        self._traces: list[str] = []
        self._columns = {name: array("q") for name in (*_ARRAYS, *_FLAGS)}
        self._columns["begin"].append(0)

    def group(self, name: str) -> int:
        """Return the number of the group `name`; an unknown name is added with the next number."""
        return self._groups.setdefault(name, len(self._groups))

    def add(
        self,
        tree: Tree,
        root: int,
        path: Path,
        *,
        group: int,
        iteration: int = -1,
        outcome: int = Outcome.OK,
        whole: bool = True,
        kept: bool = True,
    ) -> None:
        """Add a row for a root of a trace: nanoseconds and calls on its critical path, by place.

        `root` is the position of that span, `group` the number of its group, or `NO_GROUP`. Pauses
        of the scenario do not count. `whole`: every span has start and stop; `kept`: the spans of
        the trace are kept.
        """
        entries, order = self._entries(tree, path)
        shape = tuple(dict.fromkeys(order))
        if shape not in self._shapes and len(self._shapes) < SHAPES:
            self._shapes[shape] = len(self._shapes)
        columns = self._columns
        self._traces.append(tree.trace_id)
        columns["group"].append(group)
        columns["iteration"].append(iteration)
        columns["outcome"].append(outcome)
        columns["total"].append(tree.end[root] - tree.start[root] - paused_on(tree, path))
        columns["shape"].append(self._shapes.get(shape, -1))
        columns["whole"].append(whole)
        columns["kept"].append(kept)
        columns["place"].extend(entries)
        columns["time"].extend([time for time, _ in entries.values()])
        columns["calls"].extend([calls for _, calls in entries.values()])
        columns["begin"].append(len(columns["place"]))
        self._graphs.add(tree.trace_id, self._graph(tree, root))

    def close(self) -> Features:
        """Return the finished table; the builder is not used any more."""
        arrays: dict[str, Any] = {name: np.array(self._columns[name], np.int64) for name in _ARRAYS}
        return Features(
            keys=tuple(self._vocabulary.keys),
            places=tuple(self._places),
            groups=tuple(self._groups),
            shapes=tuple(self._shapes),
            traces=tuple(self._traces),
            whole=np.array(self._columns["whole"], bool),
            kept=np.array(self._columns["kept"], bool),
            graphs=self._graphs.close(),
            **arrays,
        )

    def _graph(self, tree: Tree, root: int) -> Sequence[int]:
        if not has_branches(tree, root, self._clocks):
            return ()
        return WaitGraph(tree, root, self._clocks, lambda one: self._changeable(tree, one)).packed()

    def _changeable(self, tree: Tree, segment: PathSegment) -> int:
        return FIXED if is_pause(tree, segment.span) else self._place_of(tree, segment)[0]

    def _place_of(self, tree: Tree, segment: PathSegment) -> tuple[int, int, int]:
        """Return numbers of place and key, and the position of the span that the time belongs to.

        Time of waiting for a span belongs to the place of that span.
        """
        key = self._vocabulary.number(key_of(tree, segment))
        owner = segment.span if segment.awaited < 0 else segment.awaited
        host = tree.spans[owner].host
        return self._places.setdefault((key, host), len(self._places)), key, owner

    def _entries(self, tree: Tree, path: Path) -> tuple[dict[int, list[int]], list[int]]:
        """Return [nanoseconds, calls] by place, and segments' keys by start time; no pauses."""
        entries: dict[int, list[int]] = {}
        called: set[tuple[int, int]] = set()
        order = []
        for segment in sorted(path.segments, key=_START):
            if is_pause(tree, segment.span):
                continue
            place, key, owner = self._place_of(tree, segment)
            entry = entries.setdefault(place, [0, 0])
            entry[0] += segment.end - segment.start
            if (key, owner) not in called:
                called.add((key, owner))
                entry[1] += 1
            order.append(key)
        return entries, order
