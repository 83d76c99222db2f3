"""A scenario that writes down where and when it ran; the hosts have one file system and one clock.

A line when an iteration starts (`B`) and when it ends (`A`); the instant is of CLOCK_MONOTONIC,
which is the same in all namespaces, in seconds:

    B INSTANT RUN HOST ITERATION
"""

from __future__ import annotations

import os
import socket
import time
from functools import cache

from osbench.plugin import atomic, scenario


@cache
def _opened(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


class HostProbe(scenario.Scenario):
    """Iterations that leave a trace on the disk, and use no network."""

    @scenario.configure(name="HostProbe.note")
    def note(self, path: str, sleep_s: float = 0.02) -> None:
        """Note the start, wait, note the end; `path` is that of the file."""
        named = f"{self.context['run']} {socket.gethostname()} {self.context['iteration']}"
        os.write(_opened(path), f"B {time.monotonic():.6f} {named}\n".encode())
        with atomic.ActionTimer(self, "probe.wait"):
            time.sleep(sleep_s)
        os.write(_opened(path), f"A {time.monotonic():.6f} {named}\n".encode())
