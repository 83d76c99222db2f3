"""Decoders of content codings (gzip, deflate, br, zstd), bounded in time and memory."""

from __future__ import annotations

import zlib
from collections.abc import Generator, Iterator
from typing import Protocol, TypeVar

import zstandard

from osbench.common.network.response_bound import USUAL, ResponseBound
from osbench.worker.http.wire.wire_errors import BadResponse, TooLongResponse

try:
    import brotli
except ImportError:  # only a response that has it needs it
    brotli = None

#: Codings one after another, as in urllib3.
_CODINGS_LIMIT = 5

#: Decoded bytes at once, about.
_PIECE = 64 * 1024
#: Coded bytes that a decoder gets at once. What it leaves of them is copied for each piece.
_CODED_PIECE = 16 * 1024
#: Coded bytes that zstandard gets at once: it makes 128 KiB of 4 at most, and knows no bound.
_ZSTD_PIECE = 256

#: Work that is done at once, if others wait for the same thread: decoded bytes. Each piece of coded
#: bytes, and each member of a file, counts in addition.
SLICE = 4 * 1024 * 1024
_STEP = 16 * 1024

#: Coded bytes of a body that is not kept that may wait to be looked at.
_WAITING = 4 * 1024 * 1024


class Decoder(Protocol):
    """A decoder of one content coding."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield decoded pieces of more coded bytes. Raises BadResponse if they are not valid.

        Empty pieces stand for work without output, such as many coded bytes or the end of a gzip
        member.
        """

    def end(self) -> None:
        """Check that the coded body is complete. Raises BadResponse if it is not."""


