"""Imports the files of `--plugin-path` and finds the plug-ins that they define."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from osbench.common import errors
from osbench.common.files.named_files import expanded
from osbench.common.plugin import atomic
from osbench.common.plugin.scenario import MARK, Configuration, Scenario
from osbench.common.plugin.signature import signature_of
from osbench.common.text.syntax_trees import first_line


def files_of(path: str) -> list[Path]:
    """Return the .py file that `path` names, or all .py files under the folder, sorted.

    Hidden files and folders are left out. Raises PluginError if it is neither.
    """
    top = expanded(path).resolve()
    if top.is_file() and top.suffix == ".py":
        return [top]
    if not top.is_dir():
        raise errors.PluginError(
            f"plug-in path {path} is neither a .py file nor a folder; give an existing path"
        )
    return sorted(f for f in top.rglob("*.py") if not _is_hidden(f.relative_to(top)))


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in path.parts)


def scenarios(cls: type, file: str) -> Iterator[tuple[str, str]]:
    """Yield (scenario name, method name) of each scenario that a class in `file` defines.

    The class or its methods are marked by `scenario.configure`. Raises PluginError for a marked
    class or method that cannot be a scenario.
    """
    mark = vars(cls).get(MARK)
    if isinstance(mark, Configuration):
        if not issubclass(cls, Scenario) or not callable(getattr(cls, "run", None)):
            raise errors.PluginError(
                f"{file}: class {cls.__name__} is marked as a scenario; derive it from "
                "osbench.plugin.scenario.Scenario, and give it a method run"
            )
        _refuse_uncallable(cls, "run", file)
        yield mark.name or f"{cls.__name__}.run", "run"
    yield from marked_methods(cls, file)


def marked_methods(cls: type, where: str) -> Iterator[tuple[str, str]]:
    """Yield (scenario name, method name) of each method that `cls` itself marks as a scenario.

    `where`: the place of the class, for messages. Raises PluginError if such a method cannot be a
    scenario.
    """
    for method, function in vars(cls).items():
        mark = getattr(function, MARK, None)
        if isinstance(mark, Configuration) and not isinstance(function, type):
            if not issubclass(cls, Scenario):
                raise errors.PluginError(
                    f"{where}: {cls.__name__}.{method} is marked as a scenario; derive "
                    f"{cls.__name__} from osbench.plugin.scenario.Scenario"
                )
            _refuse_uncallable(cls, method, where)
            yield mark.name or f"{cls.__name__}.{method}", method


def _refuse_uncallable(cls: type, method: str, where: str) -> None:
    """Raise PluginError if a scenario's method cannot be called as the engine calls it.

    It must be a plain function with `self`, `warm_up` a class or static method, and neither it nor
    `on_start` or `on_stop` a generator. `where` is for messages.
    """
    function = inspect.getattr_static(cls, method)
    called = f"{cls.__name__}.{method}"
    if isinstance(function, staticmethod | classmethod):
        kind = type(function).__name__
        raise errors.PluginError(
            f"{_first_line(function, where)}: scenario {called} is a {kind}: write "
            f"`def {method}(self, ...)` without @{kind}"
        )
    if not _takes_instance(function):
        raise errors.PluginError(
            f"{_first_line(function, where)}: scenario {called} is called with the scenario object "
            f"first: write `def {method}(self, ...)`"
        )
    warm_up = inspect.getattr_static(cls, "warm_up")
    if not isinstance(warm_up, staticmethod | classmethod):
        raise errors.PluginError(
            f"{_first_line(warm_up, where)}: warm_up of {cls.__name__} belongs to the class: write "
            "@classmethod above `def warm_up(cls, context)`"
        )
    for name in (method, "on_start", "on_stop"):
        _refuse_generator(cls, name, where)


def _refuse_generator(cls: type, method: str, where: str) -> None:
    """Raise PluginError if a method has `yield`: calling it would run nothing."""
    function = inspect.getattr_static(cls, method)
    while hasattr(function, "__wrapped__") and getattr(function, "__globals__", {}) is vars(atomic):
        # `action_timer` times whatever it decorates; other decorators may run a generator
        function = function.__wrapped__
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise errors.PluginError(
            f"{_first_line(function, where)}: {cls.__name__}.{method} has `yield`: it is a "
            "generator, and a call does not run its code; write it without `yield`"
        )


def _takes_instance(function: Any) -> bool:
    try:
        parameters = list(signature_of(function).parameters.values())
    except (TypeError, ValueError):
        # of another language; it says so itself
        return True
    first = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.VAR_POSITIONAL,
    )
    return bool(parameters) and parameters[0].kind in first


def _first_line(function: Any, where: str) -> str:
    code = getattr(inspect.unwrap(getattr(function, "__func__", function)), "__code__", None)
    return where if code is None else f"{code.co_filename}:{code.co_firstlineno}"


def missing_marks(module: ModuleType) -> Iterator[str]:
    """Yield a message on each scenario class of `module` that lacks the mark `scenario.configure`.

    No task can name such a class. Base classes of others, and classes whose name begins with "_",
    are left out.
    """
    for cls in classes(module):
        if not issubclass(cls, Scenario) or cls.__name__.startswith("_") or cls.__subclasses__():
            continue
        marks = [vars(cls).get(MARK), *(getattr(v, MARK, None) for v in vars(cls).values())]
        if not any(isinstance(mark, Configuration) for mark in marks):
            yield (
                f"{_line(cls, str(module.__file__))}: class {cls.__name__} derives from Scenario, "
                "but no task can name it: put @scenario.configure() above it or above one of "
                "its methods"
            )


def _line(cls: type, file: str) -> str:
    try:
        return f"{file}:{first_line(cls)}"
    except (OSError, TypeError):
        return file


def others(module: ModuleType, interfaces: Mapping[str, type]) -> Iterator[tuple[str, str, type]]:
    """Yield (kind, name, class) of each plug-in of `module`, except scenarios.

    Plug-ins are subclasses of an interface that set a NAME themselves. `interfaces`: the base class
    of each kind.
    """
    for cls in classes(module):
        name: Any = vars(cls).get("NAME")
        if not name:
            continue
        for kind, interface in interfaces.items():
            if issubclass(cls, interface):
                yield kind, str(name), cls


def classes(module: ModuleType) -> list[type]:
    """Return the classes that a module defines itself, each once, in order of definition."""
    # a class under two names, or one imported from elsewhere, is not defined twice
    found = [v for v in vars(module).values() if isinstance(v, type)]
    return list(dict.fromkeys(c for c in found if c.__module__ == module.__name__))
