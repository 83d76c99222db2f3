"""Imports Rally's clients before the load, instead of when they are first created."""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any

from osbench.common.text.syntax_trees import syntax_tree

#: Clients that every OpenStack scenario uses.
_ALWAYS = ("keystone",)
#: Subpackages that client libraries import once they know the API version.
_VERSIONS = ("v1", "v2", "v2_0", "v3")


def import_for(rally: Any) -> None:
    """Import the client libraries that an OpenStack scenario class of Rally needs; ignore errors.

    Iterations report the errors. Does nothing for other scenarios.
    """
    try:
        osclients: Any = importlib.import_module("rally_openstack.common.osclients")
        base = importlib.import_module("rally_openstack.task.scenario").OpenStackScenario
    except ImportError:
        return
    if not issubclass(rally, base):
        return
    for name in dict.fromkeys((*_ALWAYS, *_services(rally))):
        with contextlib.suppress(Exception):
            _import_client(osclients.OSClient.get(name))


def _services(rally: Any) -> Iterator[str]:
    for name, config in rally.get_default_context().items():
        if name.partition("@")[0] in ("cleanup", "admin_cleanup"):
            yield from (service.partition(".")[0] for service in config)


def _import_client(client: Any) -> None:
    """Import the modules in methods of a Rally client class, and `LIBRARY.VERSION.client`."""
    libraries = set()
    for _, method in inspect.getmembers(client, inspect.isfunction):
        if method.__module__ != client.__module__:
            continue
        for module, names in _imports(method):
            libraries.add(module.partition(".")[0])
            with contextlib.suppress(ImportError):
                imported = importlib.import_module(module)
                for name in names:
                    if not hasattr(imported, name):
                        importlib.import_module(f"{module}.{name}")
    for library in libraries:
        for version in _VERSIONS:
            with contextlib.suppress(ImportError):
                importlib.import_module(f"{library}.{version}.client")


def _imports(function: Any) -> Iterator[tuple[str, list[str]]]:
    tree = syntax_tree(textwrap.dedent(inspect.getsource(function)))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module, [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            yield from ((alias.name, []) for alias in node.names)
