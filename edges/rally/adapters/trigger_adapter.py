"""Rally's triggers as osbench's: they get each value, and run a substitute for the action."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from osbench.common.plugin.trigger import LEAST, Trigger
from osbench.edges.rally.adapters.hook_adapter import RallyTask
from osbench.edges.rally.adapters.shared import adapter_class, problems


def trigger_class(name: str) -> type[Trigger] | None:
    """Return the adapter class of Rally's trigger `name` or `name@platform`; imports Rally.

    None if there is none or Rally is not installed. Raises PluginError if Rally is broken, or if
    several platforms have the name.
    """
    return adapter_class(RallyTrigger, "trigger", name)


class _ActionRecorder:
    """A substitute for Rally's action class: stores the values at which the action would run."""

    def __init__(self) -> None:
        self.values: list[int] = []

    def __call__(self, task: Any, config: Any, triggered_by: Mapping[str, Any]) -> _ActionRecorder:
        self.values.append(int(triggered_by["value"]))
        return self

    def run_async(self) -> None:
        """Do nothing: osbench runs the hook's action itself."""

    #: Rally's triggers log the name of the action.
    __name__ = "action"

    def get_name(self) -> str:
        """Return "action", the action's name in Rally's log."""
        return "action"


class RallyTrigger(Trigger):
    """Base class of adapters: a trigger class of Rally decides when the hook fires."""

    #: Rally's class.
    RALLY: ClassVar[Any]

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self._recorder = _ActionRecorder()
        # Rally's own write their defaults into the configuration
        named = (self.NAME, copy.deepcopy(dict(config)))
        described = {"action": ("action", None), "trigger": named, "description": ""}
        self._trigger = self.RALLY(described, RallyTask(""), self._recorder)
        self.unit = str(self._trigger.get_listening_event())

    @classmethod
    def check_config(cls, config: Any) -> list[str]:
        """Return problems that Rally's validators find, or a message on an unknown unit.

        Units are "time" and "iteration".
        """
        found = problems("trigger", cls.RALLY, config)
        if not found and (unit := cls(config).unit) not in LEAST:
            found = [f"listens to {unit}; there are {' and '.join(LEAST)}"]
        return found

    def due(self, after: int, until: int) -> Sequence[int]:
        """Return the values from `after` + 1 to `until` at which Rally's trigger would fire.

        Passes each value to the trigger as an event, from the least of its unit (`LEAST`) on.
        """
        for value in range(max(after + 1, LEAST[self.unit]), until + 1):
            self._trigger.on_event(self.unit, value)
        found, self._recorder.values = self._recorder.values, []
        return found
