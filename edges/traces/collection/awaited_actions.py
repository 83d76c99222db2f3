"""The part of each atomic action that its iteration waited for, if actions ran at the same time.

Times of actions side by side, such as the steps of a group of a flow, do not add up to the time of
the action around them. Each moment is divided equally among the actions of one parent that ran
then. So a step that is slower than usual counts with all that it made its iteration slower, since
it runs alone at the end. A critical path would go through another of about equal steps in each
iteration, and a comparison of iterations would take that for its usual spread.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from osbench.common.protocol.exchanges import action_lines
from osbench.coordinator.results.statistics.action_paths import LEVELS

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def awaited_shares(actions: Ints) -> Floats:
    """Return for each line of `Columns.actions` the fraction of its time that counts for it.

    1 for all actions of iterations whose actions follow each other. The times of the actions
    directly within an action, each times its fraction, are never more than the action's own.
    """
    shares = np.ones(len(actions))
    touched = _rows_with_overlaps(actions)
    if not len(touched):
        return shares
    lines = np.flatnonzero(np.isin(actions[:, 0], touched))
    parent = actions[lines, 2]
    outer = np.where(parent >= 0, action_lines(actions[lines, 0], actions) + parent, -1)
    shares[lines] = _divided_times(actions, lines, outer)
    return _within_outer(shares, lines, outer)


def _rows_with_overlaps(actions: Ints) -> Ints:
    """Return the rows in which an action began before one with the same parent had ended."""
    row, parent, begin, end = actions[:, 0], actions[:, 2], actions[:, 3], actions[:, 4]
    order = np.lexsort((begin, parent, row))
    same = (np.diff(row[order]) == 0) & (np.diff(parent[order]) == 0)
    # if any two of a family overlap, two that follow each other in order of their begin do
    overlap = same & (begin[order][1:] < end[order][:-1])
    return np.unique(row[order][1:][overlap])


def _divided_times(actions: Ints, lines: Ints, outer: Ints) -> Floats:
    """Return the fraction of each action at `lines` that counts for it among its siblings.

    `outer`: the line of the action around each, -1 for none; times outside of it do not count.
    """
    begin, end = actions[lines, 3], actions[lines, 4]
    lasted = np.maximum(end - begin, 0)
    inside = outer >= 0
    begin = np.where(inside, np.maximum(begin, actions[outer, 3]), begin)
    end = np.where(inside, np.minimum(end, actions[outer, 4]), end)
    end = np.maximum(end, begin)
    family = np.unique(actions[lines][:, [0, 2]], axis=0, return_inverse=True)[1].reshape(-1)
    # begins and ends of all actions of a family in order: `running` of them between two
    time = np.concatenate((begin, end))
    order = np.lexsort((time, np.concatenate((family, family))))
    running = np.cumsum(np.repeat((1, -1), len(lines))[order])
    each = np.diff(time[order]) / np.maximum(running[:-1], 1)
    each[running[:-1] <= 0] = 0.0
    passed = np.empty(len(order))
    passed[order] = np.concatenate(((0.0,), np.cumsum(each)))
    counted = passed[len(lines) :] - passed[: len(lines)]
    fraction: Floats = np.clip(counted / np.maximum(lasted, 1), 0.0, 1.0)
    return fraction


def _within_outer(shares: Floats, lines: Ints, outer: Ints) -> Floats:
    """Return `shares` of actions at `lines`, each times the share of all actions around it.

    Only down to `LEVELS` levels.
    """
    done = np.ones(len(shares), bool)
    done[lines[outer >= 0]] = False
    pending, around = lines[outer >= 0], outer[outer >= 0]
    for _ in range(LEVELS):
        ready = done[around]
        if not ready.any():
            break
        shares[pending[ready]] *= shares[around[ready]]
        done[pending[ready]] = True
        pending, around = pending[~ready], around[~ready]
    return shares
