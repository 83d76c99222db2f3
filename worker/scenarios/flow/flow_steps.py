"""Steps of a flow, compiled from the task: each sends a request and handles its response."""

from __future__ import annotations

import itertools
import random
from bisect import bisect
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from osbench.common.network.origins import is_http
from osbench.common.plugin.atomic import ActionTimer
from osbench.common.plugin.request_values import as_text
from osbench.common.plugin.scenario import Scenario
from osbench.common.secrets.hiding import HIDDEN
from osbench.worker.http.user.expectations import UnexpectedStatus
from osbench.worker.http.user.http_response import HttpResponse
from osbench.worker.scenarios.flow import multipart_body
from osbench.worker.scenarios.flow.flow_checks import RELOGIN, name_of
from osbench.worker.scenarios.flow.placeholders import (
    Fill,
    FilledValues,
    MissingValue,
    filler,
)
from osbench.worker.scenarios.flow.response_parts import (
    NothingToSave,
    ResponseParts,
    hidden_in,
)

__all__ = ["Flow", "NothingToSave"]

#: Keys of a step that are keyword arguments of `self.http`, and what these are called there.
_PASSED = {
    "query": "params",
    "form": "data",
    **dict.fromkeys(("json", "headers", "check", "verify", "expect", "stream", "timeout")),
}

#: Keyword arguments that are written as forms are.
_FORMS = ("params", "data")

#: Logs the virtual user in once more.
Relogin = Callable[[Scenario, FilledValues], Awaitable[None]]


@dataclass(frozen=True, kw_only=True)
class CommonParts:
    """The settings of a flow that apply to all of its steps."""

    #: Headers by name.
    headers: Mapping[str, str]
    #: Status codes by which a virtual user logs in again.
    relogin: Collection[int]

    @classmethod
    def of(cls, args: Mapping[str, Any]) -> CommonParts:
        """Return the settings made of `args`, the arguments of a flow, which fit its schema."""
        return cls(headers=args.get("headers", {}), relogin=_codes(args.get("relogin")))


