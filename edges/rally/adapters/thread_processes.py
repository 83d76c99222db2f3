"""Threads instead of the processes that a runner of Rally's plug-ins starts.

A real process could not notify the worker of its iterations, and would have copies of its locks and
connections. While the runner's code runs, its modules see threads under the names of
multiprocessing.
"""

from __future__ import annotations

import inspect
import multiprocessing
import multiprocessing.dummy
import os
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from multiprocessing.process import BaseProcess
from types import SimpleNamespace
from typing import Any, ClassVar, Self

from osbench.common.errors import PluginError
from osbench.edges.rally.scripted_iterations import LoadOver

#: Module of the base class.
_RUNNER = "rally.task.runner"
#: Names that multiprocessing.dummy has for threads.
_ALIKE = (
    *("Array", "Barrier", "BoundedSemaphore", "Condition", "Event", "Lock", "Manager", "Pipe"),
    *("Pool", "RLock", "Semaphore", "Value", "active_children", "current_process"),
    "freeze_support",
)


class ThreadQueue(queue.Queue[Any]):
    """A queue for threads, with the further methods of a multiprocessing queue."""

    def close(self) -> None:
        """Do nothing, so that items in the queue can still be read."""

    def join_thread(self) -> None:
        """Do nothing, since no thread feeds the queue."""

    cancel_join_thread = join_thread


class ThreadProcesses:
    """Context manager in which a Rally runner's modules see threads instead of processes.

    Code that does not end with its load may still run when the next load begins, and several
    iterations may start runners: then the context entered last sets the names, for all.
    """

    _lock: ClassVar[threading.Lock] = threading.Lock()
    #: In the order in which they were entered.
    _entered: ClassVar[list[ThreadProcesses]] = []
    #: Module, name and earlier value of what is replaced.
    _before: ClassVar[list[tuple[dict[str, Any], str, Any]]] = []

    def __init__(self, runner: type, replacement: Callable[[Any], Any]) -> None:
        """Compute the substitutes for names in the runner's modules; replace nothing yet.

        `replacement`: returns the substitute for a function of Rally, or the function itself.
        """
        self._runner = runner
        self._replacement = replacement
        #: The first uncaught exception of a thread.
        self.failed: BaseException | None = None
        self.event = threading.Event
        self._names = self._replacements()

    @classmethod
    def refuse_own(cls, runner: type, named: str) -> None:
        """Raise PluginError if a module of the runner's class defines a subclass of a process.

        `named`: the runner, for the message.
        """
        for names in _namespaces(runner):
            for name, value in names.items():
                own = isinstance(value, type) and value.__module__ == names.get("__name__")
                if own and issubclass(value, BaseProcess):
                    raise PluginError(
                        f"{named} cannot be run: its class {name} derives from a process, whose "
                        "iterations could not be accounted for; use Process(target=...)"
                    )

    def __enter__(self) -> Self:
        with self._lock:
            self._entered.append(self)
            self._renew()
        return self

    def __exit__(self, *raised: object) -> None:
        with self._lock:
            self._entered.remove(self)
            self._renew()

    @classmethod
    def _renew(cls) -> None:
        """Replace names by the substitutes of the context entered last; without any restore all.

        No name has its earlier value in between, since threads may run.
        """
        last = cls._entered[-1] if cls._entered else None
        for names, name, value in cls._before:
            names[name] = value if last is None else last._substitute(value)
        if last is None:
            cls._before.clear()
            return
        for names in [*_namespaces(last._runner), vars(sys.modules[_RUNNER])]:
            for name, value in list(names.items()):
                ours = last._substitute(value)
                if ours is not value:
                    cls._before.append((names, name, value))
                    names[name] = ours

    def _substitute(self, value: Any) -> Any:
        return self._names.get(id(value)) or self._replacement(value)

    def _replacements(self) -> dict[int, Any]:
        """Return the substitutes by the `id` of the original."""
        threads = self._threads()
        pools = SimpleNamespace(
            **{
                name: getattr(futures, name)
                for name in dir(futures)
                if not name.startswith("_") and name != "ProcessPoolExecutor"
            },
            ProcessPoolExecutor=futures.ThreadPoolExecutor,
        )
        found: dict[int, Any] = {
            id(multiprocessing): threads,
            id(futures): pools,
            id(futures.ProcessPoolExecutor): futures.ThreadPoolExecutor,
        }
        for name in dir(threads):
            theirs = getattr(multiprocessing, name, None)
            # of bound methods there is a new object each time: modules hold the one of `vars`
            theirs = vars(multiprocessing).get(name, theirs)
            if not name.startswith("_") and theirs is not None:
                found[id(theirs)] = getattr(threads, name)
        return found

    def _threads(self) -> SimpleNamespace:
        """Return a substitute for the module multiprocessing, with threads as processes."""
        outer, dummy = self, multiprocessing.dummy

        class ThreadProcess(dummy.DummyProcess):
            """A thread with a process's methods; stores its uncaught exception in `failed`."""

            pid = property(lambda self: os.getpid())

            def run(self) -> None:
                try:
                    super().run()
                except LoadOver:
                    pass
                except BaseException as error:
                    outer.failed = outer.failed or error
                    raise

            def terminate(self) -> None:
                """Do nothing, since a thread ends by itself, at the latest with the load."""

            def close(self) -> None:
                """Do nothing, since a thread has no resources to release."""

            kill = terminate

        names = {name: getattr(dummy, name) for name in _ALIKE}
        made = SimpleNamespace(
            **names,
            Process=ThreadProcess,
            Queue=ThreadQueue,
            JoinableQueue=ThreadQueue,
            SimpleQueue=ThreadQueue,
            cpu_count=multiprocessing.cpu_count,
            TimeoutError=multiprocessing.TimeoutError,
        )
        made.get_context = lambda method=None: made
        made.set_start_method = lambda method, force=False: None
        return made


def _namespaces(runner: type) -> Iterator[dict[str, Any]]:
    """Yield the global names of each module of the runner's class and bases, except Rally's core.

    Found by methods, since a file of a plug-in path may have no module.
    """
    found: dict[int, dict[str, Any]] = {}
    for cls in runner.__mro__:
        if cls.__module__ in ("abc", "builtins", _RUNNER) or cls.__module__.startswith("rally.co"):
            continue
        for value in vars(cls).values():
            function = inspect.unwrap(getattr(value, "__func__", value))
            if inspect.isfunction(function) and function.__module__ == cls.__module__:
                found[id(function.__globals__)] = function.__globals__
    yield from found.values()
