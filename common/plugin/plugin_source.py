"""The interface of sources: frameworks, such as Rally, whose plug-ins osbench runs.

A source is a class without arguments and an entry point `osbench.source`. It is loaded when a task
names a plug-in of it, or a plug-in that is not found elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from osbench.common.errors import PluginError, Problem
from osbench.common.plugin.entry_points import definitions
from osbench.common.task import Workload

if TYPE_CHECKING:
    from osbench.common.deployment.record import Deployment
    from osbench.common.plugin.scenario_plugin import ScenarioPlugin


@dataclass(frozen=True, kw_only=True)
class SourceUse:
    """A plug-in of a source (Rally) as a task uses it: with its configuration or workload."""

    kind: str
    #: The name that the source knows.
    name: str
    config: Any
    #: Its place in the file.
    place: str
    #: Set for a scenario, which is validated with its workload instead of a configuration.
    workload: Workload | None = None


class PluginSource(Protocol):
    """Plug-ins of a framework such as Rally. Every method raises PluginError if it is broken."""

    #: Name of the framework in messages.
    TITLE: ClassVar[str]

    def divide(self, path: str, imported: Mapping[Path, frozenset[str]]) -> list[Path]:
        """Select and store the framework's files under a plug-in path; return all other files.

        `imported`: the top-level names that each file imports, by file.
        """

    def missing(self) -> str:
        """Return why the framework cannot be used, and the remedy; "" if it can."""

    def names(self, kind: str) -> frozenset[str]:
        """Return the names of all plug-ins of a kind that are known, installed or not.

        Names have the form `name@platform`, but scenarios have no platform.
        """

    def why_absent(self, kind: str, name: str) -> str | None:
        """Return why a plug-in that the framework has or had is missing; None for other names."""

    def scenario(self, name: str) -> ScenarioPlugin | None:
        """Return the scenario that the framework calls `name`; None if it has none."""

    def get(self, kind: str, name: str) -> type | None:
        """Return the plug-in `name` as a class of osbench's interface; None if it has none."""

    def full_name(self, kind: str, name: str) -> str:
        """Return the name of an existing plug-in with its platform, `name@platform`.

        Raises PluginError if there is none.
        """

    def titles(self, kind: str) -> dict[str, str]:
        """Return the title of each plug-in of a kind by full name; empty without the framework."""

    def faults(self) -> list[str]:
        """Return messages on plug-in files that cannot be used; [] before they are imported."""

    def remedies(self, kind: str) -> list[str]:
        """Return advice on classes of plug-in files that have no plug-in name.

        `kind`: only of this kind; "" is all. [] before the files are imported.
        """

    def held(self) -> dict[str, list[str]]:
        """Import the plug-in files; return the plug-ins by file, such as "scenario Queue.work"."""

    def problems(
        self, kind: str, name: str, config: Any = None, workload: Workload | None = None
    ) -> list[str]:
        """Return messages on errors in the configuration `config` of a plug-in; [] without any.

        Of a scenario instead: on errors in the arguments of its `workload`.
        """

    def cloud_problems(
        self, uses: Sequence[SourceUse], deployment: Deployment | None
    ) -> list[Problem]:
        """Return problems that the plug-ins in `uses` would have with the deployment.

        May send requests to the cloud.
        """

    def task_in_names(self, made: Mapping[str, Any]) -> str:
        """Return the task's id in the names of resources of a context and its workload's scenario.

        `made`: the stored results of the context; "" if it is not of the framework. Raises
        ContextError or ValueError if they cannot be read.
        """

    def unasked(self, uses: Sequence[SourceUse]) -> list[str]:
        """Return the names of the checks that `cloud_problems` would make; makes none."""


class Sources:
    """Sources of plug-ins by name; each is imported when it is first requested."""

    def __init__(self, points: Iterable[EntryPoint]) -> None:
        self._definitions = definitions("source", points)
        self._loaded: dict[str, PluginSource] = {}

    def get(self, name: str) -> PluginSource:
        """Return the source `name`, imported and created at the first call.

        Raises PluginError if it is not installed or cannot be loaded.
        """
        if name not in self._loaded:
            definition = self._definitions.get(name)
            if definition is None:
                raise PluginError(
                    f"no installed package has the source of plug-ins {name!r}: install osbench"
                    " again"
                )
            made: Any = definition.load()[0]
            self._loaded[name] = made()
        return self._loaded[name]

    def names(self) -> list[str]:
        """Return the names of all installed sources; imports none."""
        return list(self._definitions)

    def loaded(self) -> list[PluginSource]:
        """Return the sources that have been requested so far."""
        return list(self._loaded.values())
