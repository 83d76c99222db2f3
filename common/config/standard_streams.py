"""Standard streams that are closed, full or not UTF-8, handled without a traceback."""

# ruff: noqa: RUF001 - a table of characters

from __future__ import annotations

import codecs
import io
import os
import sys
from typing import Any, TextIO

from osbench.common.errors import OutputError

#: Name of the error handler for characters that the encoding of a stream lacks.
_SIMILAR = "osbench.similar"
#: Error handlers of stdout unless PYTHONIOENCODING names another one.
_DEFAULT_HANDLERS = ("strict", "surrogateescape")
_ASCII = str.maketrans(
    {
        **dict.fromkeys("✓✅", "+"),
        **dict.fromkeys("✕✗❌", "x"),
        **dict.fromkeys("“”„", '"'),
        **dict.fromkeys("‘’", "'"),
        **dict.fromkeys("–—", "-"),
        **dict(zip("▁▂▃▄▅▆▇█", "_.,-=+*#", strict=True)),
        "·": ".",
        "→": "->",
        "▸": ">",
        "≤": "<=",
        "≥": ">=",
        "±": "+-",
        "×": "x",
        "µ": "u",
        "⚠": "!",
        "ß": "ss",
    }
)


def _similar(error: UnicodeError) -> tuple[str, int]:
    """Return similar ASCII, or "?", for characters of an encoding error, and the index behind."""
    assert isinstance(error, UnicodeEncodeError)
    # needed for other encodings only
    import unicodedata  # noqa: PLC0415 - see above

    text = error.object[error.start : error.end].translate(_ASCII)
    letters = (unicodedata.normalize("NFKD", one).encode("ascii", "ignore") for one in text)
    return "".join(one.decode() or "?" for one in letters), error.end


class _Output(io.FileIO):
    """Replacement of stdout that names the remedy if a write fails."""

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
        try:
            return super().write(data)
        except OSError:
            return len(data)


def secure_standard_streams() -> None:
    """Open closed standard streams on /dev/null; replace stdout by _Output and stderr by _Dropping.

    Otherwise the next file or connection would get the descriptor of a closed stream. Characters
    that their encodings lack become similar ones. Streams that other code has replaced stay.
    """
    codecs.register_error(_SIMILAR, _similar)
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
    """Return a text stream over `raw` with the encoding of `before`, or UTF-8 if that is None.

    Characters that the encoding lacks become similar ones, unless the user has set another error
    handler for stdout. `each_line`: it is stderr, whose lines are flushed at once.
    """
    handler = (before.errors if before is not None else None) or "strict"
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=before.encoding if before is not None else "utf-8",
        errors=_SIMILAR if each_line or handler in _DEFAULT_HANDLERS else handler,
        line_buffering=each_line or raw.isatty(),
    )