@dataclass(frozen=True, kw_only=True)
class FlowStep:
    """A compiled step of a flow: a request, its conditions, and parts of the response to save."""

    name: str
    method: str
    path: Fill
    wishes: Fill
    multipart: Fill | None
    #: Headers that the step has of its flow.
    headers: Sequence[tuple[str, Fill]]
    #: The saved parts of the response, by the name under which they are saved.
    save: Mapping[str, str]
    #: Status codes by which the user logs in again, and the request is made once more.
    relogin: Collection[int]
    #: Seconds to think after the step: the least, and the greatest.
    think: tuple[float, float] | None
    #: The step is made if this is true; None: always.
    when: Fill | None
    repeat: Fill
    #: It has no condition, repetition, saved part or pause, so `play` only calls `send`.
    is_plain: bool

    @classmethod
    def of(cls, step: Mapping[str, Any], common: CommonParts) -> FlowStep:
        """Return a step of a task, which fits the schema, compiled.

        Its own headers and relogin replace the flow's, which are in `common`.
        """
        wishes = {_PASSED[key] or key: value for key, value in step.items() if key in _PASSED}
        own = {str(name).lower() for name in step.get("headers", ())}
        return cls(
            name=name_of(step),
            method=step.get("method", "GET"),
            path=filler(step["path"]),
            wishes=filler(wishes),
            multipart=filler(step["multipart"]) if "multipart" in step else None,
            headers=[
                (name, filler(value))
                for name, value in common.headers.items()
                if name.lower() not in own
            ],
            save=step.get("save", {}),
            relogin=_codes(step["relogin"]) if "relogin" in step else common.relogin,
            think=_bounds(step.get("think")),
            when=filler(step["when"]) if "when" in step else None,
            repeat=filler(step.get("repeat", 1)),
            is_plain=not step.keys() & {"when", "repeat", "save", "think"},
        )

    async def play(
        self, scenario: Scenario, values: FilledValues, relogin: Relogin | None = None
    ) -> None:
        """Send the request `repeat` times; after each response save parts of it, then think.

        Does nothing if `when` is given and not true. `values` fill the placeholders; parts are
        saved in `values["saved"]`. If `relogin` is given and a response has an unexpected status
        code of the step's relogin, `relogin` is awaited and the request sent once more. Raises the
        exceptions of requests, placeholders and saved parts, and ValueError for a bad `repeat`.
        """
        for _ in range(self._times(values)):
            response = await self.send(scenario, values, relogin is not None)
            if response is None:
                assert relogin is not None
                await relogin(scenario, values)
                response = await self.send(scenario, values)
            assert response is not None
            saved = values["saved"]
            assert isinstance(saved, dict)
            if self.save:
                parts = ResponseParts(response, scenario, self.name)
                saved.update({name: parts.take(name, source) for name, source in self.save.items()})
            if self.think is not None:
                await scenario.think(*self.think)

    async def send(
        self, scenario: Scenario, values: FilledValues, may_login: bool = False
    ) -> HttpResponse | None:
        """Send the request once and return its response, which has an expected status.

        Returns None if `may_login` and the step's relogin names the status code that was not
        expected. Secret values that are saved from the response are hidden in messages. Raises
        UnexpectedStatus, MissingValue, ValueError and other errors of requests.
        """
        user, save = scenario.user, self.save
        if save or user.hidden:
            HIDDEN.set(lambda text: hidden_in(text, user, save))
        elif HIDDEN.get() is not None:
            HIDDEN.set(None)
        path, wishes = as_text(self.path(values)), self.wishes(values)
        headers = {**self._common_headers(scenario, path, values), **wishes.get("headers", {})}
        wishes = {**wishes, **{key: _as_form(wishes[key]) for key in _FORMS if key in wishes}}
        if self.multipart is not None:
            body, kind = multipart_body.encoded_body(self.multipart(values))
            if not any(name.lower() == "content-type" for name in headers):
                headers["Content-Type"] = kind
            wishes = {**wishes, "data": body}
        if headers:
            # a placeholder has a value of any type
            wishes = {**wishes, "headers": _as_texts(headers)}
        wishes = {**wishes, "name": self.name}
        sent = scenario.http.request(self.method, path, **wishes)
        # thousands wait for their responses, each with all that its frames keep
        del wishes, headers, path
        try:
            response: HttpResponse = await sent
        except UnexpectedStatus as error:
            if may_login and error.status in self.relogin:
                return None
            raise
        return response

    def _common_headers(
        self, scenario: Scenario, path: str, values: FilledValues
    ) -> dict[str, Any]:
        """Return the flow's headers for this step, with placeholders filled in from `values`.

        A header with a placeholder that has no value yet is left out. {} if `path` is an absolute
        URL of another origin (scheme, host, port) than the base URL; without a base URL all may
        have them.
        """
        found: dict[str, Any] = {}
        if not self.headers or not _is_home(scenario, path):
            return found
        for name, fill in self.headers:
            try:
                found[name] = fill(values)
            except MissingValue:
                # a token, before the step that gets it
                continue
        return found

    def _times(self, values: FilledValues) -> int:
        """Return how often to send the request, by `repeat`; 0 is allowed, and if `when` is false.

        Raises ValueError if `repeat` is not a count.
        """
        if self.when is not None and not _holds(self.when(values)):
            return 0
        given = self.repeat(values)
        try:
            times = int(given)
        except (TypeError, ValueError, OverflowError):
            times = -1
        if times < 0:
            raise ValueError(f"{self.name}: repeat must be an integer from 0, got {given!r}")
        return times


@dataclass(frozen=True, kw_only=True)
class FlowBranch:
    """A branch of the mix: a list of steps that iterations play in proportion to its weight."""

    name: str
    steps: Sequence[FlowStep]

    @property
    def is_its_step(self) -> bool:
        """Return whether the branch is a single step with the branch's name.

        Then the branch is not timed as a separate action.
        """
        return len(self.steps) == 1 and self.steps[0].name == self.name


