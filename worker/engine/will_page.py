"""A page of shared memory on which a worker process notes how far its users have taken numbers.

The supervisor makes it and reads it after the process has ended in whatever way; the rest, which it
cannot have started, then needs no confirmation by the process (`Will`). At each time the page
covers all that was started: a mark moves before users can take the work behind it. All words have 8
bytes, so that none is ever half written.

    word 0     1 while a membership stands on the page: written last, cleared first
    word 1, 2  workload, 1 for an open load
    word 3, 4  last batch of which numbers were taken, mark
    word 5     bytes of the names
    byte 64    names: JSON list of incarnation, run and membership

In a closed load the mark is the greatest number of the last batch that may have been taken; in an
open one it is the latest due time of an arrival that was taken, nanoseconds after t0.
"""

from __future__ import annotations

import json
import mmap
import os
import tempfile
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from osbench.common.protocol.messages import Will

_HELD, _WORKLOAD, _OPEN, _SEQ, _MARK, _LENGTH = range(6)
_NAMES = 64
_SIZE = 1024
#: Mark of a closed load: all numbers of the last batch count as taken.
_ALL = (1 << 62) - 1
#: Mark of an open load: no arrival was taken.
_NONE = -1


class WillPage:
    """Shared memory in which one worker process notes the work that it may have started.

    The supervisor, its parent, reads it after the process has ended. `incarnation`, the name of
    this start of the process, is needed only by the process itself.
    """

    def __init__(self, fd: int, incarnation: str = "") -> None:
        """Map the page behind `fd`, a file descriptor of a page made by `create`.

        Raises OSError, ValueError.
        """
        self.fd = fd
        self._incarnation = incarnation
        self._memory = mmap.mmap(fd, _SIZE)
        self._bytes = memoryview(self._memory)
        self._words = self._bytes.cast("q")

    @classmethod
    def create(cls) -> Self:
        """Create a page of 1 KiB that names no membership, and map it. Raises OSError."""
        if hasattr(os, "memfd_create"):
            fd = os.memfd_create("osbench-will")
        else:
            with tempfile.TemporaryFile() as file:
                fd = os.dup(file.fileno())
        os.ftruncate(fd, _SIZE)
        return cls(fd)

    def close(self) -> None:
        """Unmap the page and close its file descriptor. No engine may use the page any more."""
        self._words.release()
        self._bytes.release()
        self._memory.close()
        os.close(self.fd)

    # the worker process: its membership

    def join(self, run: str, membership: str) -> None:
        """Write run and membership (the worker's part in the run) to the page, with no work taken.

        No effect if they are there already. If the names do not fit, the page names no membership,
        so the supervisor reads no will.
        """
        names = json.dumps([self._incarnation, run, membership]).encode()
        words = self._words
        if words[_HELD] and names == self._names():
            return
        words[_HELD] = 0
        if len(names) > _SIZE - _NAMES:
            return
        self._bytes[_NAMES : _NAMES + len(names)] = names
        words[_LENGTH] = len(names)
        words[_WORKLOAD], words[_OPEN], words[_SEQ], words[_MARK] = -1, 0, 0, 0
        words[_HELD] = 1

    def serve(self, workload: int, is_open: bool) -> None:
        """Write the workload that begins, with none of its work taken; `is_open`: its load is open.

        Called before its engine has users, and after the last engine was closed. If the same open
        workload goes on, the latest due time taken remains.
        """
        words = self._words
        held, words[_HELD] = words[_HELD], 0
        if not (is_open and words[_OPEN] and words[_WORKLOAD] == workload):
            words[_MARK] = _NONE if is_open else _ALL
        words[_WORKLOAD], words[_OPEN] = workload, int(is_open)
        words[_HELD] = held

    def leave(self) -> None:
        """Clear the page, so that `read` returns None: the process is in no run."""
        self._words[_HELD] = 0

    # the worker process: its engine, one thread at a time

    def reach(self, seq: int, number: int) -> None:
        """Note that users can from now on take numbers of batch `seq` up to `number`, inclusive.

        For closed load. An earlier batch needs no note: all batches before the last count as taken.
        """
        words = self._words
        if seq > words[_SEQ]:
            # between the two lines the old mark stands for a batch of which nothing was taken
            words[_SEQ] = seq
            words[_MARK] = number
        elif number > words[_MARK]:
            words[_MARK] = number

    def take(self, due_ns: int, seq: int) -> None:
        """Note that an arrival of batch `seq`, due `due_ns` nanoseconds after t0, was taken.

        For open load. Only the latest due time and the highest batch are kept: the will says that
        nothing beyond them can have started.
        """
        words = self._words
        words[_MARK] = max(words[_MARK], due_ns)
        words[_SEQ] = max(words[_SEQ], seq)

    # the supervisor

    def read(self) -> Will | None:
        """Return the will of the ended process: the limit up to which it may have taken work.

        Work beyond it cannot have started. None if the page names no membership, as without a run.
        Called by the supervisor.
        """
        words = self._words
        if not words[_HELD]:
            return None
        # numpy comes with it, which most supervisors never need
        from osbench.common.protocol.messages import Will  # noqa: PLC0415 - see above

        incarnation, run, membership = json.loads(self._names())
        seq, mark, is_open = words[_SEQ], words[_MARK], bool(words[_OPEN])
        number = _ALL if is_open else mark
        return Will(
            run=run,
            incarnation=incarnation,
            membership=membership,
            workload=words[_WORKLOAD],
            seq=seq,
            number=number if seq else 0,
            due_ns=mark if is_open else None,
        )

    def _names(self) -> bytes:
        return bytes(self._bytes[_NAMES : _NAMES + self._words[_LENGTH]])
