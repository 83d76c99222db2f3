"""Rows of a data file as arguments, and as encrypted sections that batches carry.

A header names an argument for each column. Cells are text; in a column whose name ends in `:json`
they are JSON. A batch carries its rows as a section of the file, compressed and encrypted, because
they may contain passwords.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import zstandard
from cryptography.fernet import Fernet, InvalidToken

from osbench.common.errors import Untrusted
from osbench.common.files.decompression import decompress

#: Most bytes of a section.
SECTION = 256 << 20

#: Ends the name of a column whose cells are JSON.
JSON = ":json"


def names(header: Sequence[str]) -> list[str]:
    """Return the argument names that a header's columns set, in order, without `:json`."""
    return [column.strip().removesuffix(JSON) for column in header]


def records(lines: Iterable[str]) -> Iterator[list[str]]:
    """Return an iterator over CSV rows, header included, each a list of cells; [] for a blank line.

    It raises csv.Error at malformed CSV.
    """
    return csv.reader(lines, strict=True)


class RowReader:
    """Converts rows of one data file to keyword arguments of iterations, by the file's header."""

    def __init__(self, header: Sequence[str]) -> None:
        self._names = names(header)
        self._json = [at for at, column in enumerate(header) if column.strip().endswith(JSON)]

    def arguments(self, cells: Sequence[str]) -> dict[str, Any]:
        """Return the arguments of one row by name; cells of columns `:json` are decoded.

        Raises ValueError if the number of cells differs from the header's, or for malformed JSON.
        """
        if len(cells) != len(self._names):
            raise ValueError(
                f"has {len(cells)} cells, the header has {len(self._names)}; write a cell for each "
                "name"
            )
        found: dict[str, Any] = dict(zip(self._names, cells, strict=True))
        for at in self._json:
            try:
                found[self._names[at]] = json.loads(cells[at], parse_constant=_refuse)
            except ValueError as error:
                raise ValueError(
                    f"column {self._names[at]} is not JSON: {error}; write JSON, with text in "
                    "double quotes"
                ) from None
        return found

    def read(self, text: str) -> Iterator[dict[str, Any]]:
        """Yield the arguments of each row of CSV text without a header; blank lines are skipped.

        Raises ValueError as `arguments` does, csv.Error for malformed CSV.
        """
        for cells in records(io.StringIO(text, newline="")):
            if cells:
                yield self.arguments(cells)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a number in JSON; write a number, or null")


def encrypt(section: bytes, key: bytes) -> bytes:
    """Compress and encrypt a section (CSV rows in UTF-8) with a Fernet key; return the token."""
    return Fernet(key).encrypt(zstandard.ZstdCompressor(level=1).compress(section))


def decrypt(token: bytes, key: bytes) -> str:
    """Decrypt and decompress a token of `encrypt`; return the CSV text.

    Raises Untrusted if it was not encrypted with `key`, is damaged, decompresses to more than
    `SECTION` bytes, or is not UTF-8.
    """
    try:
        packed = Fernet(key).decrypt(token)
    except (InvalidToken, TypeError, ValueError):
        raise Untrusted("rows that cannot be decrypted with the workload's key") from None
    try:
        return decompress(packed, SECTION).decode("utf-8")
    except ValueError:
        raise Untrusted("rows that are not a section of a data file") from None
