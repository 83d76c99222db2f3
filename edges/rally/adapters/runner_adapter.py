"""Runners of Rally's plug-ins: derived from Rally's own four, or with their own code."""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import inspect
from collections.abc import Mapping
from typing import Any, ClassVar, cast

from osbench.common.plugin import entry_points
from osbench.common.plugin.runner import Runner
from osbench.edges.rally import importing, plugin_registry
from osbench.edges.rally.adapters.hook_adapter import RallyTask
from osbench.edges.rally.adapters.scripted_adapter import scripted_class
from osbench.edges.rally.adapters.shared import problems

#: Rally's own runners, which osbench has under the same names: module and class.
OWN: Mapping[str, tuple[str, str]] = {
    "constant": ("rally.plugins.task.runners.constant", "ConstantScenarioRunner"),
    "constant_for_duration": (
        "rally.plugins.task.runners.constant",
        "ConstantForDurationScenarioRunner",
    ),
    "rps": ("rally.plugins.task.runners.rps", "RPSScenarioRunner"),
    "serial": ("rally.plugins.task.runners.serial", "SerialScenarioRunner"),
}


def runner_class(name: str) -> type[Runner] | None:
    """Return osbench's runner class for Rally's runner `name` or `name@platform`; imports Rally.

    Rally's own four are osbench's runners of the same names. None if there is none or Rally is not
    installed. Raises PluginError if osbench cannot run it, Rally is broken, or several platforms
    have the name.
    """
    found = plugin_registry.plugin("runner", name) if importing.load() else None
    return None if found is None else _class(found)


@functools.cache
def _class(found: Any) -> type[Runner]:
    model = _model(found)
    if model is None:
        scripted = scripted_class(found)
        scripted.CONFIG_SCHEMA = _schema(found)
        return scripted
    ours, theirs = model
    if found is theirs:
        return ours

    class Derived(ours):  # type: ignore[misc, valid-type]
        RALLY: ClassVar[Any] = found
        NAME: ClassVar[str] = found.get_name()
        CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = _schema(found)

        def __init__(self, config: Mapping[str, Any]) -> None:
            super().__init__(_settled_config(found, config))

        @classmethod
        def check(cls, config: Mapping[str, Any]) -> list[str]:
            said = problems("runner", found, config)
            return said or cast(list[str], super().check(_settled_config(found, config)))

    Derived.__doc__ = found.__doc__
    Derived.__name__ = Derived.__qualname__ = f"Rally{found.__name__}"
    return Derived


def _model(found: Any) -> tuple[type[Runner], Any] | None:
    """Return osbench's and Rally's class of that runner of Rally's four from which one derives.

    None if it derives from none, or overrides a method of it other than `__init__`.
    """
    for name, (module, attribute) in OWN.items():
        theirs = getattr(importlib.import_module(module), attribute)
        if issubclass(found, theirs):
            if _changes(found, theirs):
                return None
            return cast(type[Runner], entry_points.load_object("runner", name)), theirs
    return None


def _changes(found: Any, theirs: Any) -> bool:
    """Return whether a runner class overrides a method of `theirs` except the constructor."""
    for cls in found.__mro__[: found.__mro__.index(theirs)]:
        for name, value in vars(cls).items():
            method = inspect.isroutine(value) or isinstance(value, classmethod | staticmethod)
            if method and name != "__init__" and hasattr(theirs, name):
                return True
    return False


def _schema(found: Any) -> Mapping[str, Any]:
    """Return a Rally runner's JSON schema without the required key `type`, which tasks lack."""
    schema = dict(found.CONFIG_SCHEMA)
    required = [name for name in schema.pop("required", ()) if name != "type"]
    return {**schema, "required": required} if required else schema


def _settled_config(found: Any, config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a copy of `config` as the runner's constructor leaves it, perhaps with defaults."""
    return dict(found(RallyTask(""), dict(config)).config)
