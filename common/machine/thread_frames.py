"""The frames of all threads, read without a deadlock in CPython 3.11 before 3.11.9."""

from __future__ import annotations

import gc
import os
import sys
import threading
from types import FrameType

_READS = threading.Lock()
# a child that is forked during a read could neither read nor collect garbage
os.register_at_fork(
    before=_READS.acquire, after_in_parent=_READS.release, after_in_child=_READS.release
)


def current_frames() -> dict[int, FrameType]:
    """Return each thread's current frame by the thread's id, as `sys._current_frames`.

    That function allocates while it holds the interpreter's list of threads. If the garbage
    collector then runs Python code, any thread that starts or ends waits for the list and keeps the
    interpreter's lock: the process stands still for good
    (https://github.com/python/cpython/issues/106883). So the collector pauses meanwhile.
    """
    with _READS:
        collects = gc.isenabled()
        gc.disable()
        try:
            return sys._current_frames()  # noqa: TID251
        finally:
            if collects:
                gc.enable()
