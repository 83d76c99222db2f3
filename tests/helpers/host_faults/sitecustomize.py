"""Faults of a host that its Python processes see; Python imports this from PYTHONPATH at start.

OSBENCH_TEST_CLOCK       file with the seconds by which the wall clock is off (time.time, time_ns)
OSBENCH_TEST_SLOW_NAMES  while this file is there, each look-up of redis.test takes 11 s; the name
                         is that of 127.0.0.1

A library that is loaded before all others, as libfaketime, would step the clock of C code, too;
with it time.sleep raises EINVAL in Python 3.11.
"""

import os
import socket
import time
from typing import Any

#: How long a step of the clock may go unseen, seconds.
_SEEN_S = 0.05

_true_time = time.time
_monotonic = time.monotonic
_true_look_up = socket.getaddrinfo
_clock = os.environ.get("OSBENCH_TEST_CLOCK", "")
_slow_names = os.environ.get("OSBENCH_TEST_SLOW_NAMES", "")
_offset = [0.0, 0.0]


def _stepped() -> float:
    now = _monotonic()
    if now - _offset[1] > _SEEN_S:
        with open(_clock, encoding="ascii") as file:  # noqa: PTH123 - this is on the hot path
            _offset[:] = [float(file.read()), now]
    return _true_time() + _offset[0]


def _look_up(host: Any, *arguments: Any, **named: Any) -> Any:
    if host in ("redis.test", b"redis.test"):
        if os.path.exists(_slow_names):  # noqa: PTH110 - as above
            time.sleep(11)
        host = "127.0.0.1"
    return _true_look_up(host, *arguments, **named)


if _clock:
    time.time = _stepped
    time.time_ns = lambda: int(_stepped() * 1e9)
if _slow_names:
    socket.getaddrinfo = _look_up
