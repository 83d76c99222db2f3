"""Plug-in discovery: scenarios, runners and the rest, by entry point and by plug-in path."""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from osbench.common import errors, plugin_files, signature
from osbench.common.context import Context
from osbench.common.exporter import Exporter
from osbench.common.hook import Hook
from osbench.common.runner import Runner
from osbench.common.scenario import MARK, Configuration, Scenario
from osbench.common.sla import Sla
from osbench.common.trigger import Trigger

#: Kinds of plug-ins that `Plugins.get` knows; scenarios have `Plugins.scenario`.
KINDS = ("runner", "sla", "context", "hook", "trigger", "exporter")

#: What a class must derive from to be a plug-in of a kind.
INTERFACES: Mapping[str, type] = {
    "runner": Runner,
    "sla": Sla,
    "context": Context,
    "hook": Hook,
    "trigger": Trigger,
    "exporter": Exporter,
}


@dataclass(frozen=True, kw_only=True)
class ScenarioPlugin:
    """A scenario as task files name it: the method of a class that one iteration calls."""

    name: str
    cls: type[Scenario]
    #: Name of the method.
    method: str
    #: Contexts that the scenario always needs, by name.
    context: Mapping[str, Any]
    #: First line of the docstring, or "".
    title: str
    #: SHA-256, in hex, of the file that defines the scenario.
    source_hash: str

    def check_args(self, args: Mapping[str, Any]) -> list[str]:
        """What is wrong with the keyword arguments `args`; a message each, none when they fit."""
        return signature.problems(self.name, getattr(self.cls, self.method), args)


@dataclass(frozen=True, kw_only=True)
class _Definition:
    """A plug-in that is known but perhaps not yet imported."""

    #: Where it is defined, for messages.
    place: str
    #: Gives the class and, of a scenario, the method.
    load: Callable[[], tuple[type, str]]


class Plugins:
    """All plug-ins of this process: entry points `osbench.<kind>` and the files under `paths`.

    An entry point is imported when its plug-in is asked for, files at the first question.
    Every method raises PluginError where a file cannot be imported or a name is defined twice.
    """

    def __init__(self, paths: Sequence[str] = ()) -> None:
        self._paths = tuple(paths)
        self._tables: dict[str, dict[str, _Definition]] | None = None
        self._scenarios: dict[str, ScenarioPlugin] = {}
        self._notes: list[str] = []

    def notes(self) -> list[str]:
        """Sentences on classes in files that look like plug-ins and are none."""
        self._table("scenario")
        return list(self._notes)

    def names(self, kind: str) -> list[str]:
        """Names of all plug-ins of a kind, sorted."""
        return sorted(self._table(kind))

    def get(self, kind: str, name: str) -> type:
        """The class of the plug-in `name`. Raises PluginError where there is none."""
        definition = self._definition(kind, name)
        cls, _ = definition.load()
        interface = INTERFACES.get(kind, object)
        if not issubclass(cls, interface):
            raise errors.PluginError(
                f"{kind} {name!r} ({definition.place}) is not a subclass of "
                f"{interface.__module__}.{interface.__qualname__}"
            )
        return cls

    def scenario_names(self) -> list[str]:
        """Names of all scenarios, sorted."""
        return sorted(self._table("scenario"))

    def scenario(self, name: str) -> ScenarioPlugin:
        """The scenario `name`. Raises PluginError where there is none."""
        known = self._scenarios.get(name)
        if known is None:
            definition = self._definition("scenario", name)
            cls, method = definition.load()
            known = self._scenarios[name] = _scenario(name, cls, method, definition.place)
        return known

    def _definition(self, kind: str, name: str) -> _Definition:
        table = self._table(kind)
        if name not in table:
            word = "SLA criterion" if kind == "sla" else kind
            near = signature.near(name, table) or "; your own need --plugin-path"
            raise errors.PluginError(f"there is no {word} {name!r}{near}")
        return table[name]

    def _table(self, kind: str) -> dict[str, _Definition]:
        if kind != "scenario" and kind not in KINDS:
            raise ValueError(f"no such kind of plug-in: {kind}")
        if self._tables is None:
            tables = {k: _entry_points(k) for k in (*KINDS, "scenario")}
            for module in plugin_files.modules(self._paths):
                _add_module(tables, module)
                self._notes += plugin_files.unmarked(module)
            self._tables = tables
        return self._tables[kind]


def _add(table: dict[str, _Definition], kind: str, name: str, definition: _Definition) -> None:
    if name in table:
        raise errors.PluginError(
            f"{kind} {name!r} is defined twice: {table[name].place} and {definition.place}"
        )
    table[name] = definition


def _entry_points(kind: str) -> dict[str, _Definition]:
    table: dict[str, _Definition] = {}
    # a package seen twice on the path (an editable install beside its sources) is one package
    seen: set[tuple[str, str]] = set()
    for point in importlib.metadata.entry_points(group=f"osbench.{kind}"):
        if (point.name, point.value) in seen:
            continue
        seen.add((point.name, point.value))
        package = f" of {point.dist.name}" if point.dist else ""
        where = f"entry point {point.value}{package}"
        _add(table, kind, point.name, _Definition(place=where, load=_loader(point, where)))
    return table


def _loader(point: importlib.metadata.EntryPoint, where: str) -> Callable[[], tuple[type, str]]:
    def load() -> tuple[type, str]:
        try:
            target: Any = importlib.import_module(point.module)
            owner = target
            for part in point.attr.split("."):
                owner, target = target, getattr(target, part)
        except (Exception, SystemExit) as error:
            raise errors.PluginError(
                f"{point.name} ({where}) cannot be loaded: {plugin_files.reason(error)}"
            ) from error
        if isinstance(target, type):
            return target, "run"
        if isinstance(owner, type) and callable(target):
            return owner, point.attr.rpartition(".")[2]
        raise errors.PluginError(f"{point.name} ({where}) is neither a class nor a method of one")

    return load


def _add_module(tables: dict[str, dict[str, _Definition]], module: ModuleType) -> None:
    for name, cls, method in plugin_files.scenarios(module):
        _add(tables["scenario"], "scenario", name, _loaded(module.__file__, cls, method))
    for kind, name, cls in plugin_files.others(module, INTERFACES):
        _add(tables[kind], kind, name, _loaded(module.__file__, cls, ""))


def _loaded(file: str | None, cls: type, method: str) -> _Definition:
    where = f"{file} ({cls.__qualname__}{'.' if method else ''}{method})"
    return _Definition(place=where, load=lambda: (cls, method))


def _scenario(name: str, cls: type, method: str, where: str) -> ScenarioPlugin:
    function = getattr(cls, method, None)
    if not issubclass(cls, Scenario) or function is None:
        raise errors.PluginError(
            f"scenario {name!r} ({where}) is not a subclass of osbench.plugin.scenario.Scenario "
            f"with a method {method}"
        )
    owner: Any = cls if method == "run" else function
    mark = getattr(function, MARK, None) or getattr(owner, MARK, None)
    # not inspect.getdoc, which answers with the docstring of a base class
    doc = inspect.cleandoc(owner.__doc__ or function.__doc__ or "")
    file = Path(str(sys.modules[cls.__module__].__file__))
    return ScenarioPlugin(
        name=name,
        cls=cls,
        method=method,
        context=mark.context if isinstance(mark, Configuration) else {},
        title=doc.partition("\n")[0],
        source_hash=hashlib.sha256(file.read_bytes()).hexdigest(),
    )