class BodyDecoder:
    """Decoder of all codings of a Content-Encoding header, the last one first.

    Decoding ends before the first unknown coding: the bytes stay as they are, as in `requests`.
    """

    def __init__(self, codings: str, bound: ResponseBound) -> None:
        """Begin a body with the Content-Encoding `codings`.

        `bound` limits the decoded bytes of each coding. Raises BadResponse for more than five
        codings.
        """
        names = [name.strip().lower() for name in codings.split(",")]
        names = [name for name in names if name not in ("", "identity")]
        if len(names) > _CODINGS_LIMIT:
            raise BadResponse(f"the body has more than {_CODINGS_LIMIT} content codings")
        self._decoders: list[Decoder] = []
        for name in reversed(names):
            decoder = _decoder(name)
            if decoder is None:
                break
            self._decoders.append(decoder)
        self._bound = bound
        self._left = [bound.most_bytes] * len(self._decoders)
        #: Coded bytes so far.
        self.taken = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield decoded pieces of `data`, the next bytes of the body; empty ones for work done.

        Without codings `data` itself. Raises BadResponse for bytes that are not valid, and
        TooLongResponse beyond the bound.
        """
        self.taken += len(data)
        return self._through(data, 0) if self._decoders else iter((data,))

    def end(self) -> None:
        """Check that the body is complete in each coding. Raises BadResponse if it is not."""
        for decoder in self._decoders:
            decoder.end()

    def _through(self, data: bytes, at: int) -> Iterator[bytes]:
        last = at + 1 == len(self._decoders)
        for piece in self._decoders[at].feed(data):
            self._left[at] -= len(piece)
            if self._left[at] < 0:
                raise TooLongResponse(self._bound.message(self.taken, decoded=True))
            if last or not piece:
                yield piece
            else:
                yield from self._through(piece, at + 1)


class UnkeptBody:
    """A body that is checked against its content codings as it comes, and discarded."""

    __slots__ = ("_bad", "_decoder", "_feeding", "_waiting", "_waiting_bytes")

    def __init__(self, codings: str, bound: ResponseBound = USUAL) -> None:
        """Begin a body with the Content-Encoding `codings`, "" for none.

        Once the body decodes to more than `bound`, the rest is not checked and the body counts as
        right.
        """
        self._bad = False
        self._decoder: BodyDecoder | None = None
        #: Pieces of what is looked at; None if all that has come was.
        self._feeding: Iterator[bytes] | None = None
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        try:
            self._decoder = BodyDecoder(codings, bound)
        except BadResponse:
            self._bad = True

    def append(self, data: bytes) -> None:
        """Take more of the body, and check at most `SLICE` of the bytes that wait.

        If more than 4 MiB wait, the rest of the body is not checked and counts as right.
        """
        if self._decoder is None:
            return
        if self._feeding is None:
            self._feeding = self._decoder.feed(data)
        else:
            self._waiting.append(data)
            self._waiting_bytes += len(data)
        if self._waiting_bytes <= _WAITING:
            self.look()
        else:
            # all of it would cost too much, and so far it was right
            self._look_no_more()

    def look(self) -> bool:
        """Check bytes that wait, at most `SLICE` of work; return whether more remain."""
        work = 0
        try:
            while self._feeding is not None and self._decoder is not None:
                for piece in self._feeding:
                    work += len(piece) or _STEP
                    if work >= SLICE:
                        return True
                self._feeding = None
                if self._waiting:
                    data = self._waiting.pop(0)
                    self._waiting_bytes -= len(data)
                    self._feeding = self._decoder.feed(data)
        except TooLongResponse:
            # as in `append`
            self._look_no_more()
        except BadResponse:
            self._bad = True
            self._look_no_more()
        return False

    def is_false(self) -> bool:
        """Check the rest; return whether the body is cut short or does not match its codings.

        Called when the body has ended. If it was too long to be checked to its end, it is not
        false.
        """
        while self.look():
            pass
        if self._decoder is not None:
            try:
                self._decoder.end()
            except BadResponse:
                self._bad = True
        return self._bad

    def _look_no_more(self) -> None:
        self._decoder = self._feeding = None
        self._waiting.clear()


def decoding(data: bytes, codings: str, bound: ResponseBound) -> Generator[None, None, bytes]:
    """Decode a body, yielding None after each `SLICE` of work; the return value is the content.

    `codings` is the value of Content-Encoding; bytes below an unknown coding stay coded. Raises
    BadResponse for bytes that do not match the codings or are cut short, and TooLongResponse if
    they decode to more than `bound`.
    """
    decoder = BodyDecoder(codings, bound)
    found, work = [], 0
    for piece in decoder.feed(data):
        if piece:
            found.append(piece)
        work += len(piece) or _STEP
        if work >= SLICE:
            yield
            work = 0
    decoder.end()
    return found[0] if len(found) == 1 else b"".join(found)


def decoded_body(data: bytes, codings: str, bound: ResponseBound) -> bytes:
    """Return the decoded body; blocks the thread until it is done.

    Arguments and errors: see `decoding`.
    """
    return at_once(decoding(data, codings, bound))


T = TypeVar("T")


def at_once(slices: Generator[None, None, T]) -> T:
    """Run a generator to its end and return its return value; yielded values are ignored."""
    while True:
        try:
            next(slices)
        except StopIteration as ended:
            found: T = ended.value
            return found


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
    """Decoder of gzip, which may have several members, or of one stream of deflate.

    `bits`: window bits of zlib, which choose the format. Bytes after the last member are ignored.
    """

    def __init__(self, bits: int) -> None:
        self._bits = bits
        self._several = bits > zlib.MAX_WBITS
        #: Of the member that has begun.
        self._inflater = zlib.decompressobj(bits)
        self._begun = False
        self._members = 0
        self._over = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        return self._inflated(data) if len(data) <= _CODED_PIECE else self._in_parts(data)

    def _in_parts(self, data: bytes) -> Iterator[bytes]:
        for begin in range(0, len(data), _CODED_PIECE):
            yield from self._inflated(data[begin : begin + _CODED_PIECE])
            yield b""

    def _inflated(self, data: bytes) -> Iterator[bytes]:
        full = False
        while (data or full) and not self._over:
            self._begun = True
            try:
                piece = self._inflater.decompress(data, _PIECE)
            except zlib.error as error:
                if not self._members:
                    raise BadResponse(f"the body cannot be decoded: {error}") from error
                # bytes after the last member, which gzip passes over
                self._over = True
                return
            if piece:
                yield piece
            # more may be held back, if all of `data` was taken
            full = len(piece) == _PIECE
            data = self._inflater.unconsumed_tail
            if self._inflater.eof:
                data, full = self._inflater.unused_data, False
                self._members += 1
                self._over = not self._several
                self._begun = False
                self._inflater = zlib.decompressobj(self._bits)
                if data:
                    yield b""

    def end(self) -> None:
        if self._begun and not self._over:
            raise BadResponse(_CUT)


class _Deflated:
    """Decoder of deflate, with or without the zlib header, which some servers leave out."""

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
            raise BadResponse(_CUT)


class _Zstd:
    """Decoder of Zstandard, which may have several frames."""

    def __init__(self) -> None:
        self._of = zstandard.ZstdDecompressor(max_window_size=1 << 27)
        self._frame: zstandard.ZstdDecompressionObj | None = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        for at in range(0, len(data), _ZSTD_PIECE):
            if at and at % _CODED_PIECE == 0:
                yield b""
            part = data[at : at + _ZSTD_PIECE]
            while part:
                if self._frame is None:
                    self._frame = self._of.decompressobj()
                try:
                    piece = self._frame.decompress(part)
                except zstandard.ZstdError as error:
                    raise BadResponse(f"the body cannot be decoded: {error}") from error
                if piece:
                    yield piece
                part = b""
                if self._frame.eof:
                    part, self._frame = self._frame.unused_data, None
                    yield b""

    def end(self) -> None:
        if self._frame is not None:
            raise BadResponse(_CUT)


class _Brotli:
    def __init__(self) -> None:
        self._decoder = brotli.Decompressor()
        self._begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        self._begun = True
        try:
            for begin in range(0, len(data), _CODED_PIECE):
                if begin:
                    yield b""
                part = data[begin : begin + _CODED_PIECE]
                piece = self._decoder.process(part, output_buffer_limit=_PIECE)
                while piece:
                    yield piece
                    piece = self._decoder.process(b"", output_buffer_limit=_PIECE)
        except brotli.error as error:
            raise BadResponse(f"the body cannot be decoded: {error}") from error

    def end(self) -> None:
        if self._begun and not self._decoder.is_finished():
            raise BadResponse(_CUT)


_CUT = "the coded body ends too early"
