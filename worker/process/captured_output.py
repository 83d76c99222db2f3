"""Notes a process's output and log records in the log book, which goes into run results.

Output and logs are passed on with secrets masked.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable
from typing import Any, TextIO, cast

from osbench.common.config.logs import SafeFormatter
from osbench.worker.session.log_book import LogBook

#: Records of these loggers are shown without the logger's name.
_OURS = "osbench"


def capture(book: LogBook) -> None:
    """Note output on stdout and stderr, and log records, in `book` from now on.

    Replaces sys.stdout and sys.stderr, adds a handler to the root logger, and masks secrets in
    its existing handlers with osbench's formatter. Bytes that are written to the file descriptors
    past Python, as by a command that a scenario starts, are not captured.
    """
    root = logging.getLogger()
    for handler in root.handlers:
        if isinstance(handler.formatter, SafeFormatter):
            handler.formatter.masked = book.masked
    root.addHandler(_BookHandler(book))
    sys.stdout = cast(TextIO, CapturedStream(sys.stdout, "stdout", book))
    sys.stderr = cast(TextIO, CapturedStream(sys.stderr, "stderr", book))


class CapturedStream:
    """A text stream that writes to `stream` with secrets masked, and notes lines in the log.

    All other methods are the stream's.
    """

    def __init__(self, stream: TextIO, name: str, book: LogBook) -> None:
        self._stream = stream
        self._name = name
        self._book = book

    def write(self, text: str) -> int:
        """Write `text` to the stream with secrets masked, note its lines; return its length."""
        self._stream.write(self._book.write(self._name, text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each text of `lines` by `write`."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _BookHandler(logging.Handler):
    """A logging handler that notes records, with tracebacks, in the log book."""

    def __init__(self, book: LogBook) -> None:
        super().__init__()
        self._book = book

    def emit(self, record: logging.LogRecord) -> None:
        """Note a record; logging's own error handling gets a record that cannot be formatted."""
        try:
            text = self.format(record)
        except Exception:  # noqa: BLE001 - arguments that do not fit the message, as in logging
            self.handleError(record)
            return
        ours = record.name.partition(".")[0] == _OURS
        self._book.add(record.levelname, text if ours else f"{record.name}: {text}")
