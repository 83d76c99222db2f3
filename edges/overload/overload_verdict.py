"""Answers whether a service came back after an overload, from what the judge of drills has found.

The judge of recoveries compares every stretch of time since the overload began with the load before
it, twice: as measured, and without delays and drops of the load generator. An answer is given only
if both lead to it. docs/adr/0064-does-it-come-back.md has the reasons.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from osbench.coordinator.formatting import duration, three_digits
from osbench.coordinator.results.accounting.drill_recovery import ENOUGH, Recovery
from osbench.coordinator.results.statistics.proportions import design_effect
from osbench.edges.overload.drift import CLEAR, LEAST_GROWTH, LITTLE, Block, leads_back, trend_of
from osbench.edges.overload.overload_figures import Answer, Bounds, PhaseState
from osbench.edges.overload.overload_plan import ENOUGH as WATCHED_ENOUGH
from osbench.edges.overload.overload_plan import OverloadPlan
from osbench.edges.overload.recovery_end import BAD

#: Part of the arrivals of a phase that may miss the service without a doubt about its verdict.
_MOST_OWN = 0.05
#: The rate of a phase may differ so much from the plan: more is another load.
_OTHER_RATE = 0.1
#: Blocks as before, as a part of all after the return, that make later trouble a relapse.
_RELAPSE = 0.25


@dataclass(frozen=True, kw_only=True)
class WatchedBlock:
    """A block of time of an observation: its median (None without successes) and failures."""

    at_s: float
    arrivals: float
    p50_s: float | None
    #: Iterations that ran, and that failed or timed out.
    ran: int
    bad: int

    @property
    def bad_share(self) -> float:
        """Failed and timed out iterations as a part of all that ran; 0 without any."""
        return self.bad / self.ran if self.ran else 0.0

    @property
    def timed(self) -> Block | None:
        """The block with its median; None without one."""
        if self.p50_s is None:
            return None
        return Block(at_s=self.at_s, arrivals=self.arrivals, p50_s=self.p50_s)


@dataclass(frozen=True, kw_only=True)
class Observation:
    """An overload as it was seen; times are seconds after t0 unless they say otherwise."""

    plan: OverloadPlan
    #: Due time of the last iteration.
    last_due_s: float
    #: Recoveries as measured, and without what the load generator did; seconds after the overload
    #: began.
    measured: Recovery
    without: Recovery
    #: before, overload, after and end, by name.
    phases: dict[str, PhaseState]
    #: Arrivals per second that were counted in each phase, by name.
    arrivals_per_s: dict[str, float]
    before: Sequence[WatchedBlock]
    after: Sequence[WatchedBlock]
    #: Judges the second half of the time before the overload by its first half.
    halves: Callable[[], Recovery | None]

    @property
    def watched_s(self) -> float:
        """Seconds after the return for which iterations were due."""
        return max(0.0, self.last_due_s - self.plan.return_s)

    def settled(self, from_s: float) -> list[Block]:
        """Return the blocks with a median that begin after an instant, seconds after t0."""
        return [one.timed for one in self.after if one.timed is not None and one.at_s >= from_s]

    @property
    def usual(self) -> list[Block]:
        """Blocks before the overload that have a median."""
        return [one.timed for one in self.before if one.timed is not None]


@dataclass(frozen=True, kw_only=True)
class OverloadVerdict:
    """The answer, why it is not known, and the seconds from the return until all was as before."""

    answer: Answer = Answer.UNKNOWN
    reason: str = ""
    is_generators: bool = False
    back_s: float | None = None
    back_ci: Bounds | None = None
    growth_per_min: float | None = None


def judged(seen: Observation) -> OverloadVerdict:
    """Return the verdict on an overload, from the load that was measured so far."""
    if (unusable := _unusable(seen)) is not None:
        return unusable
    measured, without = _kind(seen.measured), _kind(seen.without)
    if measured is not without:
        return OverloadVerdict(
            reason=f"{_KINDS[measured]} as measured, and {_KINDS[without]} without the delays and"
            " drops of the load generator: use more workers, or raise max_concurrency",
            is_generators=True,
        )
    if measured is Answer.STUCK:
        return _off_at_the_end(seen)
    drops = seen.phases["overload"].own_share
    if measured is Answer.NOT_OVERLOADED and drops > _MOST_OWN:
        return OverloadVerdict(
            reason=f"{three_digits(100 * drops)} % of the arrivals of the overload never reached the"
            " service: raise max_concurrency, or use more workers",
            is_generators=True,
        )
    return _recovered(seen, measured)


_KINDS = {
    Answer.STUCK: "worse than before until the end",
    Answer.BACK: "back",
    Answer.NOT_OVERLOADED: "not overloaded",
}


def _kind(recovery: Recovery) -> Answer:
    if recovery.at_s is None:
        return Answer.STUCK
    return Answer.BACK if recovery.at_s else Answer.NOT_OVERLOADED


def _unusable(seen: Observation) -> OverloadVerdict | None:
    """Return why the load says nothing; None if it can be judged."""
    plan, early = seen.plan, seen.phases["before"]
    if seen.last_due_s <= plan.begin_s:
        return OverloadVerdict(reason="the load ended before the overload")
    if seen.last_due_s <= plan.return_s:
        return OverloadVerdict(reason="the load ended before it returned to its share")
    for name, state in (("before", early), ("overload", seen.phases["overload"])):
        planned = float(plan.overload_per_s if name == "overload" else plan.held_per_s)
        found = seen.arrivals_per_s[name]
        if abs(found - planned) > _OTHER_RATE * planned + _few(planned, state):
            return OverloadVerdict(
                reason=f"the phase `{name}` had {three_digits(found)} arrivals per second, and the"
                f" plan {three_digits(planned)}: the load was changed or interrupted"
            )
    planned, found = float(plan.held_per_s), seen.arrivals_per_s["watch"]
    if abs(found - planned) > _OTHER_RATE * planned + _few(planned, seen.phases["end"]):
        return OverloadVerdict(
            reason=f"after the return there were {three_digits(found)} arrivals per second, and the"
            f" plan has {three_digits(planned)}: the load was changed or interrupted"
        )
    if early.own_share > _MOST_OWN:
        return OverloadVerdict(
            reason=f"{three_digits(100 * early.own_share)} % of the arrivals before the overload"
            " never reached the service: raise max_concurrency, or use more workers",
            is_generators=True,
        )
    if seen.measured.late_before:
        return OverloadVerdict(
            reason="the load generator was late all the time before the overload: use more workers",
            is_generators=True,
        )
    if seen.measured.stretch_s is None and seen.measured.at_s is None:
        return OverloadVerdict(reason=seen.measured.doubt)
    if seen.watched_s * planned < ENOUGH:
        return OverloadVerdict(
            reason=f"it was watched for {duration(seen.watched_s)} after the return: {ENOUGH}"
            " arrivals are needed"
        )
    return None


def _few(planned: float, state: PhaseState) -> float:
    """Return by how much a rate of few random arrivals may differ from the plan, per second."""
    length_s = max(state.to_s - state.from_s, 1e-9)
    return float(5 * (planned / length_s) ** 0.5) + 1 / length_s


def _recovered(seen: Observation, kind: Answer) -> OverloadVerdict:
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
            answer=Answer.LEAK,
            back_s=back_s,
            back_ci=_interval(bounds),
            growth_per_min=_per_min(trend.factor, blocks),
        )
    if kind is Answer.NOT_OVERLOADED:
        return OverloadVerdict(answer=kind)
    return OverloadVerdict(answer=kind, back_s=back_s, back_ci=_interval(bounds))


def _interval(bounds: Sequence[float]) -> Bounds | None:
    return (min(bounds), max(bounds)) if bounds else None


def _off_at_the_end(seen: Observation) -> OverloadVerdict:
    """Return the verdict on a service that is worse than before when the load ends."""
    blocks = _drained(seen.settled(seen.plan.return_s))
    trend = trend_of(blocks)
    early, late = seen.phases["before"], seen.phases["end"]
    fails = (late.bad_share or 0.0) > (early.bad_share or 0.0) + BAD
    is_higher = (late.p50_s or math.inf) < LITTLE * (early.p50_s or 0.0)
    grows = trend is not None and trend.grows(is_higher=is_higher)
    if trend is not None and grows and not fails and leads_back(seen.usual, blocks):
        growth = _per_min(trend.factor, blocks)
        return OverloadVerdict(answer=Answer.LEAK, growth_per_min=growth)
    if (halves := seen.halves()) is not None and halves.at_s is None and halves.stretch_s:
        return OverloadVerdict(
            reason="the service was not steady before the overload: it was worse in the second half"
            " of that time than in the first. Hold a smaller share, or let it warm up"
        )
    if relapse := _as_before(seen):
        return OverloadVerdict(
            reason=f"it was as before for {duration(relapse)} after the return, and is worse again"
            " at the end: watch it for longer"
        )
    if _improves(seen):
        return OverloadVerdict(
            reason=f"it was still recovering when the load ended, {duration(seen.watched_s)} after"
            " the return: watch it for longer"
        )
    if seen.watched_s < WATCHED_ENOUGH * seen.plan.drains_s:
        return OverloadVerdict(
            reason=f"it was watched for {duration(seen.watched_s)} after the return, and a plain"
            f" backlog of this overload takes {duration(seen.plan.drains_s)} to drain: raise `watch`"
        )
    return OverloadVerdict(answer=Answer.STUCK)


def _drained(blocks: list[Block]) -> list[Block]:
    """Return the blocks from the quickest on: before it, the backlog was still worked off."""
    quickest = min(range(len(blocks)), key=lambda at: blocks[at].p50_s, default=0)
    return blocks[quickest:]


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
    bad, ran = zip(*((sum(b.bad for b in p), sum(b.ran for b in p)) for p in (first, second)))
    if not all(ran):
        return False
    share = sum(bad) / sum(ran)
    effect = design_effect(
        np.array([one.bad for one in (*first, *second)]),
        np.array([one.ran for one in (*first, *second)]),
    )
    spread = math.sqrt(effect * share * (1 - share) * (1 / ran[0] + 1 / ran[1]))
    return bad[0] / ran[0] - bad[1] / ran[1] > max(BAD, CLEAR * spread)


def _per_min(factor: float, blocks: Sequence[Block]) -> float:
    """Return the growth per minute as a part of the level."""
    minutes = (blocks[-1].at_s - blocks[0].at_s) / 60
    return float(factor ** (1 / minutes) - 1) if minutes > 0 else 0.0
