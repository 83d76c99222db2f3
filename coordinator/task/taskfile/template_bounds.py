"""Bounds on rendering a template: CPU time, memory, and the size of the result.

A template is a program. The sandbox bounds the result of an expression if it can be predicted; the
kernel bounds the rest.
"""

from __future__ import annotations

import contextlib
import io
import resource
import signal
import threading
from collections.abc import Iterable, Iterator
from types import FrameType

from osbench.common.files.yaml_documents import CHARACTERS
from osbench.common.machine.process_memory import address_space_bytes

#: CPU time, seconds, and memory, bytes, in addition to what the process has.
CPU_S = 10.0
MEMORY_BYTES = 512 << 20


class TemplateBoundError(Exception):
    """Raised if a template takes more memory, CPU time, characters or recursion than allowed."""


@contextlib.contextmanager
def bounded_resources() -> Iterator[None]:
    """Limit memory (`MEMORY_BYTES` more) and CPU time (`CPU_S`) of this process in the block.

    Raises TemplateBoundError above them, and for too deep recursion. Outside the main thread CPU
    time is not limited, because no signal reaches other threads. Memory is not limited without
    /proc, or if a lower limit holds.
    """
    with _memory(MEMORY_BYTES), _cpu(CPU_S):
        try:
            yield
        except MemoryError:
            raise TemplateBoundError(
                f"takes more than {MEMORY_BYTES >> 20} MiB of memory; repeat and pad texts less "
                "often"
            ) from None
        except RecursionError:
            raise TemplateBoundError("is nested too deeply, or includes or calls itself") from None


def joined_text(pieces: Iterable[str]) -> str:
    """Join the pieces to one string.

    Raises TemplateBoundError as soon as they have more than `CHARACTERS` characters together, so
    that endless output ends.
    """
    text, size = io.StringIO(), 0
    for piece in pieces:
        size += len(piece)
        if size > CHARACTERS:
            raise TemplateBoundError(
                f"gives more than {CHARACTERS:,} characters; check that its loops end"
            )
        text.write(piece)
    return text.getvalue()


@contextlib.contextmanager
def _memory(more_bytes: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    has = address_space_bytes()
    most = has + more_bytes
    if not has or (soft != resource.RLIM_INFINITY and soft <= most):
        yield
        return
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@contextlib.contextmanager
def _cpu(seconds: float) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise TemplateBoundError(f"takes more than {seconds:g} s of CPU; check that its loops end")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
