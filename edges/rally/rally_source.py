"""Rally's plug-ins as a plug-in source; Rally is imported when the first is requested."""

from __future__ import annotations

import functools
import importlib
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from osbench.common.config.rally_conf import configuration_file
from osbench.common.errors import PluginError, Problem
from osbench.common.plugin.plugin_source import PluginSource, SourceUse
from osbench.common.task import Workload
from osbench.edges.rally import configuration, importing, plugin_hints, plugin_registry, validators

if TYPE_CHECKING:
    from osbench.common.deployment.record import Deployment
    from osbench.common.plugin.scenario_plugin import ScenarioPlugin

_LOG = logging.getLogger(__name__)

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
    """The plug-in source "rally": finds plug-ins in Rally, and returns adapter classes for them."""

    TITLE: ClassVar[str] = "Rally"

    def __init__(self) -> None:
        self._paths: list[str] = []
        self._faults: list[str] = []

    def divide(self, path: str, imported: Mapping[Path, frozenset[str]]) -> list[Path]:
        """Store the paths under `path` that Rally is to import; return the files for osbench.

        `importing.divide` has the rule; `imported`: the names that each file imports.
        """
        ours, theirs = importing.divide(path, imported)
        self._paths += theirs
        return ours

    def missing(self) -> str:
        """Return "not installed: " and the command to install Rally; "" if it is installed."""
        return "" if importing.is_installed() else f"not installed: {plugin_hints.INSTALL}"

    def names(self, kind: str) -> frozenset[str]:
        """Return the names of Rally's plug-ins of a kind in osbench's table, installed or not."""
        return plugin_hints.names(kind)

    def why_absent(self, kind: str, name: str) -> str | None:
        """Return why a plug-in is missing: removed from Rally, not installed, or too new.

        None if Rally never had it.
        """
        return plugin_hints.why_absent(kind, name)

    def ready(self) -> bool:
        """Import Rally and the plug-in paths, once; return whether Rally is installed.

        Raises PluginError if it is not installed and there are paths with plug-ins for it, or if it
        is broken.
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
        """Return messages on plug-in files that Rally could not import; [] before the import."""
        return list(self._faults)

    def held(self) -> dict[str, list[str]]:
        """Return the plug-ins of each file for Rally, as "scenario Queue.work"; imports the files.

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
        """Return advice on plug-in classes without a name, of one kind, or of all if `kind` is "".

        [] before Rally is imported.
        """
        return [
            one.remedy
            for path in importing.own(self._paths)
            for classes in path.classes.values()
            for one in classes
            if one.remedy and kind in ("", one.kind)
        ]

    def scenario(self, name: str) -> ScenarioPlugin | None:
        """Return Rally's scenario `name`; None without scenario or Rally. Raises PluginError."""
        if not self.ready():
            return None
        adapter = _module("adapters.scenario_adapter")
        found: ScenarioPlugin | None = adapter.scenario_plugin(name)
        return found

    def get(self, kind: str, name: str) -> type | None:
        """Return a plug-in's adapter class; None without plug-in or Rally. Raises PluginError."""
        if kind not in _ADAPTED or not self.ready():
            return None
        module, function = _ADAPTED[kind]
        found: type | None = getattr(_module(f"adapters.{module}"), function)(name)
        return found

    def full_name(self, kind: str, name: str) -> str:
        """Return a plug-in's name `name@platform`. Raises PluginError without plug-in or Rally."""
        known = kind in plugin_registry.BASES and self.ready()
        found = plugin_registry.plugin(kind, name) if known else None
        if found is None:
            raise PluginError(
                f"there is no {kind} {name!r} in Rally; see `osbench-coord plugin list {kind} "
                "--rally`"
            )
        full: str = found.get_fullname()
        return full

    def titles(self, kind: str) -> dict[str, str]:
        """Return the titles of Rally's plug-ins of a kind that are not hidden, by full name.

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
        """Return problems that Rally's validators find without a deployment; [] without any.

        A scenario's validators get its `workload`, others `config`. Options of Rally's
        configuration file without effect are logged, once per process.
        """
        _warn_of_options()
        return validators.problems(kind, name, config, workload=workload)

    def cloud_problems(
        self, uses: Sequence[SourceUse], deployment: Deployment | None
    ) -> list[Problem]:
        """Return problems that Rally's validators find with a deployment.

        May send requests to the cloud.
        """
        found: list[Problem] = _module("cloud_validation").problems(uses, deployment)
        return found

    def task_in_names(self, made: Mapping[str, Any]) -> str:
        """Return the beginning of the owner's id in names that Rally gives; "" if not of Rally.

        `made`: the stored results of a context. Raises ContextError or ValueError if they cannot be
        read.
        """
        found: str = _module("context_object.environment").task_in_names(made)
        return found

    def unasked(self, uses: Sequence[SourceUse]) -> list[str]:
        """Return the names of platforms and validators that `cloud_problems` would check."""
        found: list[str] = _module("cloud_validation").unasked_checks(uses)
        return found


@functools.cache
def _warn_of_options() -> None:
    file = configuration_file()
    if file is not None and importing.load():
        unused = configuration.unused_options(file)
        if unused:
            _LOG.warning("%s: no effect in osbench: %s", file, ", ".join(unused))


def _module(name: str) -> Any:
    return importlib.import_module(f"osbench.edges.rally.{name}")
