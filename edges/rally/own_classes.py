"""Classes of plug-in files for Rally: kinds, names, and advice on unusable classes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import ModuleType
from typing import Any, NamedTuple

from osbench.common.plugin.loading.class_guard import ClassFault
from osbench.common.plugin.loading.plugin_import import place, reason
from osbench.edges.rally import plugin_registry

#: Attribute by which early releases of Rally named a runner.
_TYPE = "__execution_type__"


class OwnClass(NamedTuple):
    """A class of a plug-in file that derives from a plug-in interface of Rally."""

    kind: str
    #: Name of the plug-in; "" if it has none.
    name: str
    #: A sentence on what to write, for a class without a name.
    remedy: str = ""


def own_classes(module: ModuleType) -> Iterator[OwnClass]:
    """Yield the classes of a module that derive from an interface of Rally.

    A class without a plug-in name has a remedy instead. If it has subclasses, or its name begins
    with "_", it is left out.
    """
    for cls in vars(module).values():
        if not isinstance(cls, type) or cls.__module__ != module.__name__:
            continue
        kind = next((k for k in plugin_registry.BASES if _derives(cls, k)), "")
        if not kind:
            continue
        found: Any = cls
        if found._meta_is_inited(raise_exc=False):
            yield OwnClass(kind, str(found.get_name()))
        elif not cls.__subclasses__() and not cls.__name__.startswith("_"):
            yield OwnClass(kind, "", f"{module.__file__}: {_nameless(kind, cls)}")


def fault(file: str, found: ClassFault) -> str:
    """Return a message on a class whose definition failed, with advice if it marks its methods.

    `file`: path for the message. Marked methods are osbench's form of scenarios, not Rally's.
    """
    said = f"{place(found.error, file)}: class {found.name}: {reason(found.error)}"
    if _marks_methods(found.node):
        return (
            f"{said}: Rally takes one class for each scenario, with @scenario.configure(name=...) "
            "above the class and a method run; osbench takes methods as they are marked here: "
            "write `from osbench.plugin import atomic, scenario` instead of the imports from "
            "rally.task"
        )
    return said


def _derives(cls: type, kind: str) -> bool:
    base: type = plugin_registry.base(kind)
    return issubclass(cls, base) and cls is not base


def _nameless(kind: str, cls: type) -> str:
    said = f"class {cls.__name__} is a {kind} for Rally without a name"
    if kind == "runner":
        old = getattr(cls, _TYPE, "")
        if old:
            return (
                f"{said}; {_TYPE} = {old!r} is what early releases read: put "
                f'@runner.configure(name="{old}") above it'
            )
    return f"{said}: put @{kind}.configure(name=...) above it"


def _marks_methods(node: ast.ClassDef) -> bool:
    """Return whether a method of the class has a decorator call `X.configure(...)`."""
    methods = [one for one in node.body if isinstance(one, ast.FunctionDef)]
    return any(
        isinstance(mark, ast.Call)
        and isinstance(mark.func, ast.Attribute)
        and mark.func.attr == "configure"
        for method in methods
        for mark in method.decorator_list
    )
