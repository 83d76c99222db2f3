"""Packed files of zeros: a thousandth of what they unpack to."""

from __future__ import annotations

import functools
import struct
import zlib
from collections.abc import Iterator

MIB = 1 << 20

_HEAD = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"


@functools.cache
def _block() -> bytes:
    """Return a MiB of zeros, packed, after which another may follow."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(bytes(MIB)) + packer.flush(zlib.Z_FULL_FLUSH)


def endless_gzip(most_bytes: int) -> Iterator[bytes]:
    """Yield a file that does not end before `most_bytes` are unpacked."""
    yield _HEAD
    for _ in range(most_bytes // MIB):
        yield _block()


@functools.cache
def whole_gzip(mib: int) -> bytes:
    """Return a file that unpacks to so many MiB of zeros, made without packing all of them."""
    zeros, crc = bytes(MIB), 0
    for _ in range(mib):
        crc = zlib.crc32(zeros, crc)
    # an empty last block, then checksum and length
    return b"".join((_HEAD, _block() * mib, b"\x03\0", struct.pack("<II", crc, mib * MIB)))


def zstd_frame(mib: int) -> bytes:
    """Return a frame that unpacks to so many MiB of zeros: blocks of one byte (RFC 8878)."""
    # a content size of 8 bytes, and a window of 2 MiB
    head = b"\x28\xb5\x2f\xfd\xc0\x58" + struct.pack("<Q", mib * MIB)
    size = 128 << 10
    block, last = (
        (size << 3 | 1 << 1 | ends).to_bytes(3, "little") + b"\0" for ends in (False, True)
    )
    return head + block * (mib * MIB // size - 1) + last
