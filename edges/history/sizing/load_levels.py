"""The load that a runner requests, as levels between two changes. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from osbench.common.plugin.runner import Runner, SearchingRunner, Totals

#: If a runner does not give its load over time, it is asked for the arrivals of so many seconds, or
#: for so many arrivals, whichever comes first.
ASKED_S = 3600
ASKED_ARRIVALS = 1_000_000
#: Virtual users of the one worker that such a runner is asked with.
_CAPACITY = (10**7,)


@dataclass(frozen=True, kw_only=True)
class LoadLevel:
    """The load that a runner requests in an interval, changing linearly from `begin` to `end`."""

    #: Seconds after t0; `to_s` is None if iterations decide when it ends.
    from_s: float
    to_s: float | None
    #: Arrivals per second (open loads) or virtual users (closed ones) at both ends.
    begin: float
    end: float

    @property
    def peak(self) -> float:
        """Return the greater of `begin` and `end`, in their unit."""
        return max(self.begin, self.end)

    @property
    def area(self) -> float:
        """Return arrivals (open) or user-seconds (closed) of the level; 0 if its end is unknown."""
        if self.to_s is None:
            return 0.0
        return (self.begin + self.end) / 2 * (self.to_s - self.from_s)


def load_levels(runner: Runner) -> list[LoadLevel]:
    """Return the levels of a runner's load by time; levels of no duration are left out.

    Empty if the runner gives neither its load over time nor, if open, arrivals. A searching runner
    has one level, without an end, at its highest load.
    """
    if isinstance(runner, SearchingRunner) and runner.most_rate is not None:
        # trials are not known beforehand, but none is above this load
        most = runner.most_rate
        return [LoadLevel(from_s=0.0, to_s=None, begin=most, end=most)]
    asked = runner.asked()
    if not asked and runner.OPEN:
        return _planned_levels(runner)
    levels = list(_between(asked, runner.lasts_s))
    if runner.OPEN and runner.planned is not None:
        return list(_until(levels, runner.planned))
    return levels


def _between(asked: Sequence[tuple[float, float]], lasts_s: float | None) -> Iterator[LoadLevel]:
    for (from_s, begin), (to_s, end) in pairwise(asked):
        if to_s > from_s:
            yield LoadLevel(from_s=from_s, to_s=to_s, begin=begin, end=end)
    if asked and (lasts_s is None or asked[-1][0] < lasts_s):
        last_s, value = asked[-1]
        yield LoadLevel(from_s=last_s, to_s=lasts_s, begin=value, end=value)


def _until(levels: Sequence[LoadLevel], planned: int) -> Iterator[LoadLevel]:
    """Yield the levels of an open load until they have `planned` arrivals; the last one is cut.

    The end of a cut ramp is computed from its mean rate. Ends early at a level with rate 0 and no
    end.
    """
    left = float(planned)
    for level in levels:
        if left <= 0:
            return
        if level.to_s is not None and level.area <= left:
            left -= level.area
            yield level
            continue
        # to the mean of a ramp that ends early there is little to gain from its exact end
        rate = (level.begin + level.end) / 2
        if rate <= 0:
            return
        yield replace(level, to_s=level.from_s + left / rate)
        left = 0.0


def _planned_levels(runner: Runner) -> list[LoadLevel]:
    """Return the levels of an open runner's load from the arrivals that its `step` plans.

    Every planned iteration counts as ended at once. Covers at most the first `ASKED_S` seconds, or
    about `ASKED_ARRIVALS` arrivals.
    """
    seconds: Counter[int] = Counter()
    allotted = 0
    for elapsed_s in range(ASKED_S):
        totals = Totals(allotted=allotted, settled=allotted)
        step = runner.step(float(elapsed_s), totals, _CAPACITY)
        seconds.update(int(max(0.0, instant)) for instant in step.arrivals)
        allotted += len(step.arrivals)
        if step.done or allotted > ASKED_ARRIVALS:
            break
    return list(_joined_levels(seconds))


def _joined_levels(seconds: Counter[int]) -> Iterator[LoadLevel]:
    """Yield one level for each sequence of seconds with the same number of arrivals, even 0.

    `seconds`: arrivals by second after t0. Levels begin at 0 s; none without arrivals.
    """
    if not seconds:
        return
    begin_s = 0
    for second in range(max(seconds) + 1):
        if seconds[second] != seconds[second + 1] or second == max(seconds):
            rate = float(seconds[second])
            yield LoadLevel(from_s=float(begin_s), to_s=float(second + 1), begin=rate, end=rate)
            begin_s = second + 1
