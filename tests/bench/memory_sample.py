"""The most memory that the processes of a command take while it runs."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import psutil

from bench.stage import BenchError

_EVERY_S = 0.5


@dataclass(kw_only=True)
class MemorySample:
    """Bytes, with shared memory divided among those that share it (PSS)."""

    most: int = 0


@contextlib.contextmanager
def memory_sample() -> Iterator[MemorySample]:
    """Sample all processes that this process starts in the block, until it is left.

    Raises BenchError if nothing was seen.
    """
    sample = MemorySample()
    known = {one.pid for one in psutil.Process().children(recursive=True)}
    over = threading.Event()

    def watch() -> None:
        while not over.wait(_EVERY_S):
            total = 0
            for one in psutil.Process().children(recursive=True):
                # one that has ended, or is another user's
                with contextlib.suppress(psutil.Error):
                    total += 0 if one.pid in known else one.memory_full_info().pss
            sample.most = max(sample.most, total)

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield sample
    finally:
        over.set()
        watching.join()
    if not sample.most:
        raise BenchError("no process was seen: its memory is not known")
