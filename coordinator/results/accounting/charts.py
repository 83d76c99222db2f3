"""Charts of the outputs of iterations: additive ones are summed, complete ones only counted."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from osbench.common.protocol.columns import Columns
from osbench.common.protocol.iteration_outputs import outputs
from osbench.common.secrets.masking import mask_text

#: Buckets at most. With b bits of mantissa left a bucket is 2^-b of its value wide: numbers that
#: span one power of two keep 11 bits, numbers that span a thousand powers keep 1.
BUCKETS = 2048

_DOUBLE = struct.Struct("<d")
_INTEGER = struct.Struct("<q")


class Sketch:
    """Estimates percentiles of numbers in bounded memory.

    Numbers are counted in buckets by the leading bits of their IEEE 754 form, which sort as the
    numbers do. Each time there are more than `BUCKETS` buckets, the last bit is dropped; minimum,
    maximum and sum stay exact.
    """

    __slots__ = ("_buckets", "_shift", "count", "high", "low", "total")

    def __init__(self) -> None:
        self._buckets: dict[int, int] = {}
        self._shift = 0
        self.count = 0
        self.total = 0.0
        self.low = math.inf
        self.high = -math.inf

    def add(self, value: float) -> None:
        """Count a finite number; join pairs of buckets as long as there are more than `BUCKETS`."""
        self.count += 1
        self.total += value
        self.low = min(self.low, value)
        self.high = max(self.high, value)
        key = _key(value, self._shift)
        self._buckets[key] = self._buckets.get(key, 0) + 1
        while len(self._buckets) > BUCKETS:
            self._coarsen()

    def percentile(self, percent: float) -> float | None:
        """Return an estimated percentile (0 to 100), linearly interpolated; None without values.

        Its error is less than the width of a bucket.
        """
        if not self.count:
            return None
        place = (self.count - 1) * percent / 100
        below, above = math.floor(place), math.ceil(place)
        first = self._at(below)
        return first + (self._at(above) - first) * (place - below) if above > below else first

    def _at(self, rank: int) -> float:
        """Return the value at a rank in ascending order, from 0; the maximum beyond the last rank.

        It is the middle of the rank's bucket, within minimum and maximum.
        """
        seen = 0
        for key in sorted(self._buckets):
            seen += self._buckets[key]
            if seen > rank:
                return min(max(_value(key, self._shift), self.low), self.high)
        return self.high

    def _coarsen(self) -> None:
        merged: dict[int, int] = {}
        for key, count in self._buckets.items():
            half = key >> 1 if key >= 0 else -(-key >> 1)
            merged[half] = merged.get(half, 0) + count
        self._buckets = merged
        self._shift += 1


def _key(value: float, shift: int) -> int:
    (bits,) = _INTEGER.unpack(_DOUBLE.pack(abs(value)))
    key: int = bits >> shift
    return -key if value < 0 else key


def _value(key: int, shift: int) -> float:
    """Return the number in the middle of the bucket `key`; `shift`: number of dropped bits."""
    bits = (abs(key) << shift) + ((1 << shift) >> 1)
    (value,) = _DOUBLE.unpack(_INTEGER.pack(bits))
    return -value if key < 0 else float(value)


#: Points at most; Rally's charts have as many.
POINTS = 1000


class Trend:
    """Means of an output over successive ranges of iteration numbers, at most `POINTS` ranges.

    A range has one iteration at first; the length of all doubles each time more ranges would be
    needed. The result does not depend on the order in which iterations are added.
    """

    __slots__ = ("_counts", "_sums", "_width")

    def __init__(self) -> None:
        self._width = 1
        self._sums = np.zeros(POINTS)
        self._counts = np.zeros(POINTS, np.int64)

    def add(self, iteration: int, value: float) -> None:
        """Add `value`, an output of the iteration with the number `iteration` (from 1)."""
        while (bin_ := (iteration - 1) // self._width) >= POINTS:
            self._halve()
        self._sums[bin_] += value
        self._counts[bin_] += 1

    def shown(self) -> list[list[float]]:
        """Return [last iteration number, mean] of each range with values, in order."""
        found = np.flatnonzero(self._counts)
        means = self._sums[found] / self._counts[found]
        ends = (found + 1) * self._width
        return [[end, mean] for end, mean in zip(ends.tolist(), means.tolist(), strict=True)]

    def _halve(self) -> None:
        for counts in (self._sums, self._counts):
            counts[: POINTS // 2] = counts[::2] + counts[1::2]
            counts[POINTS // 2 :] = 0
        self._width *= 2


#: Charts of a workload that are kept apart, and names in all additive ones together.
CHARTS = 50
NAMES = 200
#: Larger numbers are not counted as values: they could not be summed.
LARGEST = 1e300
#: Characters of a title or a name.
TEXT = 200

#: Columns of a StatsTable that was added up.
COLUMNS = ("Action", "Min", "Median", "90%ile", "95%ile", "Max", "Avg", "Count")


class Values(Protocol):
    """Protocol of the collected values of one name in an additive chart, such as a line."""

    def add(self, iteration: int, value: float) -> None:
        """Add `value`, an output of the iteration with the number `iteration` (from 1)."""
        ...

    def shown(self) -> Any:
        """Return the collected values as a JSON value: points, a mean, or the row of a table."""
        ...


class _Mean:
    """The mean of all values of one name: the size of its part of a pie chart."""

    def __init__(self) -> None:
        self._total, self._count = 0.0, 0

    def add(self, iteration: int, value: float) -> None:
        self._total += value
        self._count += 1

    def shown(self) -> float:
        return self._total / self._count


class _Spread:
    """Estimates the row of one name in a table: minimum, percentiles, maximum, mean and count."""

    def __init__(self) -> None:
        self._sketch = Sketch()

    def add(self, iteration: int, value: float) -> None:
        self._sketch.add(value)

    def shown(self) -> list[Any]:
        sketch = self._sketch
        middle = [sketch.percentile(percent) for percent in (50, 90, 95)]
        mean = sketch.total / sketch.count
        return [sketch.low, *middle, sketch.high, mean, sketch.count]


#: Charts of Rally that have no values by name; plug-ins of others are drawn as lines.
_WHOLE = frozenset(("Table", "TextArea", "EmbeddedChart", "EmbeddedExternalChart", "OSProfiler"))

#: Class that adds values up, by chart.
_KINDS: Mapping[str, Callable[[], Values]] = {
    "StackedArea": Trend,
    "Lines": Trend,
    "Pie": _Mean,
    "StatsTable": _Spread,
}


class _Additive:
    """An additive chart: description, from the first output item, and collected values by name."""

    def __init__(self, item: Mapping[str, Any]) -> None:
        self.about = about_of(item)
        self.iterations = 0
        self.values: dict[str, Values] = {}

    def shown(self) -> dict[str, Any]:
        data: Any = [[name, values.shown()] for name, values in self.values.items()]
        if self.about["chart_plugin"] == "StatsTable":
            data = {"cols": list(COLUMNS), "rows": [[name, *row] for name, row in data]}
        return {**self.about, "iterations": self.iterations, "data": data}


class Charts:
    """All charts of a workload, from the outputs of its iterations, in bounded memory.

    Items beyond the limits are counted in `cut`.
    """

    def __init__(self) -> None:
        #: By title, chart and position among the charts of the same title in an iteration.
        self._additive: dict[tuple[str, str, int], _Additive] = {}
        self._complete: dict[tuple[str, str], dict[str, Any]] = {}
        self._names = 0
        #: Items that are in no sum: charts beyond `CHARTS`, values of names beyond `NAMES`, values
        #: that are not a finite number or items without shape, additive items of charts that cannot
        #: be added up.
        self.cut = dict.fromkeys(("charts", "values", "malformed", "not_additive"), 0)

    def add(self, columns: Columns) -> None:
        """Add the outputs of result rows; each iteration must be added once.

        Complete charts are only counted. Malformed items, items beyond a limit, and items of charts
        that cannot be added up are counted in `cut`.
        """
        for iteration, packed in columns.outputs:
            found = outputs(packed)
            self.cut["malformed"] += len(found["malformed"])
            seen: dict[tuple[str, str], int] = {}
            for item in found["additive"]:
                key = (str(item["title"]), str(item["chart_plugin"]))
                seen[key] = seen.get(key, -1) + 1
                self._add(iteration, (*key, seen[key]), item)
            for item in found["complete"]:
                self._count(iteration, item)

    def to_dict(self) -> dict[str, Any]:
        """Return lists of `additive` and `complete` charts and the counts in `cut`, as JSON values.

        Additive charts have collected data. Complete ones have a count of outputs and the number of
        the first iteration, without data.
        """
        return {
            "additive": [chart.shown() for chart in self._additive.values()],
            "complete": list(self._complete.values()),
            "cut": dict(self.cut),
        }

    def _add(self, iteration: int, key: tuple[str, str, int], item: Mapping[str, Any]) -> None:
        if key[1] in _WHOLE:
            self.cut["not_additive"] += 1
            return
        kind = _KINDS.get(key[1], Trend)
        chart = self._additive.get(key)
        if chart is None:
            if len(self._additive) >= CHARTS:
                self.cut["charts"] += 1
                return
            chart = self._additive[key] = _Additive(item)
        chart.iterations += 1
        data = item["data"]
        for pair in data if isinstance(data, list) else [None]:
            match pair:
                case [str() as name, int() | float() as value] if abs(value) < LARGEST:
                    values = self._values(chart, name[:TEXT], kind)
                    if values is not None:
                        values.add(iteration, value)
                case _:
                    self.cut["malformed"] += 1

    def _values(self, chart: _Additive, name: str, kind: Callable[[], Values]) -> Values | None:
        values = chart.values.get(name)
        if values is None:
            if self._names >= NAMES:
                self.cut["values"] += 1
                return None
            self._names += 1
            values = chart.values[name] = kind()
        return values

    def _count(self, iteration: int, item: Mapping[str, Any]) -> None:
        key = (str(item["title"]), str(item["chart_plugin"]))
        known = self._complete.get(key)
        if known is None:
            if len(self._complete) >= CHARTS:
                self.cut["charts"] += 1
                return
            known = self._complete[key] = {
                **about_of(item),
                "iterations": 0,
                "first_iteration": iteration,
            }
        known["iterations"] += 1
        known["first_iteration"] = min(known["first_iteration"], iteration)


def about_of(item: Mapping[str, Any]) -> dict[str, str]:
    """Return the description of a chart in an output: masked, and cut to `TEXT` characters."""
    keys = ("title", "chart_plugin", "description", "label", "axis_label")
    return {key: mask_text(str(item.get(key, "")))[:TEXT] for key in keys}
