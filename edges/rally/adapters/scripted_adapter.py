"""Runners of Rally's plug-ins that start iterations by their own code, in a worker process.

The code is called as Rally calls it. The functions that it gets from Rally to start an iteration
run an iteration of osbench, and its processes are threads: each iteration is accounted for,
whatever starts it.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import importlib
import inspect
import threading
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from osbench.common.errors import PluginError
from osbench.common.plugin.scripted_runner import ScriptedLoad, ScriptedRunner
from osbench.common.protocol.iteration_outputs import outputs
from osbench.edges.rally.adapters import inner_runs
from osbench.edges.rally.adapters.hook_adapter import RallyTask
from osbench.edges.rally.adapters.shared import problems
from osbench.edges.rally.adapters.thread_processes import ThreadProcesses
from osbench.edges.rally.context_object import codec
from osbench.edges.rally.context_object.environment import KEY
from osbench.edges.rally.context_object.iteration_user import Shared
from osbench.edges.rally.scripted_iterations import DoneIteration

#: Attribute of Rally's functions that marks them as replaced.
_MARK = "_osbench_asks"
#: Parameters of `_run_scenario_once`; early releases took them as one tuple, with a number first.
_PARAMETERS = ("cls", "method_name", "context_obj", "scenario_kwargs", "event_queue")
_LOCK = threading.Lock()


class RallyScripted(ScriptedRunner):
    """Base class of adapters: each calls `_run_scenario` of one runner of Rally's plug-ins."""

    #: The class of the plug-in.
    RALLY: ClassVar[Any]

    @classmethod
    def check(cls, config: Mapping[str, Any]) -> list[str]:
        """Return problems of the configuration that Rally's validators find; [] without any.

        Without problems it also calls the plug-in's constructor, whose exceptions pass.
        """
        found = problems("runner", cls.RALLY, config)
        if not found:
            cls.RALLY(RallyTask(""), dict(config))
        return found

    @classmethod
    def notes(cls, config: Mapping[str, Any]) -> list[str]:
        """Return a note that iterations run in one process of one worker only."""
        return [
            f"{cls.RALLY.__name__} starts its iterations itself, in one process of one worker: "
            "others take no part"
        ]

    @property
    def timeout_s(self) -> float:
        """Return the timeout of an iteration in seconds; 0 if there is none or it is invalid."""
        limit = self.config.get("timeout", 0)
        known = isinstance(limit, int | float) and not isinstance(limit, bool) and limit > 0
        return float(limit) if known else 0.0

    def drive(self, load: ScriptedLoad) -> None:
        """Call the plug-in's `_run_scenario` once, in this thread, until it returns.

        Its exceptions pass. Afterwards raises the first failure of an iteration's start or of a
        thread of the plug-in, unless the load is over.
        """
        replace_functions()
        context = LoadContext(_rally_context(load.context), load)
        handle = ScenarioHandle(load, context)
        with ThreadProcesses(self.RALLY, _replacement) as processes:
            runner = self.RALLY(LoadTask(load), dict(self.config))
            # no code reads them
            runner.result_queue = deque(maxlen=0)
            runner.event_queue = deque(maxlen=0)
            runner.aborted = processes.event()
            load.call_when_over(runner.abort)
            runner._run_scenario(handle, "run", context, handle.args)
        failed = handle.failed or processes.failed
        if failed is not None and not load.over:
            raise failed


class LoadTask(RallyTask):
    """A substitute for Rally's task object: a runner asks it whether a result is valid."""

    def __init__(self, load: ScriptedLoad) -> None:
        super().__init__(str(load.context["run"]))
        self._load = load

    def result_has_valid_schema(self, result: Any) -> bool:
        """Return True, since osbench counts iterations as they run.

        For a result that osbench did not make, also reports an error of no iteration.
        """
        if not isinstance(result, IterationResult):
            self._load.tell_aside("results that the runner made itself, of no iteration")
        return True


