"""Rally's scenarios as osbench's: an adapter class for each, which runs Rally's own class."""

from __future__ import annotations

import functools
import hashlib
import importlib
import inspect
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, cast

from osbench.common.errors import ContextError
from osbench.common.plugin.context import ContextEnvironment
from osbench.common.plugin.plugin_names import RALLY
from osbench.common.plugin.scenario import TELL_KEY, Scenario
from osbench.common.plugin.scenario_plugin import ScenarioPlugin
from osbench.common.secrets.masking import error_text
from osbench.edges.rally import configuration, importing, plugin_registry
from osbench.edges.rally.adapters import (
    action_recorder,
    client_imports,
    scripted_adapter,
)
from osbench.edges.rally.adapters.inner_runs import IterationTask
from osbench.edges.rally.context_object import codec
from osbench.edges.rally.context_object.environment import KEY, context_object
from osbench.edges.rally.context_object.iteration_user import Shared


class RallyScenario(Scenario):
    """Base class of adapters: each runs iterations of a Rally scenario."""

    #: The class of Rally's or of one of its plug-ins.
    RALLY: ClassVar[Any]

    @classmethod
    def warm_up(cls, context: dict[str, Any]) -> None:
        """Prepare a worker process for iterations of Rally's scenario, before the load, untimed.

        Replaces the packed context object in `context` by a `Shared`, sets Rally's options, patches
        Rally's timers, and imports the clients.
        """
        carried = codec.unpack(context[KEY])
        configuration.apply(carried["options"])
        action_recorder.install()
        scripted_adapter.replace_functions()
        client_imports.import_for(cls.RALLY)
        context[KEY] = Shared(carried["object"], choose=_chooses(cls.RALLY))

    def run(self, **given: Any) -> None:
        """Run an iteration of Rally's scenario, constructor and `run`, with the arguments `given`.

        Its exceptions pass. Its idle time and outputs are copied to this iteration, also if it
        failed. Raises TypeError if it succeeded and an output cannot be stored.
        """
        context = self.context[KEY].narrowed(self.context["iteration"])
        task = IterationTask(context.get("task") or {}, self._tell_inner)
        context["task"] = task
        scenario = self.RALLY.__new__(self.RALLY)
        setattr(scenario, action_recorder.RECORDER, self._recorder)
        try:
            scenario.__init__(context)
            scenario.run(**for_iteration(given, scenario))
        except BaseException:
            self._take(scenario, strict=False)
            raise
        finally:
            task.end()
        self._take(scenario, strict=True)

    def _tell_inner(self, name: str) -> None:
        self.context.get(TELL_KEY, lambda _: None)(
            f"iterations of {name} that {self.context['scenario']} started itself by a runner of "
            "Rally: not accounted for"
        )

    def _take(self, scenario: Any, *, strict: bool) -> None:
        """Copy idle time and outputs of Rally's scenario object to this iteration.

        Raises TypeError for an output that cannot be stored if `strict`, else leaves it out.
        """
        self._idle_ns = int(getattr(scenario, "_idle_duration", 0.0) * 1e9)
        for kind, items in getattr(scenario, "_output", {}).items():
            for item in items:
                try:
                    self.add_output(**{kind: item})
                except (TypeError, ValueError, OverflowError) as error:
                    # for a failed iteration the original failure is reported
                    if strict:
                        raise TypeError(
                            f"{kind} output {item.get('title')!r} cannot be kept: {error}; give "
                            "JSON values"
                        ) from error


def scenario_plugin(name: str) -> ScenarioPlugin | None:
    """Return Rally's scenario `name` or `name@platform` as a plug-in; imports Rally.

    None if there is none or Rally is not installed. Raises PluginError if Rally is broken, or if
    several platforms have the name.
    """
    if not importing.load():
        return None
    found = plugin_registry.plugin("scenario", name)
    return None if found is None else _plugin(name, found)


