"""Finds plug-ins by name: osbench's own, plug-ins of files, and plug-ins of sources."""

from __future__ import annotations

import functools
import inspect
import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from osbench.common import errors
from osbench.common.plugin import entry_points, plugin_files, signature
from osbench.common.plugin.context import Context, with_text
from osbench.common.plugin.entry_points import Definition, add, definitions
from osbench.common.plugin.exporter import Exporter
from osbench.common.plugin.hook import Hook
from osbench.common.plugin.loading import mixed_scenario
from osbench.common.plugin.loading.checked_returns import checked_class
from osbench.common.plugin.loading.neighbours import SourceFiles
from osbench.common.plugin.loading.plugin_import import PluginImport
from osbench.common.plugin.plugin_names import NATIVE, order, parse_name
from osbench.common.plugin.plugin_source import PluginSource, Sources
from osbench.common.plugin.runner import Runner
from osbench.common.plugin.scenario import MARK, Configuration, Scenario
from osbench.common.plugin.scenario_plugin import ScenarioPlugin
from osbench.common.plugin.scenario_table import ScenarioTable
from osbench.common.plugin.sla import Sla
from osbench.common.plugin.trigger import Trigger
from osbench.common.text.escaping import one_line

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

#: A plug-in file that imports this package is native.
_OURS = "osbench"

#: Plug-ins of a file that a message names.
HELD_TOLD = 5
#: Most names of a kind that the message about an unknown name lists.
KNOWN_TOLD = 20


@dataclass(frozen=True, kw_only=True)
class Found:
    """A plug-in that is not a scenario, as it was found by its name: class, source, full name."""

    cls: type
    #: `plugin_names.NATIVE` or `plugin_names.RALLY`.
    source: str
    #: The name that unambiguously denotes it: `name@native`, or Rally's `name@platform`.
    address: str


