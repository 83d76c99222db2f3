"""Reasons why a load says nothing on the service: it was another load, or osbench's own limits."""

from __future__ import annotations

import math
from collections.abc import Iterator

from osbench.coordinator.formatting import duration, three_digits
from osbench.coordinator.results.accounting.drill_recovery import ENOUGH
from osbench.edges.overload.observation import Observation

#: Part of the arrivals of a phase that may miss the service without a doubt about its verdict.
MOST_OWN = 0.05
#: The rate of a phase may differ so much from the plan: more is another load.
_OTHER_RATE = 0.1
#: Standard deviations by which a number of random arrivals may differ as well.
_BY_CHANCE = 5.0


def faults_of_load(seen: Observation) -> Iterator[str]:
    """Yield the reasons why the load was not the planned one, or is too short."""
    plan = seen.plan
    if seen.last_due_s <= plan.begin_s:
        yield "the load ended before the overload"
        return
    if seen.last_due_s <= plan.return_s:
        yield "the load ended before it returned to its share"
        return
    yield from _other_rates(seen)
    if seen.watched_s * float(plan.held_per_s) < ENOUGH:
        yield (
            f"it was watched for {duration(seen.watched_s)} after the return: {ENOUGH} arrivals"
            " are needed"
        )
    if seen.measured.stretch_s is None and seen.measured.at_s is None:
        yield seen.measured.doubt


def _other_rates(seen: Observation) -> Iterator[str]:
    held, most = float(seen.plan.held_per_s), float(seen.plan.overload_per_s)
    before, overload = seen.phases["before"], seen.phases["overload"]
    for name, planned, length_s in (
        ("before", held, before.to_s - before.from_s),
        ("overload", most, overload.to_s - overload.from_s),
        ("watch", held, seen.watched_s),
    ):
        found = seen.arrivals_per_s[name]
        one = 1 / max(length_s, 1e-9)
        allowed = _OTHER_RATE * planned + _BY_CHANCE * math.sqrt(planned * one) + one
        if abs(found - planned) > allowed:
            yield (
                f"{_IN[name]} {three_digits(found)} arrivals per second were counted, and"
                f" {three_digits(planned)} planned: the load was changed, interrupted or lost"
            )


_IN = {
    "before": "before the overload",
    "overload": "in the overload",
    "watch": "after the return",
}


def limits_of_generator(seen: Observation) -> Iterator[str]:
    """Yield the reasons why the load before the overload shows the generator, not the service."""
    own = seen.phases["before"].own_share
    if own > MOST_OWN:
        yield (
            f"{three_digits(100 * own)} % of the arrivals before the overload never reached the"
            " service: raise max_concurrency, or use more workers"
        )
    if seen.measured.late_before:
        yield (
            "the load generator was late for most of the time before the overload: make `before`"
            " longer, or use more workers"
        )
