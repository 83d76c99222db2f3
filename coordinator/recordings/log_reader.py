"""Reads an access log, plain or gzip, in blocks of complete lines and in bounded memory."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, cast

from osbench.common.errors import UsageError
from osbench.common.regular_files import open_regular
from osbench.coordinator.recordings.log_formats import (
    LogFormat,
    LogLines,
    formats,
    written_lines,
)

_BLOCK = 1 << 20
#: A longer line is not one of an access log; its parts are read as lines.
_LONGEST = 1 << 20
_GZIP = b"\x1f\x8b"


class LogReader:
    """Reads the lines of one access log, and counts lines, unreadable lines and requests with a
    query.
    """

    def __init__(self, path: Path, fields: Mapping[str, str]) -> None:
        """`path`: the log, plain or gzip. `fields`: by key of `FIELDS`, the JSON field to read
        instead of the usual fields; {} for none.
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

    def read(self) -> Iterator[LogLines]:
        """Yield the requests of each block of lines, and update the counts.

        The format is chosen by the first block of which some line can be read; earlier lines count
        as unreadable. At the end sets `form`. Raises UsageError if the file cannot be read, is
        damaged, or has no line in a known format.
        """
        form: LogFormat | None = None
        for block in self._blocks():
            if form is None:
                form = self._form(block)
            if form is None:
                self._note(block, written_lines(block))
                continue
            found = form.read(block)
            self._note(block, found.unreadable)
            self.queries += found.queries
            yield found
        if form is None:
            raise UsageError(self._unknown())
        self.form = form.NAME

    def _form(self, block: bytes) -> LogFormat | None:
        """Return the format that can read the most lines of a block; None if no format can read
        any.

        Only about the first 64 KiB of the block are tried.
        """
        # formats keep what they have read: a sample is enough to choose
        end = block.find(b"\n", 64 << 10) + 1 or len(block)
        found = [(len(one.read(block[:end]).requests), one) for one in formats(self._fields)]
        most = max(count for count, _ in found)
        return next(one for count, one in found if count == most) if most else None

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
                opened = gzip.GzipFile(fileobj=file) if self.compressed else file
                yield from _lines(cast("BinaryIO", opened))
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


def _lines(file: BinaryIO) -> Iterator[bytes]:
    left = b""
    while piece := file.read(_BLOCK):
        end = piece.rfind(b"\n") + 1
        if end:
            yield left + piece[:end]
            left = piece[end:]
        else:
            left += piece
        if len(left) > _LONGEST:
            yield left + b"\n"
            left = b""
    if left:
        yield left + b"\n"
