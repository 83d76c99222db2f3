"""Plug-in discovery: scenarios, runners and other plug-ins, native and Rally's, by name."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import inspect
import logging
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from osbench.common import errors
from osbench.common.escaping import escaped
from osbench.common.plugin import plugin_files, signature
from osbench.common.plugin.context import Context, ContextEnvironment, texts_of, with_text
from osbench.common.plugin.entry_points import Definition, add, definitions
from osbench.common.plugin.exporter import Exporter
from osbench.common.plugin.hook import Hook
from osbench.common.plugin.loading import mixed_scenario
from osbench.common.plugin.loading.neighbours import sources
from osbench.common.plugin.loading.plugin_import import PluginImport
from osbench.common.plugin.plugin_names import NATIVE, RALLY, asked, order
from osbench.common.plugin.runner import Runner
from osbench.common.plugin.scenario import MARK, Configuration, Scenario
from osbench.common.plugin.scenario_table import ScenarioTable
from osbench.common.plugin.sla import Sla
from osbench.common.plugin.trigger import Trigger
from osbench.common.rally import plugin_hints as rally_names
from osbench.common.rally import plugin_paths as rally_files
from osbench.common.rally.bridge import Bridge
from osbench.common.rally.importing import installed

LOG = logging.getLogger(__name__)

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

#: Plug-ins of a file that a message names.
HELD_TOLD = 5

#: Values by name.
Args = dict[str, Any]


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
    #: SHA-256, in hex, of the file that defines the scenario, and of what that imports from its
    #: folder.
    source_hash: str
    #: `plugin_names.NATIVE` or `plugin_names.RALLY`.
    source: str = NATIVE
    #: Called once per workload, after its contexts are set up. Takes the task's arguments and the
    #: environment, and returns the arguments and the context for workers. Raises ContextError.
    prepare: Callable[[Mapping[str, Any], ContextEnvironment], tuple[Args, Args]] | None = None

    @property
    def is_coroutine(self) -> bool:
        """Its method is `async def`: virtual users are coroutines, not threads."""
        return inspect.iscoroutinefunction(getattr(self.cls, self.method))

    @property
    def address(self) -> str:
        """The name that unambiguously denotes this plug-in."""
        return self.name if "@" in self.name else f"{self.name}@{self.source}"

    def check_args(self, args: Mapping[str, Any], columns: Collection[str] = ()) -> list[str]:
        """What is wrong with the keyword arguments `args`, one message per problem.

        A data file gives those of `columns` in addition.
        """
        method = getattr(self.cls, self.method)
        mistyped = signature.mistyped(self.name, method, args)
        fitting = {name: value for name, value in args.items() if name not in mistyped}
        found = [
            *signature.misnamed(self.name, method, [*args, *columns]),
            *mistyped.values(),
            *self.cls.check_arguments(self.method, fitting),
        ]
        try:
            texts = texts_of(self.cls.FILES, args)
        except errors.ContextError as error:
            return [*found, str(error)]
        return [*found, *self.cls.check_files(texts, args)]

    def check_row(self, row: Mapping[str, Any]) -> list[str]:
        """What is wrong with those arguments that a row of a data file gives."""
        mistyped = signature.mistyped(self.name, getattr(self.cls, self.method), row)
        fitting = {name: value for name, value in row.items() if name not in mistyped}
        return [*mistyped.values(), *self.cls.check_arguments(self.method, fitting)]


@dataclass(frozen=True, kw_only=True)
class Found:
    """A plug-in of another kind, found by its name."""

    cls: type
    #: `plugin_names.NATIVE` or `plugin_names.RALLY`.
    source: str
    #: The name that unambiguously denotes it: `name@native`, or Rally's `name@platform`.
    address: str


class Plugins:
    """All plug-ins of this process: entry points `osbench.<kind>`, the files under `paths`, and
    Rally's, where it is installed.

    An entry point is imported when its plug-in is requested, files on the first call, Rally when
    a name is not native. `prefer` decides between a native plug-in and one of Rally's with the
    same name. `remedy` is the advice for an unknown name, not similar names. A file or class
    that cannot be used is a fault: `warn` logs it, or a missing name is refused with it. Every
    method raises PluginError where a path is none or a name is defined twice.
    """

    def __init__(
        self, paths: Sequence[str] = (), prefer: str = NATIVE, *, remedy: str = ""
    ) -> None:
        self._paths = tuple(paths)
        self._prefer = prefer
        self._remedy = remedy
        self._tables: dict[str, dict[str, Definition]] | None = None
        self._native_scenarios = ScenarioTable(())
        self._scenarios: dict[str, ScenarioPlugin] = {}
        self._notes: list[str] = []
        self._faults: list[str] = []
        #: Contents of each file of osbench, as in "scenario Queue.work".
        self._held: dict[str, list[str]] = {}
        self._bridge = Bridge()

    @property
    def paths(self) -> tuple[str, ...]:
        """The files and folders that plug-ins are loaded from."""
        return self._paths

    @property
    def prefer(self) -> str:
        """Whose plug-in a name means that both have."""
        return self._prefer

    @property
    def rally(self) -> Bridge:
        """Rally's plug-ins, including those of the paths."""
        self.import_files()
        return self._bridge

    def notes(self) -> list[str]:
        """Sentences on classes in files that look like plug-ins but are not."""
        self.import_files()
        return list(self._notes)

    def faults(self) -> list[str]:
        """Why files of the paths cannot be used; those of Rally once it is loaded."""
        self.import_files()
        return [*self._faults, *self._bridge.faults]

    def reasons(self, kind: str = "") -> list[str]:
        """Why plug-ins, or those of a kind, may be missing: faults, and classes without a name."""
        return [*self.faults(), *self._bridge.remedies(kind)]

    def warn(self, said: str = "") -> None:
        """Log the faults, but for those that messages have `said`."""
        for fault in self.faults():
            if fault not in said:
                LOG.warning("plug-in file %s", escaped(fault))

    def names(self, kind: str) -> list[str]:
        """Names of all native plug-ins of a kind, sorted."""
        return sorted(self._table(kind))

    def get(self, kind: str, name: str, *, beside: ScenarioPlugin | None = None) -> type:
        """The class of the plug-in `name`. Raises PluginError where there is none."""
        return self.find(kind, name, beside=beside).cls

    def find(self, kind: str, name: str, *, beside: ScenarioPlugin | None = None) -> Found:
        """The plug-in `name`, native or Rally's. Raises PluginError where there is none.

        `beside` is the scenario for which a task file names a context. Scenarios of Rally need
        what Rally's contexts make, so for them an ambiguous name means Rally's context. For
        native scenarios it means the native one, even as Rally writes it, with its platform.
        """
        prefer = self._preferred()
        if beside is not None and beside.source == RALLY:
            prefer = RALLY
        elif beside is not None and prefer == NATIVE and name in rally_names.names(kind):
            ours = self._native(kind, name)
            if ours is not None:
                return ours
        if kind in ("runner", "exporter"):
            # which load is offered does not follow from whose scenarios are preferred
            prefer = NATIVE
        if kind == "runner" and name in rally_names.names(kind):
            # Rally's own ones, with their platform: osbench's make the same load
            name = asked(name).bare
        for source in order(name, prefer):
            found = self._native(kind, name) if source == NATIVE else self._of_rally(kind, name)
            if found is not None:
                return found
        raise self._absent(kind, name)

    def scenario_names(self) -> list[str]:
        """Names of all native scenarios, sorted. Imports all their classes.

        Raises PluginError also where a class of an entry point cannot be imported.
        """
        return self._scenario_table().names()

    def scenario(self, name: str) -> ScenarioPlugin:
        """The scenario `name`, native or Rally's; several names make a mix.

        Raises PluginError where there is none, and where scenarios cannot be mixed.
        """
        known = self._scenarios.get(name)
        if known is None:
            names = name.split(mixed_scenario.SEPARATOR)
            one = self._scenario(name) if len(names) == 1 else self._mix(name, names)
            known = self._scenarios[name] = one
        return known

    def _mix(self, name: str, names: Sequence[str]) -> ScenarioPlugin:
        parts = []
        for one in map(self.scenario, names):
            if one.source == RALLY:
                raise errors.PluginError(f"{one.address} is Rally's, and cannot be in a mix")
            parts.append(
                mixed_scenario.MixPart(
                    name=one.name,
                    cls=one.cls,
                    method=one.method,
                    source_hash=one.source_hash,
                    context=one.context,
                    check=one.check_args,
                )
            )
        return ScenarioPlugin(
            name=name,
            cls=mixed_scenario.mixed(parts),
            method="run",
            context=mixed_scenario.contexts(parts),
            title=" / ".join(one.title for one in map(self.scenario, names) if one.title),
            source_hash=mixed_scenario.source_hash(parts),
        )

    def _scenario(self, name: str) -> ScenarioPlugin:
        wanted = asked(name)
        for source in order(name, self._preferred()):
            if source == NATIVE:
                definition = self._scenario_table().get(wanted.bare)
                if definition is not None:
                    return _scenario(wanted.bare, *definition.load(), definition.place)
            else:
                found = self.rally.scenario(wanted.in_rally)
                if found is not None:
                    return found
        raise self._absent("scenario", name)

    def _native(self, kind: str, name: str) -> Found | None:
        bare = asked(name).bare
        definition = self._table(kind).get(bare)
        if definition is None:
            return None
        cls, _ = definition.load()
        interface = INTERFACES.get(kind, object)
        if not issubclass(cls, interface):
            raise errors.PluginError(
                f"{kind} {bare!r} ({definition.place}) is not a subclass of "
                f"{interface.__module__}.{interface.__qualname__}"
            )
        return Found(cls=cls, source=NATIVE, address=f"{bare}@{NATIVE}")

    def _of_rally(self, kind: str, name: str) -> Found | None:
        in_rally = asked(name).in_rally
        cls = self.rally.get(kind, in_rally)
        if cls is None:
            return None
        return Found(cls=cls, source=RALLY, address=self.rally.full_name(kind, in_rally))

    def _preferred(self) -> str:
        if self._prefer == RALLY and not installed():
            raise errors.PluginError(
                f"Rally's plug-ins are preferred, but Rally is not installed: {rally_names.INSTALL}"
            )
        return self._prefer

    def _absent(self, kind: str, name: str) -> errors.PluginError:
        word = "SLA criterion" if kind == "sla" else kind
        wanted = asked(name)
        known: frozenset[str] = frozenset()
        if wanted.source != NATIVE:
            why = rally_names.why_absent(kind, wanted.in_rally)
            if why is not None:
                return errors.PluginError(f"{word} {name!r} {why}")
            if wanted.source == RALLY and not installed():
                return errors.PluginError(
                    f"{word} {name!r} needs Rally, which is not installed: {rally_names.INSTALL}"
                )
            known = rally_names.names(kind)
        reasons = self.reasons(kind)
        if reasons:
            return errors.PluginError(
                f"there is no {word} {name!r}, and not all plug-in files can be used: "
                f"{'; '.join(reasons)}"
            )
        if self._remedy:
            return errors.PluginError(f"there is no {word} {name!r} here: {self._remedy}")
        ours = (
            self._scenario_table().candidates(wanted.bare)
            if kind == "scenario"
            else self._table(kind)
        )
        near = signature.near(name, known.union(ours)) or self._contents()
        return errors.PluginError(f"there is no {word} {name!r}{near}")

    def _contents(self) -> str:
        """The end of a message about an unknown name: what the plug-in paths hold."""
        if not self._paths:
            return "; your own need --plugin-path"
        held = {**self._held, **self._bridge.held()}
        said = [
            f"{file} holds {', '.join(names[:HELD_TOLD])}"
            + (f" and {len(names) - HELD_TOLD} more" if len(names) > HELD_TOLD else "")
            for file, names in held.items()
            if names
        ]
        return f"; {'; '.join(said) or 'there is no plug-in in ' + ', '.join(self._paths)}"

    def import_files(self) -> None:
        """Import the files under the paths, if that is not done, and log those that cannot be."""
        if self._tables is not None:
            return
        # called once: it reads the metadata of every installed package
        points = importlib.metadata.entry_points()
        tables = {k: definitions(k, points.select(group=f"osbench.{k}")) for k in KINDS}
        scenarios = ScenarioTable(points.select(group="osbench.scenario"))
        ours, for_rally = self._files()
        # one file reached by two paths is one plug-in, not a name defined twice
        imports = PluginImport()
        for file in dict.fromkeys(ours):
            try:
                module = imports.load(file)
            except errors.PluginError as error:
                self._faults.append(str(error))
                continue
            found, faults = _definitions(module)
            self._faults += [*imports.faults[file], *faults]
            self._held[str(file)] = [f"{kind} {name}" for kind, name, _ in found]
            for kind, name, definition in found:
                if kind == "scenario":
                    scenarios.add(name, definition)
                else:
                    add(tables[kind], kind, name, definition)
            self._notes += plugin_files.unmarked(module)
        self._bridge = Bridge(for_rally)
        self._tables, self._native_scenarios = tables, scenarios

    def _table(self, kind: str) -> dict[str, Definition]:
        if kind not in KINDS:
            raise ValueError(f"no such kind of plug-in: {kind}")
        self.import_files()
        assert self._tables is not None
        return self._tables[kind]

    def _scenario_table(self) -> ScenarioTable:
        self.import_files()
        return self._native_scenarios

    def _files(self) -> tuple[list[Path], list[str]]:
        """Files to import here, and files and folders for Rally to load."""
        ours: list[Path] = []
        for_rally: list[str] = []
        for path in self._paths:
            own, others = rally_files.divide(path, plugin_files.files_of(path))
            ours += own
            for_rally += others
        return ours, for_rally


