"""Finds the resource of the system under test that is the first to be nearly full as load grows."""

from __future__ import annotations

from collections.abc import Sequence

from osbench.coordinator.formatting import plain
from osbench.coordinator.report.staircase.staircase import StaircaseStep
from osbench.coordinator.results.accounting.counter_figures import NEAR_LIMIT

#: Resources that are named because they were nearly full all the time.
_NAMED = 3


def first_full(steps: Sequence[StaircaseStep], unit: str) -> str:
    """Return a message on the first resource that is nearly full as load grows.

    `steps` are in any order; used fractions at equal loads are averaged. "" without resources; if
    none is nearly full, the fullest is named. A resource that is nearly full at the least load
    already is only mentioned: the load does not fill it. `unit` is written after loads.
    """
    by_load: dict[float, dict[str, list[float]]] = {}
    for step in steps:
        for name, used in step.resources.items():
            by_load.setdefault(step.load, {}).setdefault(name, []).append(used)
    means = [
        (load, {name: sum(used) / len(used) for name, used in found.items()})
        for load, found in sorted(by_load.items())
    ]
    if not means:
        return ""
    names = {name for _, found in means for name in found}
    least, at_least = means[0]
    always = sorted(name for name, used in at_least.items() if used >= NEAR_LIMIT)
    limit = f"{100 * NEAR_LIMIT:.0f} %"
    said = ""
    if always:
        listed = ", ".join(plain(name) for name in always[:_NAMED])
        listed += ", ..." if len(always) > _NAMED else ""
        said = f" Already above {limit} at the least load, {least:.4g}{unit}: {listed}."
    before: dict[str, tuple[float, float]] = {}
    for load, found in means:
        full = sorted(
            (
                (used, name)
                for name, used in found.items()
                if used >= NEAR_LIMIT and name not in always
            ),
            reverse=True,
        )
        if full:
            used, name = full[0]
            beside = f", with {plain(full[1][1])}" if len(full) > 1 else ""
            earlier = before.get(name)
            rose = f"; at {earlier[0]:.4g}{unit} {_percent(earlier[1])}" if earlier else ""
            return (
                f"{plain(name)} is the first resource above {limit}{beside}: {_percent(used)} on"
                f" average at {load:.4g}{unit}{rose}.{said}"
            )
        before |= {name: (load, used) for name, used in found.items()}
    other = "other " if always else ""
    others = [
        (used, name, load)
        for load, found in means
        for name, used in found.items()
        if name not in always
    ]
    if not others:
        return f"No {other}resource is watched.{said}"
    used, name, load = max(others)
    return (
        f"None of {len(names) - len(always)} {other}resources that are watched reaches {limit}:"
        f" the fullest is {plain(name)}, {_percent(used)} on average at {load:.4g}{unit}.{said}"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
