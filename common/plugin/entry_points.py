"""Finds plug-ins and edges of installed packages by entry point; imports them on request.

An edge is a package that the rest of osbench does not import, such as Rally's plug-ins.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import itertools
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from osbench.common import errors


@dataclass(frozen=True, kw_only=True)
class Definition:
    """A known plug-in, imported when `load` is called; `load` raises PluginError if that fails."""

    #: Place of its definition, for messages.
    place: str
    #: Returns the class and, if it denotes a method of it, its name, else "".
    load: Callable[[], tuple[type, str]]


def add(table: dict[str, Definition], kind: str, name: str, definition: Definition) -> None:
    """Add a plug-in to `table` under `name`; `kind` is only for the message.

    Raises PluginError if the table has that name.
    """
    if name in table:
        raise errors.PluginError(
            f"{kind} {name!r} is defined twice: {table[name].place} and {definition.place}; rename "
            "one of them"
        )
    table[name] = definition


def installed_points(kinds: Iterable[str]) -> dict[str, list[importlib.metadata.EntryPoint]]:
    """Return the entry points of `osbench.<kind>` for each kind; imports none."""
    points = _points_by_group(tuple(sys.path))
    return {kind: points.get(f"osbench.{kind}", []) for kind in kinds}


def names(kind: str) -> frozenset[str]:
    """Return the names of the entry points of a kind; imports none of them."""
    return frozenset(point.name for point in installed_points((kind,))[kind])


def load_object(kind: str, name: str) -> Any:
    """Import the entry point `name` of a kind and return its object.

    Raises PluginError if it is missing or cannot be loaded.
    """
    points = installed_points((kind,))[kind]
    point = next((entry for entry in points if entry.name == name), None)
    if point is None:
        raise errors.PluginError(
            f"no installed package has the entry point {name!r} of the group osbench.{kind}: "
            "install osbench again"
        )
    return _target(point, f"entry point {point.value}")[1]


@lru_cache(maxsize=1)
def _points_by_group(_path: tuple[str, ...]) -> dict[str, list[importlib.metadata.EntryPoint]]:
    """Return the entry points of groups `osbench.*`, by group; reads the packages' metadata.

    Cached for the last `sys.path`, which is the argument.
    """
    points: Any = importlib.metadata.entry_points()
    if isinstance(points, dict):
        # Python 3.11: by group; a `select` for each of ours looks at all that are installed
        points = itertools.chain.from_iterable(dict.values(points))
    groups: dict[str, list[importlib.metadata.EntryPoint]] = {}
    for point in points:
        if point.group.startswith("osbench."):
            groups.setdefault(point.group, []).append(point)
    return groups


def definitions(
    kind: str, points: Iterable[importlib.metadata.EntryPoint]
) -> dict[str, Definition]:
    """Return the plug-ins of entry points by name, not imported yet; duplicates count once.

    Raises PluginError if two entry points define the same name.
    """
    table: dict[str, Definition] = {}
    # a package found twice on the path (an editable install and its sources) is one package
    seen: set[tuple[str, str]] = set()
    for point in points:
        if (point.name, point.value) in seen:
            continue
        seen.add((point.name, point.value))
        package = f" of {_name_of(point.dist)}" if point.dist else ""
        where = f"entry point {point.value}{package}"
        add(table, kind, point.name, Definition(place=where, load=_loader(point, where)))
    return table


@lru_cache(maxsize=16)
def _name_of(package: importlib.metadata.Distribution) -> str:
    """Cached, since each access parses all metadata of the package."""
    return package.name


def _loader(point: importlib.metadata.EntryPoint, where: str) -> Callable[[], tuple[type, str]]:
    def load() -> tuple[type, str]:
        owner, target = _target(point, where)
        if isinstance(target, type):
            return target, ""
        if isinstance(owner, type) and callable(target):
            return owner, point.attr.rpartition(".")[2]
        raise errors.PluginError(
            f"{point.name} ({where}) is neither a class nor a method of one; correct the entry "
            "point in its package"
        )

    return load


def _target(point: importlib.metadata.EntryPoint, where: str) -> tuple[Any, Any]:
    """Import an entry point; return its owner, the module or class that has it, and its object.

    `where` is its place, for messages. Raises PluginError if that fails.
    """
    try:
        owner = target = importlib.import_module(point.module)
        for part in point.attr.split("."):
            owner, target = target, getattr(target, part)
    except (Exception, SystemExit) as error:
        # lists of commands do without what it imports
        from osbench.common.plugin.loading.plugin_import import reason  # noqa: PLC0415 - see above

        raise errors.PluginError(
            f"{point.name} ({where}) cannot be loaded: {reason(error)}; correct its package, or "
            "install it again"
        ) from error
    return owner, target