def _definitions(module: ModuleType) -> tuple[list[tuple[str, str, Definition]], list[str]]:
    """Kind, name and definition of the plug-ins of a file; why classes of it are none."""
    found, faults = [], []
    for cls in plugin_files.classes(module):
        try:
            named = list(plugin_files.scenarios(cls, str(module.__file__)))
        except errors.PluginError as error:
            faults.append(str(error))
            continue
        found += [
            ("scenario", name, _loaded(module.__file__, cls, method)) for name, method in named
        ]
    found += [
        (kind, name, _loaded(module.__file__, cls, ""))
        for kind, name, cls in plugin_files.others(module, INTERFACES)
    ]
    return found, faults


def _loaded(file: str | None, cls: type, method: str) -> Definition:
    where = f"{file} ({cls.__qualname__}{'.' if method else ''}{method})"
    return Definition(place=where, load=lambda: (cls, method))


def _scenario(name: str, cls: type, method: str, where: str) -> ScenarioPlugin:
    method = method or "run"
    function = getattr(cls, method, None)
    if not issubclass(cls, Scenario) or function is None:
        raise errors.PluginError(
            f"scenario {name!r} ({where}) is not a subclass of osbench.plugin.scenario.Scenario "
            f"with a method {method}"
        )
    owner: Any = cls if method == "run" else function
    mark = getattr(function, MARK, None) or getattr(owner, MARK, None)
    # not inspect.getdoc, which returns the docstring of a base class
    doc = inspect.cleandoc(owner.__doc__ or function.__doc__ or "")
    file = Path(str(sys.modules[cls.__module__].__file__))
    return ScenarioPlugin(
        name=name,
        cls=cls,
        method=method,
        context=mark.context if isinstance(mark, Configuration) else {},
        title=doc.partition("\n")[0],
        source_hash=hashlib.sha256(sources(file)).hexdigest(),
        prepare=functools.partial(with_text, cls.FILES) if cls.FILES else None,
    )
