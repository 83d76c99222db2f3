"""Histograms in the compressed form, version 2, of HdrHistogram's interval logs.

Layout: http://hdrhistogram.org and `AbstractHistogram.encodeIntoCompressedByteBuffer` of
https://github.com/HdrHistogram/HdrHistogram. Nanoseconds with 3 significant digits.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterator, Mapping

#: The largest value, nanoseconds: 10 days.
HIGHEST_NS = 10 * 24 * 3600 * 10**9

#: 3 significant digits need 2,048 sub-buckets; their upper half repeats in each bucket.
_HALF_BITS = 10
_DIGITS = 3

_COOKIE, _COMPRESSED_COOKIE = 0x1C849313, 0x1C849314
#: Cookie, bytes of counts, offset, digits, lowest and highest value, factor of values.
_HEAD = struct.Struct(">iiiiqqd")
_OUTER_HEAD = struct.Struct(">ii")


def position(value_ns: int) -> int:
    """Return the index of the counter for a value in nanoseconds.

    Values below 0 and above `HIGHEST_NS` count as these limits.
    """
    value = min(max(value_ns, 0), HIGHEST_NS)
    bucket = max(value.bit_length() - _HALF_BITS - 1, 0)
    return (bucket << _HALF_BITS) + (value >> bucket)


def encode(counts: Mapping[int, int]) -> str:
    """Encode a histogram as base64 text; `counts`: number of values by index, as of `position`."""
    payload = b"".join(map(_zigzag, _runs(counts)))
    head = _HEAD.pack(_COOKIE, len(payload), 0, _DIGITS, 1, HIGHEST_NS, 1.0)
    packed = zlib.compress(head + payload)
    return base64.b64encode(_OUTER_HEAD.pack(_COMPRESSED_COOKIE, len(packed)) + packed).decode()


def _runs(counts: Mapping[int, int]) -> Iterator[int]:
    """Yield the counts of indexes from 0 to the last; for each run of zeros minus its length
    instead.
    """
    last = -1
    for at in sorted(counts):
        if at > last + 1:
            yield last + 1 - at
        yield counts[at]
        last = at


def _zigzag(value: int) -> bytes:
    """Return an integer in ZigZag and LEB128 encoding: seven bits per byte, lowest first."""
    number = value << 1 if value >= 0 else (-value << 1) - 1
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)
