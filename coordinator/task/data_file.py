"""Reads a CSV data file: row N has the arguments of iteration N, and is sent with its batch."""

from __future__ import annotations

import csv
import errno
import hashlib
import io
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cryptography.fernet import Fernet

from osbench.common.files.named_files import read_named
from osbench.common.plugin.runner import Step, Totals
from osbench.common.protocol import data_rows
from osbench.common.values.intervals import Intervals

#: Largest file, bytes.
LARGEST = 512 * 1024 * 1024
#: Bytes of rows that a batch should carry, if all were as long as the average row.
BATCH_BYTES = 1024 * 1024
#: Most problems of a file that are reported.
MAX_PROBLEMS = 10


class DataFile:
    """A checked CSV file, kept in memory with commas as delimiters; rows count from 1."""

    def __init__(
        self,
        path: Path,
        header: list[str],
        content: bytes,
        offsets: array[int],
        key: bytes | None = None,
    ) -> None:
        """`offsets`: byte offset of each row in `content`, and the end of the last row.

        `key` (a Fernet key) encrypts the rows in batches; None: a new one is made.
        """
        self.path = path
        self.name = path.name
        self.header = header
        self._content = content
        #: Byte offset of each row in the content, and the end of the last row.
        self._offsets = offsets
        #: Encrypts the rows of this run's batches.
        self.key = key or Fernet.generate_key()

    def __len__(self) -> int:
        return len(self._offsets) - 1

    @property
    def digest(self) -> str:
        """SHA-256, in hex, of the content with commas as delimiters and without byte order mark."""
        return hashlib.sha256(self._content).hexdigest()

    @property
    def arguments(self) -> list[str]:
        """Names of the arguments that the columns set, in order."""
        return data_rows.names(self.header)

    @property
    def first(self) -> dict[str, Any]:
        """Arguments of the first row, by name."""
        text = self._content[self._offsets[0] : self._offsets[1]].decode("utf-8")
        return next(data_rows.RowReader(self.header).read(text))

    @property
    def size(self) -> int:
        """Size of all rows in bytes, without the header."""
        return self._offsets[-1] - self._offsets[0]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Return an iterator over the rows in order; each is a mapping of arguments by name."""
        text = self._content[self._offsets[0] : self._offsets[-1]].decode("utf-8")
        return data_rows.RowReader(self.header).read(text)

    @property
    def batch_limit(self) -> int:
        """Most rows that a batch should carry: about `BATCH_BYTES` bytes, at least one row."""
        return max(1, BATCH_BYTES * len(self) // max(1, self.size))

    def encrypt(self, numbers: Intervals, ranks: Sequence[int] = ()) -> bytes:
        """Return the rows of the iterations `numbers`, compressed and encrypted for a batch.

        `ranks` are ignored. Each number must have a row.
        """
        at = self._offsets
        pieces = (self._content[at[low - 1] : at[high - 1]] for low, high in numbers)
        return data_rows.encrypt(b"".join(pieces), self.key)

    def within(self, step: Step, totals: Totals) -> Step:
        """Return a copy of a runner's step, limited to iterations that have a row.

        Budget and arrivals are cut; the load is done also if every row is settled. `totals`:
        iterations given out and settled so far.
        """
        rows = len(self)
        return replace(
            step,
            budget=rows if step.budget is None else min(step.budget, rows),
            arrivals=step.arrivals[: max(0, rows - totals.allotted)],
            done=step.done or totals.settled >= rows,
        )


def read_data_file(path: Path, key: bytes | None = None) -> tuple[DataFile | None, list[str]]:
    """Read and check a CSV file; return (file, []) or (None, at most `MAX_PROBLEMS` problems).

    A file that cannot be read is a problem, too. `key` (a Fernet key) encrypts the rows in batches;
    None: a new one is made.
    """
    try:
        content = read_named(path, LARGEST)
    except OSError as error:
        reason = "" if error.errno == errno.EFBIG else "cannot be read: "
        return None, [f"{path} {reason}{error.strerror}"]
    scan = _Scan(content.removeprefix(b"\xef\xbb\xbf"))
    problems = [f"{path}, {problem}" for problem in scan.problems]
    if problems:
        return None, problems
    return DataFile(path, scan.header, scan.content, scan.offsets, key), []


class _Scan:
    """Scans a CSV file once: finds the offsets of its rows, and up to `MAX_PROBLEMS` problems.

    Another delimiter is replaced by commas in `content` first.
    """

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.header: list[str] = []
        self.offsets = array("q")
        self.problems: list[str] = []
        self._position = self._line = 0
        try:
            self._scan()
        except (csv.Error, ValueError) as error:
            self.problems.append(f"line {self._line}: {_reason(error)}")

    def _scan(self) -> None:
        delimiter = _delimiter(self.content)
        if delimiter != ",":
            self.content = self._with_commas(delimiter)
            self._position = self._line = 0
        rows = data_rows.records(self._lines())
        self.header = next((cells for cells in rows if cells), [])
        self.offsets.append(self._position)
        if fault := _header_fault(data_rows.names(self.header)):
            raise ValueError(fault)
        reader = data_rows.RowReader(self.header)
        for cells in rows:
            if cells:
                try:
                    reader.arguments(cells)
                except ValueError as error:
                    self.problems.append(f"line {self._line}: {error}")
                self.offsets.append(self._position)
            if len(self.problems) >= MAX_PROBLEMS:
                return
        if len(self.offsets) < 2:
            raise ValueError("no row found: give a header and at least one row")

    def _with_commas(self, delimiter: str) -> bytes:
        """Return the content with commas as delimiters; each row keeps its line number.

        Raises csv.Error and UnicodeDecodeError.
        """
        found = io.StringIO()
        writer = csv.writer(found, lineterminator="\n")
        reader = csv.reader(self._lines(), delimiter=delimiter, strict=True)
        for cells in reader:
            writer.writerow(cells)
        return found.getvalue().encode("utf-8")

    def _lines(self) -> Iterator[str]:
        # the reader takes a line only when it needs it: what was taken ends where its row ends
        for line in io.BytesIO(self.content):
            self._line += 1
            self._position += len(line)
            yield line.decode("utf-8")


#: Delimiters that are recognized, the usual first; names of arguments contain none of them.
_DELIMITERS = ",;\t|"


def _delimiter(content: bytes) -> str:
    """Return the delimiter of the first line that is not blank: a comma, semicolon, tab or bar.

    Excel writes semicolons in much of Europe. A comma if the line has none.
    """
    header = next((line for line in io.BytesIO(content) if line.strip()), b"")
    text = header.decode("utf-8", "replace")
    return next((one for one in _DELIMITERS if one in text), ",")


def _header_fault(names: list[str]) -> str:
    if "" in names:
        at = names.index("") + 1
        last = " (is there a delimiter at the end of the line?)" if at == len(names) else ""
        return f"column {at} has no name{last}: the header must name each argument once"
    twice = [name for name in names if names.count(name) > 1]
    return f"{twice[0]} is there twice: the header must name each argument once" if twice else ""


def _reason(error: Exception) -> str:
    """Return a message on an error of reading CSV, with the remedy if it is known."""
    if isinstance(error, UnicodeError):
        return "is not text in UTF-8: save it as UTF-8, in Excel as `CSV UTF-8`"
    said = str(error)
    if "new-line character" in said:
        return "a line ends with CR alone: save the file with line ends LF or CRLF"
    if "field limit" in said:
        return (
            f"a cell has more than {csv.field_size_limit():,} characters; is a quote before it not"
            " closed?"
        )
    return said
