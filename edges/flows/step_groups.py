"""Groups of steps of a flow that are made at once, as the requests of a page or a dashboard."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from osbench.common.plugin.atomic import ActionTimer
from osbench.common.plugin.scenario import Scenario
from osbench.common.secrets.hiding import HIDDEN
from osbench.edges.flows.member_values import MemberValues, SharedLogin
from osbench.worker.engine.failures import resource_of
from osbench.worker.scenarios.flow.flow_steps import CommonParts, Flow, FlowStep, Relogin
from osbench.worker.scenarios.flow.placeholders import FilledValues
from osbench.worker.scenarios.flow.response_parts import hidden_in

#: Keys of a group that are not keys of a step.
PARALLEL, AT_ONCE = "parallel", "at_once"


class MemberFailed(Exception):
    """Raised if a step of a group failed by an exception whose message cannot be changed."""


@dataclass(frozen=True, kw_only=True)
class StepGroup(FlowStep):
    """Steps that are made at once, below an atomic action with the name of the group.

    Its `save` has the saved parts of all members. It sends no request itself.
    """

    members: Sequence[FlowStep]
    #: Most members that are made at the same time.
    at_once: int

    @classmethod
    def of(cls, step: Mapping[str, Any], common: CommonParts) -> StepGroup:
        """Return a step with `parallel`, which fits the schema, compiled with its members."""
        head = {key: value for key, value in step.items() if key not in (PARALLEL, AT_ONCE)}
        members = [FlowStep.of(member, common) for member in step[PARALLEL]]
        alone = FlowStep.of({**head, "path": ""}, common)
        own = {field.name: getattr(alone, field.name) for field in fields(alone)}
        own["save"] = {name: part for member in members for name, part in member.save.items()}
        # `Flow.play` sends plain steps itself
        own["is_plain"] = False
        return cls(**own, members=members, at_once=step.get(AT_ONCE, len(members)))

    async def play(
        self, scenario: Scenario, values: FilledValues, relogin: Relogin | None = None
    ) -> None:
        """Make all members at once, `repeat` times, each time until all have ended; then think.

        Does nothing if `when` is given and not true. Members see the values that were saved before;
        their own are in `values` afterwards, also if a member fails. Raises the exception of the
        first member, by order, that failed, but rather one for want of the host's resources: its
        message begins with the names of group and member, and ends with how many failed. If the
        caller is cancelled, all members are.
        """
        for _ in range(self._times(values)):
            with ActionTimer(scenario, self.name):
                await self._play_members(scenario, values, relogin)
            if self.think is not None:
                await scenario.think(*self.think)

    async def _play_members(
        self, scenario: Scenario, values: FilledValues, relogin: Relogin | None
    ) -> None:
        turns = asyncio.Semaphore(self.at_once)
        login = SharedLogin(relogin, values) if relogin is not None else None
        seen = [MemberValues(values) for _ in self.members]

        async def make(member: FlowStep, own: MemberValues) -> None:
            async with turns:
                await member.play(scenario, own, login)

        pairs = zip(self.members, seen, strict=True)
        tasks = [asyncio.create_task(make(member, own)) for member, own in pairs]
        try:
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        except asyncio.CancelledError:
            # the iteration has timed out: no member goes on without it
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            raise
        saved = values["saved"]
        assert isinstance(saved, dict)
        for own in seen:
            saved.update(own.saved.own)
        user, save = scenario.user, self.save
        if save or user.hidden:
            # each member has set it in its own task
            HIDDEN.set(lambda text: hidden_in(text, user, save))
        failed = [(number, error) for number, error in enumerate(ended) if error is not None]
        if failed:
            # that the generator lacks something counts for the iteration, not as the service's
            lacking = (one for one in failed if resource_of(one[1]))
            number, error = next(lacking, failed[0])
            raise self._placed_error(self.members[number].name, error, len(failed))

    def _placed_error(self, member: str, error: BaseException, failed: int) -> BaseException:
        """Return the exception to raise for `error` of a member, with its place in the message.

        It is the same exception if its message is its only argument.
        """
        said = str(error)
        named = said if said.startswith(member) else f"{member}: {said}"
        text = f"{self.name} > {named} ({failed} of {len(self.members)} steps at once failed)"
        if error.args == (said,):
            error.args = (text,)
            return error
        found = MemberFailed(text)
        found.__cause__ = error
        return found


class GroupedFlow(Flow):
    """A flow whose steps may be groups."""

    def compiled(
        self, steps: Sequence[Mapping[str, Any]], common: CommonParts
    ) -> Sequence[FlowStep]:
        return [(StepGroup if PARALLEL in step else FlowStep).of(step, common) for step in steps]
