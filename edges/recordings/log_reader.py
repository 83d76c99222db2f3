"""Reads an access log, plain or gzip, in blocks of complete lines and in bounded memory."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, cast

from osbench.common.errors import UsageError
from osbench.common.files.regular_files import open_regular
from osbench.edges.recordings.log_formats import (
    LogFormat,
    LogLines,
    formats,
    written_lines,
)

_BLOCK = 1 << 20
#: A longer line is not one of an access log; its parts are read as lines.
_LONGEST = 1 << 20
_GZIP = b"\x1f\x8b"
#: Bytes, unpacked, in which some line has to be readable, and in which each has to end: a file may
#: unpack to a thousand times its size.
_PATIENCE = 64 << 20


#: Takes bytes read of the file, its size, and lines read.
Progress = Callable[[int, int, int], None]


class LogReader:
    """Reads one access log; counts lines, unreadable lines and requests with a query."""

    def __init__(
        self, path: Path, fields: Mapping[str, str], progress: Progress | None = None
    ) -> None:
        """`path`: the log, plain or gzip. `fields`: by key of `FIELDS`, the JSON field to read
        instead of the usual fields; {} for none. `progress` is called after each block.
        """
        self.path = path
        self.form = ""
        self.compressed = False
        self.lines = 0
        self.unreadable = 0
        #: Number of the first line that could not be read, from 1; 0 for none.
        self.first_unreadable = 0
        self.queries = 0
        self._fields = fields
        self._progress = progress

    def read(self) -> Iterator[LogLines]:
        """Yield the requests of each block of lines, and update the counts.

        The format is chosen by the first block of which some line can be read; earlier lines count
        as unreadable. At the end sets `form`. Raises UsageError if the file cannot be read, is
        damaged, has no line in a known format in its first 64 MiB, or a line of more than 64 MiB.
        """
        form: LogFormat | None = None
        unknown = 0
        for block in self._blocks():
            if form is None:
                form = self._form(block)
            if form is None:
                self._note(block, written_lines(block))
                unknown += len(block)
                if unknown > _PATIENCE:
                    break
                continue
            found = form.read(block)
            self._note(block, found.unreadable)
            self.queries += found.queries
            yield found
        if form is None:
            raise UsageError(self._unknown())
        self.form = form.NAME

    def _form(self, block: bytes) -> LogFormat | None:
        """Return the format that can read the most lines of a block; None if none can read any.

        Only about the first 64 KiB of the block are tried, unless no line of them can be read.
        """
        # formats keep what they have read: a sample is enough to choose
        end = block.find(b"\n", 64 << 10) + 1 or len(block)
        for sample in (block[:end], block[end:]):
            found = [(len(one.read(sample).requests), one) for one in formats(self._fields)]
            most = max(count for count, _ in found)
            if most:
                return next(one for count, one in found if count == most)
        return None

    def _note(self, block: bytes, unreadable: list[int]) -> None:
        if unreadable and not self.unreadable:
            self.first_unreadable = self.lines + unreadable[0] + 1
        self.unreadable += len(unreadable)
        self.lines += block.count(b"\n")

    def _unknown(self) -> str:
        if not self.lines:
            return f"{self.path} is empty"
        if self._fields:
            return (
                f"{self.path}: no line is JSON with a time, a method and a path (line"
                f" {self.first_unreadable} is the first): look at --log-field"
            )
        return (
            f"{self.path} is not an access log: no line (line {self.first_unreadable} is the "
            "first) is"
            " in the combined format of nginx and Apache, of HAProxy's httplog, or JSON with time,"
            " method and path; name other fields with --log-field"
        )

    def _blocks(self) -> Iterator[bytes]:
        """Yield blocks of complete lines, each line with its newline, and set `compressed`.

        A gzip file is decompressed. Raises UsageError if the file cannot be read or is damaged.
        """
        try:
            with open_regular(self.path) as file:
                self.compressed = file.read(2) == _GZIP
                file.seek(0)
                size = os.fstat(file.fileno()).st_size
                opened = gzip.GzipFile(fileobj=file) if self.compressed else file
                for block in _lines(cast("BinaryIO", opened)):
                    yield block
                    if self._progress is not None:
                        self._progress(file.tell(), size, self.lines)
        except _EndlessLine:
            raise UsageError(
                f"{self.path}: a line after line {self.lines} is longer than {_PATIENCE >> 20} MiB;"
                " give an access log"
            ) from None
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise UsageError(
                f"{self.path} is damaged after line {self.lines}, as gzip: {error}; give a "
                "complete file"
            ) from None
        except OSError as error:
            said = error.strerror or error
            raise UsageError(
                f"cannot read {self.path}: {said}; give a file that can be read"
            ) from None


class _EndlessLine(Exception):
    """A line is longer than `_PATIENCE`."""


def _lines(file: BinaryIO) -> Iterator[bytes]:
    left, cut = b"", 0
    while piece := file.read(_BLOCK):
        end = piece.rfind(b"\n") + 1
        if end:
            yield left + piece[:end]
            left, cut = piece[end:], 0
        else:
            left += piece
        if len(left) > _LONGEST:
            cut += len(left)
            if cut > _PATIENCE:
                raise _EndlessLine
            yield left + b"\n"
            left = b""
    if left:
        yield left + b"\n"
