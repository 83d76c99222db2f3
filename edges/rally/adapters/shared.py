"""Code shared by the adapters: a class of osbench for each class of Rally."""

from __future__ import annotations

import functools
from typing import Any, TypeVar

from osbench.edges.rally import importing, plugin_registry, validators

T = TypeVar("T")


def adapter_class(adapter: type[T], kind: str, name: str) -> type[T] | None:
    """Return a subclass of `adapter` for Rally's plug-in `name` or `name@platform`; imports Rally.

    Its attribute RALLY is the plug-in. None if there is none or Rally is not installed. Raises
    PluginError if Rally is broken, or if several platforms have the name.
    """
    found = plugin_registry.plugin(kind, name) if importing.load() else None
    key: Any = (adapter, found)
    made: type[T] | None = None if found is None else _class(*key)
    return made


@functools.cache
def _class(adapter: Any, found: Any) -> Any:
    return type(
        f"Rally{found.__name__}",
        (adapter,),
        {
            "__doc__": found.__doc__,
            "__module__": found.__module__,
            "NAME": found.get_name(),
            "CONFIG_SCHEMA": found.CONFIG_SCHEMA,
            "RALLY": found,
        },
    )


def problems(kind: str, found: Any, config: Any) -> list[str]:
    """Return problems that Rally's validators find in `config` without a deployment.

    `found`: Rally's class of the plug-in.
    """
    return validators.problems(kind, found.get_fullname(), config, within=validators.SYNTAX)