@functools.cache
def adapter(rally: Any) -> type[RallyScenario]:
    """Return the adapter class of a Rally scenario class; the same one each time."""

    @functools.wraps(rally.run)
    def run(self: Any, **given: Any) -> None:
        RallyScenario.run(self, **given)

    body = {"RALLY": rally, "run": run, "__module__": __name__, "__doc__": rally.__doc__}
    return cast(type[RallyScenario], type(rally.__name__, (RallyScenario,), body))


def prepare(
    rally: Any, args: Mapping[str, Any], environment: ContextEnvironment
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return arguments and context for workers; the workload's contexts must be set up already.

    Arguments `args` are converted by Rally's types, and packed if they are not plain data. The
    context gets Rally's context object and options, packed. Raises ContextError if that fails.
    """
    types: Any = importlib.import_module("rally.task.types")
    packed = environment.context.get(KEY)
    name = rally.get_fullname()
    try:
        carried = codec.unpack(packed) if packed else context_object(environment, name)
        processed = types.preprocess(name, carried, dict(args))
        ready = for_workers(processed)
        data = codec.pack({"object": carried, "options": configuration.effective()})
    except Exception as error:
        text = str(error) if isinstance(error, ContextError) else error_text(error)
        raise ContextError(
            f"scenario {name} cannot be prepared: {text}; correct its arguments and contexts in "
            "the task"
        ) from error
    return ready, {**environment.context, KEY: data}


def _plugin(name: str, rally: Any) -> ScenarioPlugin:
    doc = inspect.cleandoc(rally.run.__doc__ or rally.__doc__ or "")
    return ScenarioPlugin(
        name=name,
        cls=adapter(rally),
        method="run",
        context=rally.get_default_context(),
        title=doc.partition("\n")[0],
        source_hash=hashlib.sha256(_file(rally).read_bytes()).hexdigest(),
        source=RALLY,
        prepare=functools.partial(prepare, rally),
        enable_profiler=configuration.profiles(),
    )


def _file(rally: Any) -> Path:
    module = sys.modules.get(rally.__module__)
    if module is not None and module.__file__:
        return Path(module.__file__)
    # there is no module for a file that Rally has loaded from a plug-in path
    return Path(inspect.unwrap(rally.run).__code__.co_filename)


def _chooses(rally: Any) -> bool:
    """Return whether a Rally scenario class uses Rally's own selection of users, not overridden."""
    try:
        base = importlib.import_module("rally_openstack.task.scenario").OpenStackScenario
    except ImportError:
        return False
    return getattr(rally, "_choose_user", None) is base._choose_user


#: Key of a mapping that replaces an argument that is not plain data.
PACKED = "osbench.rally.packed"


def for_workers(args: Mapping[str, Any]) -> dict[str, Any]:
    """Return a new dict of the arguments for messages: plain data as it is, other values packed.

    Raises ContextError for a value that cannot be packed.
    """
    return {name: _sendable(name, value) for name, value in args.items()}


def for_iteration(args: Mapping[str, Any], scenario: Any) -> dict[str, Any]:
    """Return the arguments for one iteration: unpacked copies, which it may change.

    Arguments that Rally resolves per iteration are resolved with `scenario`, Rally's scenario
    object.
    """
    return {name: _resolved_value(value, scenario) for name, value in args.items()}


def _sendable(name: str, value: Any) -> Any:
    if _plain(value):
        return value
    try:
        return {PACKED: codec.pack(value)}
    except ContextError as error:
        raise ContextError(f"argument {name!r}: {error}; correct it in the task") from None


def _plain(value: Any) -> bool:
    kind = type(value)
    if kind is dict:
        return all(type(key) is str and _plain(item) for key, item in value.items())
    if kind is list:
        return all(map(_plain, value))
    return kind in codec.PLAIN


def _resolved_value(value: Any, scenario: Any) -> Any:
    if type(value) is dict and PACKED in value:
        value = codec.unpack(value[PACKED])
        return value.resolve(scenario) if codec.is_deferred(value) else value
    return codec.deep_copy(value)
