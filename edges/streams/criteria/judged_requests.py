"""The HTTP requests of successful iterations that a criterion judges, all or of one action."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from osbench.plugin import sla
from osbench.plugin.statistics import name_paths


def judged_requests(columns: sla.Columns, action: str) -> NDArray[Any]:
    """Return the complete requests of successful iterations by osbench's client.

    They have the fields `wait` and `rest` (nanoseconds), `sent` and `received` (bytes). `action`:
    only of this atomic action, "outer > inner" if nested; "" takes all.
    """
    exchanges, rows = columns.exchanges, columns.exchanged
    ok = columns.outcome == sla.Outcome.OK
    chosen = ok[rows] & (exchanges["client"] < 0) & (exchanges["rest"] > 0)
    if action and len(exchanges):
        chosen &= _in_action(columns, action)
    found: NDArray[Any] = exchanges[chosen]
    return found


def _in_action(columns: sla.Columns, action: str) -> NDArray[np.bool_]:
    """Return which requests have `action` as their innermost action."""
    place = columns.exchanges["action"].astype(np.int64)
    inside = place >= 0
    found = np.zeros(len(place), bool)
    if not inside.any():
        return found
    numbers, paths = name_paths(columns.actions, columns.names)
    wanted = np.array([path == action for path in paths], bool)
    first = np.searchsorted(columns.actions[:, 0], columns.exchanged[inside])
    found[inside] = wanted[numbers[first + place[inside]]]
    return found
