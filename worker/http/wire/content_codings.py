"""Content codings of bodies: gzip, deflate, br and zstd, each bounded."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Protocol

import zstandard

from osbench.worker.http.wire.wire_errors import BadAnswer, TooLongAnswer

try:
    import brotli
except ImportError:  # only an answer that has it needs it
    brotli = None

#: Bytes that a body may have when it is decoded.
CONTENT_LIMIT = 256 * 1024 * 1024

#: Codings one after another, as in urllib3.
_CODINGS_LIMIT = 5

#: Decoded bytes at once, about.
_PIECE = 64 * 1024
#: Coded bytes that zstandard gets at once: it makes 128 KiB of 4 at most, and knows no bound.
_ZSTD_PIECE = 256


class Decoder(Protocol):
    """Undoes one content coding."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Decoded pieces of some more of the body. Raises BadAnswer for bytes coded otherwise."""

    def end(self) -> None:
        """The body is over. Raises BadAnswer if its coding is not."""


class BodyDecoder:
    """Undoes the codings of a Content-Encoding header, the last one first.

    Codings that are not known leave the bytes as they are, as in requests.
    """

    def __init__(self, codings: str, limit: int = CONTENT_LIMIT) -> None:
        """Raises BadAnswer for too many codings; each may come to `limit` bytes."""
        names = [name.strip().lower() for name in codings.split(",")]
        names = [name for name in names if name not in ("", "identity")]
        if len(names) > _CODINGS_LIMIT:
            raise BadAnswer(f"the body has more than {_CODINGS_LIMIT} content codings")
        self._decoders: list[Decoder] = []
        for name in reversed(names):
            decoder = _decoder(name)
            if decoder is None:
                break
            self._decoders.append(decoder)
        self._limit = limit
        self._left = [limit] * len(self._decoders)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Decoded pieces of some more of the body.

        Raises BadAnswer for bytes that are not coded as they should be, and TooLongAnswer.
        """
        return self._through(data, 0)

    def end(self) -> None:
        """The body is over. Raises BadAnswer if one of its codings is not."""
        for decoder in self._decoders:
            decoder.end()

    def _through(self, data: bytes, at: int) -> Iterator[bytes]:
        if at == len(self._decoders):
            yield data
            return
        for piece in self._decoders[at].feed(data):
            self._left[at] -= len(piece)
            if self._left[at] < 0:
                raise TooLongAnswer(
                    f"the body has more than {self._limit} bytes when it is decoded"
                )
            yield from self._through(piece, at + 1)


class UnkeptBody:
    """A body of which nothing is kept but whether it is what its codings say."""

    __slots__ = ("_bad", "_decoder")

    def __init__(self, codings: str) -> None:
        self._bad = False
        self._decoder: BodyDecoder | None = None
        try:
            self._decoder = BodyDecoder(codings)
        except BadAnswer:
            self._bad = True

    def append(self, data: bytes) -> None:
        """Take some more of the body."""
        if self._decoder is None:
            return
        try:
            for _ in self._decoder.feed(data):
                pass
        except TooLongAnswer:
            # all of it would cost too much, and so far it was right
            self._decoder = None
        except BadAnswer:
            self._bad, self._decoder = True, None

    def is_false(self) -> bool:
        """Whether the body, which is over, is cut short or not coded like that."""
        if self._decoder is not None:
            try:
                self._decoder.end()
            except BadAnswer:
                self._bad = True
        return self._bad


def decoded(data: bytes, codings: str, limit: int) -> bytes:
    """Undo the codings of a Content-Encoding header, as `BodyDecoder`.

    Raises BadAnswer for bytes that are not coded like that, are cut short, or come to more than
    `limit`.
    """
    decoder = BodyDecoder(codings, limit)
    found = list(decoder.feed(data))
    decoder.end()
    return found[0] if len(found) == 1 else b"".join(found)


def _decoder(name: str) -> Decoder | None:
    if name in ("gzip", "x-gzip"):
        return _Inflater(16 + zlib.MAX_WBITS)
    if name == "deflate":
        return _Deflated()
    if name == "zstd":
        return _Zstd()
    if name == "br" and brotli is not None:
        return _Brotli()
    return None


class _Inflater:
    """Gzip, which may have several members, or one stream of deflate."""

    def __init__(self, bits: int) -> None:
        self._bits = bits
        self._several = bits > zlib.MAX_WBITS
        #: Of the member that has begun.
        self._inflater = zlib.decompressobj(bits)
        self._begun = False
        self._members = 0
        self._over = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        full = False
        while (data or full) and not self._over:
            self._begun = True
            try:
                piece = self._inflater.decompress(data, _PIECE)
            except zlib.error as error:
                if not self._members:
                    raise BadAnswer(f"the body cannot be decoded: {error}") from error
                # bytes after the last member, which gzip passes over
                self._over = True
                return
            if piece:
                yield piece
            # more may be held back, where all of `data` was taken
            full = len(piece) == _PIECE
            data = self._inflater.unconsumed_tail
            if self._inflater.eof:
                data, full = self._inflater.unused_data, False
                self._members += 1
                self._over = not self._several
                self._begun = False
                self._inflater = zlib.decompressobj(self._bits)

    def end(self) -> None:
        if self._begun and not self._over:
            raise BadAnswer(_CUT)


class _Deflated:
    """Deflate, whose header of zlib some servers leave out."""

    def __init__(self) -> None:
        self._first = b""
        self._inflater: _Inflater | None = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self._inflater is None:
            data = self._first = self._first + data
            if len(data) < 2:
                return
            headed = data[0] & 15 == 8 and (data[0] * 256 + data[1]) % 31 == 0
            self._inflater = _Inflater(zlib.MAX_WBITS if headed else -zlib.MAX_WBITS)
        yield from self._inflater.feed(data)

    def end(self) -> None:
        if self._inflater is not None:
            self._inflater.end()
        elif self._first:
            raise BadAnswer(_CUT)


class _Zstd:
    """Zstandard, which may have several frames."""

    def __init__(self) -> None:
        self._of = zstandard.ZstdDecompressor(max_window_size=1 << 27)
        self._frame: zstandard.ZstdDecompressionObj | None = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        for at in range(0, len(data), _ZSTD_PIECE):
            part = data[at : at + _ZSTD_PIECE]
            while part:
                if self._frame is None:
                    self._frame = self._of.decompressobj()
                try:
                    piece = self._frame.decompress(part)
                except zstandard.ZstdError as error:
                    raise BadAnswer(f"the body cannot be decoded: {error}") from error
                if piece:
                    yield piece
                part = b""
                if self._frame.eof:
                    part, self._frame = self._frame.unused_data, None

    def end(self) -> None:
        if self._frame is not None:
            raise BadAnswer(_CUT)


class _Brotli:
    def __init__(self) -> None:
        self._decoder = brotli.Decompressor()
        self._begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        self._begun = True
        try:
            piece = self._decoder.process(data, output_buffer_limit=_PIECE)
            while piece:
                yield piece
                piece = self._decoder.process(b"", output_buffer_limit=_PIECE)
        except brotli.error as error:
            raise BadAnswer(f"the body cannot be decoded: {error}") from error

    def end(self) -> None:
        if self._begun and not self._decoder.is_finished():
            raise BadAnswer(_CUT)


_CUT = "the coded body ends too early"
