"""Shows what was measured: a table for people, one JSON object for programs."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rich.table import Table

from bench.comparison import Comparison, Target, middle

#: Version of the JSON object.
FORMAT = 1


def to_table(comparisons: Sequence[Comparison], disturbed: Collection[str] = ()) -> Table:
    """A line for each comparison: medians, ranges below them, ratio, target, verdict.

    The names in `disturbed` are marked: other programs ran, too.
    """
    table = Table(title="osbench beside its peers: median (least - most) of the rounds")
    for heading in ("row", "what", "osbench", "peer", "ratio", "target", "reached"):
        justify = "left" if heading in ("row", "what", "reached") else "right"
        table.add_column(heading, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for one in comparisons:
        table.add_row(
            f"{one.row}\n(disturbed)" if one.row in disturbed else one.row,
            f"{one.title}, {one.unit}" + (f"\n{one.note}" if one.note else ""),
            spread(one.osbench),
            f"{one.peer_name}\n{spread(one.peer)}" if one.peer_name else "",
            spread(one.ratios, precise=True) if one.peer_name else "",
            bound(one.target, times=bool(one.peer_name)) if one.target else "",
            {True: "yes", False: "no", None: ""}[one.reached],
            style="bold" if one.reached is False else "",
        )
    return table


def to_json(
    comparisons: Sequence[Comparison],
    *,
    left_out: Mapping[str, str],
    failed: Mapping[str, str],
    machine: Mapping[str, Any],
) -> dict[str, Any]:
    """The JSON object of a bench."""
    return {
        "format": FORMAT,
        "machine": dict(machine),
        "comparisons": [_entry(one) for one in comparisons],
        "left_out": dict(left_out),
        "failed": dict(failed),
    }


def footer(machine: Mapping[str, Any]) -> str:
    """What it was measured on: cores, versions, and the load average around each row."""
    peers = ", ".join(f"{name} {version}" for name, version in machine["peers"].items())
    loads = ", ".join(f"{row} {low:g} - {high:g}" for row, (low, high) in machine["load"].items())
    others = ", ".join(f"{row} {cores:g}" for row, cores in machine.get("others", {}).items())
    return (
        f"{machine['cores']} cores, {machine['system']}, Python {machine['python']}\n"
        f"osbench {machine['osbench']}; {peers}\n"
        f"load average before and after each row: {loads or 'none measured'}\n"
        f"cores that other programs took during each row: {others or 'none measured'}"
    )


def spread(values: Sequence[float], *, precise: bool = False) -> str:
    """The median of some values, and their range where there is more than one."""
    show = ratio if precise else amount
    text = show(middle(values))
    return f"{text}\n({show(min(values))} - {show(max(values))})" if len(values) > 1 else text


def amount(value: float) -> str:
    """A value with three significant digits, thousands grouped."""
    if math.isnan(value):
        return "?"
    if value == 0:
        return "0"
    digits = 2 - math.floor(math.log10(abs(value)))
    return f"{round(value, digits):,.{max(0, digits)}f}"


def ratio(value: float) -> str:
    """A ratio with a precision that its size deserves."""
    return "?" if math.isnan(value) else f"{value:.3f}" if value < 10 else f"{value:,.0f}"


def bound(target: Target, *, times: bool) -> str:
    """The target in words."""
    sign = "<=" if target.at_most else ">="
    return f"{sign} {target.bound:g}{' x' if times else ''}"


def _entry(one: Comparison) -> dict[str, Any]:
    return {
        "row": one.row,
        "name": one.title,
        "unit": one.unit,
        "note": one.note,
        "osbench": _figures(one.osbench),
        "peer": {"name": one.peer_name, **_figures(one.peer)} if one.peer_name else None,
        "ratio": _figures(one.ratios) if one.peer_name else None,
        "target": {
            "of": "ratio" if one.peer_name else "osbench",
            "at_most" if one.target.at_most else "at_least": one.target.bound,
        }
        if one.target
        else None,
        "reached": one.reached,
    }


def _figures(values: Sequence[float]) -> dict[str, Any]:
    """Median, range and rounds; what is not a number has no place in JSON and becomes null."""
    known = [None if math.isnan(value) else value for value in values]
    whole = [value for value in known if value is not None]
    found = middle(values)
    return {
        "median": None if math.isnan(found) else found,
        "least": min(whole, default=None),
        "most": max(whole, default=None),
        "rounds": known,
    }
