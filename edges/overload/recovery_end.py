"""Completes a recovery for a service whose latency falls by degrees, as a queue drains.

The judge of recoveries names the end of the last stretch that is clearly worse than before. Behind
it, a few iterations may still wait a little, and after a short observation too few follow to be
sure that no other stretch comes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from osbench.coordinator.results.accounting.drill_recovery import ENOUGH, Recovery
from osbench.edges.overload.service_rows import ServiceRows

#: Doubt of a recovery after which hardly anything came.
AT_THE_END = "it was as before for the last moments of the load alone: watch it for longer"
#: Part of the iterations after the return that has to follow a recovery.
_REST = 0.05
#: Successes whose median is compared with the limit.
_FEW = 10
#: A median that is so many times its limit is far above it.
_FAR = 2.0
#: A later stretch that is so short a part of the observation is a moment, and no overload.
_MOMENT = 0.05
#: Moments that are looked for.
_MOMENTS = 5
#: Failures beyond the share before that are as before.
BAD = 0.05


def first_return(
    recovery: Recovery,
    returned_s: float,
    lasted_s: float,
    judge: Callable[[float], Recovery],
) -> tuple[Recovery, tuple[tuple[float, float], ...]]:
    """Return the recovery before short moments of slowness that came later, and these moments.

    A burst of arrivals makes some iterations slow at any load; the service had come back before it.
    `returned_s`, `lasted_s`: the return to the share, and the end of the load; `judge` judges the
    load until a time. All seconds after the overload began.
    """
    moments: list[tuple[float, float]] = []
    while recovery.at_s and recovery.stretch_s is not None and len(moments) < _MOMENTS:
        begin_s, end_s = recovery.stretch_s
        is_short = end_s - begin_s <= _MOMENT * (lasted_s - returned_s)
        if begin_s <= returned_s or not is_short:
            break
        earlier = judge(begin_s)
        if earlier.at_s is None:
            break
        moments.insert(0, (begin_s - returned_s, end_s - returned_s))
        recovery = earlier
    return recovery, tuple(moments)


def full_recovery(
    recovery: Recovery,
    since: ServiceRows,
    bad_before: float,
    returned_s: float,
    touched: float = 0.0,
) -> Recovery:
    """Return a recovery whose interval reaches until the median itself is as before.

    Also gives the time of a recovery that is not sure yet if all iterations after it, and enough of
    them, are as before in p50, p90 and failures; and takes it back if their p50 is above its limit,
    which no single stretch need show in a service whose times depend on each other. `since`:
    iterations since the overload began; `bad_before`: share of failures before it; `returned_s`:
    the return to the share, seconds after the overload began; `touched`: share of iterations after
    it that delays of the generator may have made longer.
    """
    if not recovery.limits:
        return recovery
    limit_s = recovery.limits[0].limit_s
    end_s = recovery.stretch_s[1] if recovery.stretch_s is not None else returned_s
    if recovery.at_s is not None:
        rest = since.between(max(end_s, returned_s), math.inf)
        watched = int(since.between(returned_s, math.inf).ran().sum())
        is_long = int(rest.ran().sum()) >= max(ENOUGH, _REST * watched)
        until_s = len(since.counts()) * since.width_s
        recovery = _taken_back(recovery, rest, touched, until_s)
        if recovery.at_s and not is_long:
            recovery = replace(recovery, at_s=None, ci=None, doubt=AT_THE_END)
    if recovery.stretch_s is None:
        return recovery
    if recovery.at_s is None:
        if not _is_as_before(since.between(end_s, math.inf), recovery, bad_before):
            return recovery
        width_s = since.width_s
        ci = (max(0.0, end_s - 2 * width_s), end_s + width_s)
        recovery = replace(recovery, at_s=end_s, ci=ci, doubt="")
    if recovery.ci is None or recovery.ci[0] is None or recovery.ci[1] is None:
        return recovery
    settled_s = _settled_s(since, recovery.ci[0], limit_s)
    return replace(recovery, ci=(recovery.ci[0], max(recovery.ci[1], settled_s)))


def _taken_back(recovery: Recovery, rest: ServiceRows, touched: float, until_s: float) -> Recovery:
    """Return no recovery if the rest of the load is slower than before; else the same."""
    limit = recovery.limits[0]
    # if some were delayed, the median without delays is at least this lower percentile
    (p50_s,) = rest.percentiles_s(max(0.0, limit.percent - 100 * touched))
    if p50_s is not None and _is_above(p50_s, limit.limit_s, int(rest.well().sum())):
        return replace(recovery, at_s=None, ci=None, stretch_s=(0.0, until_s))
    return recovery


def _is_above(p50_s: float, limit_s: float, number: int) -> bool:
    """Return whether a median of some iterations is above a limit; few must be far above it."""
    return p50_s > limit_s and number >= (ENOUGH if p50_s < _FAR * limit_s else _FEW)


def _is_as_before(rest: ServiceRows, recovery: Recovery, bad_before: float) -> bool:
    ran, well = int(rest.ran().sum()), int(rest.well().sum())
    if well < ENOUGH or (ran - well) / ran > bad_before + BAD:
        return False
    found = rest.percentiles_s(*(one.percent for one in recovery.limits))
    return all(
        value is not None and value <= limit.limit_s
        for value, limit in zip(found, recovery.limits, strict=True)
    )


def _settled_s(since: ServiceRows, from_s: float, limit_s: float) -> float:
    """Return the end of the first few successes from a time on whose median is below a limit.

    Seconds after the overload began; 0 if there are none.
    """
    width_s, bins = since.width_s, len(since.counts())
    begin = int(from_s / width_s)
    end = begin
    while end < bins:
        end += 1
        few = since.between(begin * width_s, end * width_s)
        if few.response.total < _FEW:
            continue
        (p50_s,) = few.percentiles_s(50)
        if p50_s is not None and p50_s <= limit_s:
            return end * width_s
        begin = end
    return 0.0
