"""Makes views of outputs of scenarios, in Rally's chart types: figures, tables and text."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from osbench.common.secrets.masking import mask_text
from osbench.common.secrets.url_masking import mask_url
from osbench.coordinator.report.html.page_numbers import DASH, counted_noun, short
from osbench.coordinator.report.model.workload_parts import Outputs

#: Rows of a table, points of a series and characters of a text that are shown.
ROWS = 200
POINTS = 1000
TEXT = 20_000
#: Characters of an embedded page; a longer one is shown as text, cut.
PAGE = 500_000
#: Kinds that are drawn.
_DRAWN = {"Pie": "pie", "StackedArea": "stacked", "Lines": "lines"}


@dataclass(frozen=True, kw_only=True)
class OutputView:
    """A chart of a scenario on the page: a table, a text or a page, perhaps with a figure."""

    anchor: str
    title: str
    #: Rally's name of the chart, its number of iterations, and the scenario's description.
    about: str
    #: pie, stacked or lines; "" if there is no figure.
    figure: str = ""
    series: list[list[Any]] = field(default_factory=list)
    label: str = ""
    axis_label: str = ""
    heads: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    left_out: int = 0
    text: str = ""
    #: A page of the scenario's own, to be shown in a frame without scripts; "" for others.
    page: str = ""


def output_views(
    anchor: str, outputs: Outputs, first: Mapping[tuple[str, str], Any]
) -> list[OutputView]:
    """Return views of the additive charts of a workload, then of its complete charts.

    `anchor` begins their element ids; `first` has the data of complete charts by title and plug-in.
    Without data, only their counts are shown. Secrets are masked, long data cut.
    """
    views = [
        _view(
            f"{anchor}-out-{number}", chart, counted_noun(chart.get("iterations") or 0, "iteration")
        )
        for number, chart in enumerate(outputs.additive)
    ]
    for number, chart in enumerate(outputs.complete):
        iteration = chart.get("first_iteration")
        data = first.get((str(chart.get("title")), str(chart.get("chart_plugin"))))
        said = f"of iteration {iteration}; {chart.get('iterations')} had one"
        if data is None:
            said = (
                f"{counted_noun(chart.get('iterations') or 0, 'iteration')}, the first {iteration}"
            )
        views.append(_view(f"{anchor}-one-{number}", {**chart, "data": data}, said))
    return views


def _view(anchor: str, chart: Mapping[str, Any], of: str) -> OutputView:
    kind = str(chart.get("chart_plugin", ""))
    data = chart.get("data")
    parts = [kind, of, str(chart.get("description") or "")]
    common: dict[str, Any] = {
        "anchor": anchor,
        "title": mask_url(str(chart.get("title", "")))[:200],
        "about": mask_url(" · ".join(part for part in parts if part)),
        "label": str(chart.get("label") or ""),
        "axis_label": str(chart.get("axis_label") or ""),
    }
    if isinstance(data, Mapping) and _is_table(data):
        return _table(common, data["cols"], data["rows"])
    if isinstance(data, list) and data and all(map(_is_series, data)):
        series = [[_name(name), points[:POINTS]] for name, points in data]
        return _lines(common, _DRAWN.get(kind, "lines"), series)
    if isinstance(data, list) and data and all(map(_is_value, data)):
        rows = [[_name(name), _cell(value)] for name, value in data]
        figure = "pie" if kind == "Pie" and any(value > 0 for _, value in data) else ""
        return OutputView(
            **common,
            figure=figure,
            series=[[_name(name), value] for name, value in data] if figure else [],
            heads=["name", common["label"] or "value"],
            rows=rows[:ROWS],
            left_out=max(0, len(rows) - ROWS),
        )
    if kind == "EmbeddedChart" and isinstance(data, str) and len(data) <= PAGE:
        return OutputView(**common, page=mask_url(data))
    return OutputView(**common, text=mask_text("\n".join(_texts(data)))[:TEXT])


def _table(common: dict[str, Any], heads: Sequence[Any], rows: Sequence[Any]) -> OutputView:
    return OutputView(
        **common,
        heads=[_name(head) for head in heads],
        rows=[[_cell(value) for value in row[: len(heads)]] for row in rows[:ROWS]],
        left_out=max(0, len(rows) - ROWS),
    )


def _lines(common: dict[str, Any], figure: str, series: list[list[Any]]) -> OutputView:
    instants = list(dict.fromkeys(point[0] for _, points in series for point in points))
    values = [{point[0]: point[1] for point in points} for _, points in series]
    rows = [
        [_cell(instant), *(_cell(line.get(instant)) for line in values)]
        for instant in instants[:ROWS]
    ]
    return OutputView(
        **common,
        figure=figure,
        series=series,
        heads=[common["axis_label"] or "iteration", *(name for name, _ in series)],
        rows=rows,
        left_out=max(0, len(instants) - ROWS),
    )


def _is_number(value: Any) -> bool:
    """Return whether a value can be drawn: infinity and NaN have no place, nor a form in JSON."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value)


def _is_point(point: Any) -> bool:
    is_pair = isinstance(point, list) and len(point) == 2 and _is_number(point[1])
    return is_pair and (isinstance(point[0], str) or _is_number(point[0]))


def _is_table(data: Mapping[str, Any]) -> bool:
    return (
        isinstance(data.get("cols"), list)
        and isinstance(data.get("rows"), list)
        and all(isinstance(row, list) for row in data["rows"])
    )


def _is_value(entry: Any) -> bool:
    return isinstance(entry, list) and len(entry) == 2 and _is_number(entry[1])


def _is_series(entry: Any) -> bool:
    return (
        isinstance(entry, list)
        and len(entry) == 2
        and isinstance(entry[1], list)
        and all(map(_is_point, entry[1]))
    )


def _name(value: Any) -> str:
    return mask_url(str(value))[:200]


def _cell(value: Any) -> str:
    if value is None:
        return DASH
    return short(value) if _is_number(value) else _name(value)


def _texts(data: Any) -> Iterable[str]:
    """Yield the lines of data that fit no table or series: strings as they are, others as JSON.

    Nothing for None; for data of a trace its id.
    """
    if isinstance(data, Mapping) and "trace_id" in data:
        yield f"trace {data['trace_id']}"
    elif isinstance(data, str):
        yield data
    elif isinstance(data, list):
        for entry in data:
            yield entry if isinstance(entry, str) else _json_text(entry)
    elif data is not None:
        yield _json_text(data)


def _json_text(data: Any) -> str:
    # keys of MessagePack may be bytes, which JSON has no form for
    return json.dumps(data, default=str, skipkeys=True)
