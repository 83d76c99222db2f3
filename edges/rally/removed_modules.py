"""Modules that Rally and rally-openstack no longer have, and the modules to import instead."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from osbench.common.files.named_files import read_named
from osbench.common.text.syntax_trees import syntax_tree


class _Removal(NamedTuple):
    """Removal of a module, and of all modules below it, from Rally or rally-openstack."""

    #: First release without it.
    release: str
    #: Module that has its content; "" if there is none.
    now: str = ""
    #: Advice, if no module has its content.
    advice: str = ""


_OLDEST, _SPLIT, _DROPPED = "rally 0.1.0", "rally 1.0.0", "rally-openstack 4.0.0"
_RECORD = "clouds are named by a deployment record: osbench-coord deployment create"
_VERIFY = "osbench runs no Tempest: use the command tempest, or rally verify"

#: By module, from the repositories' tags: the modules below it that are not here move along.
_REMOVALS: Mapping[str, _Removal] = {
    "rally.benchmark": _Removal(_OLDEST, "rally.task"),
    "rally.benchmark.context": _Removal(_OLDEST, "rally_openstack.task.contexts"),
    "rally.benchmark.context.base": _Removal(_OLDEST, "rally.task.context"),
    "rally.benchmark.runners": _Removal(_OLDEST, "rally.plugins.task.runners"),
    "rally.benchmark.runners.base": _Removal(_OLDEST, "rally.task.runner"),
    "rally.benchmark.scenarios": _Removal(_OLDEST, "rally_openstack.task.scenarios"),
    "rally.benchmark.scenarios.base": _Removal(_OLDEST, "rally.task.scenario"),
    "rally.benchmark.scenarios.dummy": _Removal(_OLDEST, "rally.plugins.task.scenarios.dummy"),
    "rally.benchmark.scenarios.requests": _Removal(
        _OLDEST, "rally.plugins.task.scenarios.requests"
    ),
    "rally.benchmark.scenarios.tempest": _Removal(_OLDEST, advice=_VERIFY),
    "rally.benchmark.sla": _Removal(_OLDEST, "rally.plugins.task.sla"),
    "rally.benchmark.sla.base": _Removal(_OLDEST, "rally.task.sla"),
    "rally.benchmark.wrappers": _Removal(_OLDEST, "rally_openstack.common.wrappers"),
    "rally.cmd": _Removal(_OLDEST, "rally.cli"),
    "rally.common.costilius": _Removal("rally 0.5.0", advice="use json and collections of Python"),
    "rally.common.i18n": _Removal("rally 3.0.0", advice="messages are no longer translated"),
    "rally.common.log": _Removal("rally 0.6.0", "rally.common.logging"),
    "rally.common.objects.credential": _Removal(_SPLIT, "rally_openstack.common.credential"),
    "rally.common.objects.endpoint": _Removal("rally 0.9.0", "rally_openstack.common.credential"),
    "rally.db": _Removal(_OLDEST, "rally.common.db"),
    "rally.deploy": _Removal(_OLDEST, advice=_RECORD),
    "rally.deployment": _Removal("rally 0.11.0", advice=_RECORD),
    "rally.objects": _Removal(_OLDEST, "rally.common.objects"),
    "rally.openstack": _Removal("rally 0.0.2", advice="its parts are the libraries oslo.*"),
    "rally.osclients": _Removal(_SPLIT, "rally_openstack.common.osclients"),
    "rally.plugins.common.context": _Removal("rally 0.11.0", "rally.plugins.task.contexts"),
    "rally.plugins.common.contexts": _Removal("rally 3.0.0", "rally.plugins.task.contexts"),
    "rally.plugins.common.exporter": _Removal("rally 0.10.0", "rally.plugins.task.exporters"),
    "rally.plugins.common.exporters": _Removal("rally 5.1.0", "rally.plugins.task.exporters"),
    "rally.plugins.common.hook": _Removal("rally 5.1.0", "rally.plugins.task.hooks"),
    "rally.plugins.common.runners": _Removal("rally 5.1.0", "rally.plugins.task.runners"),
    "rally.plugins.common.scenarios": _Removal("rally 5.1.0", "rally.plugins.task.scenarios"),
    "rally.plugins.common.sla": _Removal("rally 5.1.0", "rally.plugins.task.sla"),
    "rally.plugins.common.trigger": _Removal("rally 0.10.0", "rally.plugins.task.hook_triggers"),
    "rally.plugins.common.types": _Removal("rally 5.1.0", "rally.plugins.task.types"),
    "rally.plugins.common.verification": _Removal("rally 5.1.0", "rally.plugins.verification"),
    "rally.plugins.openstack": _Removal(_SPLIT, "rally_openstack"),
    "rally.plugins.openstack.cfg": _Removal(_SPLIT, "rally_openstack.common.cfg"),
    "rally.plugins.openstack.cleanup": _Removal(_SPLIT, "rally_openstack.task.cleanup"),
    "rally.plugins.openstack.context": _Removal("rally 0.11.0", "rally_openstack.task.contexts"),
    "rally.plugins.openstack.contexts": _Removal(_SPLIT, "rally_openstack.task.contexts"),
    "rally.plugins.openstack.credential": _Removal(_SPLIT, "rally_openstack.common.credential"),
    "rally.plugins.openstack.hook": _Removal(_SPLIT, "rally_openstack.task.hooks"),
    "rally.plugins.openstack.osclients": _Removal(_SPLIT, "rally_openstack.common.osclients"),
    "rally.plugins.openstack.platforms": _Removal(_SPLIT, "rally_openstack.environment.platforms"),
    "rally.plugins.openstack.scenario": _Removal(_SPLIT, "rally_openstack.task.scenario"),
    "rally.plugins.openstack.scenarios": _Removal(_SPLIT, "rally_openstack.task.scenarios"),
    "rally.plugins.openstack.service": _Removal(_SPLIT, "rally_openstack.common.service"),
    "rally.plugins.openstack.services": _Removal(_SPLIT, "rally_openstack.common.services"),
    "rally.plugins.openstack.types": _Removal(_SPLIT, "rally_openstack.task.types"),
    "rally.plugins.openstack.validators": _Removal(_SPLIT, "rally_openstack.common.validators"),
    "rally.plugins.openstack.verification": _Removal(_SPLIT, "rally_openstack.verification"),
    "rally.plugins.openstack.wrappers": _Removal(_SPLIT, "rally_openstack.common.wrappers"),
    "rally.plugins.workload": _Removal(_SPLIT, "rally_openstack.task.scenarios.vm.workloads"),
    "rally.task.trigger": _Removal("rally 3.0.0", "rally.task.hook"),
    "rally.verification.tempest": _Removal("rally 0.8.0", advice=_VERIFY),
    "rally_openstack.task.contexts.ceilometer": _Removal("rally-openstack 2.2.0"),
    "rally_openstack.task.scenarios.ceilometer": _Removal("rally-openstack 2.2.0"),
    "rally_openstack.task.scenarios.nova.agents": _Removal("rally-openstack 2.3.0"),
    **{
        f"rally_openstack.task.{kind}.{service}": _Removal(_DROPPED)
        for kind in ("contexts", "scenarios")
        for service in ("monasca", "murano", "sahara", "senlin")
    },
}


def imports_removed(file: Path) -> list[str]:
    """Return messages on a file's imports of removed modules, in order of lines: "FILE:LINE: ...".

    Modules that can be imported here are left out. Raises OSError if the file cannot be read.
    """
    tree = syntax_tree(read_named(file), str(file))
    found = {
        (line, _sentence(module, attribute)) for line, module, attribute in _removed_imports(tree)
    }
    return [f"{file}:{line}: {sentence}" for line, sentence in sorted(found)]


def _removed_imports(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Yield (line, removed module, name) of each import; the name is "" for the module itself.

    Relative imports, and modules that can be imported here, are left out.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            named = [(one.name, "") for one in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            named = [(node.module or "", one.name) for one in node.names]
        else:
            continue
        for module, attribute in named:
            whole = _dotted_name(module, attribute)
            if whole in _REMOVALS and not _is_importable(whole):
                yield node.lineno, whole, ""
            elif _removed_package(module) and not _is_importable(module):
                yield node.lineno, module, attribute


def _dotted_name(module: str, attribute: str) -> str:
    return f"{module}.{attribute}" if attribute else module


def _removed_package(module: str) -> str:
    """Return `module`, or the nearest package around it, that was removed; "" if none was."""
    while module and module not in _REMOVALS:
        module = module.rpartition(".")[0]
    return module


def _is_importable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _sentence(module: str, attribute: str) -> str:
    was = _removed_package(module)
    said = f"{module} was removed in {_REMOVALS[was].release}"
    # a name that is imported from a package may be a separate module
    whole = _dotted_name(module, attribute)
    while _removed_package(whole) and _REMOVALS[was].now:
        whole = _REMOVALS[was].now + whole.removeprefix(was)
        was = _removed_package(whole) or was
    if not _REMOVALS[was].now:
        return f"{said}: {_REMOVALS[was].advice or 'its service is no longer supported'}"
    while whole != _REMOVALS[was].now and not _is_importable(whole):
        whole = whole.rpartition(".")[0]
    return f"{said}: import {whole}"
