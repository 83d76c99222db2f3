"""The faults that are currently injected into a service, read from a file."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any


class InjectedFaults:
    """Reads a list of {"service", "text", "share", "delay_s"}, again whenever the file changes.

    Of 1 / share calls in a row one is slow, any of them: chance decides which, but not how many.
    """

    def __init__(self, file: str, service: str) -> None:
        self._file = Path(file)
        self._service = service
        self._read_at = 0
        self._faults: list[dict[str, Any]] = []
        #: By fault: calls that are still to come until one is slow, and until the next draw.
        self._left: list[tuple[int, int]] = []

    def delay_s(self, call: str) -> float:
        """How long to hold up a call: mostly 0."""
        changed_at = self._file.stat().st_mtime_ns
        if changed_at != self._read_at:
            found = json.loads(self._file.read_text())
            self._faults = [fault for fault in found if fault["service"] == self._service]
            self._left = [_drawn(fault) for fault in self._faults]
            self._read_at = changed_at
        slow_s = 0.0
        for at, fault in enumerate(self._faults):
            if fault["text"] in call:
                until_slow, until_draw = self._left[at]
                slow_s += 0.0 if until_slow else fault["delay_s"]
                self._left[at] = (until_slow - 1, until_draw - 1) if until_draw else _drawn(fault)
        return slow_s


def _drawn(fault: dict[str, Any]) -> tuple[int, int]:
    calls = max(round(1 / fault["share"]), 1)
    return random.randrange(calls), calls - 1
