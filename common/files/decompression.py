"""Decompresses zstandard frames within a memory limit, whatever size they announce."""

from __future__ import annotations

import zstandard

#: zstandard stores at most 128 KiB in 4 bytes.
_RATIO = 128 * 1024 // 4


def decompress(frame: bytes, limit: int) -> bytes:
    """Decompress one zstandard frame, which must announce its size; return the content.

    Raises ValueError if it announces no size, more than `limit` bytes, or an impossible size, or if
    it is damaged.
    """
    try:
        size = zstandard.get_frame_parameters(frame).content_size
        # an announced size is made room for before anything is decompressed
        if size > min(limit, _RATIO * len(frame)):
            raise ValueError(f"it announces {size:,} bytes, more than is possible or allowed")
        return zstandard.ZstdDecompressor().decompress(frame)
    except (zstandard.ZstdError, MemoryError) as error:
        raise ValueError(f"expected a complete zstandard frame: {error}") from None
