"""Marks the trace ids of a run, so that an id alone shows whether a span belongs to the run."""

from __future__ import annotations

import hashlib

#: Bytes of a trace id that hold the mark. The first four stay random because samples are drawn by
#: them, the last eight because OpenTelemetry's ratio sampling uses them.
_FROM, _TO = 4, 8


class TraceMark:
    """The mark of one run in its trace ids: bytes 4 to 7, a keyed hash of the other 12.

    The run id is the key. Another trace id has the mark by chance once in 2**32.
    """

    __slots__ = ("_keyed",)

    def __init__(self, run_id: str) -> None:
        key = hashlib.blake2b(run_id.encode(), digest_size=32).digest()
        self._keyed = hashlib.blake2b(key=key, digest_size=_TO - _FROM)

    def put(self, trace_id: bytes) -> bytes:
        """Return a copy of a 16-byte trace id with the run's mark in bytes 4 to 7."""
        return trace_id[:_FROM] + self._of(trace_id) + trace_id[_TO:]

    def is_on(self, trace_id: bytes) -> bool:
        """Return whether a trace id has the mark of this run; False unless it has 16 bytes."""
        return len(trace_id) == 16 and trace_id[_FROM:_TO] == self._of(trace_id)

    def _of(self, trace_id: bytes) -> bytes:
        found = self._keyed.copy()
        found.update(trace_id[:_FROM] + trace_id[_TO:])
        return found.digest()
