"""Plug-ins in files: imports what `--plugin-path` names and finds the plug-ins defined there."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from osbench.common import errors
from osbench.common.plugin.scenario import MARK, Configuration, Scenario


def modules(files: Sequence[Path]) -> Iterator[ModuleType]:
    """Import .py files, each under a name of its own.

    Raises PluginError where one cannot be imported.
    """
    # one file reached by two paths is one plug-in, not a name defined twice
    for file in dict.fromkeys(files):
        yield _imported(file)


def files_of(path: str) -> list[Path]:
    """The .py file that `path` names, or those that lie under it.

    Raises PluginError where it is neither a .py file nor a folder.
    """
    top = Path(path).expanduser().resolve()
    if top.is_file() and top.suffix == ".py":
        return [top]
    if not top.is_dir():
        raise errors.PluginError(f"plug-in path {path}: neither a .py file nor a folder")
    return sorted(f for f in top.rglob("*.py") if not _hidden(f.relative_to(top)))


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in path.parts)


def _imported(file: Path) -> ModuleType:
    digest = hashlib.sha256(str(file).encode()).hexdigest()[:12]
    name = f"osbench_plugin_{digest}_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None:
        raise errors.PluginError(f"{file}: not importable as Python")
    module = importlib.util.module_from_spec(spec)
    # dataclasses and inspect look modules up by name while their body runs
    sys.modules[name] = module
    try:
        # compiled here and not by the loader: a cached .pyc may be older than the hashed text
        exec(compile(file.read_bytes(), str(file), "exec"), module.__dict__)  # noqa: S102 - a plug-in is code
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise errors.PluginError(f"{place(error, str(file))}: {reason(error)}") from error
    return module


def place(error: BaseException, file: str) -> str:
    """Where in `file` an import failed, as `file:line`; the file alone where that is unknown."""
    if isinstance(error, SyntaxError) and error.filename == file:
        return f"{file}:{error.lineno}"
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    return f"{file}:{lines[-1]}" if lines else file


def reason(error: BaseException) -> str:
    """One line that says what was raised."""
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    name = type(error).__name__
    return f"{name}: {text}" if text else name


def scenarios(module: ModuleType) -> Iterator[tuple[str, type[Scenario], str]]:
    """Name, class and method of each scenario that `module` defines.

    Raises PluginError for a marked class that cannot be a scenario.
    """
    for cls in _classes(module):
        mark = vars(cls).get(MARK)
        if isinstance(mark, Configuration):
            if not issubclass(cls, Scenario) or not callable(getattr(cls, "run", None)):
                raise errors.PluginError(
                    f"{module.__file__}: class {cls.__name__} is marked as a scenario but is not "
                    "a subclass of osbench.plugin.scenario.Scenario with a method run"
                )
            yield mark.name or f"{cls.__name__}.run", cls, "run"
        for name, method in marked_methods(cls, str(module.__file__)):
            yield name, cls, method


def marked_methods(cls: type, where: str) -> Iterator[tuple[str, str]]:
    """Scenario name and method name of each method of its own that `cls` marks as a scenario.

    Raises PluginError, which tells `where` the class is, if it cannot be a scenario.
    """
    for method, function in vars(cls).items():
        mark = getattr(function, MARK, None)
        if isinstance(mark, Configuration) and not isinstance(function, type):
            if not issubclass(cls, Scenario):
                raise errors.PluginError(
                    f"{where}: {cls.__name__}.{method} is marked as a scenario but "
                    f"{cls.__name__} is not a subclass of osbench.plugin.scenario.Scenario"
                )
            yield mark.name or f"{cls.__name__}.{method}", method


def unmarked(module: ModuleType) -> Iterator[str]:
    """A sentence on each scenario class of `module` that no task can name: it has no mark.

    Base classes of others, and classes whose name begins with "_", are left out.
    """
    for cls in _classes(module):
        if not issubclass(cls, Scenario) or cls.__name__.startswith("_") or cls.__subclasses__():
            continue
        marks = [vars(cls).get(MARK), *(getattr(v, MARK, None) for v in vars(cls).values())]
        if not any(isinstance(mark, Configuration) for mark in marks):
            yield (
                f"{_line(cls, str(module.__file__))}: class {cls.__name__} derives from Scenario, "
                "but no task can name it: put @scenario.configure() above it or above a method "
                "of its own"
            )


def _line(cls: type, file: str) -> str:
    try:
        return f"{file}:{inspect.getsourcelines(cls)[1]}"
    except (OSError, TypeError):
        return file


def others(module: ModuleType, interfaces: Mapping[str, type]) -> Iterator[tuple[str, str, type]]:
    """Kind, name and class of each other plug-in that `module` defines.

    Those are subclasses of an interface with a NAME of their own.
    """
    for cls in _classes(module):
        name: Any = vars(cls).get("NAME")
        if not name:
            continue
        for kind, interface in interfaces.items():
            if issubclass(cls, interface):
                yield kind, str(name), cls


def _classes(module: ModuleType) -> list[type]:
    # a class under two names, or one imported from elsewhere, is not defined twice
    found = [v for v in vars(module).values() if isinstance(v, type)]
    return list(dict.fromkeys(c for c in found if c.__module__ == module.__name__))
