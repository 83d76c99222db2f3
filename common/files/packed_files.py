"""Opens compressed tar archives whose files have known sizes."""

from __future__ import annotations

import tarfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

import zstandard

#: Bytes of a tar archive in addition to its files: headers, and the zeros at its end.
_OVERHEAD, _BLOCK = 64 << 10, 512


class _BoundedReader:
    """A reader of a decompressed stream that raises ValueError beyond `limit` bytes."""

    def __init__(self, file: Any, limit: int, whole: str) -> None:
        self._file = file
        self._left = limit
        self._whole = whole

    def read(self, size: int) -> bytes:
        data: bytes = self._file.read(min(size, self._left + 1))
        self._left -= len(data)
        if self._left < 0:
            raise ValueError(f"it has more bytes than {self._whole}")
        return data


@contextmanager
def packed_files(source: BinaryIO, sizes: Iterable[int], whole: str) -> Iterator[tarfile.TarFile]:
    """Open a compressed tar archive, to be read in order; close it after the block.

    `sizes`: bytes of the files that it may have. Reading raises ValueError if it has more, with
    `whole`, the name of these files, in the message; and TarError, ZstdError or EOFError if it is
    damaged. `source` stays open.
    """
    limit = _OVERHEAD + sum(-(-size // _BLOCK) * _BLOCK for size in sizes)
    with (
        zstandard.ZstdDecompressor().stream_reader(source, closefd=False) as reader,
        tarfile.open(fileobj=cast(Any, _BoundedReader(reader, limit, whole)), mode="r|") as tar,
    ):
        yield tar
