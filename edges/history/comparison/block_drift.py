"""Remarks on the drift between blocks of runs: changes that the change under test did not make."""

from __future__ import annotations

import math
from collections.abc import Sequence

from osbench.coordinator.formatting import count
from osbench.edges.history.comparison.block_shift import BlockShift, steps
from osbench.edges.history.comparison.evidence import Evidence
from osbench.edges.history.comparison.findable_changes import signed_percent
from osbench.edges.history.comparison.run_series import SeriesKey

#: Percentiles that a remark names, at most.
_NAMED = 3


def drift_remarks(evidence: Evidence, keys: Sequence[SeriesKey]) -> list[str]:
    """Return remarks on the drift of each workload, and on percentiles judged by their step.

    `evidence` has blocks; `keys` are the compared percentiles.
    """
    firsts: dict[str, SeriesKey] = {}
    for key in keys:
        firsts.setdefault(key.workload, key)
    return [*(_drift(evidence, key) for key in firsts.values()), *_judged_by_step(evidence, keys)]


def _drift(evidence: Evidence, key: SeriesKey) -> str:
    before, after = evidence.block_levels(key)
    within = [*steps(before), *steps(after)]
    usual = math.sqrt(sum(step * step for step in within) / max(len(within), 1))
    text = (
        f"Drift: from one block to the next of a side, {_label(key)} moved by"
        f" {100 * math.expm1(usual):.2g} % on average; across the change by"
        f" {signed_percent(math.exp(after[0] - before[-1]))}"
    )
    for blocks, when in ((before, "before"), (after, "after")):
        if len(blocks) > 2 and (word := _direction(steps(blocks))):
            total = signed_percent(math.exp(blocks[-1] - blocks[0]))
            text += f". It {word} with every block {when} the change, {total} in all"
    return text


def _direction(moves: Sequence[float]) -> str:
    if all(move > 0 for move in moves):
        return "rose"
    return "fell" if all(move < 0 for move in moves) else ""


def _judged_by_step(evidence: Evidence, keys: Sequence[SeriesKey]) -> list[str]:
    found = []
    for key in keys:
        shifted = evidence.shifted(key)
        if isinstance(shifted, BlockShift) and shifted.is_step:
            found.append(_label(key))
    if not found:
        return []
    named = ", ".join(found[:_NAMED])
    if len(found) > _NAMED:
        named = f"{named} and {count(len(found) - _NAMED, 'other percentile')}"
    return [
        f"Before and after of {named} are the two blocks next to the change: steps between"
        " neighbouring blocks are the greater doubt there"
    ]


def _label(key: SeriesKey) -> str:
    return f"p{key.percent:g} of {key.action or key.workload}"
