"""Runners of Rally that a scenario starts itself, for iterations within its own iteration.

They run by Rally's own code, with threads instead of processes. Their iterations are not accounted
for, which is reported. They end with the iteration that started them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from osbench.edges.rally.adapters.hook_adapter import RallyTask
from osbench.edges.rally.adapters.thread_processes import ThreadProcesses


class IterationTask(RallyTask):
    """Rally's task as an iteration finds it in its context; copies, even deep ones, are itself."""

    def __init__(self, given: Mapping[str, Any], tell_inner: Callable[[str], object]) -> None:
        """`given` has the keys of Rally's task; `tell_inner` takes the name of a scenario of which
        an inner iteration starts.
        """
        super().__init__(str(given.get("uuid", "")))
        self.update(given)
        self.tell_inner = tell_inner
        self._runners: list[Any] = []
        self._over = False

    def __copy__(self) -> IterationTask:
        return self

    def __deepcopy__(self, memo: Any) -> IterationTask:
        return self

    @contextmanager
    def running(self, runner: Any) -> Iterator[None]:
        """Stop `runner` if the iteration ends before the block does."""
        self._runners.append(runner)
        if self._over:
            runner.abort()
        try:
            yield
        finally:
            self._runners.remove(runner)

    def end(self) -> None:
        """Stop the runners that still run: they start no further iterations."""
        self._over = True
        for runner in list(self._runners):
            runner.abort()


def task_of(context: Any) -> IterationTask | None:
    """Return the task of the iteration that a context of Rally belongs to; None if of none."""
    task = context.get("task") if isinstance(context, Mapping) else None
    return task if isinstance(task, IterationTask) else None


def tell_inner(cls: Any, context: Any) -> None:
    """Report an iteration of the scenario class `cls` if an iteration of osbench starts it."""
    task = task_of(context)
    if task is not None:
        task.tell_inner(cls.get_name())


def with_threads(run: Any, replacement: Callable[[Any], Any]) -> Any:
    """Return a substitute for the method `run` of Rally's runners, which needs no processes.

    `replacement` as for `ThreadProcesses`. For a context of no iteration it calls `run` as it is.
    """

    @functools.wraps(run)
    def run_in_threads(self: Any, name: str, context: Any, args: Any) -> Any:
        task = task_of(context)
        if task is None:
            return run(self, name, context, args)
        with ThreadProcesses(type(self), replacement), task.running(self):
            return run(self, name, context, args)

    return run_in_threads
