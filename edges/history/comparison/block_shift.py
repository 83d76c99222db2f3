"""Test of a change between blocks of runs that were all made before or all after it.

Time passes between the two sides, so two causes other than the change can make them differ:
blocks vary at random around one level, or the level itself wanders. A change counts only if neither
can explain it, by the greater p-value of two t-tests: the means of the sides against the spread of
their blocks, and the step across the change against the steps between other neighbours. The first
is exact for independent blocks, the second for a random walk.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from osbench.edges.history.comparison.two_samples import Shifted, pooled_shift


@dataclass(frozen=True, kw_only=True)
class BlockShift(Shifted):
    """The shift by the test with the greater p-value, and the result of the other test."""

    other: Shifted
    #: The step across the change is the shift, and not the difference of the means.
    is_step: bool

    def findable(self, level: float, power: float = 0.8) -> float:
        """Return the least shift that both tests find with probability `power` each."""
        return max(super().findable(level, power), self.other.findable(level, power))

    def equivalence_p(self, margin: float) -> float:
        """Return the p-value of a shift of `margin` or more: the greater of both tests."""
        return max(super().equivalence_p(margin), self.other.equivalence_p(margin))


def block_shift(before: Sequence[float], after: Sequence[float]) -> BlockShift | None:
    """Return the shift between two sides, each with one value per block, in the order of time.

    None if a side has fewer than two blocks.
    """
    if min(len(before), len(after)) < 2:
        return None
    mean = pooled_shift(before, after)
    assert mean is not None, "both sides have two blocks"
    step = _step(before, after)
    first, second = (step, mean) if step.p >= mean.p else (mean, step)
    return BlockShift(
        by=first.by,
        error=first.error,
        freedom=first.freedom,
        other=second,
        is_step=first is step,
    )


def steps(blocks: Sequence[float]) -> list[float]:
    """Return the differences of neighbouring blocks."""
    return [float(step) for step in np.diff(blocks)]


def _step(before: Sequence[float], after: Sequence[float]) -> Shifted:
    """Return the step from the last block before to the first block after the change.

    Its standard error is the root mean square of the other steps, which are expected to be 0.
    """
    others = [*steps(before), *steps(after)]
    error = math.sqrt(sum(step * step for step in others) / len(others))
    return Shifted(by=float(after[0] - before[-1]), error=error, freedom=len(others))
