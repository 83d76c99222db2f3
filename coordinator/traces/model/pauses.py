"""Pauses of the scenario in a trace: they are spans, and no part of the service time."""

from __future__ import annotations

from osbench.common.plugin.atomic import PAUSE
from osbench.coordinator.traces.model.critical_path import Path
from osbench.coordinator.traces.model.tree import Tree


def is_pause(tree: Tree, at: int) -> bool:
    """Whether a span is a pause of the scenario."""
    return tree.spans[at].name == PAUSE


def paused_within(tree: Tree) -> dict[int, int]:
    """Nanoseconds of pauses within each span that has some, and of each pause itself."""
    found: dict[int, int] = {}
    for at in range(len(tree.spans)):
        if not is_pause(tree, at) or at in tree.left_out:
            continue
        length = tree.end[at] - tree.start[at]
        around = at
        while around >= 0:
            found[around] = found.get(around, 0) + length
            around = tree.parent[around]
    return found


def paused_on(tree: Tree, path: Path) -> int:
    """Nanoseconds of pauses on a critical path."""
    return sum(one.end - one.start for one in path.segments if is_pause(tree, one.span))
