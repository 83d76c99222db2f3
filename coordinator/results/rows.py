"""Result rows without those that do not count: already settled, or of a fenced worker."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from osbench.common.protocol.blocks import Columns


def select(columns: Columns, keep: NDArray[np.bool_]) -> Columns:
    """The rows where `keep` is true, with their actions, requests, trace ids and outputs."""
    kept = np.flatnonzero(keep)
    if len(kept) == len(columns):
        return columns
    place = np.cumsum(keep) - 1
    actions = columns.actions[keep[columns.actions[:, 0]]]
    actions[:, 0] = place[actions[:, 0]]
    exchanged = keep[columns.exchanged]
    numbers = columns.iteration[kept]
    traced = np.isin(columns.traced, numbers)
    left = set(numbers.tolist())
    return replace(
        columns,
        iteration=numbers,
        outcome=columns.outcome[kept],
        due=columns.due[kept],
        started=columns.started[kept],
        ended=columns.ended[kept],
        idle=columns.idle[kept],
        failure=columns.failure[kept],
        actions=actions,
        exchanges=columns.exchanges[exchanged],
        exchanged=place[columns.exchanged[exchanged]],
        traced=columns.traced[traced],
        traces=columns.traces[traced],
        outputs=tuple(item for item in columns.outputs if item[0] in left),
    )