class Flow:
    """All compiled steps of a workload's flow, shared by its virtual users."""

    def __init__(self, args: Mapping[str, Any]) -> None:
        """Compile the steps in `args`, the arguments of the scenario, which fit its schema."""
        self.base: str = args.get("base", "")
        common = CommonParts.of(args)
        self._on_start = self.compiled(args.get("on_start", ()), common)
        self._on_stop = self.compiled(args.get("on_stop", ()), common)
        self._steps = self.compiled(args.get("steps", ()), common)
        mix = args.get("mix", ())
        self._branches = [
            FlowBranch(name=one["name"], steps=self.compiled(one["steps"], common)) for one in mix
        ]
        self._by_name = {branch.name: branch for branch in self._branches}
        self._sums = list(itertools.accumulate(float(one.get("weight", 1)) for one in mix))

    def compiled(
        self, steps: Sequence[Mapping[str, Any]], common: CommonParts
    ) -> Sequence[FlowStep]:
        """Return the steps of a list of the task, compiled; an edge may know further kinds."""
        return [FlowStep.of(step, common) for step in steps]

    async def start(self, scenario: Scenario, values: FilledValues) -> None:
        """Play the steps of `on_start`, in order, without `relogin`.

        An exception of a step is raised at once; the steps after it are not played.
        """
        for step in self._on_start:
            await step.play(scenario, values)

    async def stop(self, scenario: Scenario, values: FilledValues) -> None:
        """Play the steps of `on_stop`, in order.

        An exception of a step is raised at once; the steps after it are not played.
        """
        await self._played(self._on_stop, scenario, values)

    async def play(self, scenario: Scenario, values: FilledValues, branch_name: str = "") -> None:
        """Play one iteration: all steps, then the steps of a branch of mix, if there is a mix.

        The branch is `branch_name`, or with "" drawn at random by weight. It is an atomic action,
        unless it is a single step of the same name. `values` fill the placeholders; steps add saved
        values. Raises KeyError if no branch has that name, and exceptions of steps.
        """
        # not by `_played`: each frame of a waiting user takes memory
        for step in self._steps:
            if step.is_plain and not step.relogin:
                await step.send(scenario, values)
            else:
                await step.play(scenario, values, self._login_again)
        if self._sums:
            branch = self._by_name[branch_name] if branch_name else self._drawn()
            if branch.is_its_step:
                await self._played(branch.steps, scenario, values)
                return
            with ActionTimer(scenario, branch.name):
                await self._played(branch.steps, scenario, values)

    def _drawn(self) -> FlowBranch:
        at = bisect(self._sums, random.random() * self._sums[-1])  # noqa: S311 - load
        return self._branches[min(at, len(self._branches) - 1)]

    async def _played(
        self, steps: Sequence[FlowStep], scenario: Scenario, values: FilledValues
    ) -> None:
        for step in steps:
            await step.play(scenario, values, self._login_again)

    async def _login_again(self, scenario: Scenario, values: FilledValues) -> None:
        """Play `on_start` once more, as action `relogin`, after removing the values it saves.

        If it fails, all saved values are as before and the exception is raised.
        """
        saved = values["saved"]
        assert isinstance(saved, dict)
        before = dict(saved)
        for step in self._on_start:
            for name in step.save:
                saved.pop(name, None)
        try:
            with ActionTimer(scenario, RELOGIN):
                await self.start(scenario, values)
        except BaseException:
            # the next iteration is refused as this one was, and tries again
            saved.clear()
            saved.update(before)
            raise


def _codes(relogin: Mapping[str, Any] | None) -> frozenset[int]:
    on = relogin["on"] if relogin else ()
    return frozenset([on] if isinstance(on, int) else on)


def _is_home(scenario: Scenario, path: str) -> bool:
    """Return whether a request may carry the flow's headers: its origin is the base's.

    Also True if there is no base, or `path` is not an absolute URL.
    """
    base = scenario.http.base
    return not base.url or not is_http(path) or base.is_below(path)


def _as_texts(headers: Mapping[str, Any]) -> dict[str, str]:
    return {name: as_text(value) for name, value in headers.items()}


def _as_form(fields: Any) -> Any:
    """Return the fields of a query or form with values as texts; None leaves a field out."""
    if not isinstance(fields, Mapping):
        return fields
    return {name: _as_values(value) for name, value in fields.items()}


def _as_values(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_as_values(inner) for inner in value]
    return None if value is None else as_text(value)


def _bounds(think: Any) -> tuple[float, float] | None:
    if think is None:
        return None
    if isinstance(think, Mapping):
        return float(think["min"]), float(think.get("max", think["min"]))
    return float(think), float(think)


def _holds(value: Any) -> bool:
    """Return whether a filled-in `when` is true: not empty, false, 0, no or none, in any case."""
    return bool(value) and str(value).strip().lower() not in ("", "false", "0", "no", "none")
