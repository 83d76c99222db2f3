"""The distinct failures of a workload in this process, each formatted and shipped once."""

from __future__ import annotations

import threading
import traceback
from typing import Any

#: Limits of what is kept of one failure, characters.
MESSAGE_LIMIT = 1000
TRACEBACK_LIMIT = 8000
#: Distinct failures of one workload and process; the rest share one entry.
DISTINCT_LIMIT = 1000


class Failures:
    """Numbers for exceptions: equal type, message and place have one number."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._fresh: list[list[Any]] = []
        self._lock = threading.Lock()
        #: Failures beyond the limit, and messages or tracebacks that were shortened.
        self.cut = 0

    def number(self, error: BaseException) -> int:
        """The number of an exception, from 1."""
        frames = []
        step = error.__traceback__
        while step is not None:
            frames.append((step.tb_frame.f_code, step.tb_lineno))
            step = step.tb_next
        try:
            message = str(error)
        except Exception as broken:  # noqa: BLE001 - a scenario's exception may do anything
            message = f"(its message cannot be formed: {type(broken).__name__})"
        key = (type(error), message, tuple(frames))
        known = self._numbers.get(key)
        if known is not None:
            return known
        # the first frame is the engine's own call of the scenario
        shown = error.__traceback__.tb_next if error.__traceback__ else None
        text = "".join(traceback.format_exception(type(error), error, shown))
        return self._add(key, type(error).__name__, message, text)

    def timed_out(self, limit_s: float, stack: str) -> int:
        """The number of a timeout whose thread stood at `stack`."""
        message = f"no end after {limit_s:g} s"
        key = ("timeout", limit_s, stack)
        return self._numbers.get(key) or self._add(key, "IterationTimeout", message, stack)

    def _add(self, key: Any, etype: str, message: str, text: str) -> int:
        with self._lock:
            if key in self._numbers:
                return self._numbers[key]
            if len(self._numbers) >= DISTINCT_LIMIT:
                self.cut += 1
                key, etype, message, text = "other", "(other)", "more than 1,000 kinds", ""
                if key in self._numbers:
                    return self._numbers[key]
            if len(message) > MESSAGE_LIMIT or len(text) > TRACEBACK_LIMIT:
                self.cut += 1
                message, text = message[:MESSAGE_LIMIT], text[-TRACEBACK_LIMIT:]
            number = len(self._numbers) + 1
            self._numbers[key] = number
            self._fresh.append([number, etype, message, text])
            return number

    def fresh(self) -> list[list[Any]]:
        """What was added since the last call."""
        with self._lock:
            found, self._fresh = self._fresh, []
            return found
