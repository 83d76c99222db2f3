"""Finds spans of a trace that repeat, and chooses the rows to show if there are many."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

#: Equal siblings in a row from which on they are folded.
LEAST = 3
#: Rows of one fold that are shown, so that it leaves room for others.
SHOWN = 50


def parents(depths: Sequence[int]) -> list[int]:
    """Return for each row in tree order the position of its parent row; -1 for roots.

    `depths` has the depth of each row; roots have 0.
    """
    found, last_at = [], dict[int, int]()
    for at, depth in enumerate(depths):
        found.append(last_at.get(depth - 1, -1))
        last_at[depth] = at
    return found


def folds(around: Sequence[int], keys: Sequence[Hashable]) -> list[int]:
    """Return the number of the fold of each row, from 0; -1 for rows in no fold.

    A fold has at least `LEAST` consecutive siblings whose `keys` are equal, with all rows within
    them. Rows of a fold belong to no other fold. `around` is the result of `parents`.
    """
    numbers = [-1] * len(keys)
    inner: dict[int, list[int]] = {}
    for at, outer in enumerate(around):
        inner.setdefault(outer, []).append(at)
    made = 0
    # the row around a row stands before it
    for outer, siblings in sorted(inner.items()):
        if outer >= 0 and numbers[outer] >= 0:
            for at in siblings:
                numbers[at] = numbers[outer]
            continue
        for run in _runs(siblings, keys):
            if len(run) >= LEAST:
                for at in run:
                    numbers[at] = made
                made += 1
    return numbers


def _runs(siblings: Sequence[int], keys: Sequence[Hashable]) -> list[list[int]]:
    runs: list[list[int]] = []
    for at in siblings:
        if runs and keys[runs[-1][-1]] == keys[at]:
            runs[-1].append(at)
        else:
            runs.append([at])
    return runs


def chosen_rows(
    order: Sequence[int], around: Sequence[int], numbers: Sequence[int], limit: int
) -> set[int]:
    """Return the positions of at most `limit` rows to show, preferring rows early in `order`.

    A row is shown with the rows around it (`around` is the result of `parents`), or not at all. If
    there are more than `limit` rows, at most `SHOWN` are taken for a fold. `numbers` is the result
    of `folds`.
    """
    if len(order) <= limit:
        return set(order)
    found: set[int] = set()
    of_fold: dict[int, int] = {}
    for number in order:
        line, at = [], number
        while at >= 0 and at not in found:
            line.append(at)
            at = around[at]
        fold = numbers[number]
        taken = of_fold.get(fold, 0) + len(line)
        if len(found) + len(line) <= limit and (fold < 0 or taken <= SHOWN):
            found.update(line)
            of_fold[fold] = taken
    return found
