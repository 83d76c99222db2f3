"""Imports Rally, all its plug-ins, and plug-in files for Rally, once per process."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import logging
import os
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from osbench.common.config.rally_conf import configuration_file
from osbench.common.errors import PluginError
from osbench.common.files.named_files import expanded, read_named
from osbench.common.plugin.loading.class_guard import ClassFault, execute
from osbench.common.plugin.loading.plugin_import import place, reason
from osbench.common.secrets.masking import error_text
from osbench.edges.rally import plugin_registry
from osbench.edges.rally.removed_modules import imports_removed

#: Packages whose import marks a file as Rally's, and the one that marks it as osbench's.
_RALLY = frozenset(("rally", "rally_openstack"))
_OURS = "osbench"

#: What Rally logs of the docstring of a scenario: users cannot change it.
_OF_DOCSTRINGS = "documents an argument that run() does not accept"


class OwnPath:
    """Results of importing a plug-in path for Rally: plug-ins by file, messages on failures."""

    def __init__(self) -> None:
        #: Why files or classes cannot be used.
        self.faults: list[str] = []
        #: Classes by file.
        self.classes: dict[str, list[OwnClass]] = {}


class _Loaded:
    """State of this process: whether Rally's plug-ins and which plug-in paths are imported."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.plugins = False
        #: Contents by plug-in path.
        self.paths: dict[Path, OwnPath] = {}
        #: Rally knows classes only as long as there is somebody else who does.
        self.modules: list[ModuleType] = []


_LOADED = _Loaded()


def is_installed() -> bool:
    """Return whether Rally is installed; imports nothing."""
    return importlib.util.find_spec("rally") is not None


def load(paths: Sequence[str] = ()) -> bool:
    """Import Rally, the plug-ins of its entry points, and the files and folders `paths`.

    Each is imported once in a process. Returns False if Rally is not installed, else True. Raises
    PluginError if Rally or its configuration file is broken; `own` has the problems of `paths`.
    """
    if not is_installed():
        return False
    with _LOADED.lock:
        if not _LOADED.plugins:
            with _quiet():
                _load()
            _LOADED.plugins = True
        wanted = [expanded(path).resolve() for path in paths]
        for path in wanted:
            if path not in _LOADED.paths:
                _LOADED.paths[path] = _load_from(path)
    return True


def own(paths: Sequence[str]) -> list[OwnPath]:
    """Return the import results of `paths`, in order; paths not imported are left out."""
    wanted = [expanded(path).resolve() for path in paths]
    return [_LOADED.paths[path] for path in wanted if path in _LOADED.paths]


def divide(path: str, imported: Mapping[Path, frozenset[str]]) -> tuple[list[Path], list[str]]:
    """Return the files under `path` that osbench imports, and the paths that Rally imports.

    A file is Rally's if it imports Rally and not osbench. A folder is Rally's as a whole if a file
    of it is, and none imports osbench. `imported`: the names that each file imports.
    """
    of_rally = [file for file, names in imported.items() if names & _RALLY and _OURS not in names]
    if of_rally and not any(_OURS in names for names in imported.values()):
        return [], [path]
    return [file for file in imported if file not in of_rally], [str(file) for file in of_rally]


def _load() -> None:
    file = configuration_file()
    of_scenarios = logging.getLogger("rally.task.scenario")
    of_scenarios.addFilter(lambda record: _OF_DOCSTRINGS not in record.getMessage())
    try:
        # some plug-ins read options at import time, so the file must be read first
        opts = importlib.import_module("rally.common.opts")
        cfg = importlib.import_module("rally.common.cfg")
        opts.update_opt_defaults()
        cfg.CONF(
            [],
            project="rally",
            default_config_files=[str(file)] if file else [],
            default_config_dirs=[],
        )
        importlib.import_module("rally.plugins").load()
    except Exception as error:
        where = f" (its configuration file is {file})" if file else ""
        raise PluginError(
            f"Rally cannot be loaded{where}: {error_text(error)}; correct this cause, or "
            "install osbench[rally] again"
        ) from error


def _load_from(path: Path) -> OwnPath:
    """Import the files of a plug-in path, in Rally's order; append its folders to `sys.path`."""
    found = OwnPath()
    with _quiet():
        if path.is_file():
            _load_file(path, found)
        for root, _, files in os.walk(path, followlinks=True):
            if root not in sys.path:
                sys.path.append(root)
            for name in files:
                if name.endswith(".py"):
                    _load_file(Path(root, name), found)
    return found


def _load_file(file: Path, found: OwnPath) -> None:
    """Import a plug-in file; a class whose definition fails leaves the rest of the file usable."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None:
        found.faults.append(f"{file}: not importable as Python")
        return
    module = importlib.util.module_from_spec(spec)
    try:
        bad = execute(read_named(file), str(file), module.__dict__)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever foreign code raises
        removed = imports_removed(file) if isinstance(error, ImportError) else []
        found.faults += removed or [f"{place(error, str(file))}: {reason(error)}"]
        return
    _LOADED.modules.append(module)
    found.faults += [fault(str(file), one) for one in bad]
    found.classes[str(file)] = list(own_classes(module))


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress warnings in the block, and remove handlers that it added to the root logger."""
    root = logging.getLogger()
    before = root.handlers[:]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for handler in root.handlers[:]:
            if handler not in before:
                root.removeHandler(handler)


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
    """Yield the classes, defined in a module, that derive from an interface of Rally.

    A class without a plug-in name has a remedy instead; it is left out if it has subclasses, or if
    its own name begins with "_".
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
                f"{said}; {_TYPE} = {old!r} is of early releases: put "
                f'@runner.configure(name="{old}") above it'
            )
    return f"{said}: put @{kind}.configure(name=...) above it"


def _marks_methods(node: ast.ClassDef) -> bool:
    """Return whether a method of the class has a decorator call `X.configure(...)`."""
    methods = [one for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    return any(
        isinstance(mark, ast.Call)
        and isinstance(mark.func, ast.Attribute)
        and mark.func.attr == "configure"
        for method in methods
        for mark in method.decorator_list
    )
