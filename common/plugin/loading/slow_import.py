"""Logs that a plug-in file takes long to import, and at which line it is."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator
from types import FrameType

from osbench.common.machine.thread_frames import current_frames

LOG = logging.getLogger(__name__)

#: After which it is said, and then each time when as long again has passed, seconds.
SLOW_S = 5.0


@contextlib.contextmanager
def told_if_slow(file: str, after_s: float = SLOW_S) -> Iterator[None]:
    """Log a warning with the line of `file` that runs, if the block takes over `after_s` seconds.

    Repeats it after pauses that double each time. A separate thread watches the calling one.
    """
    thread, done = threading.get_ident(), threading.Event()

    def tell() -> None:
        waited_s = after_s
        while not done.wait(waited_s):
            place = _place(file, current_frames().get(thread))
            LOG.warning("plug-in file %s: its import takes longer than %g s", place, waited_s)
            waited_s *= 2

    teller = threading.Thread(target=tell, name="osbench-slow-import", daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()


def _place(file: str, frame: FrameType | None) -> str:
    while frame is not None and frame.f_code.co_filename != file:
        frame = frame.f_back
    return file if frame is None else f"{file}:{frame.f_lineno}"
