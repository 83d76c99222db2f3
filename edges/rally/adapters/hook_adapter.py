"""Rally's hook actions as osbench's: a new instance of their class for each firing."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, ClassVar

from osbench.common.plugin.hook import Event, Failed, Hook
from osbench.edges.rally.adapters.shared import adapter_class, problems

#: Actions that need Rally's database, and what they read from it.
NEEDS_DATABASE: Mapping[str, str] = {
    "fault_injection@openstack": "the configuration of the cloud's nodes in its deployment",
}

#: Statuses of failed actions in Rally that reports know.
_BAD = ("failed", "validation_failed")


def hook_class(name: str) -> type[Hook] | None:
    """Return the adapter class of Rally's action `name` or `name@platform`; imports Rally.

    None if there is none or Rally is not installed. Raises PluginError if Rally is broken, or if
    several platforms have the name.
    """
    return adapter_class(RallyHook, "hook", name)


class RallyTask(dict[str, Any]):
    """A substitute for Rally's task object: it has the run's id as `uuid`, and no database.

    A key that it lacks raises LookupError.
    """

    def __init__(self, run: str) -> None:
        super().__init__(uuid=run)

    def __missing__(self, key: str) -> Any:
        raise LookupError(
            f"the task's {key} is in Rally's database, which osbench lacks; use a plug-in that "
            "does not read it"
        )

    @property
    def task(self) -> RallyTask:
        """Return itself: Rally's object has its values there."""
        return self

    def result_has_valid_schema(self, result: Any) -> bool:
        """Return whether a runner's result of an iteration is as Rally wants it."""
        task: Any = importlib.import_module("rally.common.objects").Task
        return bool(task.result_has_valid_schema(self, result))


class RallyHook(Hook):
    """Base class of adapters of Rally's hook actions. An action cannot be ended early."""

    #: Rally's class.
    RALLY: ClassVar[Any]

    @classmethod
    def check_config(cls, config: Any) -> list[str]:
        """Return problems of the configuration that Rally's validators find; [] without any.

        For an action that needs Rally's database: one message that it cannot run here.
        """
        wanted = NEEDS_DATABASE.get(cls.RALLY.get_fullname())
        if wanted:
            return [f"cannot run here: it reads {wanted} from Rally's database; use sys_call"]
        return problems("hook", cls.RALLY, config)

    def run(self, event: Event) -> Mapping[str, Any] | None:
        """Run Rally's action and return its charts, or None.

        Raises Failed with the error and output that Rally's class reports if it did not succeed.
        """
        cause = {"event_type": event.unit, "value": event.value}
        action = self.RALLY(RallyTask(event.run), self.config, cause)
        action.run()
        result = action.result()
        output: Mapping[str, Any] | None = result.get("output")
        error = result.get("error")
        if error or result["status"] != "success":
            error = error or {}
            raise Failed(
                str(error.get("msg") or f"the action ended as {result['status']}"),
                output,
                etype=str(error.get("etype") or "Failed"),
                details=str(error.get("details") or ""),
                status=result["status"] if result["status"] in _BAD else "failed",
            )
        return output
