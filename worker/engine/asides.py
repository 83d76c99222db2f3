"""Counts, by message, of a workload's errors outside its iterations, such as a failed task."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from osbench.common.errors import KindError
from osbench.common.ports import threads as threading

#: Kinds that are counted separately, and the name of all others.
KINDS = 50
OTHERS = "other faults outside the iterations"
#: What Python says of a coroutine that was dropped before it ran.
_NEVER_AWAITED = "was never awaited"
#: Modules in which a scenario's own error is not raised.
_OF_PYTHON = ("asyncio", "concurrent", "threading", "uvloop")


class ForgottenAwait(KindError):
    """Error of an iteration that dropped a coroutine without awaiting it, so its work was not done.

    Errors with different messages, also if only the line number differs, are different failures.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        # places in which only the line differs are of several kinds
        self.kind = message


class Asides:
    """Counts of errors outside the iterations of one workload in this process, by message.

    At most `KINDS` messages, the rest as `OTHERS`. Thread-safe.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kinds: set[str] = set()
        self._fresh: Counter[str] = Counter()

    def add(self, what: str) -> None:
        """Count an error by its message `what`.

        After `KINDS` different messages, errors with further messages are counted together as
        `OTHERS`.
        """
        with self._lock:
            if what not in self._kinds and len(self._kinds) >= KINDS:
                what = OTHERS
            self._kinds.add(what)
            self._fresh[what] += 1

    def fresh(self) -> list[list[Any]]:
        """Remove and return the counts since the last call: [message, count] for each message."""
        with self._lock:
            found, self._fresh = self._fresh, Counter()
        return [[what, count] for what, count in found.items()]


def tell_forgotten_awaits(tell: Callable[[str], object]) -> None:
    """Call `tell` with a message for each coroutine that is dropped unawaited, from now on.

    The message names the coroutine, file and line. `tell` is called in the thread, and in the task,
    that dropped the last reference. Python's warning about it is then not shown; other warnings
    are. A further call replaces the `tell` of the earlier call.
    """
    warnings.filterwarnings("always", f".*{_NEVER_AWAITED}", RuntimeWarning)
    show = getattr(warnings.showwarning, "otherwise", warnings.showwarning)

    def told(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        text = str(message)
        if _NEVER_AWAITED in text:
            tell(f"{text.partition(_NEVER_AWAITED)[0]}{_NEVER_AWAITED}: {_place(filename, lineno)}")
        else:
            show(message, category, filename, lineno, file, line)

    told.otherwise = show  # type: ignore[attr-defined]  # what to go back to for the next workload
    warnings.showwarning = told


def place_of(error: BaseException) -> str:
    """Return "file:line" at which `error` was raised: the innermost frame outside `_OF_PYTHON`.

    If all frames are of `_OF_PYTHON`, return the outermost; "an unknown place" without a traceback.
    The file is its name without folders.
    """
    found = ""
    step: TracebackType | None = error.__traceback__
    while step is not None:
        frame = step.tb_frame
        module = str(frame.f_globals.get("__name__", ""))
        if not found or module.partition(".")[0] not in _OF_PYTHON:
            found = _place(frame.f_code.co_filename, step.tb_lineno)
        step = step.tb_next
    return found or "an unknown place"


def _place(file: str, line: int) -> str:
    return f"{Path(file).name}:{line}"
