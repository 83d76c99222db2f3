"""Sources of plug-ins: frameworks whose plug-ins run behind the interfaces of osbench.

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
    """A plug-in of a source with its configuration, as a task uses it."""

    kind: str
    #: The name that the source knows.
    name: str
    config: Any
    #: Its place in the file.
    place: str
    #: Set for a scenario, which is validated with its workload instead of a configuration.
    workload: Workload | None = None


class PluginSource(Protocol):
    """Plug-ins of a framework. Every method raises PluginError if the framework is broken."""

    #: Name of the framework in messages.
    TITLE: ClassVar[str]

    def divide(self, path: str, imported: Mapping[Path, frozenset[str]]) -> list[Path]:
        """Keep the files under a plug-in path that are for the framework; return the others.

        `imported` has the top-level names that each file imports.
        """

    def missing(self) -> str:
        """Return why the framework cannot be used, with remedy, as "not installed: ..."; or ""."""

    def names(self, kind: str) -> frozenset[str]:
        """Return names of a kind's plug-ins, installed or not; with platform but for scenarios."""

    def why_absent(self, kind: str, name: str) -> str | None:
        """Return why a plug-in of the framework is missing; None if it never had this name."""

    def scenario(self, name: str) -> ScenarioPlugin | None:
        """Return the scenario that the framework calls `name`, or None."""

    def get(self, kind: str, name: str) -> type | None:
        """Return the plug-in that the framework calls `name`, as a class of osbench's interface."""

    def full_name(self, kind: str, name: str) -> str:
        """Return `name@platform` of an existing plug-in."""

    def titles(self, kind: str) -> dict[str, str]:
        """Return full names and titles of a kind's plug-ins; none if the framework is missing."""

    def faults(self) -> list[str]:
        """Return why files of the plug-in paths cannot be used, once they are imported."""

    def remedies(self, kind: str) -> list[str]:
        """Return advice on classes without a name, of a kind or of all ("")."""

    def held(self) -> dict[str, list[str]]:
        """Return contents of each file of the plug-in paths, as in "scenario Queue.work"."""

    def problems(
        self, kind: str, name: str, config: Any = None, workload: Workload | None = None
    ) -> list[str]:
        """Return problems of a configuration, or of the arguments of a scenario's workload."""

    def cloud_problems(
        self, uses: Sequence[SourceUse], deployment: Deployment | None
    ) -> list[Problem]:
        """Return problems of the deployment with plug-ins; may query the cloud."""

    def unasked(self, uses: Sequence[SourceUse]) -> list[str]:
        """Return names of the checks that `cloud_problems` would make."""


class Sources:
    """Sources by name, each loaded when it is first requested."""

    def __init__(self, points: Iterable[EntryPoint]) -> None:
        self._definitions = definitions("source", points)
        self._loaded: dict[str, PluginSource] = {}

    def get(self, name: str) -> PluginSource:
        """Return the source `name`. Raises PluginError if there is none, or it cannot be loaded."""
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
        """Return names of all sources; loads none."""
        return list(self._definitions)

    def loaded(self) -> list[PluginSource]:
        """Return the sources that were requested."""
        return list(self._loaded.values())
