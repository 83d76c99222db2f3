"""Entry points: plug-ins of installed packages, imported when they are asked for."""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from osbench.common import errors
from osbench.common.plugin.loading.plugin_import import reason


@dataclass(frozen=True, kw_only=True)
class Definition:
    """A plug-in that is known but perhaps not yet imported."""

    #: Where it is defined, for messages.
    place: str
    #: Returns the class and, where it denotes a method of it, its name, else "".
    load: Callable[[], tuple[type, str]]


def add(table: dict[str, Definition], kind: str, name: str, definition: Definition) -> None:
    """Add a plug-in to a table. Raises PluginError where the table has its name."""
    if name in table:
        raise errors.PluginError(
            f"{kind} {name!r} is defined twice: {table[name].place} and {definition.place}"
        )
    table[name] = definition


def definitions(
    kind: str, points: Iterable[importlib.metadata.EntryPoint]
) -> dict[str, Definition]:
    """The plug-ins of entry points, by the names of these. Raises PluginError."""
    table: dict[str, Definition] = {}
    # a package found twice on the path (an editable install and its sources) is one package
    seen: set[tuple[str, str]] = set()
    for point in points:
        if (point.name, point.value) in seen:
            continue
        seen.add((point.name, point.value))
        package = f" of {point.dist.name}" if point.dist else ""
        where = f"entry point {point.value}{package}"
        add(table, kind, point.name, Definition(place=where, load=_loader(point, where)))
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
                f"{point.name} ({where}) cannot be loaded: {reason(error)}"
            ) from error
        if isinstance(target, type):
            return target, ""
        if isinstance(owner, type) and callable(target):
            return owner, point.attr.rpartition(".")[2]
        raise errors.PluginError(f"{point.name} ({where}) is neither a class nor a method of one")

    return load
