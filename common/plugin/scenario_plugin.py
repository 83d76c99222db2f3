"""A scenario as task files name it, native or of a source."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from osbench.common import errors
from osbench.common.plugin import signature
from osbench.common.plugin.context import ContextEnvironment, texts_of
from osbench.common.plugin.plugin_names import NATIVE
from osbench.common.plugin.scenario import Scenario

#: Values by name.
Args = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class ScenarioPlugin:
    """A scenario that a task file can name: a class, and the method that each iteration calls."""

    name: str
    cls: type[Scenario]
    #: Name of the method.
    method: str
    #: Contexts that the scenario always needs, by name.
    context: Mapping[str, Any]
    #: First line of the docstring, or "".
    title: str
    #: Identity that a coordinator and its workers must share; see `SourceFiles.source_hash`.
    source_hash: str
    #: `plugin_names.NATIVE` or `plugin_names.RALLY`.
    source: str = NATIVE
    #: Called once per workload, after its contexts are set up. Takes the task's arguments and the
    #: environment, and returns the arguments and the context for workers. Raises ContextError.
    prepare: Callable[[Mapping[str, Any], ContextEnvironment], tuple[Args, Args]] | None = None
    #: Whether its framework traces by its own configuration; None if that does not say.
    enable_profiler: bool | None = None

    @property
    def is_coroutine(self) -> bool:
        """Return whether the method is `async def`: virtual users are then coroutines."""
        return inspect.iscoroutinefunction(getattr(self.cls, self.method))

    @property
    def address(self) -> str:
        """Return the full name, which no other plug-in has, such as `Class.method@native`."""
        return self.name if "@" in self.name else f"{self.name}@{self.source}"

    def check_args(self, args: Mapping[str, Any], columns: Collection[str] = ()) -> list[str]:
        """Return messages on errors in the task's arguments `args`; reads files that they name.

        `columns`: names of further arguments, which a data file sets. An argument of a wrong type
        is not checked any further. A file that cannot be read gives a message, too.
        """
        method = getattr(self.cls, self.method)
        mistyped = signature.type_problems(self.name, method, args)
        fitting = {name: value for name, value in args.items() if name not in mistyped}
        found = [
            *signature.name_problems(self.name, method, [*args, *columns]),
            *mistyped.values(),
            *self.cls.check_arguments(self.method, fitting),
        ]
        try:
            texts = texts_of(self.cls.FILES, args)
        except errors.ContextError as error:
            return [*found, str(error)]
        return [*found, *self.cls.check_files(texts, args)]

    def check_row(self, row: Mapping[str, Any]) -> list[str]:
        """Return messages on errors in the arguments that a row of a data file gives, by name."""
        mistyped = signature.type_problems(self.name, getattr(self.cls, self.method), row)
        fitting = {name: value for name, value in row.items() if name not in mistyped}
        return [*mistyped.values(), *self.cls.check_arguments(self.method, fitting)]
