"""Messages that summarize why traces are slow."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from osbench.coordinator.formatting import count, plain, spaced
from osbench.edges.traces.analysis.features import ITERATION
from osbench.edges.traces.analysis.quantiles import ENOUGH, LEAST, limits
from osbench.edges.traces.model.span_keys import WAIT_QUEUE, WAIT_SERVICE, SpanKey

if TYPE_CHECKING:
    from collections.abc import Sequence

    from osbench.edges.traces.analysis.bands import Band
    from osbench.edges.traces.analysis.slow_causes import Cause, RepeatedCalls

#: Least part of the excess for its kind, more calls or slower calls, to be named alone.
_MOSTLY = 0.7

#: Causes are about equal if the largest is at most this many times the smallest.
_ABOUT_EQUAL = 2.5
_NUMBERS = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six"}

#: Least share of the slow traces with a call for its number of calls to be compared; below it, the
#: share of traces with the call is reported.
_ALL = 0.995
#: Least mean number of calls, in traces that have any, for the number to be reported.
_SEVERAL = 1.5


def why_slow(band: Band, unit: str) -> str:
    """Return text on why the traces of a band are slow: clear causes with their 95 % intervals.

    `unit` is the word for a trace in the singular. Without a clear cause, the text says so and
    names the largest part of the excess, if there is an excess.
    """
    slower = (
        f"{band_name(band.name, unit)} take {spaced(band.mean_s)} on average,"
        f" {spaced(band.excess_s)} more than those around the median"
    )
    if parts := _parts(band):
        return f"{slower}{_several([share for share, _ in parts])}: {_join(parts)}."
    if not band.causes or band.excess_s <= 0:
        return f"{slower}; no single cause stands out."
    first = band.causes[0]
    share = _share(first.share, first.share_interval)
    return (
        f"{slower}; no single cause stands out: the largest part, {share}, is {words(first.key)}."
    )


def _parts(band: Band) -> list[tuple[float, str]]:
    """Return share and text of each clear cause, largest share first."""
    repeated = {key for one in band.repeated for key in one.keys}
    found = [(one.share, _repetition(one)) for one in band.repeated]
    found += [(one.share, _part(one)) for one in band.named if one.key not in repeated]
    return sorted(found, key=lambda part: -part[0])


def _join(parts: Sequence[tuple[float, str]]) -> str:
    return "; and ".join(text for _, text in parts)


def _several(shares: Sequence[float]) -> str:
    """Return text that causes with these shares (0 to 1) are about equal; "" if they are not."""
    if len(shares) < 2 or max(shares) > _ABOUT_EQUAL * min(shares):
        return ""
    return f"; {_NUMBERS.get(len(shares), len(shares))} causes of about equal weight"


def _part(cause: Cause) -> str:
    share = _share(cause.share, cause.share_interval)
    return f"{share} of that is {words(cause.key)}{_on_host(cause)}, {_how(cause)}"


def _repetition(calls: RepeatedCalls) -> str:
    first = calls.first
    return (
        f"{_share(calls.share, calls.share_interval)} of that is {words(first.key)}"
        f"{_on_host(first)} and the rest of the same calls, {_more_calls(first)}"
    )


def _on_host(cause: Cause) -> str:
    return f" on host {plain(cause.host)}" if cause.host else ""


def too_few(traces: int, slow: int, unit: str) -> str:
    """Return the text that there are too few slow traces, with the number of traces still needed.

    `traces` and `slow` are the numbers of successful traces and of slow ones; `unit` is the word
    for a trace in the singular.
    """
    least = ENOUGH * 100 // (100 - LEAST)
    more = count(max(least - traces, ENOUGH - slow, 1), f"more {unit}")
    if unit == ITERATION:
        more += " that succeeds" if more.startswith("1 ") else " that succeed"
    else:
        more += " of successful iterations"
    return (
        f"Too few slow {unit}s for an explanation: {count(slow)} of {count(traces)} are at p{LEAST}"
        f" or above, {ENOUGH} are needed; it takes {more}."
    )


def no_verdict(odd: str, other: str) -> str:
    """Return the text that there is no verdict on a group, as clocks could not be corrected.

    `odd` is the host whose clock is more likely wrong, `other` the host it was compared with.
    """
    return (
        f"No verdict: the clocks of {plain(odd)} and {plain(other)} moved against each other from"
        " call to call, so times on these hosts cannot be compared; synchronize their clocks"
        " (NTP) and run again."
    )


def gaps(incomplete: int, traces: int, which: str = "traces") -> str:
    """Return a note, to be appended to a text, that most traces are incomplete and are compared.

    More than half are, `incomplete` of `traces`; "" if `incomplete` is 0. `which`: word for them.
    """
    if not incomplete:
        return ""
    return (
        f" Most of the {which}, {count(incomplete)} of {count(traces)}, are incomplete and are"
        " compared all the same: the time of missing spans counts for the spans around them."
    )


#: A note if the compared traces have no time of a service.
UNANSWERED = (
    " There are no spans of services: their time counts for the steps that called them"
    " (see the notes of the run)."
)


def words(key: SpanKey) -> str:
    """Return a key as text for a message: service, name and detail.

    For a wait: "waiting for SERVICE (from ...)", or "waiting in the queue to SERVICE (from ...)".
    """
    if key.what in (WAIT_SERVICE, WAIT_QUEUE):
        caller, _, callee = key.who.partition(" -> ")
        where = "in the queue to" if key.what == WAIT_QUEUE else "for"
        return plain(f"waiting {where} {callee} (from {caller}, {key.about})")
    return plain(str(key))


def band_name(name: str, unit: str) -> str:
    """Return the name of a band of traces as the subject of a text; `unit`: its singular noun.

    Such as "The slowest 3 % of traces (p97+)", "p95-p97 traces" and "Failed traces".
    """
    if name == "failed":
        return f"Failed {unit}s"
    if name.endswith("+"):
        return f"The slowest {100 - limits(name)[0]} % of {unit}s ({name})"
    return f"{name} {unit}s"


def _share(share: float, interval: tuple[float, float]) -> str:
    low, high = map(percent, interval)
    return f"{percent(share)} % (95 %: {low} to {high} %)"


def percent(share: float) -> str:
    """Return a fraction as text in percent, rounded, without "%"; "?" if it is not finite."""
    # rounds small negative values to 0
    return f"{round(100 * share)}" if math.isfinite(share) else "?"


def _how(cause: Cause) -> str:
    """Return text on how a cause takes longer: by more calls, by longer calls, or by both."""
    each_slow = cause.slow_s / cause.calls_slow if cause.calls_slow else 0.0
    each_base = cause.base_s / cause.calls_base if cause.calls_base else 0.0
    more = _more_calls(cause)
    slower = f"{spaced(each_slow)} a call instead of {spaced(each_base)}"
    if cause.more_calls_s >= _MOSTLY * cause.excess_s:
        return more
    return slower if cause.slower_calls_s >= _MOSTLY * cause.excess_s else f"{more} and {slower}"


def _more_calls(cause: Cause) -> str:
    """Return text that compares the mean numbers of calls per trace, slow and normal.

    If less than 99.5 % of either have the call, compares the percentages that have it instead.
    """
    if min(cause.occurs_slow, cause.occurs_base) >= _ALL:
        number = f"{cause.calls_slow:.3g}"
        calls = "call" if number == "1" else "calls"
        return f"{number} {calls} instead of {cause.calls_base:.3g}"
    each = cause.calls_slow / cause.occurs_slow if cause.occurs_slow else 0.0
    several = f" ({each:.3g} calls each)" if each >= _SEVERAL else ""
    slow, base = _occurs(cause.occurs_slow), _occurs(cause.occurs_base)
    return f"in {slow} of the slow ones{several}, in {base} of the normal ones"


def _occurs(share: float) -> str:
    if not share or share == 1:
        return "all" if share else "none"
    if share < 0.01:
        return f"{100 * share:.1g} %"
    # not all of them: never 100 %
    return f"{min(100 * share, 99.9):.{1 if share > 0.99 else 0}f} %"
