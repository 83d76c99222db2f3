"""Rally's own registry of plug-ins, to be used after `importing.load`."""

from __future__ import annotations

import importlib
from typing import Any

from osbench.common.errors import PluginError

#: Rally's base class for each of osbench's kinds of plug-ins.
BASES = {
    "scenario": ("rally.task.scenario", "Scenario"),
    "context": ("rally.task.context", "Context"),
    "sla": ("rally.task.sla", "SLA"),
    "hook": ("rally.task.hook", "HookAction"),
    "trigger": ("rally.task.hook", "HookTrigger"),
    "runner": ("rally.task.runner", "ScenarioRunner"),
    "exporter": ("rally.task.exporter", "TaskExporter"),
}


def plugin(kind: str, name: str) -> Any | None:
    """Return Rally's class of the plug-in `name` or `name@platform`, also a hidden one.

    None if Rally has none. Raises PluginError if several platforms have the name and none of them
    is the default.
    """
    exceptions = importlib.import_module("rally.exceptions")
    try:
        return base(kind).get(name, allow_hidden=True)
    except exceptions.PluginNotFound:
        return None
    except exceptions.MultiplePluginsFound as error:
        raise PluginError(f"{kind} {name!r}: {error}; write NAME@PLATFORM") from None


def plugins(kind: str) -> list[Any]:
    """Return Rally's classes of a kind that are not hidden, sorted by name, then platform."""
    found: list[Any] = base(kind).get_all()
    return sorted(found, key=lambda one: (one.get_name(), one.get_platform()))


def base(kind: str) -> Any:
    """Return Rally's base class of a kind in `BASES`, such as "hook"; imports its module."""
    module, name = BASES[kind]
    return getattr(importlib.import_module(module), name)