class Plugins:
    """All plug-ins of this process: of entry points, of files, and of sources such as Rally.

    An entry point is imported when its plug-in is requested, all files when any plug-in is, a
    source when a name is not native. `prefer` names the source of a plug-in that several have.
    `remedy` is the advice for an unknown name, instead of similar names. A file or class that
    cannot be used is a fault: `warn` logs it, and the error for a missing name lists it. Methods
    that need the files raise PluginError if a path does not exist or a name is defined twice.
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
        #: Classes of plug-ins with checked values, by the original class.
        self._checked: dict[type, type] = {}
        self._notes: list[str] = []
        self._faults: list[str] = []
        #: Contents of each file of osbench, as in "scenario Queue.work".
        self._held: dict[str, list[str]] = {}
        self._sources = Sources(())
        self._source_files = SourceFiles()

    @property
    def paths(self) -> tuple[str, ...]:
        """Return the files and folders from which plug-ins are loaded."""
        return self._paths

    @property
    def prefer(self) -> str:
        """Return the source that a name means if both osbench and Rally have the plug-in."""
        return self._prefer

    def source(self, name: str) -> PluginSource:
        """Return the source (framework) `name`; imports plug-in files and the source if needed.

        The source has been given its files. Raises PluginError if it is not installed or cannot be
        loaded.
        """
        self.import_files()
        return self._sources.get(name)

    def notes(self) -> list[str]:
        """Return messages on scenario classes in files without a mark, which no task can name."""
        self.import_files()
        return list(self._notes)

    def faults(self) -> list[str]:
        """Return messages on plug-in files and classes that cannot be used; imports the files.

        Of sources only the loaded ones.
        """
        self.import_files()
        theirs = [fault for source in self._sources.loaded() for fault in source.faults()]
        return [*self._faults, *theirs]

    def reasons(self, kind: str = "") -> list[str]:
        """Return messages on why a plug-in may be missing: all faults, and classes without a name.

        `kind`: only classes of this kind; "" is all.
        """
        faults = self.faults()
        remedies = [said for source in self._sources.loaded() for said in source.remedies(kind)]
        return [*faults, *remedies]

    def warn(self, said: str = "") -> None:
        """Log each fault as a warning, except faults that `said` contains.

        `said`: a message that the user has seen.
        """
        for fault in self.faults():
            if fault not in said:
                LOG.warning("plug-in file %s", one_line(fault))

    def names(self, kind: str) -> list[str]:
        """Return the names of all native plug-ins of a kind, sorted."""
        return sorted(self._table(kind))

    def get(self, kind: str, name: str, *, beside: ScenarioPlugin | None = None) -> type:
        """Return the class of the plug-in `name` of a kind, imported; `beside`: see `find`.

        Raises PluginError if there is none.
        """
        return self.find(kind, name, beside=beside).cls

    def find(self, kind: str, name: str, *, beside: ScenarioPlugin | None = None) -> Found:
        """Return the plug-in `name`, native or of a source, with its class imported.

        `beside`: for a context, the scenario of the same workload, whose source is preferred. If it
        is native, so is the context, if there is one, even under a name with a platform, unless
        Rally is preferred. Of runners and exporters the native one is preferred; a runner's
        platform has no effect. Raises PluginError if there is none.
        """
        prefer = self._preferred()
        if beside is not None and beside.source != NATIVE:
            prefer = beside.source
        elif beside is not None and prefer == NATIVE and self._is_of_platform(kind, name):
            ours = self._native(kind, name)
            if ours is not None:
                return ours
        if kind in ("runner", "exporter"):
            # which load is offered does not follow from whose scenarios are preferred
            prefer = NATIVE
        if kind == "runner" and self._is_of_platform(kind, name):
            # contexts of the source itself: osbench's make the same load
            name = parse_name(name).bare
        for source in self._order(name, prefer):
            ask = self._native if source == NATIVE else partial(self._foreign, source)
            found = ask(kind, name)
            if found is not None:
                return found
        raise self._absent(kind, name)

    def scenario_names(self) -> list[str]:
        """Return the names of all native scenarios, sorted. Imports all their classes.

        Raises PluginError also if a class of an entry point cannot be imported.
        """
        return self._scenario_table().names()

    def scenario(self, name: str) -> ScenarioPlugin:
        """Return the scenario `name`, native or of a source; names joined by " + " are a mix.

        The result is cached. Raises PluginError if there is none, or if the scenarios cannot be
        mixed.
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
            if one.source != NATIVE:
                title = self.source(one.source).TITLE
                raise errors.PluginError(
                    f"{one.address} is {title}'s and cannot be in a mix; mix osbench's own "
                    "scenarios"
                )
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
            cls=mixed_scenario.mix_class(parts),
            method="run",
            context=mixed_scenario.contexts(parts),
            title=" / ".join(one.title for one in map(self.scenario, names) if one.title),
            source_hash=mixed_scenario.source_hash(parts),
        )

    def _scenario(self, name: str) -> ScenarioPlugin:
        wanted = parse_name(name)
        for source in self._order(name, self._preferred()):
            if source == NATIVE:
                definition = self._scenario_table().get(wanted.bare)
                if definition is not None:
                    return self._native_scenario(wanted.bare, *definition.load(), definition.place)
            else:
                found = self.source(source).scenario(wanted.in_rally)
                if found is not None:
                    return found
        raise self._absent("scenario", name)

    def _native_scenario(self, name: str, cls: type, method: str, where: str) -> ScenarioPlugin:
        method = method or "run"
        function = getattr(cls, method, None)
        if not issubclass(cls, Scenario) or function is None:
            raise errors.PluginError(
                f"scenario {name!r} ({where}) must be a subclass of "
                f"osbench.plugin.scenario.Scenario with a method {method}"
            )
        owner: Any = cls if method == "run" else function
        mark = getattr(function, MARK, None) or getattr(owner, MARK, None)
        # not inspect.getdoc, which returns the docstring of a base class
        doc = inspect.cleandoc(owner.__doc__ or function.__doc__ or "")
        file = Path(str(sys.modules[cls.__module__].__file__))
        return ScenarioPlugin(
            name=name,
            cls=checked_class("scenario", cls),
            method=method,
            context=mark.context if isinstance(mark, Configuration) else {},
            title=doc.partition("\n")[0],
            source_hash=self._source_files.source_hash(cls.__module__, file),
            prepare=functools.partial(with_text, cls.FILES) if cls.FILES else None,
        )

    def _native(self, kind: str, name: str) -> Found | None:
        bare = parse_name(name).bare
        definition = self._table(kind).get(bare)
        if definition is None:
            return None
        cls, _ = definition.load()
        interface = INTERFACES.get(kind, object)
        if not issubclass(cls, interface):
            raise errors.PluginError(
                f"{kind} {bare!r} ({definition.place}) must be a subclass of "
                f"{interface.__module__}.{interface.__qualname__}"
            )
        if cls not in self._checked:
            self._checked[cls] = checked_class(kind, cls)
        return Found(cls=self._checked[cls], source=NATIVE, address=f"{bare}@{NATIVE}")

    def _foreign(self, source: str, kind: str, name: str) -> Found | None:
        there, in_source = self.source(source), parse_name(name).in_rally
        cls = there.get(kind, in_source)
        if cls is None:
            return None
        return Found(cls=cls, source=source, address=there.full_name(kind, in_source))

    def _is_of_platform(self, kind: str, name: str) -> bool:
        source = parse_name(name).source
        return source not in (None, NATIVE) and name in self.source(source).names(kind)

    def _order(self, name: str, prefer: str) -> list[str]:
        """Return the sources in which to search for a plug-in, in order; imports plug-in files.

        A name with an @ has only one: `native`, or Rally, which a platform means, too. Other names
        have both, `prefer` first; `native` alone if Rally's package is not installed.
        """
        self.import_files()
        known = {NATIVE, parse_name(name).source, *self._sources.names()}
        return [one for one in order(name, prefer) if one in known]

    def _preferred(self) -> str:
        if self._prefer != NATIVE:
            source = self.source(self._prefer)
            if missing := source.missing():
                raise errors.PluginError(
                    f"{source.TITLE}'s plug-ins are preferred, but {source.TITLE} is {missing}, or "
                    "leave out --prefer"
                )
        return self._prefer

    def _absent(self, kind: str, name: str) -> errors.PluginError:
        word = "SLA criterion" if kind == "sla" else kind
        wanted = parse_name(name)
        known: set[str] = set()
        others = (one for one in self._order(name, NATIVE) if one != NATIVE)
        for source in map(self.source, others):
            why = source.why_absent(kind, wanted.in_rally)
            if why is not None:
                return errors.PluginError(f"{word} {name!r} {why}")
            if wanted.source is not None and (missing := source.missing()):
                return errors.PluginError(
                    f"{word} {name!r} needs {source.TITLE}, which is {missing}"
                )
            known |= source.names(kind)
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
        told = f"; known are {', '.join(sorted(ours))}" if len(ours) <= KNOWN_TOLD else ""
        near = signature.near(name, known.union(ours)) or f"{told}{self._contents()}"
        return errors.PluginError(f"there is no {word} {name!r}{near}")

    def _contents(self) -> str:
        if not self._paths:
            return "; your own need --plugin-path"
        held = dict(self._held)
        for source in self._sources.loaded():
            held |= source.held()
        said = [
            f"{file} holds {', '.join(names[:HELD_TOLD])}"
            + (f" and {len(names) - HELD_TOLD} more" if len(names) > HELD_TOLD else "")
            for file, names in held.items()
            if names
        ]
        return f"; {'; '.join(said) or 'there is no plug-in in ' + ', '.join(self._paths)}"

    def import_files(self) -> None:
        """Import the plug-in files under the paths and read entry points; once, then do nothing.

        A file that fails becomes a fault. Raises PluginError if a path does not exist or a name is
        defined twice.
        """
        if self._tables is not None:
            return
        points = entry_points.installed_points(("scenario", "source", *KINDS))
        tables = {k: definitions(k, points[k]) for k in KINDS}
        scenarios = ScenarioTable(points["scenario"])
        foreign = Sources(points["source"])
        ours = self._files(foreign)
        # one file reached by two paths is one plug-in, not a name defined twice
        imports = PluginImport(self._source_files)
        wrong: list[str] = []
        notes: list[str] = []
        held: dict[str, list[str]] = {}
        for file in dict.fromkeys(ours):
            try:
                module = imports.load(file)
            except errors.PluginError as error:
                wrong.append(str(error))
                continue
            found, faults = _definitions(module)
            wrong += [*imports.faults[file], *faults]
            held[str(file)] = [f"{kind} {name}" for kind, name, _ in found]
            for kind, name, definition in found:
                if kind == "scenario":
                    scenarios.add(name, definition)
                else:
                    add(tables[kind], kind, name, definition)
            notes += plugin_files.missing_marks(module)
        self._faults, self._notes, self._held = wrong, notes, held
        self._tables, self._native_scenarios, self._sources = tables, scenarios, foreign

    def _table(self, kind: str) -> dict[str, Definition]:
        if kind not in KINDS:
            raise ValueError(f"no such kind of plug-in: {kind}; kinds are {', '.join(KINDS)}")
        self.import_files()
        assert self._tables is not None
        return self._tables[kind]

    def _scenario_table(self) -> ScenarioTable:
        self.import_files()
        return self._native_scenarios

    def _files(self, foreign: Sources) -> list[Path]:
        ours: list[Path] = []
        for path in self._paths:
            imported = {
                file: self._source_files.imported_names(file)
                for file in plugin_files.files_of(path)
            }
            if not all(_OURS in names for names in imported.values()):
                for name in foreign.names():
                    others = foreign.get(name).divide(path, imported)
                    imported = {file: imported[file] for file in others}
            ours += imported
        return ours


def _definitions(module: ModuleType) -> tuple[list[tuple[str, str, Definition]], list[str]]:
    found, faults = [], []
    for cls in plugin_files.classes(module):
        try:
            named = list(plugin_files.scenarios(cls, str(module.__file__)))
        except errors.PluginError as error:
            faults.append(str(error))
            continue
        found += [
            ("scenario", name, _class_definition(module.__file__, cls, method))
            for name, method in named
        ]
    found += [
        (kind, name, _class_definition(module.__file__, cls, ""))
        for kind, name, cls in plugin_files.others(module, INTERFACES)
    ]
    return found, faults


def _class_definition(file: str | None, cls: type, method: str) -> Definition:
    where = f"{file} ({cls.__qualname__}{'.' if method else ''}{method})"
    return Definition(place=where, load=lambda: (cls, method))
