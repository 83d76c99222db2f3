"""Draws the packages of osbench in their layers, as pyproject.toml has them: a map of the code.

    python docs/code_map.py > docs/pictures/code-map.svg

A package of the worker imports only packages below it, and `common`; an edge imports the packages
below it, and no other edge. The coordinator's groups stand in the order of a run's story; their
layers are in pyproject.toml.
"""

from __future__ import annotations

import ast
import sys
import textwrap
import tomllib
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Pixels: a box, the room between boxes, a column's margin, its heading.
_HEIGHT, _GAP, _MARGIN, _HEADING = 26, 6, 12, 28
#: Width of a character of a name and of a note, pixels.
_LETTER, _SMALL = 7.4, 6.0
#: Widths of the columns of coordinator and worker, and the room between them.
_WIDE, _NARROW, _BETWEEN = 600, 420, 110

_STYLE = """
text { font: 12px ui-monospace, monospace; fill: #1f2937; }
.heading { font: bold 14px system-ui, sans-serif; }
.note { font: 11px system-ui, sans-serif; opacity: 0.75; }
.column { fill: #f3f4f6; stroke: #9ca3af; }
.box { fill: #ffffff; stroke: #6366f1; }
.server { fill: #fef3c7; stroke: #d97706; }
.arrow { stroke: #d97706; fill: none; marker-end: url(#head); marker-start: url(#head); }
@media (prefers-color-scheme: dark) {
  text { fill: #e5e7eb; }
  .column { fill: #1f2937; }
  .box { fill: #111827; }
  .server { fill: #78350f; }
}
"""


#: Groups of packages of the coordinator, in the order of the story of a run.
STORY = ("front", "task", "load", "results", "report", "plugins")


def layers_of(part: str) -> list[list[str]]:
    """Return the layers of `worker`, highest first, each with its packages."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    contracts = tomllib.loads(text)["tool"]["importlinter"]["contracts"]
    (contract,) = (
        one
        for one in contracts
        if one["type"] == "layers" and one.get("containers") == [f"osbench.{part}"]
    )
    return [[name.strip() for name in layer.split("|")] for layer in contract["layers"]]


def packages_of(part: str) -> list[str]:
    """Return the packages in a folder, by name."""
    folders = (ROOT / part).iterdir()
    return sorted(one.name for one in folders if (one / "__init__.py").is_file())


def purpose(part: str, name: str) -> str:
    """Return the first line of a package's or module's docstring."""
    path = ROOT / part / name
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    return (text or "").partition("\n")[0]


def drawing() -> str:
    """Return the map as SVG."""
    right_at = _WIDE + _BETWEEN
    width = right_at + _NARROW
    high, top = _column("edges", [[one] for one in packages_of("edges")], 0, width)
    top += 2 * _GAP
    left, left_end = _story("coordinator", 0, _WIDE, top)
    right, right_end = _column("worker", layers_of("worker"), right_at, _NARROW, top)
    bottom = max(left_end, right_end) + 2 * _GAP
    low, height = _column("common", [packages_of("common")], 0, width, bottom)
    middle = _WIDE + _BETWEEN / 2
    servers = [
        _text_box(name, middle - 40, top + 90 + 70 * number, 80, "server", purpose_of_server)
        for number, (name, purpose_of_server) in enumerate(
            [("Celery", "Carries batches to workers."), ("Redis", "Carries all else.")]
        )
    ]
    arrows = [
        f'<path class="arrow" d="M{x1} {y}H{x2}"/>'
        for y in (top + 103, top + 173)
        for x1, x2 in ((_WIDE + 4, middle - 44), (middle + 44, right_at - 4))
    ]
    head = (
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" '
        'markerHeight="6" orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" fill="#d97706"/>'
        "</marker></defs>"
    )
    parts = [f"<style>{_STYLE}</style>", head, *high, *left, *right, *low, *servers, *arrows]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-1 -1 {width + 2} {height + 2}" '
        'role="img" aria-label="Packages of osbench in layers; imports go down">\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _story(part: str, x: float, width: float, y: float) -> tuple[list[str], float]:
    """Return the groups of a folder with their packages, and the lower end of the column."""
    drawn: list[str] = []
    at = y + _HEADING
    for group in STORY:
        place = x + _MARGIN
        box = _text_box(group, place, at, _width(group), "server", purpose(part, group))
        note = _note(purpose(part, group), place + _width(group) + _GAP, at)
        drawn += [box, note]
        at += _HEIGHT + _GAP
        for row in _rows(packages_of(f"{part}/{group}"), width - 4 * _MARGIN):
            place = x + 3 * _MARGIN
            for name in row:
                about = purpose(f"{part}/{group}", name)
                drawn.append(_text_box(name, place, at, _width(name), "box", about))
                place += _width(name) + _GAP
            at += _HEIGHT + _GAP
        at += _GAP
    return _framed(part, x, y, width, at, drawn), at


def _column(
    part: str, layers: Sequence[Sequence[str]], x: float, width: float, y: float = 0
) -> tuple[list[str], float]:
    """Return a column's elements, and its lower end."""
    drawn: list[str] = []
    at = y + _HEADING
    for layer in layers:
        for row in _rows(layer, width - 2 * _MARGIN):
            place = x + _MARGIN
            for name in row:
                drawn.append(_text_box(name, place, at, _width(name), "box", purpose(part, name)))
                place += _width(name) + _GAP
            if len(layer) == 1 and (text := purpose(part, layer[0])):
                room = x + width - _MARGIN - place
                drawn.append(_note(textwrap.shorten(text, int(room / _SMALL)), place, at))
            at += _HEIGHT + _GAP
        at += _GAP
    return _framed(part, x, y, width, at, drawn), at


def _framed(
    part: str, x: float, y: float, width: float, end: float, drawn: Sequence[str]
) -> list[str]:
    frame = (
        f'<rect class="column" x="{x}" y="{y}" width="{width}" height="{end - y}" rx="8"/>'
        f'<text class="heading" x="{x + _MARGIN}" y="{y + 19}">{part}/</text>'
    )
    return [frame, *drawn]


def _rows(layer: Sequence[str], width: float) -> Iterator[list[str]]:
    row: list[str] = []
    for name in layer:
        if row and sum(_width(one) + _GAP for one in [*row, name]) > width:
            yield row
            row = []
        row.append(name)
    yield row


def _width(name: str) -> float:
    return round(len(name) * _LETTER + 18, 1)


def _note(text: str, x: float, y: float) -> str:
    return f'<text class="note" x="{x:g}" y="{y + 17:g}">{escape(text)}</text>'


def _text_box(name: str, x: float, y: float, width: float, kind: str, title: str) -> str:
    return (
        f'<g><title>{escape(title)}</title><rect class="{kind}" x="{x:g}" y="{y:g}" '
        f'width="{width:g}" height="{_HEIGHT}" rx="5"/><text x="{x + width / 2:g}" '
        f'y="{y + 17:g}" text-anchor="middle">{escape(name)}</text></g>'
    )


if __name__ == "__main__":
    sys.stdout.write(drawing())
