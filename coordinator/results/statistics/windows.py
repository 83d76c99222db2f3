"""Counts bad iterations in sliding windows of time, for criteria that judge each window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osbench.common.config.durations import DURATION

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: A window begins at every fifth part of its length.
STEPS = 5
#: Most steps that are counted separately; later times count in the last of them.
MOST_STEPS = 1 << 22
#: Shortest window, seconds.
SHORTEST_S = 1.0

#: JSON schema of the length of windows, for criteria.
OVER_S: Mapping[str, Any] = {
    **DURATION,
    "minimum": SHORTEST_S,
    "description": "seconds; every window of this length is judged, not the load as a whole",
}


@dataclass(frozen=True, kw_only=True)
class Window:
    """Numbers of iterations, and of bad iterations, in one window of time."""

    #: Seconds after t0.
    from_s: float
    to_s: float
    #: Number of iterations, and of iterations that count against the limit.
    count: int
    bad: int

    @property
    def percent(self) -> float:
        """Percentage (0 to 100) of iterations that are `bad`; 0 if there are none."""
        return 100 * self.bad / self.count if self.count else 0.0

    @property
    def well(self) -> int:
        """Number of iterations that do not count against the limit."""
        return self.count - self.bad

    @property
    def span(self) -> str:
        """The window in words: "from 30 s to 40 s"."""
        return f"from {self.from_s:g} s to {self.to_s:g} s"


class Windows:
    """Counts iterations in sliding windows of one length; windows begin every fifth of that length.

    Memory grows with the covered time, not with the number of iterations.
    """

    def __init__(self, over_s: float, from_s: float = 0.0) -> None:
        """`over_s`: length of windows, s; `from_s`: begin of the first, s after t0."""
        self._over_s = over_s
        self._from_s = from_s
        self._step_ns = max(1, round(over_s * 1e9 / STEPS))
        self._from_ns = round(from_s * 1e9)
        self._counts: Ints = np.zeros(64, np.int64)
        self._bad: Ints = np.zeros(64, np.int64)
        #: Steps up to the last one in which there was something.
        self._used = 0

    def add(self, instants: Ints, bad: Bools) -> None:
        """Count iterations at times in ns after t0; `bad`: whether each counts against the limit.

        Iterations before `from_s` are ignored; beyond `MOST_STEPS` steps the last step counts.
        """
        inside = instants >= self._from_ns
        steps = np.minimum((instants[inside] - self._from_ns) // self._step_ns, MOST_STEPS - 1)
        if not len(steps):
            return
        first, end = int(steps.min()), int(steps.max()) + 1
        self._reach(end)
        steps -= first
        self._counts[first:end] += np.bincount(steps, minlength=end - first)
        self._bad[first:end] += np.bincount(steps[bad[inside]], minlength=end - first)

    def worst(self, *, complete: bool = False) -> Window | None:
        """Return the window with the greatest fraction of bad iterations; of several, the first.

        None if no window has iterations. `complete`: only windows that have surely ended. Otherwise
        a load that is shorter than a window counts as a window.
        """
        counts, bad = self._sums(complete=complete)
        if not len(counts) or not counts.any():
            return None
        share = np.divide(bad, counts, out=np.zeros(len(counts)), where=counts > 0)
        return self._window(int(share.argmax()), counts, bad)

    def least(self, begin_ns: int, until_ns: int) -> Window | None:
        """Return the first window between two times with the fewest iterations that are not bad.

        The times are ns after `from_s`. A begin in the first step (a fifth of a window) counts as
        0. Windows do not reach beyond the last step with an iteration. None if there is no window.
        """
        step_ns = self._step_ns
        # the first iteration never starts at once
        first = 0 if begin_ns < step_ns else -(-begin_ns // step_ns)
        end = min(self._used, max(0, until_ns) // step_ns)
        if end - first < STEPS:
            return None
        counts, bad = _sliding(self._counts[first:end]), _sliding(self._bad[first:end])
        return self._window(int((counts - bad).argmin()), counts, bad, first)

    def exceeding(self, percent: Fraction, *, complete: bool = False) -> tuple[int, int]:
        """Return counts: windows with more than `percent` % bad, windows with any iterations.

        `complete`: as for `worst`.
        """
        counts, bad = self._sums(complete=complete)
        allowed = percent / 100
        above = bad * allowed.denominator > counts * allowed.numerator
        return int(np.count_nonzero(above)), int(np.count_nonzero(counts))

    def _sums(self, *, complete: bool) -> tuple[Ints, Ints]:
        used = self._used - 1 if complete else self._used
        if complete and used < STEPS:
            used = 0
        return _sliding(self._counts[:used]), _sliding(self._bad[:used])

    def _window(self, at: int, counts: Ints, bad: Ints, first: int = 0) -> Window:
        from_s = self._from_s + (first + at) * self._over_s / STEPS
        to_s = from_s + self._over_s
        return Window(from_s=from_s, to_s=to_s, count=int(counts[at]), bad=int(bad[at]))

    def _reach(self, size: int) -> None:
        self._used = max(self._used, size)
        if size > len(self._counts):
            more = np.zeros(max(size, 2 * len(self._counts)) - len(self._counts), np.int64)
            self._counts = np.concatenate((self._counts, more))
            self._bad = np.concatenate((self._bad, more))


def _sliding(steps: Ints) -> Ints:
    """Return the sum of steps 0 to `STEPS` - 1, then of steps 1 to `STEPS`, and so on.

    If there are fewer than `STEPS` steps, a single sum of all; empty if there are none.
    """
    if len(steps) <= STEPS:
        return np.array([steps.sum()]) if len(steps) else steps
    sums = np.concatenate(([0], np.cumsum(steps)))
    found: Ints = sums[STEPS:] - sums[:-STEPS]
    return found
