"""Makes text for a terminal from charts of outputs: a table, or some lines, for each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from osbench.coordinator.formatting import count, plain, three_digits

#: Rows of a table, and characters of a cell or a line.
ROWS = 20
WIDTH = 120


def chart_text(chart: Mapping[str, Any], rows: int = ROWS) -> RenderableType:
    """Return a printable text of a chart, which has Rally's keys title, chart_plugin and data.

    Shows at most `rows` rows or lines, and the number of further ones.
    """
    heading = Text(plain(str(chart["title"])), style="bold")
    described = [str(chart["chart_plugin"])]
    described += [str(chart[key]) for key in ("label", "description") if chart.get(key)]
    heading.append(f"  {plain('; '.join(described))}", style="not bold")
    return Group(heading, Padding(_body(chart["data"], rows), (0, 0, 0, 2)))


def _body(data: Any, rows: int) -> RenderableType:
    if _is_table(data):
        return _table(data["cols"], data["rows"], rows)
    if isinstance(data, list) and data and all(map(_is_series, data)):
        heads = ("name", "points", "min", "mean", "max", "last")
        return _table(heads, [[name, *_extent(points)] for name, points in data], rows)
    if isinstance(data, list) and data and all(map(_is_pair, data)):
        return _table(("name", "value"), data, rows)
    return _lines(list(_texts(data)), rows)


def _is_table(data: Any) -> bool:
    return (
        isinstance(data, Mapping)
        and isinstance(data.get("cols"), list)
        and isinstance(data.get("rows"), list)
        and all(isinstance(row, list) for row in data["rows"])
    )


def _is_pair(entry: Any) -> bool:
    return isinstance(entry, list) and len(entry) == 2 and not isinstance(entry[1], list)


def _is_series(entry: Any) -> bool:
    return (
        isinstance(entry, list)
        and len(entry) == 2
        and isinstance(entry[1], list)
        and all(_is_pair(point) and isinstance(point[1], int | float) for point in entry[1])
    )


def _extent(points: Sequence[Sequence[float]]) -> list[float]:
    values = [value for _, value in points]
    if not values:
        return [0]
    return [len(values), min(values), sum(values) / len(values), max(values), values[-1]]


def _table(heads: Sequence[Any], lines: Sequence[Sequence[Any]], rows: int) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for position, head in enumerate(heads):
        table.add_column(Text(plain(str(head), WIDTH)), justify="right" if position else "left")
    for line in lines[:rows]:
        table.add_row(*(Text(_cell(value)) for value in line[: len(heads)]))
    return Group(table, *_rest(len(lines) - rows, "row"))


def _lines(texts: Sequence[str], rows: int) -> RenderableType:
    kept = [Text(plain(text, WIDTH)) for text in texts[:rows]]
    return Group(*kept, *_rest(len(texts) - rows, "line"))


def _rest(left: int, noun: str) -> list[Text]:
    return [Text(f"and {count(left, noun)} more")] if left > 0 else []


def _texts(data: Any) -> Iterator[str]:
    """Yield lines of data that are not a table: of strings, a trace's id, other values as JSON."""
    if isinstance(data, Mapping) and "trace_id" in data:
        yield f"trace {data['trace_id']}"
    elif isinstance(data, str):
        yield from data.splitlines()
    elif isinstance(data, list):
        for entry in data:
            yield from _texts(entry) if isinstance(entry, str) else [json.dumps(entry, default=str)]
    else:
        yield json.dumps(data, default=str)


def _cell(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return plain(str(value), WIDTH)
    if isinstance(value, int):
        return count(value)
    return f"-{three_digits(-value)}" if value < 0 else three_digits(value)
