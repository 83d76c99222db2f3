"""The `search` runner: finds the highest load, a rate or users, at which the criteria are met."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from osbench.coordinator.plugins.runners import runner_schema
from osbench.coordinator.plugins.runners.possible_rates import FASTEST, SLOWEST
from osbench.coordinator.plugins.runners.user_stages import MOST_USERS
from osbench.edges.capacity.threshold import Threshold, ThresholdFit
from osbench.plugin import runner
from osbench.plugin.durations import DURATION

#: Defaults of the task's settings.
PRECISION, HOLD_S, REPEATS, MOST_TRIALS = 0.1, 30.0, 1, 40
#: Seconds of a part of a trial, at most.
MOST_S = 1e9
#: Part of `hold` that comes before it and does not count.
SETTLE = 0.2
#: Seconds in which the first work reaches the users of a trial, at least.
BEGIN_S = 0.5
#: From one rate to the next until one breaks.
GROWTH = 2.0
#: An end of the range is the result once it broke, or held, so often more than not.
SURE = 2
#: Quantiles of the capacity's distribution at which trials are made: the outer ones show how much
#: chance there is in a trial.
NEXT = (0.1, 0.5, 0.9)

#: Keys that only a search for a rate has.
OF_RATES = ("low", "high", "max_concurrency", "arrivals", "seed")

_RATE: Mapping[str, Any] = {
    "type": "number",
    "minimum": SLOWEST,
    "maximum": FASTEST,
}
#: Keys of other runners, and the key of a search.
_ELSEWHERE: Mapping[str, str] = {
    "concurrency": "a search for virtual users has `users: {low: 1, high: 100}`",
    "vus": "a search for virtual users has `users: {low: 1, high: 100}`",
    "rate": "the range of rates is `low` and `high`",
    "rps": "the range of rates is `low` and `high`",
    "duration": "the time for which a load is judged is `hold`",
    "ramp_up": "the time before a load is judged is `settle`",
    "think": "`think: {min: 1s}` is a key of the workload, next to `runner`",
    "warmup": "the time before a load is judged is `settle`",
}
_USERS: Mapping[str, Any] = {"type": "integer", "minimum": 1, "maximum": MOST_USERS}


class Search(runner.SearchingRunner):
    """Looks for the highest load at which the workload's SLA criteria are met.

    The load is a rate of arrivals, between `low` and `high`, or with `users` a number of virtual
    users at once. The search begins with `low`, doubles the load until a criterion breaks, or up to
    `high`, and then tries loads in between. A load is kept for `hold` seconds after `settle`
    seconds that do not count, `repeats` times in a row. It ends when the capacity is known to
    `precision` (0.1 is 10 %; at least one user) with 95 %, or is outside the range, or after
    `max_trials` trials. At most `max_concurrency` iterations of a rate run at once.
    """

    NAME: ClassVar[str] = "search"
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "$schema": runner_schema.DRAFT,
        "type": "object",
        "properties": {
            "low": {**_RATE, "description": "arrivals per second to begin with"},
            "high": {**_RATE, "description": "no higher rate is tried, arrivals per second"},
            "users": {
                "type": "object",
                "description": "a search for virtual users at once, instead of a rate",
                "properties": {
                    "low": {**_USERS, "description": "virtual users to begin with"},
                    "high": {**_USERS, "description": "no more virtual users are tried"},
                },
                "required": ["low", "high"],
                "additionalProperties": False,
            },
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
                "maximum": MOST_S,
                "description": f"seconds for which a load is judged; {HOLD_S:g} by default",
            },
            "settle": {
                **DURATION,
                "minimum": 0,
                "maximum": MOST_S,
                "description": "seconds of a trial before it is judged; a fifth of hold by default",
            },
            "repeats": {
                "type": "integer",
                "minimum": 1,
                "maximum": 20,
                "description": f"trials of each load; {REPEATS} by default",
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
        "additionalProperties": False,
        "elsewhere": _ELSEWHERE,
    }

    def __new__(cls, config: Mapping[str, Any]) -> Search:
        """Return a search for users if `config` has them, as pathlib's Path chooses its class."""
        return super().__new__(UserSearch if cls is Search and "users" in config else cls)

    @classmethod
    def check(cls, config: Mapping[str, Any]) -> list[str]:
        """Return messages if the range is empty, missing, or of rates and users at once."""
        mixed = [key for key in OF_RATES if key in config]
        if "users" in config and mixed:
            return [
                f"users is a search for virtual users at once, and {', '.join(mixed)} "
                f"{'is' if len(mixed) == 1 else 'are'} for rates: leave out "
                f"{'either' if 'low' in mixed or 'high' in mixed else ', '.join(mixed)}"
            ]
        bounds = config.get("users", config)
        missing = [key for key in ("low", "high") if key not in bounds]
        if missing:
            are = "is" if len(missing) == 1 else "are"
            return [
                f"{' and '.join(missing)} {are} missing: give low and high for rates, or "
                "users: {low: 1, high: 100} for virtual users at once"
            ]
        low, high = bounds["low"], bounds["high"]
        within = "users." if "users" in config else ""
        if low < high:
            return []
        return [f"{within}low must be less than {within}high, got {low:g} and {high:g}"]

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
        """Return `high`, the highest load to try: arrivals per second, or virtual users."""
        return self._range[1]

    @property
    def _range(self) -> tuple[float, float]:
        bounds = self.config.get("users", self.config)
        return float(bounds["low"]), float(bounds["high"])

    def next_rate(self, trials: Sequence[runner.Trial]) -> float | None:
        """Return the load of the next trial, rate or users; None if the search is over.

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
        if self._is_precise(fit):
            return None
        # never above a rate that the way up has found too high
        return self._rounded(min(max(fit.next, low), high, max(broken, default=high)))

    @property
    def _repeats(self) -> int:
        return int(self.config.get("repeats", REPEATS))

    def _is_precise(self, fit: Threshold) -> bool:
        return fit.high / fit.low <= 1 + float(self.config.get("precision", PRECISION))

    def _rounded(self, load: float) -> float:
        return float(f"{load:.4g}")

    def _found_load(self, load: float) -> float:
        """Return an estimate in the unit of the search, as `found` reports it."""
        return load

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
        """Return the capacity that the trials so far show, in arrivals per second or users.

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
        precise = self._is_precise(fit)
        kind = "unfinished" if self.next_rate(trials) is not None else end or "found"
        if kind == "found" and not (held and broken):
            # ended by `max_trials`
            kind = "above" if held else "below"
        # if no rate broke, or none held, the fit only describes its range
        known = kind in ("found", "unfinished") and bool(held and broken)
        return runner.Capacity(
            kind=kind,
            rate=self._found_load(fit.median) if known else None,
            low=self._found_load(fit.low) if known else None,
            high=self._found_load(fit.high) if known else None,
            held=best,
            broke=min(worse, default=None),
            precise=precise or bool(end),
            advice=self._advice(kind, best),
        )

    def _advice(self, kind: str, best: float | None) -> str:
        if kind == "below":
            # a load needs a user
            return "lower `low`" if self.OPEN or self._range[0] > 1 else ""
        if kind != "above":
            return ""
        return "raise `high`" if best == self._range[1] else "raise `max_trials`"


class UserSearch(Search):
    """A search for the most virtual users at once, made by `Search` for the key `users`.

    Numbers of users are whole. The capacity is the greatest number that is sustained as often as
    not: the threshold of the fit, rounded down.
    """

    OPEN: ClassVar[bool] = False

    @property
    def concurrency(self) -> int:
        """Return the most virtual users that are tried, which workers have to carry."""
        return int(self.most_rate)

    @property
    def settle_s(self) -> float:
        """Return the seconds of a trial that are not judged, at least `BEGIN_S`."""
        return max(BEGIN_S, super().settle_s)

    def _is_precise(self, fit: Threshold) -> bool:
        # a number of users and the next one are as near as two can be
        return super()._is_precise(fit) or int(fit.high) - int(fit.low) <= 1

    def _rounded(self, load: float) -> float:
        return float(round(load))

    def _found_load(self, load: float) -> float:
        return float(int(load))


def _held_rates(trials: Sequence[runner.Trial]) -> Counter[float]:
    return Counter(trial.rate for trial in trials if trial.held)


def _broken_rates(trials: Sequence[runner.Trial]) -> Counter[float]:
    return Counter(trial.rate for trial in trials if not trial.held)