class IterationResult(dict[str, Any]):
    """The result of one iteration, as Rally's runners get it: a dict with Rally's keys."""


class LoadContext(dict[str, Any]):
    """Rally's context object of one load; copies, even deep ones, share its items and load."""

    def __init__(self, given: Mapping[str, Any], load: ScriptedLoad) -> None:
        super().__init__(given)
        self.load = load

    def of_iteration(self, number: int) -> LoadContext:
        """Return a shallow copy for one iteration, with the key `iteration` set to `number`."""
        made = LoadContext(self, self.load)
        made["iteration"] = number
        return made

    def __deepcopy__(self, memo: Any) -> LoadContext:
        return LoadContext(self, self.load)

    def copy(self) -> LoadContext:
        """Return a shallow copy, of this class."""
        return LoadContext(self, self.load)

    def changed(self, given: Mapping[str, Any]) -> list[str]:
        """Return the keys whose values differ in `given`, or are missing in either, sorted.

        The key `iteration` is not compared.
        """
        keys = (self.keys() | given.keys()) - {"iteration"}
        return sorted(key for key in keys if not _same(self, given, key))


def _same(one: Mapping[str, Any], other: Mapping[str, Any], key: str) -> bool:
    if (key in one) != (key in other):
        return False
    return one[key] is other[key] or bool(one[key] == other[key])


class ScenarioHandle:
    """A substitute for a scenario class, which a Rally runner gets; starts iterations."""

    def __init__(self, load: ScriptedLoad, context: LoadContext) -> None:
        self.load = load
        self.context = context
        self.args = dict(load.args)
        #: Why an iteration could not be started as the plug-in asked for it.
        self.failed: PluginError | None = None
        self.__name__ = str(load.context["scenario"])

    def get_name(self) -> str:
        """Return the scenario's name in task files."""
        return self.__name__

    def __deepcopy__(self, memo: Any) -> ScenarioHandle:
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raise PluginError, since the runner must not create the scenario object.

        The error is stored in `failed`, too.
        """
        raise self._refused(
            "the runner makes the scenario itself, so that its iterations could not be accounted "
            "for: call rally.task.runner._run_scenario_once"
        )

    def _refused(self, why: str) -> PluginError:
        self.failed = self.failed or PluginError(why)
        return self.failed

    def iterate(self, context: Mapping[str, Any], args: Mapping[str, Any]) -> IterationResult:
        """Run the load's next iteration with the arguments `args`; return its result.

        Raises LoadOver if no iteration starts any more, PluginError if `context`, the runner's
        copy, differs from the load's.
        """
        changed = self.context.changed(context)
        if changed:
            raise self._refused(
                f"the runner changes {', '.join(changed)} of the context of an iteration, which "
                "osbench prepares itself: use a context plug-in"
            )
        return _result(self.load.iterate(args))


def scripted_class(found: Any) -> type[RallyScripted]:
    """Return the adapter class of a Rally runner that starts iterations by its own code.

    Raises PluginError if osbench cannot run it: it is abstract, overrides `run`, or its module
    derives a class from a process.
    """
    base = importlib.import_module("rally.task.runner").ScenarioRunner
    named = f"runner {found.get_name()!r} of Rally's plug-in {found.__module__}.{found.__name__}"
    if inspect.isabstract(found):
        lacking = ", ".join(sorted(found.__abstractmethods__))
        raise PluginError(f"{named} cannot be run: it lacks {lacking}; define this in its class")
    if found.run is not base.run:
        raise PluginError(
            f"{named} cannot be run: it overrides the method run; start iterations in _run_scenario"
        )
    ThreadProcesses.refuse_own(found, named)
    return type(
        f"Rally{found.__name__}",
        (RallyScripted,),
        {
            "__doc__": found.__doc__,
            "__module__": found.__module__,
            "NAME": found.get_name(),
            "RALLY": found,
            "SOURCE_HASH": hashlib.sha256(_file(found).read_bytes()).hexdigest(),
        },
    )


def _file(found: Any) -> Path:
    return Path(inspect.unwrap(found._run_scenario).__code__.co_filename)


def _rally_context(context: Mapping[str, Any]) -> dict[str, Any]:
    """Return Rally's context object of a load, a new dict; for a native scenario only the task."""
    given = context.get(KEY)
    if isinstance(given, bytes):
        given = codec.unpack(given)["object"]
    if isinstance(given, Shared):
        given = given.whole
    return {"task": {"uuid": str(context["run"])}, **(given or {})}


