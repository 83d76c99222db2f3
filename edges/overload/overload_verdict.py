"""Judges whether a service came back after an overload, from the findings of the judge of drills.

The judge of recoveries compares every stretch of time since the overload began with the load before
it, twice: as measured, and without delays and drops of the load generator. A verdict is given only
if both lead to it. docs/adr/0064-does-it-come-back.md has the reasons.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from osbench.coordinator.formatting import duration, three_digits
from osbench.coordinator.results.accounting.drill_recovery import Recovery
from osbench.coordinator.results.statistics.proportions import design_effect
from osbench.edges.overload.drift import (
    CLEAR,
    LEAST_GROWTH,
    LITTLE,
    TimedBlock,
    leads_back,
    trend_of,
)
from osbench.edges.overload.observation import Observation, WatchedBlock
from osbench.edges.overload.overload_figures import Bounds, OverloadAnswer
from osbench.edges.overload.overload_plan import ENOUGH
from osbench.edges.overload.recovery_end import AT_THE_END, BAD
from osbench.edges.overload.unusable_load import MOST_OWN, faults_of_load, limits_of_generator

#: Blocks as before, as a part of all after the return, that make later trouble a relapse.
_RELAPSE = 0.25
#: A block is as quick as the quickest one if it takes at most so many times as long.
_QUICK = 1.1


@dataclass(frozen=True, kw_only=True)
class OverloadVerdict:
    """The verdict, why it is not known, and the seconds from the return until all was as before."""

    verdict: OverloadAnswer = OverloadAnswer.UNKNOWN
    reason: str = ""
    is_generators: bool = False
    back_s: float | None = None
    back_ci: Bounds | None = None
    growth_per_min: float | None = None


def verdict_on(seen: Observation) -> OverloadVerdict:
    """Return the verdict on an overload, from the load that was measured so far."""
    for reason in limits_of_generator(seen):
        return OverloadVerdict(reason=reason, is_generators=True)
    for reason in faults_of_load(seen):
        return OverloadVerdict(reason=reason)
    measured, without = _kind(seen.measured), _kind(seen.without)
    if measured is not without:
        return OverloadVerdict(
            reason=f"{_KINDS[measured]} as measured, and {_KINDS[without]} without the delays and"
            " drops of the load generator: use more workers, or raise max_concurrency",
            is_generators=True,
        )
    if measured is OverloadAnswer.STUCK:
        return _off_at_the_end(seen)
    # fewer arrivals than planned: it may have come back, or have held out, for lack of them
    for name, when in (("overload", "of the overload"), ("after", _AFTER), ("end", _AFTER)):
        drops = seen.phases[name].own_share
        if drops > MOST_OWN:
            return OverloadVerdict(
                reason=f"{three_digits(100 * drops)} % of the arrivals {when} never reached the"
                " service: raise max_concurrency, or use more workers",
                is_generators=True,
            )
    return _verdict_on_recovery(seen, measured)


_AFTER = "after the return"
_KINDS = {
    OverloadAnswer.STUCK: "worse than before until the end",
    OverloadAnswer.BACK: "back",
    OverloadAnswer.NOT_OVERLOADED: "not overloaded",
}


def _kind(recovery: Recovery) -> OverloadAnswer:
    if recovery.at_s is None:
        return OverloadAnswer.STUCK
    return OverloadAnswer.BACK if recovery.at_s else OverloadAnswer.NOT_OVERLOADED


def _verdict_on_recovery(seen: Observation, kind: OverloadAnswer) -> OverloadVerdict:
    """Return the verdict on a service that is as before at the end, or was so throughout."""
    plan, at_s = seen.plan, seen.without.at_s or 0.0
    back_s = max(0.0, plan.begin_s + at_s - plan.return_s)
    bounds = [
        max(0.0, plan.begin_s + bound - plan.return_s)
        for one in (seen.measured, seen.without)
        for bound in one.ci or ()
        if bound is not None
    ]
    blocks = seen.settled(plan.return_s + back_s)
    trend = trend_of(blocks)
    early, late = (seen.phases[name].p50_s or 0.0 for name in ("before", "end"))
    is_slower = late >= LEAST_GROWTH * early
    if is_slower and trend is not None and trend.grows() and leads_back(seen.usual, blocks):
        return OverloadVerdict(
            verdict=OverloadAnswer.LEAK,
            back_s=back_s,
            back_ci=_interval(bounds),
            growth_per_min=_per_min(trend.factor, blocks),
        )
    if kind is OverloadAnswer.NOT_OVERLOADED:
        return OverloadVerdict(verdict=kind)
    return OverloadVerdict(verdict=kind, back_s=back_s, back_ci=_interval(bounds))


def _interval(bounds: Sequence[float]) -> Bounds | None:
    return (min(bounds), max(bounds)) if bounds else None


def _off_at_the_end(seen: Observation) -> OverloadVerdict:
    """Return the verdict on a service that is worse than before when the load ends."""
    blocks = _blocks_since_drain(seen.settled(seen.plan.return_s))
    trend = trend_of(blocks)
    grows = trend is not None and trend.grows(is_higher=_is_little(seen))
    if trend is not None and grows and not _fails(seen) and leads_back(seen.usual, blocks):
        growth = _per_min(trend.factor, blocks)
        return OverloadVerdict(verdict=OverloadAnswer.LEAK, growth_per_min=growth)
    for reason in _doubts(seen):
        return OverloadVerdict(reason=reason)
    return OverloadVerdict(verdict=OverloadAnswer.STUCK)


def _fails(seen: Observation) -> bool:
    """Return whether more iterations fail at the end than before the overload."""
    early, late = (seen.phases[name].bad_share or 0.0 for name in ("before", "end"))
    return late > early + BAD


def _is_little(seen: Observation) -> bool:
    """Return whether latency at the end is higher than before the overload by a little only."""
    early, late = seen.phases["before"].p50_s, seen.phases["end"].p50_s
    return early is not None and late is not None and late < LITTLE * early


def _doubts(seen: Observation) -> Iterator[str]:
    """Yield the reasons why a service that is worse at the end may not be stuck."""
    watched, plan = duration(seen.watched_s), seen.plan
    halves = seen.halves()
    if halves is not None and halves.at_s is None and halves.stretch_s:
        yield (
            "the service was not steady before the overload: it was worse in the second half of"
            " that time than in the first. Hold a smaller share, or let it warm up"
        )
    if AT_THE_END in (seen.measured.doubt, seen.without.doubt):
        yield AT_THE_END
    if relapse := _as_before(seen):
        yield (
            f"it was as before for {duration(relapse)} after the return, and is worse again at the"
            " end: watch it for longer"
        )
    if _improves(seen):
        yield (
            f"it was still recovering when the load ended, {watched} after the return: watch it for"
            " longer"
        )
    if seen.watched_s < ENOUGH * plan.drains_s:
        yield (
            f"it was watched for {watched} after the return, and a plain backlog of this overload"
            f" takes {duration(plan.drains_s)} to drain: raise `watch`"
        )
    trend = trend_of(_blocks_since_drain(seen.settled(plan.return_s)))
    if _is_little(seen) and not _fails(seen) and (trend is None or trend.may_grow):
        yield (
            "it is a little slower than before, and it is not clear whether it grows: watch it for"
            " longer"
        )


def _blocks_since_drain(blocks: list[TimedBlock]) -> list[TimedBlock]:
    """Return the blocks from the first quick one on: before it, the backlog was worked off."""
    quickest_s = min((one.p50_s for one in blocks), default=0.0)
    first = next((at for at, one in enumerate(blocks) if one.p50_s <= _QUICK * quickest_s), 0)
    return blocks[first:]


def _as_before(seen: Observation) -> float:
    """Return for how many seconds after the return blocks were as before; 0 for a few of them."""
    limit_s = min((one.limit_s for one in seen.measured.limits), default=0.0)
    most = (seen.phases["before"].bad_share or 0.0) + BAD
    fine = [
        one.p50_s is not None and one.p50_s <= limit_s and one.bad_share <= most
        for one in seen.after
    ]
    share = sum(fine) / len(fine) if fine else 0.0
    return share * seen.watched_s if share >= _RELAPSE else 0.0


def _improves(seen: Observation) -> bool:
    """Return whether latency or failures fell in the second half of the observation."""
    half = list(seen.after[len(seen.after) // 2 :])
    trend = trend_of([one.timed for one in half if one.timed is not None])
    first, second = half[: len(half) // 2], half[len(half) // 2 :]
    if not first or not second:
        return False
    fewer = _less_failing(first, second)
    if fewer:
        return True
    return trend is not None and trend.falls and not _less_failing(second, first)


def _less_failing(first: Sequence[WatchedBlock], second: Sequence[WatchedBlock]) -> bool:
    """Return whether clearly fewer fail in some blocks than in the blocks before them."""
    blocks = (*first, *second)
    ran = [sum(one.ran for one in part) for part in (first, second)]
    if not all(ran):
        return False
    shares = [
        sum(one.bad for one in part) / number
        for part, number in zip((first, second), ran, strict=True)
    ]
    share = sum(one.bad for one in blocks) / sum(ran)
    bad_by_block = np.array([one.bad for one in blocks])
    effect = design_effect(bad_by_block, np.array([one.ran for one in blocks]))
    spread = math.sqrt(effect * share * (1 - share) * (1 / ran[0] + 1 / ran[1]))
    return shares[0] - shares[1] > max(BAD, CLEAR * spread)


def _per_min(factor: float, blocks: Sequence[TimedBlock]) -> float:
    """Return the growth per minute as a part of the level."""
    minutes = (blocks[-1].at_s - blocks[0].at_s) / 60
    return float(factor ** (1 / minutes) - 1) if minutes > 0 else 0.0
