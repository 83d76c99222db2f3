"""The charts of one workload: additive ones added up as Rally does, complete ones counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from osbench.common.protocol.blocks import Columns
from osbench.common.rally.adapters.records import outputs
from osbench.common.secrets.masking import mask_text
from osbench.coordinator.results.charts.sketch import Sketch
from osbench.coordinator.results.charts.trend import Trend

#: Charts of a workload that are kept apart, and names in all additive ones together.
CHARTS = 50
NAMES = 200
#: Numbers from here on, which could not be summed, are no values.
LARGEST = 1e300
#: Characters of a title or a name.
TEXT = 200

#: Columns of a StatsTable that was added up.
COLUMNS = ("Action", "Min", "Median", "90%ile", "95%ile", "Max", "Avg", "Count")


class Values(Protocol):
    """The values of one name in an additive chart."""

    def add(self, iteration: int, value: float) -> None:
        """Add the value of an iteration."""
        ...

    def shown(self) -> Any:
        """What they came to, as JSON values."""
        ...


class _Mean:
    """An average."""

    def __init__(self) -> None:
        self._total, self._count = 0.0, 0

    def add(self, iteration: int, value: float) -> None:
        self._total += value
        self._count += 1

    def shown(self) -> float:
        return self._total / self._count


class _Spread:
    """Least, greatest and what lies between."""

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

#: What adds values up, by chart.
_KINDS: Mapping[str, Callable[[], Values]] = {
    "StackedArea": Trend,
    "Lines": Trend,
    "Pie": _Mean,
    "StatsTable": _Spread,
}


class _Additive:
    """One additive chart: what its first item said of it, and values by name."""

    def __init__(self, item: Mapping[str, Any]) -> None:
        self.about = _about(item)
        self.iterations = 0
        self.values: dict[str, Values] = {}

    def shown(self) -> dict[str, Any]:
        data: Any = [[name, values.shown()] for name, values in self.values.items()]
        if self.about["chart_plugin"] == "StatsTable":
            data = {"cols": list(COLUMNS), "rows": [[name, *row] for name, row in data]}
        return {**self.about, "iterations": self.iterations, "data": data}


class Charts:
    """All charts of a workload. Memory does not grow with the number of iterations."""

    def __init__(self) -> None:
        #: By title, chart and place among those of the same title and chart in an iteration.
        self._additive: dict[tuple[str, str, int], _Additive] = {}
        self._complete: dict[tuple[str, str], dict[str, Any]] = {}
        self._names = 0
        #: What is in no sum: charts beyond `CHARTS`, values of names beyond `NAMES`, values that
        #: are no finite number or items without shape, additive items of charts that cannot be
        #: added up.
        self.cut = dict.fromkeys(("charts", "values", "malformed", "not_additive"), 0)

    def add(self, columns: Columns) -> None:
        """Add the outputs of result rows, each iteration once."""
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
        """JSON values: additive charts as if they were complete, complete ones as counts."""
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
                **_about(item),
                "iterations": 0,
                "first_iteration": iteration,
            }
        known["iterations"] += 1
        known["first_iteration"] = min(known["first_iteration"], iteration)


def _about(item: Mapping[str, Any]) -> dict[str, str]:
    keys = ("title", "chart_plugin", "description", "label", "axis_label")
    return {key: mask_text(str(item.get(key, "")))[:TEXT] for key in keys}
