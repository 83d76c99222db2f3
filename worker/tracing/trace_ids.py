"""Choice of the iterations that are traced, and ids of traces and spans.

All workers decide alike, without communication. Ids have 128 bits in UUID notation, compatible with
OpenTelemetry's sampling.

All bits of a trace id but the mark of its run are random: OpenTelemetry's ratio sampling uses only
the low 64 bits, and with the fixed variant bits of a UUID of version 4 most ratios would select all
traces or none.

The span ids of a trace share a random prefix and count up in their last 48 bits; their low 64 bits
are the span id of W3C Trace Context.
"""

from __future__ import annotations

import hashlib
import os

from osbench.common.values.trace_mark import TraceMark

_SEED_BYTES = 32
_DRAW = 256


#: The ids of one trace: trace id (16 bytes); prefix of its span ids (10 bytes); suffix of span 0,
#: at least 1 (span n has that plus n). A plain tuple, because the garbage collector untracks
#: these, and many traces may wait to be written.
TraceIds = tuple[bytes, bytes, int]


def uuid_text(id_: bytes) -> str:
    """Return 16 bytes as hexadecimal text in UUID notation (8-4-4-4-12)."""
    text = id_.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def prefix(ids: TraceIds) -> str:
    """Return the part of the id texts that all spans of a trace share: all but the last 12 digits.

    In UUID notation, with the last hyphen.
    """
    text = ids[1].hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:]}-"


def span_text(ids: TraceIds, number: int) -> str:
    """Return the id of span `number` as text in UUID notation."""
    return f"{prefix(ids)}{ids[2] + number:012x}"


def traceparent(ids: TraceIds, number: int) -> str:
    """Return the W3C `traceparent`, marked as sampled, for a request within span `number`."""
    return f"00-{ids[0].hex()}-{ids[1][8:].hex()}{ids[2] + number:012x}-01"


class IdPool:
    """Random ids generated in bulk; one system call serves 256 traces.

    Thread-safe. Must not be shared across a fork: both processes would generate the same ids.
    """

    __slots__ = ("_mark", "_pool")

    def __init__(self, mark: TraceMark) -> None:
        """`mark` is the mark of the run, four bytes that each trace id carries."""
        self._mark = mark
        self._pool: list[bytes] = []

    def mint(self) -> TraceIds:
        """Return the ids of a new trace: random, but for the mark of the run."""
        try:
            # pop is atomic; two threads that both find nothing just draw twice
            seed = self._pool.pop()
        except IndexError:
            block = os.urandom(_SEED_BYTES * _DRAW)
            self._pool.extend(
                block[at : at + _SEED_BYTES] for at in range(_SEED_BYTES, len(block), _SEED_BYTES)
            )
            seed = block[:_SEED_BYTES]
        # 46 of 48 bits: counting up neither overflows nor yields zero, which W3C forbids
        trace_id = self._mark.put(seed[:16])
        return trace_id, seed[16:26], (int.from_bytes(seed[26:], "big") >> 2) + 1


_MASK_64 = (1 << 64) - 1


def seed_of(run_id: str) -> int:
    """Return a 64-bit seed from a text, such as a run id; the same on every host."""
    return int.from_bytes(hashlib.blake2b(run_id.encode(), digest_size=8).digest(), "big")


def mix(seed: int, number: int) -> int:
    """Return a uniform 64-bit integer that depends on both numbers only.

    It is step `number` of SplitMix64 (Steele et al. 2014), begun with `seed`.
    """
    z = (seed + number * 0x9E3779B97F4A7C15) & _MASK_64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK_64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK_64
    return z ^ (z >> 31)


def threshold(rate: float) -> int:
    """Return the bound below which `mix` stays for a fraction `rate` (0 to 1) of all iterations.

    Raises ValueError if `rate` is not within 0 and 1.
    """
    if not 0.0 <= rate <= 1.0:
        raise ValueError(f"sample rate must be between 0 and 1, got {rate!r}")
    return int(rate * 2**64)
