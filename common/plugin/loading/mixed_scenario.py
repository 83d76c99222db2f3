"""Mixes scenarios: each iteration runs one scenario of the mix, drawn by its weight."""

from __future__ import annotations

import hashlib
import inspect
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from osbench.common.errors import PluginError
from osbench.common.plugin import atomic
from osbench.common.plugin.scenario import Scenario

#: Between the names of scenarios, in the name of their mix.
SEPARATOR = " + "
#: Key of the context: the contexts of the parts by name.
_CONTEXTS = "mix"
_KINDS = {True: "async def", False: "def"}


@dataclass(frozen=True, kw_only=True)
class MixPart:
    """A scenario of a mix: its class, method, contexts and check of arguments."""

    name: str
    cls: type[Scenario]
    #: Name of the method.
    method: str
    source_hash: str
    #: Contexts that it always needs, by name.
    context: Mapping[str, Any]
    #: Says what is wrong with its arguments, a message per problem.
    check: Callable[[Mapping[str, Any]], list[str]]


class MixedScenario(Scenario):
    """Base class of mixes of scenarios; `mix_class` makes the classes.

    An argument of a mix has the name of a part, and the value `{"weight": W, "args": {...}}`.
    """

    PARTS: ClassVar[Mapping[str, MixPart]] = {}

    @classmethod
    def warm_up(cls, context: dict[str, Any]) -> None:
        """Call `warm_up` of each part with its own arguments, before the load.

        Stores the context of each part in `context`, for `_of_part`.
        """
        given = context["args"]
        context[_CONTEXTS] = {}
        for name, part in cls.PARTS.items():
            own = context | {"scenario": name, "args": given[name]["args"]}
            part.cls.warm_up(own)
            context[_CONTEXTS][name] = own

    @classmethod
    def check_arguments(cls, method: str, args: Mapping[str, Any]) -> list[str]:
        """Return messages on errors in the parts' arguments, `args`; [] without errors.

        Calls each part's check with its own arguments; `method` is not used.
        """
        return [
            what
            for name, part in cls.PARTS.items()
            for what in part.check(args.get(name, {}).get("args", {}))
        ]

    @classmethod
    def check_user_data(
        cls, method: str, args: Mapping[str, Any], columns: Collection[str]
    ) -> list[str]:
        """Return messages on the parts' arguments that name columns of the users' data file."""
        return [
            what
            for name, part in cls.PARTS.items()
            for what in part.cls.check_user_data(part.method, args[name]["args"], columns)
        ]

    @classmethod
    def check_without_base(cls, method: str, args: Mapping[str, Any]) -> list[str]:
        """Return messages on errors in the parts' arguments if `http` has no base URL."""
        return [
            what
            for name, part in cls.PARTS.items()
            for what in part.cls.check_without_base(part.method, args[name]["args"])
        ]

    def _of_part(self, name: str, method: str) -> Callable[..., Any]:
        """Return the method `method` of the part `name`, bound to a new object of its class.

        The object shares this object's attributes, so that times and outputs of the part count for
        this iteration. Replaces `self.context` by the part's.
        """
        part: Scenario = object.__new__(self.PARTS[name].cls)
        own = self.context[_CONTEXTS][name] | {"iteration": self.context["iteration"]}
        # one state: what the part measures and puts out is that of this iteration
        part.__dict__ = self.__dict__
        part.__init__(own)  # type: ignore[misc]
        bound: Callable[..., Any] = getattr(part, method)
        return bound

    def _drawn(self, given: Mapping[str, Any]) -> str:
        weights = [one["weight"] for one in given.values()]
        (name,) = random.choices(list(given), weights)  # noqa: S311 - load, not secrets
        return name


def mix_class(parts: Sequence[MixPart]) -> type[MixedScenario]:
    """Return a new class whose method `run` draws a scenario of `parts` by weight and runs it.

    The run is an atomic action with the part's name. `on_start` and `on_stop` call each class's own
    once. Raises PluginError if only some are `async def`, or if a part reads files.
    """
    loops = {part.name: _is_loop(part.cls, part.method) for part in parts}
    if len(set(loops.values())) > 1:
        kinds = ", ".join(f"{name} is `{_KINDS[loop]}`" for name, loop in loops.items())
        raise PluginError(
            f"a mix needs scenarios of one kind: {kinds}; make all of them `def` or all `async def`"
        )
    for part in parts:
        if part.cls.FILES:
            raise PluginError(
                f"{part.name} reads files and cannot be in a mix; give it its own workload"
            )
    is_loop = all(loops.values())
    body: dict[str, Any] = {
        "__doc__": f"A mix of {', '.join(loops)}.",
        "PARTS": {part.name: part for part in parts},
        "ARGUMENTS": {"run": _schema(parts)},
        "run": _run_in_loop if is_loop else _run_in_thread,
    }
    for life in ("on_start", "on_stop"):
        # the life of a class is lived once, however many of its methods are in the mix
        owners = {
            part.cls: part.name
            for part in reversed(parts)
            if getattr(part.cls, life) is not getattr(Scenario, life)
        }
        if owners:
            names = [part.name for part in parts if part.name in owners.values()]
            body[life] = (_life_in_loop if is_loop else _life_in_thread)(life, names)
    return type("Mix", (MixedScenario,), body)


def _is_loop(cls: type[Scenario], method: str) -> bool:
    return inspect.iscoroutinefunction(getattr(cls, method))


def source_hash(parts: Sequence[MixPart]) -> str:
    """Return the SHA-256, in hex, of the parts' source hashes, joined in order."""
    return hashlib.sha256("".join(part.source_hash for part in parts).encode()).hexdigest()


def contexts(parts: Sequence[MixPart]) -> Mapping[str, Any]:
    """Return the contexts that the parts always need, by name, with their configuration.

    Raises PluginError if two parts need a context with different configurations.
    """
    found: dict[str, Any] = {}
    for part in parts:
        for name, config in part.context.items():
            if found.setdefault(name, config) != config:
                raise PluginError(
                    f"{part.name} needs the context {name} in another way than the other scenarios "
                    "of the mix: set it in the task"
                )
    return found


def _schema(parts: Sequence[MixPart]) -> Mapping[str, Any]:
    schemas = {part.name: part.cls.ARGUMENTS.get(part.method, {}) for part in parts}
    return {
        "type": "object",
        "properties": {
            name: {"type": "object", "properties": {"args": schema}}
            for name, schema in schemas.items()
        },
    }


def _run_in_thread(self: MixedScenario, **given: Any) -> Any:
    name = self._drawn(given)
    with atomic.ActionTimer(self, name):
        return self._of_part(name, self.PARTS[name].method)(**given[name]["args"])


async def _run_in_loop(self: MixedScenario, **given: Any) -> None:
    name = self._drawn(given)
    with atomic.ActionTimer(self, name):
        await self._of_part(name, self.PARTS[name].method)(**given[name]["args"])


def _life_in_thread(life: str, names: Sequence[str]) -> Callable[[MixedScenario], None]:
    def run_parts(self: MixedScenario) -> None:
        context = self.context
        for name in names:
            self.context = context
            self._of_part(name, life)()

    return run_parts


def _life_in_loop(life: str, names: Sequence[str]) -> Callable[[MixedScenario], Any]:
    async def run_parts(self: MixedScenario) -> None:
        context = self.context
        for name in names:
            self.context = context
            done = self._of_part(name, life)()
            if inspect.isawaitable(done):
                await done

    return run_parts
