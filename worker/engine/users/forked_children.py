"""Ends processes that a scenario forked and that return into the worker's code.

A child knows that it is one by a count of forks. It would go on as if it were the worker: start
iterations, and use sockets that are not its own. Children that do not return (of multiprocessing
and subprocess, or that call os._exit) are left alone.
"""

from __future__ import annotations

import functools
import inspect
import mmap
import os
import sys
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

#: Code with which a child ends that returns, as EX_SOFTWARE of sysexits.h.
RETURNED = 70

#: Bytes for a count of children and the place of the last fork; number of slots.
_SLOT = 128
_SLOTS = 64
_MOST = 255

#: Modules that are skipped when the place of a fork is looked up.
_OF_PYTHON = ("asyncio", "concurrent", "multiprocessing", "os", "threading")


class ProcessForks:
    """Detects whether this process is a forked child of the worker. One object for each process."""

    def __init__(self) -> None:
        #: Forks between the process that made this object and this one.
        self.generation = 0
        self._place = ""
        #: Shared with all children.
        self._page = mmap.mmap(-1, _SLOT * _SLOTS)
        os.register_at_fork(after_in_child=self._begin_child)

    def end_if_child(self, generation: int, error: BaseException | None = None) -> None:
        """End this process if it is a child of the process in which `generation` was read.

        As `end_child`, with `error`.
        """
        if self.generation != generation:
            self.end_child(error)

    def end_child(self, error: BaseException | None = None) -> NoReturn:
        """End this process, a child, at once, without flushing or sending anything.

        If `error` is a SystemExit, its exit code is as Python would have it. Else it is `RETURNED`,
        and the place of the fork is written to the page for the worker.
        """
        if isinstance(error, SystemExit):
            # asked for; as Python does it
            code = error.code
            os._exit(code & 0xFF if isinstance(code, int) else 0 if code is None else 1)
        at = os.getpid() % _SLOTS * _SLOT
        place = self._place.encode()[: _SLOT - 2].ljust(_SLOT - 1, b"\0")
        self._page[at : at + _SLOT] = bytes([min(self._page[at] + 1, _MOST)]) + place
        os._exit(RETURNED)

    def returned(self) -> list[str]:
        """Return a message with the place of the fork for each child that newly returned.

        Children with equal process ids modulo `_SLOTS` between two calls have the place of the
        last, and at most `_MOST` of them count.
        """
        found = []
        for at in range(0, _SLOT * _SLOTS, _SLOT):
            count = self._page[at]
            if count:
                text = self._page[at + 1 : at + _SLOT].rstrip(b"\0").decode(errors="replace")
                self._page[at : at + _SLOT] = bytes(_SLOT)
                found += count * [
                    f"{text} forked a process that returned into the worker, and was ended: "
                    "end it by os._exit(), or start it by subprocess or multiprocessing"
                ]
        return found

    def _begin_child(self) -> None:
        self.generation += 1
        frame: FrameType | None = sys._getframe(1)
        self._place = _place(frame)
        root = None
        while frame is not None:
            if frame.f_code.co_flags & inspect.CO_COROUTINE:
                root = frame
            frame = frame.f_back
        if root is not None:
            # the event loop would run other coroutines
            sys.setprofile(functools.partial(self._look, root))

    def _look(self, root: FrameType, frame: FrameType, event: str, _: Any) -> None:
        """End the child when its coroutine `root` waits or returns.

        Profile function of a child that was forked in a coroutine; `root` is the outermost one. A
        process of multiprocessing is left alone.
        """
        if event == "return" and frame is root:
            self.end_child()
        if event == "call" and frame.f_globals.get("__name__") == "multiprocessing.process":
            # does not return
            sys.setprofile(None)


@functools.cache
def process_forks() -> ProcessForks:
    """Return the only `ProcessForks` of this process; created at the first call."""
    return ProcessForks()


def _place(frame: FrameType | None) -> str:
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if name.split(".", 1)[0] not in _OF_PYTHON:
            return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
        frame = frame.f_back
    return "a scenario"
