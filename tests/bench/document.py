"""Writes what benches measured into docs/performance.md, as one table.

    python -m bench.document build/bench.json [MORE.json ...]

Of a row that several files have, the last one counts.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.machine import QUIET_CORES, disturbed_rows
from bench.table import amount, ratio

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "performance.md"
BEGIN, END = "<!-- what benches measured -->", "<!-- end of what benches measured -->"

_HEAD = (
    "| row | figure | osbench | peer | ratio | target | reached |\n|---|---|---|---|---|---|---|"
)


def table_of(benches: Sequence[Mapping[str, Any]]) -> str:
    """The table of some JSON objects of benches, in Markdown, and on what it was measured."""
    rows: dict[str, list[Mapping[str, Any]]] = {}
    loads: dict[str, Sequence[float]] = {}
    disturbed: list[str] = []
    for bench in benches:
        names = dict.fromkeys(one["row"] for one in bench["comparisons"])
        for name in names:
            rows[name] = [one for one in bench["comparisons"] if one["row"] == name]
            loads[name] = bench["machine"]["load"][name]
            disturbed = [one for one in disturbed if one != name]
            disturbed += [name] if name in disturbed_rows(bench["machine"]) else []
    lines = [_line(one) for name in rows for one in rows[name]]
    return "\n".join([_HEAD, *lines, "", *_about(benches[-1]["machine"], loads, disturbed)])


def _line(one: Mapping[str, Any]) -> str:
    ours, peer, unit = one["osbench"], one["peer"], one["unit"]
    known = one["ratio"]
    cells = (
        f"`{one['row']}`",
        one["name"],
        f"{_amount(ours['median'])} {unit}".strip(),
        f"{_amount(peer['median'])} {peer['name']}" if peer else "",
        f"{_ratio(known['median'])} ({_ratio(known['least'])} - {_ratio(known['most'])})"
        if known
        else "",
        _target(one),
        {True: "yes", False: "**no**", None: ""}[one["reached"]],
    )
    return f"| {' | '.join(cells)} |"


def _target(one: Mapping[str, Any]) -> str:
    target = one["target"]
    if not target:
        return ""
    times = " x" if target["of"] == "ratio" else ""
    if "at_most" in target:
        return f"at most {target['at_most']:g}{times}"
    return f"at least {target['at_least']:g}{times}"


def _about(
    machine: Mapping[str, Any], loads: Mapping[str, Sequence[float]], disturbed: Sequence[str]
) -> Iterator[str]:
    peers = ", ".join(f"{name} {version}" for name, version in machine["peers"].items())
    yield (
        f"Measured on {machine['cores']} cores, {machine['system']}, Python {machine['python']}; "
        f"peers: {peers}."
    )
    shown = ", ".join(f"`{row}` {low:g} and {high:g}" for row, (low, high) in loads.items())
    yield f"Load average before and after each row: {shown}."
    if disturbed:
        rows = ", ".join(f"`{row}`" for row in disturbed)
        yield f"Other programs took more than {QUIET_CORES:g} cores during {rows}."


def _amount(value: float | None) -> str:
    return "?" if value is None else amount(value)


def _ratio(value: float | None) -> str:
    return "?" if value is None else ratio(value)


def main(paths: Sequence[str]) -> None:
    """Replace the table of the document."""
    table = table_of([json.loads(Path(path).read_text("utf-8")) for path in paths])
    text = DOCUMENT.read_text("utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        sys.exit(f"{DOCUMENT} has no lines {BEGIN} and {END}")
    DOCUMENT.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
