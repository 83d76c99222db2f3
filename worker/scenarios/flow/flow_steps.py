"""Steps of a flow, compiled from the task: a request each, and what is done with its answer."""

from __future__ import annotations

import itertools
import random
from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from osbench.common.plugin.atomic import ActionTimer
from osbench.common.plugin.scenario import Scenario
from osbench.worker.http import jsonpath
from osbench.worker.http.user.http_response import HttpResponse
from osbench.worker.scenarios.flow.placeholders import Fill, Values, filler

#: Keys of a step that are keyword arguments of `self.http`, and what these are called there.
_PASSED = {
    "query": "params",
    "form": "data",
    **dict.fromkeys(("json", "headers", "check", "verify", "expect", "stream", "timeout")),
}


class NothingToSave(ValueError):
    """The answer does not have what a step is to save."""


@dataclass(frozen=True, kw_only=True)
class FlowStep:
    """A request of a flow."""

    name: str
    method: str
    path: Fill
    wishes: Fill
    #: What of the answer is kept, by the name under which it is.
    save: Mapping[str, str]
    #: Seconds to think after the step: the least, and the greatest.
    think: tuple[float, float] | None
    #: The step is made where this is true; None: always.
    when: Fill | None
    repeat: Fill

    @classmethod
    def of(cls, step: Mapping[str, Any]) -> FlowStep:
        """Compile a step that fits the schema."""
        wishes = {_PASSED[key] or key: value for key, value in step.items() if key in _PASSED}
        return cls(
            name=step.get("name", ""),
            method=step.get("method", "GET"),
            path=filler(step["path"]),
            wishes=filler(wishes),
            save=step.get("save", {}),
            think=_bounds(step.get("think")),
            when=filler(step["when"]) if "when" in step else None,
            repeat=filler(step.get("repeat", 1)),
        )

    async def play(self, scenario: Scenario, values: Values) -> None:
        """Make the request, as often as it is to be. Raises what the request does."""
        if self.when is not None and not _holds(self.when(values)):
            return
        for _ in range(self._times(values)):
            wishes = self.wishes(values)
            if "headers" in wishes:
                # a placeholder has a value of any type
                wishes = {**wishes, "headers": _as_texts(wishes["headers"])}
            if self.name:
                wishes = {**wishes, "name": self.name}
            made = scenario.http.request(self.method, str(self.path(values)), **wishes)
            answer: HttpResponse = await made
            saved = values["saved"]
            assert isinstance(saved, dict)
            for name, source in self.save.items():
                saved[name] = _taken(answer, source, self.name or self.method)
            if self.think is not None:
                await scenario.think(*self.think)

    def _times(self, values: Values) -> int:
        """How often the request is made. Raises ValueError."""
        given = self.repeat(values)
        try:
            times = int(given)
        except (TypeError, ValueError, OverflowError):
            times = -1
        if times < 0:
            at = self.name or self.method
            raise ValueError(f"{at}: repeat is {given!r}, not a whole number from 0")
        return times


@dataclass(frozen=True, kw_only=True)
class FlowBranch:
    """Steps that an iteration makes as often as their weight says."""

    name: str
    steps: Sequence[FlowStep]


class Flow:
    """All steps of a workload."""

    def __init__(self, args: Mapping[str, Any]) -> None:
        """`args` are the arguments of the scenario, which fit its schema."""
        self.base: str = args.get("base", "")
        self.on_start = _steps(args.get("on_start", ()))
        self.on_stop = _steps(args.get("on_stop", ()))
        self._steps = _steps(args.get("steps", ()))
        mix = args.get("mix", ())
        self._branches = [FlowBranch(name=one["name"], steps=_steps(one["steps"])) for one in mix]
        self._sums = list(itertools.accumulate(float(one.get("weight", 1)) for one in mix))

    async def play(self, scenario: Scenario, values: Values) -> None:
        """One iteration: the steps, then one branch of the mix."""
        await played(self._steps, scenario, values)
        if self._sums:
            at = bisect(self._sums, random.random() * self._sums[-1])  # noqa: S311 - load
            branch = self._branches[min(at, len(self._branches) - 1)]
            with ActionTimer(scenario, branch.name):
                await played(branch.steps, scenario, values)


async def played(steps: Sequence[FlowStep], scenario: Scenario, values: Values) -> None:
    """Make steps one after another."""
    for step in steps:
        await step.play(scenario, values)


def _steps(steps: Sequence[Mapping[str, Any]]) -> list[FlowStep]:
    return [FlowStep.of(step) for step in steps]


def _as_texts(headers: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in headers.items()}


def _bounds(think: Any) -> tuple[float, float] | None:
    if think is None:
        return None
    if isinstance(think, Mapping):
        return float(think["min"]), float(think.get("max", think["min"]))
    return float(think), float(think)


def _holds(value: Any) -> bool:
    """Whether a filled-in condition is true; texts that say no are not."""
    return bool(value) and str(value).strip().lower() not in ("", "false", "0", "no", "none")


def _taken(answer: HttpResponse, source: str, step: str) -> Any:
    if source.lower().startswith("header "):
        value = answer.headers.get(source[7:].strip())
        found = [] if value is None else [value]
    elif source.lower().startswith("cookie "):
        raise NothingToSave(f"{step}: cookies are kept by themselves")
    else:
        try:
            found = jsonpath.values(answer.json(), source)
        except jsonpath.BadPath:
            raise
        except ValueError:
            raise NothingToSave(f"{step}: the answer is not JSON, nothing is at {source}") from None
    if not found:
        raise NothingToSave(f"{step}: the answer has nothing at {source}")
    return found[0]
