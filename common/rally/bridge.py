"""Rally's plug-ins as osbench's; Rally is loaded when the first of them is requested."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from osbench.common.errors import PluginError
from osbench.common.rally import importing, plugin_hints, plugin_registry

if TYPE_CHECKING:
    from osbench.common.plugin.plugins import ScenarioPlugin

#: Module that adapts each kind, and its function from a name to a class.
_ADAPTED = {
    "context": ("context_adapter", "context_class"),
    "sla": ("sla_adapter", "sla_class"),
    "hook": ("hook_adapter", "hook_class"),
    "trigger": ("trigger_adapter", "trigger_class"),
    "runner": ("runner_adapter", "runner_class"),
    "exporter": ("exporter_adapter", "exporter_class"),
}


class Bridge:
    """Looks plug-ins up in Rally. Every method raises PluginError where Rally is broken."""

    def __init__(self, paths: Sequence[str] = ()) -> None:
        self._paths = tuple(paths)
        #: Why files of the paths cannot be used, once Rally is loaded.
        self.faults: list[str] = []

    def ready(self) -> bool:
        """Load Rally and the plug-ins of the paths; False where it is not installed.

        Raises PluginError where it is not installed and the paths contain plug-ins for it.
        """
        if importing.load(self._paths):
            if not self.faults:
                self.faults = [said for one in importing.own(self._paths) for said in one.faults]
            return True
        if self._paths:
            raise PluginError(
                f"plug-in path {self._paths[0]} holds plug-ins of Rally, which is not installed:"
                f" {plugin_hints.INSTALL}"
            )
        return False

    def held(self) -> dict[str, list[str]]:
        """Contents of each file of the paths, as in "scenario Queue.work", once Rally is loaded."""
        return {
            file: [f"{one.kind} {one.name}" for one in classes if one.name]
            for path in importing.own(self._paths)
            for file, classes in path.classes.items()
        }

    def remedies(self, kind: str) -> list[str]:
        """Advice on classes without a name, of a kind or of all, once Rally is loaded."""
        return [
            one.remedy
            for path in importing.own(self._paths)
            for classes in path.classes.values()
            for one in classes
            if one.remedy and kind in ("", one.kind)
        ]

    def scenario(self, name: str) -> ScenarioPlugin | None:
        """The scenario that Rally calls `name`, or None."""
        if not self.ready():
            return None
        found: ScenarioPlugin | None = _module("scenario_adapter").scenario_plugin(name)
        return found

    def get(self, kind: str, name: str) -> type | None:
        """The adapter class of the plug-in that Rally calls `name`, or None."""
        if kind not in _ADAPTED or not self.ready():
            return None
        module, function = _ADAPTED[kind]
        found: type | None = getattr(_module(module), function)(name)
        return found

    def full_name(self, kind: str, name: str) -> str:
        """`name@platform` of an existing plug-in."""
        full: str = self.registered(kind, name).get_fullname()
        return full

    def registered(self, kind: str, name: str) -> Any:
        """Rally's own class of a plug-in. Raises PluginError where there is none."""
        found = (
            plugin_registry.plugin(kind, name)
            if kind in plugin_registry.BASES and self.ready()
            else None
        )
        if found is None:
            raise PluginError(f"there is no {kind} {name!r} in Rally")
        return found

    def titles(self, kind: str) -> dict[str, str]:
        """Full names and titles of all plug-ins of a kind that are not hidden.

        Empty where Rally is not installed.
        """
        if kind not in plugin_registry.BASES or not self.ready():
            return {}
        return {
            one.get_fullname(): one.get_info()["title"] for one in plugin_registry.plugins(kind)
        }


def _module(name: str) -> Any:
    return importlib.import_module(f"osbench.common.rally.adapters.{name}")
