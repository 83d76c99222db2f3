"""The scenario `HttpFlow.run` with groups of steps that are made at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from inspect import cleandoc
from typing import Any, ClassVar

from osbench.common.plugin.scenario import configure
from osbench.edges.flows.group_checks import (
    GROUPED_ARGUMENTS,
    group_mistakes,
    groups_in,
    without_groups,
)
from osbench.worker.scenarios.flow.flow_checks import all_steps
from osbench.worker.scenarios.flow.saved_values import unsaved_names
from osbench.worker.scenarios.http_flow import FLOW, HttpFlow, prepare_steps

_ABOUT_GROUPS = """

Instead of a path, a step may have `parallel`, a list of steps that are made at once. Such a step
has a `name`, and may have `at_once`, `when`, `repeat` and `think`: {name: page, parallel: [{path:
/a}, {path: /b}], at_once: 6}. Its steps see the values that were saved before.
"""


class GroupedHttpFlow(HttpFlow):
    """Scenario of a web user that makes `on_start` once, then steps in each iteration.

    All requests are described in the task, without code. Steps of a group are made at once.
    """

    ARGUMENTS: ClassVar[Mapping[str, Mapping[str, Any]]] = {"run": GROUPED_ARGUMENTS}
    WORKER_MODULES = (
        "osbench.worker.http.user.http_session",
        "osbench.edges.flows.step_groups",
    )

    @classmethod
    def check_arguments(cls, method: str, args: Mapping[str, Any]) -> list[str]:
        """Return a message for each mistake in the arguments; empty without mistakes.

        Looks at groups, and at all that `HttpFlow` looks at, also in their steps.
        """
        found = super().check_arguments(method, without_groups(args))
        if not any(True for _ in groups_in(args)):
            return found
        late = without_groups(args, saved_late=True)
        lists = [late.get(key) or () for key in ("on_start", "steps", "on_stop")]
        branches = [branch["steps"] for branch in late.get("mix", ())]
        unsaved = unsaved_names(lists[0], lists[1], branches, lists[2], late.get("headers"))
        return list(dict.fromkeys([*found, *unsaved, *group_mistakes(args)]))

    @classmethod
    def action_names(cls, method: str, args: Mapping[str, Any]) -> Collection[str] | None:
        """Return the names of actions, as `HttpFlow` does, with groups and their steps."""
        return super().action_names(method, without_groups(args))

    @classmethod
    def check_without_base(cls, method: str, args: Mapping[str, Any]) -> list[str]:
        """Return a message for the first path that needs a base, if the arguments have none."""
        return super().check_without_base(method, without_groups(args))

    @classmethod
    def warm_up(cls, context: dict[str, Any]) -> None:
        """Compile the steps of the workload once per process, before the load, into `context`."""
        # the coordinator, which only checks arguments, needs no HTTP client
        from osbench.edges.flows.step_groups import GroupedFlow  # noqa: PLC0415 - see above

        args = context["args"]
        context[FLOW] = GroupedFlow(args)
        prepare_steps(all_steps(without_groups(args)))

    @configure(name="HttpFlow.run")
    async def run(
        self,
        steps: Sequence[Mapping[str, Any]] = (),
        mix: Sequence[Mapping[str, Any]] = (),
        base: str = "",
        headers: Mapping[str, str] | None = None,
        relogin: Mapping[str, Any] | None = None,
        on_start: Sequence[Mapping[str, Any]] = (),
        on_stop: Sequence[Mapping[str, Any]] = (),
        branch: str = "",
    ) -> None:
        await self._flow.play(self, self._values(), branch)

    # Python 3.13 and later take the indent off docstrings
    run.__doc__ = cleandoc(HttpFlow.run.__doc__ or "") + _ABOUT_GROUPS
