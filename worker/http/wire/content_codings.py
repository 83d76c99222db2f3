"""Content codings of bodies: gzip, deflate, br and zstd, each bounded."""

from __future__ import annotations

import io
import zlib

import zstandard

from osbench.worker.http.wire.wire_errors import BadAnswer

try:
    import brotli
except ImportError:  # only an answer that has it needs it
    brotli = None

#: Bytes that a body may have when it is decoded.
CONTENT_LIMIT = 256 * 1024 * 1024

#: Codings one after another, as in urllib3.
_CODINGS_LIMIT = 5

_PIECE = 64 * 1024


def decoded(data: bytes, codings: str, limit: int) -> bytes:
    """Undo the codings of a Content-Encoding header, the last one first.

    Codings that are not known leave the bytes as they are, as in requests. Raises BadAnswer for
    bytes that are not coded like that, or come to more than `limit`.
    """
    names = [name.strip().lower() for name in codings.split(",")]
    names = [name for name in names if name not in ("", "identity")]
    if len(names) > _CODINGS_LIMIT:
        raise BadAnswer(f"the body has more than {_CODINGS_LIMIT} content codings")
    for name in reversed(names):
        if name in ("gzip", "x-gzip"):
            data = _inflated(data, 16 + zlib.MAX_WBITS, limit)
        elif name == "deflate":
            data = _deflated(data, limit)
        elif name == "zstd":
            data = _zstd(data, limit)
        elif name == "br" and brotli is not None:
            data = _brotli(data, limit)
        else:
            return data
    return data


def _deflated(data: bytes, limit: int) -> bytes:
    # some servers leave out the header of zlib
    headed = len(data) > 1 and data[0] & 15 == 8 and (data[0] * 256 + data[1]) % 31 == 0
    return _inflated(data, zlib.MAX_WBITS if headed else -zlib.MAX_WBITS, limit)


def _inflated(data: bytes, bits: int, limit: int) -> bytes:
    found = []
    left = limit
    while data:
        inflater = zlib.decompressobj(bits)
        try:
            # a length of 0 would mean no limit
            found.append(inflater.decompress(data, left + 1))
        except zlib.error as error:
            if len(found) > 0:
                break  # bytes after the last member, which gzip passes over
            raise BadAnswer(f"the body cannot be decoded: {error}") from error
        left -= len(found[-1])
        if left < 0:
            raise _too_long(limit)
        if not inflater.eof:
            raise BadAnswer("the coded body ends too early")
        # gzip may have several members
        data = inflater.unused_data if bits > zlib.MAX_WBITS else b""
    return b"".join(found)


def _zstd(data: bytes, limit: int) -> bytes:
    reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(
        io.BytesIO(data), read_across_frames=True
    )
    try:
        found = reader.read(limit + 1)
    except zstandard.ZstdError as error:
        raise BadAnswer(f"the body cannot be decoded: {error}") from error
    if len(found) > limit:
        raise _too_long(limit)
    return found


def _brotli(data: bytes, limit: int) -> bytes:
    decoder = brotli.Decompressor()
    found = []
    left = limit
    try:
        found.append(decoder.process(data, output_buffer_limit=_PIECE))
        while found[-1]:
            left -= len(found[-1])
            if left < 0:
                raise _too_long(limit)
            found.append(decoder.process(b"", output_buffer_limit=_PIECE))
    except brotli.error as error:
        raise BadAnswer(f"the body cannot be decoded: {error}") from error
    if not decoder.is_finished():
        raise BadAnswer("the coded body ends too early")
    return b"".join(found)


def _too_long(limit: int) -> BadAnswer:
    return BadAnswer(f"the body has more than {limit} bytes when it is decoded")
