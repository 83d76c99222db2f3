"""A page of shared memory on which a worker process notes what its virtual users take.

The supervisor makes it and reads it after the process has ended in whatever way; what it cannot
have started then needs no confirmation by the process (`Will`). All words have 8 bytes, so that
none is ever half written. At each instant the page says at least what was started: a number is
noted after it was taken and before it is started.

    word 0     1 while a membership stands on the page: written last, cleared first
    word 1-5   workload, 1 for an open load, last batch, mark, bank of slots in use
    word 6     bytes of the names
    byte 64    names: JSON list of incarnation, run and membership
    byte 1024  two banks of one slot a virtual user: the number taken last

In a closed load the mark and the slots together bound the numbers that were taken of the last
batch; in an open one the mark is the latest due instant of an arrival that was taken.
"""

from __future__ import annotations

import json
import mmap
import os
import tempfile
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from osbench.common.protocol.messages import Will

_HELD, _WORKLOAD, _OPEN, _SEQ, _MARK, _BANK, _LENGTH = range(7)
_WORD = 8
_NAMES = 64
_SLOTS = 1024
_BANKS = 2
#: Mark of a closed load: all numbers of the last batch count as taken.
_ALL = 1 << 62
#: Mark of an open load: no arrival was taken.
_NONE = -1


class WillPage:
    """The page of one worker process; `incarnation` is needed by the process itself only."""

    def __init__(self, fd: int, incarnation: str = "") -> None:
        """Map the page of a file descriptor that `create` has made. Raises OSError, ValueError."""
        self.fd = fd
        self._incarnation = incarnation
        self._memory = mmap.mmap(fd, 0)
        self._bytes = memoryview(self._memory)
        self._words = self._bytes.cast("q")
        self._users = (len(self._bytes) - _SLOTS) // (_WORD * _BANKS)

    @classmethod
    def create(cls, users: int) -> Self:
        """A page for at most this many virtual users. Raises OSError."""
        if hasattr(os, "memfd_create"):
            fd = os.memfd_create("osbench-will")
        else:
            with tempfile.TemporaryFile() as file:
                fd = os.dup(file.fileno())
        os.ftruncate(fd, _SLOTS + _BANKS * users * _WORD)
        return cls(fd)

    def close(self) -> None:
        """Unmap the page and close its descriptor; only where no engine uses it any more."""
        self._words.release()
        self._bytes.release()
        self._memory.close()
        os.close(self.fd)

    # the worker process: its membership

    def join(self, run: str, membership: str) -> None:
        """A membership begins, of which nothing was taken; no effect on one that stands there."""
        names = json.dumps([self._incarnation, run, membership]).encode()
        words = self._words
        if words[_HELD] and names == self._names():
            return
        words[_HELD] = 0
        if len(names) > _SLOTS - _NAMES:
            return
        self._bytes[_NAMES : _NAMES + len(names)] = names
        words[_LENGTH] = len(names)
        words[_WORKLOAD], words[_OPEN], words[_SEQ], words[_MARK] = -1, 0, 0, 0
        words[_HELD] = 1

    def serve(self, workload: int, is_open: bool) -> None:
        """A workload begins: before its engine has users, after the last engine was closed."""
        words = self._words
        held, words[_HELD] = words[_HELD], 0
        if not (is_open and words[_OPEN] and words[_WORKLOAD] == workload):
            words[_MARK] = _NONE if is_open else _ALL
        words[_WORKLOAD], words[_OPEN] = workload, int(is_open)
        # threads of the last engine may still write to its own bank
        words[_BANK] = (words[_BANK] + 1) % _BANKS
        self._clear_slots()
        words[_HELD] = held

    def leave(self) -> None:
        """The membership is over: nothing of it starts any more."""
        self._words[_HELD] = 0

    # the worker process: the engine

    @property
    def slots(self) -> memoryview[int]:
        """The slots of the workload that is served, by virtual user (closed load).

        A user stores each number that it takes from a source; within one source they ascend.
        """
        first = _SLOTS // _WORD + self._words[_BANK] * self._users
        return self._words[first : first + self._users]

    def leave_source(self, user: int) -> None:
        """A user is about to change its source, so that its next number may be a lower one.

        The engine calls this and `begin` with its lock held.
        """
        slots, words = self.slots, self._words
        words[_MARK] = max(words[_MARK], slots[user])
        slots[user] = 0

    def begin(self, seq: int) -> None:
        """Users are about to take numbers of a batch; an earlier batch counts to the last one."""
        words = self._words
        if seq > words[_SEQ]:
            # first: from here on all of the earlier batches counts as taken
            words[_SEQ] = seq
            self._clear_slots()
            words[_MARK] = 0

    def take(self, due_ns: int, seq: int) -> None:
        """An arrival was taken, due nanoseconds after t0 (open load); not called concurrently."""
        words = self._words
        words[_MARK] = max(words[_MARK], due_ns)
        words[_SEQ] = max(words[_SEQ], seq)

    def _clear_slots(self) -> None:
        slots = self.slots
        slots.cast("B")[:] = bytes(slots.nbytes)

    # the supervisor

    def read(self) -> Will | None:
        """What a process that has ended cannot have started; None where it was in no run."""
        # numpy comes with it, which a supervisor needs no sooner
        from osbench.common.protocol.messages import Will  # noqa: PLC0415 - see above

        words = self._words
        if not words[_HELD]:
            return None
        incarnation, run, membership = json.loads(self._names())
        seq, mark, is_open = words[_SEQ], words[_MARK], bool(words[_OPEN])
        number = _ALL if is_open else max(mark, *self.slots)
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
