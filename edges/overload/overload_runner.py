"""The `overload` runner: a share of a service's capacity, a multiple of it, and the share again."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

from osbench.coordinator.plugins.runners import runner_schema
from osbench.coordinator.plugins.runners.possible_rates import FASTEST, MOST_PLANNED, SLOWEST
from osbench.coordinator.plugins.runners.rates import Stages
from osbench.coordinator.plugins.runners.stages import SHORTEST_S, StagedRate
from osbench.edges.overload.capacity_file import CapacityFileError, capacity_in
from osbench.edges.overload.overload_plan import BACK_TO, FOR_S, TIMES, OverloadPlan, share_of
from osbench.plugin.durations import DURATION

SEARCH = "search"
_LENGTH: Mapping[str, Any] = {**DURATION, "exclusiveMinimum": 0, "maximum": 1e9}
#: Arrivals of a phase below which nothing can be said of it.
_FEWEST = 40


class Overload(StagedRate):
    """Overloads a service, and returns to the load that it held: does it come back?

    The load is `back_to` of the capacity `of` for `before` seconds, `times` the capacity for `for`
    seconds, and `back_to` again for `watch` seconds. Arrivals never wait for each other. `of` is a
    rate, or `search` with the JSON results of a search in `found_in`. At most `max_concurrency`
    iterations (any number unless given) run at once; arrivals beyond that are dropped, and do
    not count.
    """

    NAME: ClassVar[str] = "overload"
    #: The report compares the phases instead; two have the same rate.
    STAGED: ClassVar[bool] = False
    FILES: ClassVar[tuple[str, ...]] = ("found_in",)
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "$schema": runner_schema.DRAFT,
        "type": "object",
        "properties": {
            "of": {
                "type": ["number", "string"],
                "exclusiveMinimum": 0,
                "maximum": FASTEST,
                "description": "the capacity, arrivals per second; or search, as `found_in` has it",
            },
            "found_in": {
                "type": "string",
                "minLength": 1,
                "description": "JSON results of a run of the runner search, for `of: search`;"
                " relative to the folder of the task file",
            },
            "times": {
                "type": "number",
                "exclusiveMinimum": 1,
                "maximum": 1000,
                "description": f"the overload as a multiple of the capacity; {TIMES:g} by default",
            },
            "for": {**_LENGTH, "description": f"seconds of the overload; {FOR_S:g} by default"},
            "back_to": {
                "type": ["number", "string"],
                "exclusiveMinimum": 0,
                "exclusiveMaximum": 1,
                "pattern": r"^\s*[0-9]{1,2}(\.[0-9]{1,6})?\s*%\s*$",
                "description": "the part of the capacity that is held before and after it, such as"
                f" 0.7 or 70 %; {BACK_TO} by default",
            },
            "before": {
                **_LENGTH,
                "description": "seconds of that part before the overload; as `for` by default",
            },
            "watch": {
                **_LENGTH,
                "description": "seconds of that part after it; by default 1.5 times the time in"
                " which a plain backlog drains, and at least as `for`",
            },
            "max_concurrency": runner_schema.MAX_CONCURRENCY,
            "timeout": runner_schema.TIMEOUT,
            "arrivals": runner_schema.ARRIVALS,
            "seed": runner_schema.SEED,
        },
        "required": ["of"],
        "additionalProperties": False,
        "examples": [{"of": 120, "times": 2, "for": 60, "back_to": "70 %"}],
    }

    @classmethod
    def check(cls, config: Mapping[str, Any]) -> list[str]:
        """Return messages on a capacity that is not known, a share of 0, and too few arrivals."""
        if isinstance(config["of"], str) and config["of"] != SEARCH:
            return [f"of is a rate, arrivals per second, or search, got {config['of']!r}"]
        if config["of"] == SEARCH and "found_in" not in config:
            return [
                "of: search needs `found_in`: run a task with the runner search and --json, and"
                " give the file of its results, such as found_in: capacity.json; or write the"
                " capacity as a rate, such as of: 120"
            ]
        if config["of"] != SEARCH and "found_in" in config:
            return ["found_in is for `of: search`: remove one of them"]
        if not share_of(config.get("back_to", BACK_TO)):
            return [f"back_to must be more than 0, got {config['back_to']!r}"]
        try:
            plan = cls(config).plan
        except CapacityFileError as error:
            return [f"found_in: {error}"]
        return list(_faults(plan, float(plan.of_per_s)))

    @classmethod
    def settled(cls, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the configuration with the capacity instead of the file that it is in."""
        if config.get("of") != SEARCH:
            return config
        try:
            capacity = capacity_in(config["found_in"])
        except CapacityFileError:
            return config
        return {**{key: config[key] for key in config if key != "found_in"}, "of": capacity}

    @cached_property
    def plan(self) -> OverloadPlan:
        """Rates and times of the load. Raises CapacityFileError."""
        of = self.config["of"]
        capacity = capacity_in(self.config["found_in"]) if of == SEARCH else float(of)
        return OverloadPlan.of(self.config, capacity)

    @property
    def fault_s(self) -> float:
        """Instant at which the overload begins, seconds after t0; a warm-up has to end before."""
        return self.plan.begin_s

    @cached_property
    def _curve(self) -> Stages:
        return self.plan.curve


def _faults(plan: OverloadPlan, capacity: float) -> list[str]:
    most, least = float(plan.overload_per_s), float(plan.held_per_s)
    if least < SLOWEST or most > FASTEST:
        return [
            f"of must give rates between {SLOWEST:g} and {FASTEST:g} arrivals per second, got"
            f" {capacity:g}"
        ]
    found = [
        f"{name} must be at least {SHORTEST_S:g} seconds, got {float(length_s):g}"
        for name, length_s in (
            ("for", plan.for_s),
            ("before", plan.before_s),
            ("watch", plan.watch_s),
        )
        if length_s < SHORTEST_S
    ]
    found += [
        f"{name} has {float(rate * length_s):.3g} arrivals, and {_FEWEST} are needed to know the"
        f" usual times: make it longer than {_FEWEST / float(rate):.3g} s"
        for name, rate, length_s in (
            ("before", plan.held_per_s, plan.before_s),
            ("watch", plan.held_per_s, plan.watch_s),
        )
        if rate * length_s < _FEWEST
    ]
    total = plan.curve.total
    if not found and total > MOST_PLANNED:
        found.append(f"the load has {float(total):.3g} arrivals; the limit is {MOST_PLANNED:.0e}")
    return found
