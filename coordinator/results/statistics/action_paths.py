"""Resolves the nesting of atomic actions of many iterations, and groups their rows by action."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osbench.common.plugin.signature import near

Ints = NDArray[np.int64]

#: Separator of the names of nested actions.
NESTED = " > "
#: Actions nested deeper, and paths beyond this number, have only their inner name: of a chain of
#: thousands each path would repeat the one before.
LEVELS = 50
PATHS = 10_000
#: Actions at most that a message lists.
_LISTED = 10

_ZERO = np.zeros(1, np.int64)


def name_paths(lines: Ints, names: Sequence[str]) -> tuple[Ints, list[str]]:
    """Return for each line of `Columns.actions` the index of its path, and the list of paths.

    A path is the action's name after the names of the enclosing actions: "outer > inner". Actions
    nested deeper than `LEVELS`, or with a path beyond `PATHS`, have only their own name.
    """
    name, parent = lines[:, 1], lines[:, 2]
    labels = list(names)
    if int(np.maximum.reduce(parent, initial=-1)) < 0:
        return name, labels
    first, position = _positions(lines[:, 0])
    # an action can only be inside one that began before it
    inside = (parent >= 0) & (parent < position)
    number = np.where(inside, -1, name)
    pending = np.flatnonzero(inside)
    around = first[pending] + parent[pending]
    for _ in range(LEVELS):
        outer = number[around]
        ready = outer >= 0
        now = pending[ready]
        key = outer[ready] * len(names) + name[now]
        # table look-ups instead of a sort: there are few names
        present = np.bincount(key)
        keys = np.flatnonzero(present)
        if not len(keys) or len(labels) + len(keys) > PATHS:
            break
        present[keys] = np.arange(len(labels), len(labels) + len(keys))
        number[now] = present[key]
        pairs = (divmod(pair, len(names)) for pair in keys.tolist())
        labels += [f"{labels[outer_]}{NESTED}{names[inner]}" for outer_, inner in pairs]
        pending, around = pending[~ready], around[~ready]
    number[pending] = name[pending]
    return number, labels


def unknown(path: str, known: Collection[str]) -> str:
    """Return the end of a message on an action `path` that no iteration had.

    It suggests similar names of `known`, the actions that occurred, and lists at most `_LISTED` of
    them.
    """
    if not known:
        return "no iteration had such an action, nor any other"
    inner = [one for one in sorted(known) if one.endswith(f"{NESTED}{path}")]
    like = f"; did you mean {' or '.join(inner)}?" if inner else near(path, known) or ";"
    listed = ", ".join(sorted(known)[:_LISTED])
    more = f" and {len(known) - _LISTED} others" if len(known) > _LISTED else ""
    return f"no iteration had such an action{like} known are {listed}{more}"


def _positions(rows: Ints) -> tuple[Ints, Ints]:
    """Return for each line the index of its iteration's first line, and its position after that.

    `rows`: the row of each line's iteration; lines of an iteration follow each other.
    """
    begins = np.concatenate((_ZERO, np.flatnonzero(rows[1:] != rows[:-1]) + 1))
    ends = np.concatenate((begins[1:], (len(rows),)))
    first = np.repeat(begins, ends - begins)
    return first, np.arange(len(rows)) - first


def entries_by_group(group: Ints) -> Iterator[tuple[int, Any]]:
    """Yield each distinct number of `group`, ascending, with a numpy index of its entries.

    Numbers must be 0 or more. Yields nothing if `group` is empty.
    """
    counts = np.bincount(group)
    present = np.flatnonzero(counts).tolist()
    if len(present) == 1:
        yield present[0], slice(None)
    elif len(present) <= 8:
        for number in present:
            yield number, np.flatnonzero(group == number)
    else:
        order = np.argsort(group, kind="stable")
        ends = np.cumsum(counts[present]).tolist()
        for number, begin, end in zip(present, [0, *ends], ends, strict=False):
            yield number, order[begin:end]
