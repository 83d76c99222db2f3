"""Finds scenarios by name: of files, and of entry points for a class or for a method.

An entry point for a class stands for all methods of it that `scenario.configure` marks. It has the
part of their names before the first dot as its name. So a scenario is found by importing one class.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from importlib.metadata import EntryPoint

from osbench.common import errors
from osbench.common.plugin import plugin_files
from osbench.common.plugin.entry_points import Definition, add, definitions
from osbench.common.plugin.scenario import MARK

_KIND = "scenario"


class ScenarioTable:
    """Native scenarios of a process by name; a class is imported only when its name is sought."""

    def __init__(self, points: Iterable[EntryPoint]) -> None:
        self._points = definitions(_KIND, points)
        self._in_files: dict[str, Definition] = {}
        #: Scenarios of entry points that are imported, by the names of the entry points.
        self._imported: dict[str, dict[str, Definition]] = {}

    def add(self, name: str, definition: Definition) -> None:
        """Add a scenario of a plug-in file; imports the entry point's class that may have its name.

        Raises PluginError if the name is taken.
        """
        add(self._in_files, _KIND, name, definition)
        self.get(name)

    def get(self, name: str) -> Definition | None:
        """Return the definition of the scenario `name`, None if unknown; imports at most its class.

        Raises PluginError if the class cannot be imported, or the name is defined twice.
        """
        found: dict[str, Definition] = {}
        for table in (self._in_files, self._dotted(), self._of_class(name)):
            if name in table:
                add(found, _KIND, name, table[name])
        return found.get(name)

    def names(self) -> list[str]:
        """Return the names of all scenarios, sorted; imports the classes of all entry points.

        Raises PluginError if one cannot be imported, or a name is defined twice.
        """
        found = dict(self._in_files)
        for table in (self._dotted(), *map(self._of_class, self._undotted())):
            for name, definition in table.items():
                add(found, _KIND, name, definition)
        return sorted(found)

    def candidates(self, name: str) -> set[str]:
        """Return scenario names to suggest for the unknown `name`: of the same class, else all.

        For all it imports all classes; a class that cannot be imported is skipped.
        """
        found = {*self._in_files, *self._dotted(), *self._of_class(name)}
        of_class = {one for one in found if _beginning(one) == _beginning(name)}
        if of_class:
            return of_class
        for point in self._undotted():
            # the fault of another package is not the subject here
            with contextlib.suppress(errors.PluginError):
                found.update(self._of_class(point))
        return found

    def _dotted(self) -> dict[str, Definition]:
        """Return the entry points whose name, with a dot, is a scenario's, by name."""
        return {name: one for name, one in self._points.items() if "." in name}

    def _undotted(self) -> list[str]:
        """Return the names of entry points without a dot, which denote a class or one scenario."""
        return [name for name in self._points if "." not in name]

    def _of_class(self, name: str) -> dict[str, Definition]:
        """Return the scenarios of the entry point that has the name before the dot in `name`.

        Imports the entry point, once; {} if there is none.
        """
        point = _beginning(name)
        if point not in self._imported and point in self._points:
            self._imported[point] = dict(_scenarios(point, self._points[point]))
        return self._imported.get(point, {})


def _beginning(name: str) -> str:
    """Return a scenario's name up to the first dot, without it; the whole name without a dot."""
    return name.partition(".")[0]


def _scenarios(point: str, definition: Definition) -> Iterator[tuple[str, Definition]]:
    """Import an entry point and yield (name, definition) of each scenario of it.

    `point`: name of the entry point. Raises PluginError if the import fails, or if a scenario's
    name does not begin with `point` and a dot.
    """
    cls, method = definition.load()
    marked = [] if method else list(plugin_files.marked_methods(cls, definition.place))
    if not marked or MARK in vars(cls):
        yield point, definition
    for name, method in marked:
        if _beginning(name) != point:
            raise errors.PluginError(
                f"scenario {name!r} ({definition.place}): its name must begin with {point!r} and a "
                "dot, since the entry point of its class has that name"
            )
        yield name, _of_method(cls, method, definition.place)


def _of_method(cls: type, method: str, place: str) -> Definition:
    where = f"{place} ({cls.__qualname__}.{method})"
    return Definition(place=where, load=lambda: (cls, method))
