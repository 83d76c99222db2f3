"""Standard streams that are closed or cannot be written to, handled without a traceback."""

from __future__ import annotations

import io
import os
import sys
from typing import Any, TextIO

from osbench.common.errors import OutputError


class _Output(io.FileIO):
    """Replacement of stdout that raises OutputError if a write fails.

    If the reader of a pipe has gone, it raises BrokenPipeError.
    """

    def write(self, data: Any, /) -> int:
        """Write bytes and return the number written.

        Raises BrokenPipeError if the reader of a pipe has gone, OutputError for other errors.
        """
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(
                f"cannot write to standard output: {error.strerror}; free space on its disk, or "
                "write it elsewhere"
            ) from None


class _Dropping(io.FileIO):
    """Replacement of stderr that drops bytes that cannot be written, without an error."""

    def write(self, data: Any, /) -> int:
        """Write bytes and return their number; if that fails, drop them and return their number."""
        try:
            return super().write(data)
        except OSError:
            return len(data)


def secure_standard_streams() -> None:
    """Open closed standard streams on /dev/null; replace stdout and stderr by the classes above.

    Otherwise the next file or connection would get the descriptor of a closed stream. Streams that
    other code has replaced stay.
    """
    for number, flags in ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            # takes the lowest number that is free
            os.open(os.devnull, flags)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - a descriptor
    # not streams that other code has put in their place
    if sys.stdout is sys.__stdout__:
        sys.stdout = _stream(_Output(1, "w", closefd=False), sys.stdout)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _stream(_Dropping(2, "w", closefd=False), sys.stderr, each_line=True)


def _stream(raw: io.FileIO, before: TextIO | None, *, each_line: bool = False) -> TextIO:
    """Return a text stream over `raw` with the encoding and error handler of the stream `before`.

    If that is None: UTF-8 and backslashreplace. Lines are flushed at once for a terminal, or if
    `each_line` is true.
    """
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=before.encoding if before is not None else "utf-8",
        errors=(before.errors if before is not None else "") or "backslashreplace",
        line_buffering=each_line or raw.isatty(),
    )
