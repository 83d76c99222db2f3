"""The `search` runner: finds the highest arrival rate at which the SLA criteria are met."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from osbench.coordinator.plugins.runners import runner_schema
from osbench.coordinator.plugins.runners.possible_rates import FASTEST, SLOWEST
from osbench.coordinator.plugins.runners.threshold import ThresholdFit
from osbench.plugin import runner
from osbench.plugin.durations import DURATION

#: Defaults of the task's settings.
PRECISION, HOLD_S, REPEATS, MOST_TRIALS = 0.1, 30.0, 1, 40
#: Part of `hold` that comes before it and does not count.
SETTLE = 0.2
#: From one rate to the next until one breaks.
GROWTH = 2.0
#: An end of the range is the result once it broke, or held, so often more than not.
SURE = 2
#: Quantiles of the capacity's distribution at which trials are made: the outer ones show how much
#: chance there is in a trial.
NEXT = (0.1, 0.5, 0.9)

_RATE: Mapping[str, Any] = {
    "type": "number",
    "minimum": SLOWEST,
    "maximum": FASTEST,
}


class Search(runner.SearchingRunner):
    """Looks for the highest arrival rate at which the workload's SLA criteria are met.

    It begins with `low`, doubles the rate until a criterion breaks, or up to `high`, and then tries
    rates in between. A rate is kept for `hold` seconds after `settle` seconds that do not count,
    `repeats` times in a row. It ends when the capacity is known to `precision` (0.1 is 10 %) with
    95 %, or is outside the range, or after `max_trials` trials. At most `max_concurrency`
    iterations run at once.
    """

    NAME: ClassVar[str] = "search"
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "$schema": runner_schema.DRAFT,
        "type": "object",
        "properties": {
            "low": {**_RATE, "description": "arrivals per second to begin with"},
            "high": {**_RATE, "description": "no higher rate is tried, arrivals per second"},
            "precision": {
                "type": "number",
                "minimum": 0.01,
                "maximum": 1,
                "description": "width of the interval of the capacity by which the search ends, "
                f"as a part of it; {PRECISION:g} by default",
            },
            "hold": {
                **DURATION,
                "minimum": 1,
                "description": f"seconds for which a rate is judged; {HOLD_S:g} by default",
            },
            "settle": {
                **DURATION,
                "minimum": 0,
                "description": "seconds of a trial before it is judged; a fifth of hold by default",
            },
            "repeats": {
                "type": "integer",
                "minimum": 1,
                "maximum": 20,
                "description": f"trials of each rate; {REPEATS} by default",
            },
            "max_trials": {
                "type": "integer",
                "minimum": 3,
                "maximum": 1000,
                "description": "the search ends after so many trials, however wide the interval "
                f"is; {MOST_TRIALS} by default",
            },
            "max_concurrency": runner_schema.MAX_CONCURRENCY,
            "timeout": runner_schema.TIMEOUT,
            "arrivals": runner_schema.ARRIVALS,
            "seed": runner_schema.SEED,
        },
        "required": ["low", "high"],
        "additionalProperties": False,
    }

    @classmethod
    def check(cls, config: Mapping[str, Any]) -> list[str]:
        """Return a message unless `low` is less than `high`."""
        low, high = config["low"], config["high"]
        return [] if low < high else [f"low must be less than high, got {low:g} and {high:g}"]

    @classmethod
    def notes(cls, config: Mapping[str, Any]) -> list[str]:
        """Return a note if a seed is given for even arrivals."""
        return runner_schema.seed_without_effect(config)

    @property
    def hold_s(self) -> float:
        """Return the seconds of a trial that are judged."""
        return float(self.config.get("hold", HOLD_S))

    @property
    def settle_s(self) -> float:
        """Return the seconds at the beginning of a trial that are not judged."""
        return float(self.config.get("settle", SETTLE * self.hold_s))

    @property
    def most_rate(self) -> float:
        """Return `high`, the highest rate to try, arrivals per second."""
        return self._range[1]

    @property
    def _range(self) -> tuple[float, float]:
        return float(self.config["low"]), float(self.config["high"])

    def next_rate(self, trials: Sequence[runner.Trial]) -> float | None:
        """Return the rate of the next trial, arrivals per second; None if the search is over.

        `trials` are all trials so far, in order. The search is over after `max_trials`, or if the
        capacity is below `low`, above `high` or known to `precision`.
        """
        if len(trials) >= int(self.config.get("max_trials", MOST_TRIALS)) or self._end(trials):
            return None
        low, high = self._range
        broken = [trial.rate for trial in trials if not trial.held]
        if not trials:
            return low
        last = trials[-1].rate
        # an end of the range is a separate result, which needs more than one trial
        if len(trials) % self._repeats or self._is_end(trials):
            return last
        if not broken:
            return min(high, GROWTH * last)
        at = NEXT[len(trials) // self._repeats % len(NEXT)]
        fit = ThresholdFit(low, high).of([(one.rate, one.held) for one in trials], at)
        if fit.high / fit.low <= 1 + self._precision:
            return None
        # never above a rate that the way up has found too high
        return _rounded_rate(min(max(fit.next, low), high, max(broken, default=high)))

    @property
    def _repeats(self) -> int:
        return int(self.config.get("repeats", REPEATS))

    @property
    def _precision(self) -> float:
        return float(self.config.get("precision", PRECISION))

    def _is_end(self, trials: Sequence[runner.Trial]) -> bool:
        """Return whether the last trial was at an end of the range that is the result so far.

        That is `low` if more trials at it broke the SLA than met it, `high` if more met it.
        """
        low, high = self._range
        held, broken = _held_rates(trials), _broken_rates(trials)
        at_low = trials[-1].rate == low and broken[low] > held[low]
        return at_low or (trials[-1].rate == high and held[high] > broken[high])

    def _end(self, trials: Sequence[runner.Trial]) -> str:
        """Return whether the capacity is outside the range: "below" `low`, "above" `high`, or "".

        "below" if trials at `low` broke the SLA at least `SURE` times more than they met it;
        "above" if trials at `high` met it at least `SURE` times more than they broke it.
        """
        low, high = self._range
        held, broken = _held_rates(trials), _broken_rates(trials)
        if broken[low] - held[low] >= SURE:
            return "below"
        return "above" if held[high] - broken[high] >= SURE else ""

    def found(self, trials: Sequence[runner.Trial]) -> runner.Capacity:
        """Return the capacity that the trials so far show, in arrivals per second.

        `rate` and its interval are None if the capacity is below `low` or above `high`, if no rate
        has broken the SLA, or if none has met it: then there is only a bound.
        """
        if not trials:
            return runner.Capacity(kind="unfinished")
        low, high = self._range
        fit = ThresholdFit(low, high).of([(one.rate, one.held) for one in trials])
        held, broken = _held_rates(trials), _broken_rates(trials)
        rates = sorted({trial.rate for trial in trials})
        best = max((rate for rate in rates if held[rate] > broken[rate]), default=None)
        worse = [
            rate for rate in rates if broken[rate] >= held[rate] and (best is None or rate > best)
        ]
        end = self._end(trials)
        precise = fit.high / fit.low <= 1 + self._precision
        kind = "unfinished" if self.next_rate(trials) is not None else end or "found"
        if kind == "found" and not (held and broken):
            # ended by `max_trials`
            kind = "above" if held else "below"
        # if no rate broke, or none held, the fit only describes its range
        known = kind in ("found", "unfinished") and bool(held and broken)
        return runner.Capacity(
            kind=kind,
            rate=fit.median if known else None,
            low=fit.low if known else None,
            high=fit.high if known else None,
            held=best,
            broke=min(worse, default=None),
            precise=precise or bool(end),
            advice=self._advice(kind, best),
        )

    def _advice(self, kind: str, best: float | None) -> str:
        if kind == "below":
            return "lower `low`"
        if kind != "above":
            return ""
        return "raise `high`" if best == self._range[1] else "raise `max_trials`"


def _held_rates(trials: Sequence[runner.Trial]) -> Counter[float]:
    return Counter(trial.rate for trial in trials if trial.held)


def _broken_rates(trials: Sequence[runner.Trial]) -> Counter[float]:
    return Counter(trial.rate for trial in trials if not trial.held)


def _rounded_rate(rate: float) -> float:
    return float(f"{rate:.4g}")
