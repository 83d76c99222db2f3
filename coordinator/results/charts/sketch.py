"""A distribution of any numbers in bounded memory: exact while few differ, then coarser."""

from __future__ import annotations

import math
import struct

#: Buckets at most. With b bits of mantissa left a bucket is 2^-b of its value wide: numbers that
#: span one power of two keep 11 bits, those that span a thousand of them 1.
BUCKETS = 2048

_DOUBLE = struct.Struct("<d")
_INTEGER = struct.Struct("<q")


class Sketch:
    """Counts numbers by the leading bits of their IEEE 754 form, which sort as they do.

    Begins with all bits and forgets the last of them each time there are too many buckets; least,
    greatest and mean stay exact.
    """

    __slots__ = ("_buckets", "_shift", "count", "high", "low", "total")

    def __init__(self) -> None:
        self._buckets: dict[int, int] = {}
        self._shift = 0
        self.count = 0
        self.total = 0.0
        self.low = math.inf
        self.high = -math.inf

    def add(self, value: float) -> None:
        """Count a finite number."""
        self.count += 1
        self.total += value
        self.low = min(self.low, value)
        self.high = max(self.high, value)
        key = _key(value, self._shift)
        self._buckets[key] = self._buckets.get(key, 0) + 1
        while len(self._buckets) > BUCKETS:
            self._coarsen()

    def percentile(self, percent: float) -> float | None:
        """The value below which `percent` of 100 lie, between neighbours by linear interpolation.

        It is off by less than a bucket's width. None while there is nothing.
        """
        if not self.count:
            return None
        place = (self.count - 1) * percent / 100
        below, above = math.floor(place), math.ceil(place)
        first = self._at(below)
        return first + (self._at(above) - first) * (place - below) if above > below else first

    def _at(self, rank: int) -> float:
        """The value at a rank, counted from 0."""
        seen = 0
        for key in sorted(self._buckets):
            seen += self._buckets[key]
            if seen > rank:
                return min(max(_value(key, self._shift), self.low), self.high)
        return self.high

    def _coarsen(self) -> None:
        merged: dict[int, int] = {}
        for key, count in self._buckets.items():
            half = key >> 1 if key >= 0 else -(-key >> 1)
            merged[half] = merged.get(half, 0) + count
        self._buckets = merged
        self._shift += 1


def _key(value: float, shift: int) -> int:
    (bits,) = _INTEGER.unpack(_DOUBLE.pack(abs(value)))
    key: int = bits >> shift
    return -key if value < 0 else key


def _value(key: int, shift: int) -> float:
    """The middle of a bucket."""
    bits = (abs(key) << shift) + ((1 << shift) >> 1)
    (value,) = _DOUBLE.unpack(_INTEGER.pack(bits))
    return -value if key < 0 else float(value)
