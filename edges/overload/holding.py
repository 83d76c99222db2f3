"""Figures that an overload has raised and that have stayed up: possible causes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from osbench.coordinator.results.accounting.counter_figures import SHARE_UNIT
from osbench.edges.overload.overload_figures import HeldFigure, PhaseState

#: A figure has stayed up if it is so many times what it was before, and more by so much: plain
#: numbers and used parts. In other units, which may be of any size, more by anything.
_TIMES = 1.2
_MORE = {"": 0.1, SHARE_UNIT: 0.05}
#: Figures that are kept.
MOST_HELD = 20
_IN_FLIGHT = "iterations in flight"


def held_figures(
    phases: Sequence[PhaseState], others: Iterable[HeldFigure] = ()
) -> tuple[HeldFigure, ...]:
    """Return the figures that have stayed up, the greatest change first.

    `others`: counters of the system under test and calls by span, whether they changed or not.
    Iterations in flight come last, since they follow from slow ones.
    """
    found = [one for one in (*_own(phases), *others) if _has_stayed(one)]
    found.sort(key=lambda one: (one.name == _IN_FLIGHT, -_ratio(one), one.name))
    return tuple(found[:MOST_HELD])


def _own(phases: Sequence[PhaseState]) -> Iterator[HeldFigure]:
    by_name = {one.name: one for one in phases}
    if not {"before", "overload", "end"} <= by_name.keys():
        return
    before, overload, end = (by_name[name] for name in ("before", "overload", "end"))
    for name, values in (
        ("requests per iteration", [one.requests for one in (before, overload, end)]),
        ("new connections per iteration", [one.connections for one in (before, overload, end)]),
        (_IN_FLIGHT, [one.in_flight for one in (before, overload, end)]),
    ):
        yield HeldFigure(name=name, before=values[0], overload=values[1], end=values[2])


def _has_stayed(one: HeldFigure) -> bool:
    if one.before is None or one.end is None:
        return False
    grown = one.end - one.before
    return grown > 0 and one.end >= _TIMES * one.before and grown >= _MORE.get(one.unit, 0.0)


def _ratio(one: HeldFigure) -> float:
    if one.end is None:
        return 0.0
    return one.end / one.before if one.before else math.inf


def figures_by_name(
    means: Mapping[str, Mapping[str, float]], unit: str = "", label: str = "{}"
) -> Iterator[HeldFigure]:
    """Yield a figure for each name that has values before the overload and at the end.

    `means`: values by name, for each stretch by its name. `label`: text around a name.
    """
    before, overload, end = (means.get(one, {}) for one in ("before", "overload", "end"))
    for name in sorted(before.keys() & end.keys()):
        yield HeldFigure(
            name=label.format(name),
            unit=unit,
            before=before[name],
            overload=overload.get(name),
            end=end[name],
        )
