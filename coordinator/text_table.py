"""Tables for terminals; if a terminal is narrow, long texts get own lines instead of a column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Literal, NamedTuple

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

#: Least characters of a column of texts: a narrower one has a word a line.
_LEAST = 16
_GAP = 2
_INDENT = 4


class TextColumn(NamedTuple):
    """A column of a table: its heading, and the layout of its cells."""

    heading: str
    justify: Literal["left", "right"]
    #: Texts are folded, or put below the other cells of their row; others are one line.
    is_text: bool


def names(*headings: str) -> Iterator[TextColumn]:
    """Return an iterator of left-aligned columns for short words, such as ids, by heading."""
    return (TextColumn(heading, "left", is_text=False) for heading in headings)


def figures(*headings: str) -> Iterator[TextColumn]:
    """Return an iterator of right-aligned columns of numbers, by heading."""
    return (TextColumn(heading, "right", is_text=False) for heading in headings)


def texts(*headings: str) -> Iterator[TextColumn]:
    """Return an iterator of columns of texts of any length; a column of empty cells is hidden."""
    return (TextColumn(heading, "left", is_text=True) for heading in headings)


def show(console: Console, what: RenderableType) -> None:
    """Print a text or table whose foreign parts may look like markup or hold numbers.

    Numbers are not painted.
    """
    console.print(what, markup=False, highlight=False)


class TextTable:
    """A table that `rich` can print, readable at any width of a terminal.

    If it is too wide, texts stand above or below the other cells of their row.
    """

    def __init__(self, *columns: Iterable[TextColumn]) -> None:
        self._columns = tuple(chain(*columns))
        self._rows: list[list[Text]] = []

    def add_row(self, *cells: str | Text) -> None:
        """Add a row with a cell for each column in order; foreign text must be escaped before."""
        self._rows.append([Text(one) if isinstance(one, str) else one for one in cells])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown = [n for n in range(len(self._columns)) if self._is_shown(n)]
        short = [n for n in shown if not self._columns[n].is_text]
        long = [n for n in shown if self._columns[n].is_text]
        needed = sum(self._width(n) + _GAP for n in short)
        needed += sum(min(_LEAST, self._width(n)) + _GAP for n in long) - _GAP
        if not long or not short or needed <= options.max_width:
            yield self._table(shown)
            return
        head, *lines = console.render_lines(self._table(short), options, pad=False)
        yield from _line(head)
        before: list[RenderableType] = []
        for row, line in zip(self._rows, lines, strict=True):
            above = [row[n] for n in long if n < short[0] and row[n]]
            if above and above != before:
                yield Text(", ").join(above)
                before = list(above)
            yield from _line(line)
            below = [self._labelled(n, row[n], long) for n in long if n > short[0] and row[n]]
            if below:
                yield Padding(Text("  ").join(below), (0, 0, 0, _INDENT))

    def _is_shown(self, n: int) -> bool:
        return not self._columns[n].is_text or any(row[n] for row in self._rows)

    def _width(self, n: int) -> int:
        cells = [Text(self._columns[n].heading), *(row[n] for row in self._rows)]
        return max(cell.cell_len for cell in cells)

    def _labelled(self, n: int, cell: Text, long: Sequence[int]) -> Text:
        """Return the text cell of column `n`, with the heading if there are several text columns.

        `long`: numbers of all text columns shown.
        """
        return Text(f"{self._columns[n].heading}: ").append(cell) if len(long) > 1 else cell

    def _table(self, chosen: Sequence[int]) -> Table:
        table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="bold")
        for n in chosen:
            heading, justify, is_text = self._columns[n]
            table.add_column(
                Text(heading),
                justify=justify,
                no_wrap=not is_text,
                overflow="fold" if is_text else "ellipsis",
            )
        for row in self._rows:
            table.add_row(*(row[n] for n in chosen))
        return table


def _line(segments: Iterable[Segment]) -> Iterator[Segment]:
    yield from segments
    yield Segment.line()
