"""Threads that run blocking calls of coroutines, which wait for them without blocking the loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from types import CoroutineType
from typing import Any

from osbench.worker.engine.users.forked_children import process_forks

LOG = logging.getLogger(__name__)

#: Calls that run at once; further ones wait for their turn.
THREADS = 256


class CallRemains:
    """A blocking call that still runs although its coroutine was cancelled, after a timeout."""

    def __init__(self, future: Future[Any]) -> None:
        self._future = future

    def is_alive(self) -> bool:
        """Return whether the call has not ended."""
        return not self._future.done()


class BlockingCalls:
    """Runs blocking calls in at most `THREADS` threads, which are started as they are needed."""

    def __init__(self) -> None:
        self._forks = process_forks()
        self._generation = self._forks.generation
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="blocking")
        #: Calls that are waited for, and whether there were ever too many.
        self._wanted = 0
        self._told = False
        #: Calls that run on although no coroutine waits for them. The reader removes them from
        #: here.
        self.left: list[CallRemains] = []

    async def run(self, call: Callable[[], Any]) -> Any:
        """Run a call in a thread, in a copy of the caller's context variables; return its result.

        Exceptions of the call pass; a StopIteration becomes RuntimeError. Raises TypeError if it
        returns a coroutine. Beyond `THREADS` at once, calls wait, with one warning. If the caller
        is cancelled, a call that has begun runs on and is added to `left`.
        """
        self._wanted += 1
        if self._wanted > THREADS and not self._told:
            self._told = True
            LOG.warning(
                "more than %d blocking calls at once: some wait for a thread, and their "
                "iterations take longer",
                THREADS,
            )
        future = self._pool.submit(copy_context().run, self._guarded, call)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            # one that has begun cannot be cancelled
            if not future.cancel():
                self.left.append(CallRemains(future))
            raise
        finally:
            self._wanted -= 1

    def close(self) -> None:
        """Cancel the calls that wait for a thread; running calls go on. Does not wait for them."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _guarded(self, call: Callable[[], Any]) -> Any:
        try:
            returned = call()
        except BaseException as error:
            self._forks.end_if_child(self._generation, error)
            if isinstance(error, StopIteration):
                # a future does not take it, and whoever awaits the future would wait for ever
                raise RuntimeError("the blocking call raised StopIteration") from error
            raise
        self._forks.end_if_child(self._generation)
        if isinstance(returned, CoroutineType):
            # it would count as done without having run
            returned.close()
            raise TypeError("`run_blocking` was given a coroutine: await that itself")
        return returned
