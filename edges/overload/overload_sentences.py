"""An overload in words: the verdict, limits, figures that have stayed up, and the generator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from osbench.coordinator.formatting import duration, three_digits
from osbench.coordinator.results.accounting.counter_figures import value_text
from osbench.coordinator.results.accounting.drill_figures import SlowLimit
from osbench.edges.overload.overload_figures import (
    HeldFigure,
    OverloadAnswer,
    OverloadFigures,
    PhaseState,
)

#: Figures that have stayed changed, in one sentence.
_HELD = 3
#: Part of the arrivals of a phase that is worth a word.
_LITTLE = 0.001


def sentences_of(found: OverloadFigures, limits: Sequence[SlowLimit]) -> Iterator[str]:
    """Yield the figures of an overload as messages, the verdict first."""
    yield verdict_text(found)
    if found.moments and found.back_s is not None:
        spans = ", ".join(f"{duration(begin)} to {duration(end)}" for begin, end in found.moments)
        yield f"worse again for a moment, after the return: {spans}"
    if found.held_by:
        held = "; ".join(held_text(one) for one in found.held_by[:_HELD])
        yield f"still changed at the end: {held}"
    if limits:
        words = " or ".join(
            f"p{one.percent:g} above {duration(one.limit_s)} (before: {duration(one.before_s)})"
            for one in limits
        )
        yield f"slow means {words}, from the start of an iteration to its end"


def verdict_text(found: OverloadFigures) -> str:
    """Return the verdict with its figures as one message."""
    held, most = (three_digits(one) for one in (found.held_per_s, found.overload_per_s))
    watched = f"watched {duration(found.watched_s)} after the return"
    if found.verdict is OverloadAnswer.UNKNOWN:
        return f"unknown: {found.reason}"
    if found.verdict is OverloadAnswer.NOT_OVERLOADED:
        return (
            f"not overloaded: {most}/s had no effect, so it is not beyond the capacity; raise"
            " `times` or `of`"
        )
    if found.verdict is OverloadAnswer.STUCK:
        return (
            f"stuck at {held}/s, the load that it held before: {_comparison(found)}; {watched}, and"
            f" a plain backlog takes {duration(found.drains_s)}"
        )
    back = "" if found.back_s is None else _back(found)
    if found.verdict is OverloadAnswer.LEAK:
        growth = three_digits(100 * (found.growth_per_min or 0.0))
        return (
            f"leak: at {held}/s p50 grows by {growth} % per minute, and the overload is not why:"
            f" {_comparison(found)}; {back}{', ' if back else ''}{watched}"
        )
    return f"back at {held}/s: {back}; {watched}"


def _back(found: OverloadFigures) -> str:
    most = three_digits(found.overload_per_s)
    if not found.back_s:
        return f"as before as soon as the load returned from {most}/s"
    text = f"as before {duration(found.back_s)} after the return from {most}/s"
    if found.back_ci is None:
        return text
    low, high = found.back_ci
    return f"{text} (95 %: {duration(low)} to {duration(high)})"


def _comparison(found: OverloadFigures) -> str:
    phases = {one.name: one for one in found.phases}
    before, end = phases.get("before", PhaseState()), phases.get("end", PhaseState())
    text = f"p50 is {duration(end.p50_s)} (before: {duration(before.p50_s)})"
    if end.p50_s is None:
        text = "no iteration succeeds"
    if (end.bad_share or 0.0) > (before.bad_share or 0.0):
        text += f" and {_percent(end.bad_share)} fail (before: {_percent(before.bad_share)})"
    return text


def held_text(one: HeldFigure) -> str:
    """Return a figure that has stayed changed, with its values before, during and at the end."""
    values = [
        "-" if value is None else value_text(value, one.unit)
        for value in (one.before, one.overload, one.end)
    ]
    return f"{one.name} {values[0]} before, {values[1]} in the overload, {values[2]} at the end"


def generator_text(told: str, found: OverloadFigures) -> str:
    """Return delays and drops of the load generator itself as one message; "" for nothing.

    `told`: the message of the drill. Drops at a limit of the task are the task's, and are named.
    """
    missed = [
        f"{_percent(one.own_share)} of {one.name}"
        for one in found.phases
        if one.own_share > _LITTLE
    ]
    parts = [part for part in told.split("; ") if "did not succeed because" not in part and part]
    if missed:
        parts.append(
            "arrivals that never reached the service, dropped by limits of the task or the"
            f" generator, do not count: {', '.join(missed)}"
        )
    return "; ".join(parts)


def _percent(share: float | None) -> str:
    return f"{three_digits(100 * (share or 0.0))} %"
