"""Sorts atomic actions by the time that they took, and advises if they have too many names."""

from __future__ import annotations

from collections.abc import Mapping

from osbench.coordinator.report.model.time_figures import ByState
from osbench.coordinator.results.statistics.action_paths import NESTED

#: Actions that a table shows at once.
SHOWN = 20
#: Number of names above which they seem to contain varying parts, such as ids.
MANY_NAMES = 200


def spent_s(timings: ByState) -> float:
    """Return the seconds that all calls of an action took together, whatever their outcome."""
    states = (timings.ok, timings.failed, timings.timed_out)
    return sum(times.sum_s for times in states)


def by_time(actions: Mapping[str, ByState]) -> list[str]:
    """Return the paths of actions, the one with the most total time first.

    Nested actions follow their parent, sorted likewise.
    """
    spent = {path: spent_s(timings) for path, timings in actions.items()}

    def order(path: str) -> list[tuple[float, str]]:
        parts = path.split(NESTED)
        outer = [NESTED.join(parts[: end + 1]) for end in range(len(parts))]
        return [(-spent.get(name, 0.0), name) for name in outer]

    return sorted(actions, key=order)


def naming_advice(actions: Mapping[str, ByState]) -> str:
    """Return advice if there are more than `MANY_NAMES` names, which may contain ids; else ""."""
    if len(actions) <= MANY_NAMES:
        return ""
    return (
        # of more names the times are not kept apart: their number is not known
        f"More than {MANY_NAMES} names of actions: they contain a part that differs from request to"
        " request, such as an id. Give each kind of request one name: with `name` of a step of"
        " HttpFlow, or with `atomic.ActionTimer(self, name)` around the request in a scenario."
    )
