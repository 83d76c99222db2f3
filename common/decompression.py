"""Decompresses zstandard frames within a bound of memory, whatever they announce."""

from __future__ import annotations

import zstandard

#: zstandard stores at most 128 KiB in 4 bytes.
_RATIO = 128 * 1024 // 4


def decompressed(frame: bytes, limit: int) -> bytes:
    """Return the content of one frame that says how large it is, at most `limit` bytes.

    Raises ValueError for anything else.
    """
    try:
        size = zstandard.get_frame_parameters(frame).content_size
        # an announced size is made room for before anything is decompressed
        if size > min(limit, _RATIO * len(frame)):
            raise ValueError("larger than it may be")
        return zstandard.ZstdDecompressor().decompress(frame)
    except (zstandard.ZstdError, MemoryError) as error:
        raise ValueError(f"not compressed as it should be: {error}") from None