def replace_functions() -> None:
    """Replace Rally's functions that start an iteration and make its context, once per process.

    The new functions run iterations of osbench if they get its objects; else they call Rally's.
    Runners that scenarios start use threads instead of processes.
    """
    runner: Any = importlib.import_module("rally.task.runner")
    with _LOCK:
        if hasattr(runner._run_scenario_once, _MARK):
            return
        for name, ours in (("_run_scenario_once", _run_once), ("_get_scenario_context", _context)):
            setattr(runner, name, _asking(getattr(runner, name), ours))
        runner.ScenarioRunner.run = inner_runs.with_threads(runner.ScenarioRunner.run, _replacement)


def _asking(theirs: Any, ours: Any) -> Any:
    @functools.wraps(theirs)
    def asks(*args: Any, **kwargs: Any) -> Any:
        found = ours(*args, **kwargs)
        return theirs(*args, **kwargs) if found is None else found

    setattr(asks, _MARK, theirs)
    return asks


def _replacement(function: Any) -> Any:
    """Return the substitute for a replaced function, which plug-ins may have imported by name."""
    runner: Any = importlib.import_module("rally.task.runner")
    for name in ("_run_scenario_once", "_get_scenario_context"):
        asks = getattr(runner, name)
        if getattr(asks, _MARK, None) is function:
            return asks
    return function


def _run_once(*args: Any, **kwargs: Any) -> IterationResult | None:
    """Run an iteration of osbench from the arguments of `_run_scenario_once`; return its result.

    None for others, which are reported if a scenario starts them. Raises as `iterate` does.
    """
    if len(args) == 1 and not kwargs and isinstance(args[0], tuple):
        # early releases: (i, cls, method_name, context, args)
        args = args[0][1:] if len(args[0]) >= len(_PARAMETERS) else args[0]
    given = {**dict(zip(_PARAMETERS, args, strict=False)), **kwargs}
    handle = given.get("cls")
    if not isinstance(handle, ScenarioHandle):
        inner_runs.tell_inner(handle, given.get("context_obj"))
        return None
    return handle.iterate(given["context_obj"], given.get("scenario_kwargs") or {})


def _context(*args: Any, **kwargs: Any) -> LoadContext | None:
    """Return the context of an iteration; its number is the arguments' first integer plus 1.

    It is 1 without an integer, as in early releases. None without a context of osbench's load.
    """
    given = [*args, *kwargs.values()]
    if len(given) == 1 and isinstance(given[0], tuple):
        given = list(given[0])
    found = next((one for one in given if isinstance(one, LoadContext)), None)
    number = next((one for one in given if isinstance(one, int)), 0)
    return None if found is None else found.of_iteration(number + 1)


def _result(done: DoneIteration) -> IterationResult:
    charts = outputs(done.outputs)
    actions: list[dict[str, Any]] = []
    outermost: list[dict[str, Any]] = []
    for one in done.actions:
        action: dict[str, Any] = {
            "name": one.name,
            "children": [],
            "started_at": one.started_at,
            "finished_at": one.ended_at,
        }
        if one.failed:
            action["failed"] = True
        known = 0 <= one.parent < len(actions)
        (actions[one.parent]["children"] if known else outermost).append(action)
        actions.append(action)
    return IterationResult(
        timestamp=done.started_at,
        duration=done.duration_s,
        idle_duration=done.idle_s,
        error=list(done.error),
        output={kind: copy.deepcopy(charts[kind]) for kind in ("additive", "complete")},
        atomic_actions=outermost,
    )
