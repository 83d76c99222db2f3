"""Rally's plug-ins as a plug-in source; Rally is loaded when the first is requested."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from osbench.common.errors import PluginError, Problem
from osbench.common.plugin.plugin_source import PluginSource, SourceUse
from osbench.common.rally import importing, plugin_hints, plugin_registry, validators
from osbench.common.task import Workload

if TYPE_CHECKING:
    from osbench.common.deployment.record import Deployment
    from osbench.common.plugin.scenario_plugin import ScenarioPlugin

#: Module that adapts each kind, and its function from a name to a class.
_ADAPTED = {
    "context": ("context_adapter", "context_class"),
    "sla": ("sla_adapter", "sla_class"),
    "hook": ("hook_adapter", "hook_class"),
    "trigger": ("trigger_adapter", "trigger_class"),
    "runner": ("runner_adapter", "runner_class"),
    "exporter": ("exporter_adapter", "exporter_class"),
}


class RallySource(PluginSource):
    """Looks plug-ins up in Rally."""

    TITLE: ClassVar[str] = "Rally"

    def __init__(self) -> None:
        self._paths: list[str] = []
        self._faults: list[str] = []

    def divide(self, path: str, imported: Mapping[Path, frozenset[str]]) -> list[Path]:
        """Keep the files that import Rally and not osbench, or the folder that none does."""
        ours, theirs = importing.divide(path, imported)
        self._paths += theirs
        return ours

    def missing(self) -> str:
        """Return how Rally is installed; "" if it is."""
        return "" if importing.installed() else f"not installed: {plugin_hints.INSTALL}"

    def names(self, kind: str) -> frozenset[str]:
        """Return known names of a kind."""
        return plugin_hints.names(kind)

    def why_absent(self, kind: str, name: str) -> str | None:
        """Return why it is missing: removed from Rally, not installed, or too new."""
        return plugin_hints.why_absent(kind, name)

    def ready(self) -> bool:
        """Load Rally and the plug-ins of the paths; return False if it is not installed.

        Raises PluginError if it is not installed and the paths contain plug-ins for it.
        """
        if importing.load(self._paths):
            if not self._faults:
                self._faults = [said for one in importing.own(self._paths) for said in one.faults]
            return True
        if self._paths:
            raise PluginError(
                f"plug-in path {self._paths[0]} holds plug-ins of Rally, which is not installed:"
                f" {plugin_hints.INSTALL}"
            )
        return False

    def faults(self) -> list[str]:
        """Return why files of the paths cannot be used, once Rally is loaded."""
        return list(self._faults)

    def held(self) -> dict[str, list[str]]:
        """Return contents of each file of the paths, as in "scenario Queue.work".

        Raises PluginError if there are such files and Rally is not installed.
        """
        if self._paths:
            self.ready()
        return {
            file: [f"{one.kind} {one.name}" for one in classes if one.name]
            for path in importing.own(self._paths)
            for file, classes in path.classes.items()
        }

    def remedies(self, kind: str) -> list[str]:
        """Return advice on classes without a name, of a kind or of all, once Rally is loaded."""
        return [
            one.remedy
            for path in importing.own(self._paths)
            for classes in path.classes.values()
            for one in classes
            if one.remedy and kind in ("", one.kind)
        ]

    def scenario(self, name: str) -> ScenarioPlugin | None:
        """Return the scenario that Rally calls `name`, or None."""
        if not self.ready():
            return None
        adapter = _module("adapters.scenario_adapter")
        found: ScenarioPlugin | None = adapter.scenario_plugin(name)
        return found

    def get(self, kind: str, name: str) -> type | None:
        """Return the adapter class of the plug-in that Rally calls `name`, or None."""
        if kind not in _ADAPTED or not self.ready():
            return None
        module, function = _ADAPTED[kind]
        found: type | None = getattr(_module(f"adapters.{module}"), function)(name)
        return found

    def full_name(self, kind: str, name: str) -> str:
        """Return `name@platform` of an existing plug-in. Raises PluginError if there is none."""
        if kind not in plugin_registry.BASES or not self.ready():
            raise PluginError(f"there is no {kind} {name!r} in Rally")
        found = plugin_registry.plugin(kind, name)
        if found is None:
            raise PluginError(f"there is no {kind} {name!r} in Rally")
        full: str = found.get_fullname()
        return full

    def titles(self, kind: str) -> dict[str, str]:
        """Return full names and titles of all plug-ins of a kind that are not hidden.

        Empty if Rally is not installed.
        """
        if kind not in plugin_registry.BASES or not self.ready():
            return {}
        return {
            one.get_fullname(): one.get_info()["title"] for one in plugin_registry.plugins(kind)
        }

    def problems(
        self, kind: str, name: str, config: Any = None, workload: Workload | None = None
    ) -> list[str]:
        """Return problems found by the validators of Rally that need no deployment."""
        return validators.problems(kind, name, config, workload=workload)

    def cloud_problems(
        self, uses: Sequence[SourceUse], deployment: Deployment | None
    ) -> list[Problem]:
        """Return problems found by Rally's other validators."""
        found: list[Problem] = _module("cloud_validation").problems(uses, deployment)
        return found

    def unasked(self, uses: Sequence[SourceUse]) -> list[str]:
        """Return platforms and validators that `cloud_problems` would ask for."""
        found: list[str] = _module("cloud_validation").unasked(uses)
        return found


def _module(name: str) -> Any:
    return importlib.import_module(f"osbench.common.rally.{name}")
