"""Notes a process's output and log records in its log book; passes them on without secrets."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable
from typing import Any, TextIO, cast

from osbench.common.config.logs import SafeFormatter
from osbench.common.ports import threads as threading
from osbench.worker.session.log_book import ENTRY_CHARS, LogBook

#: Records of these loggers are shown without the logger's name.
_OURS = "osbench"


def capture(book: LogBook) -> None:
    """Note output on stdout and stderr from now on, and log records of the level that is set.

    Bytes that are written to the file descriptors past Python, as by a command that a scenario
    starts, are not captured.
    """
    root = logging.getLogger()
    for handler in root.handlers:
        if isinstance(handler.formatter, SafeFormatter):
            handler.formatter.masked = book.masked
    root.addHandler(_BookHandler(book))
    sys.stdout = cast(TextIO, CapturedStream(sys.stdout, "stdout", book))
    sys.stderr = cast(TextIO, CapturedStream(sys.stderr, "stderr", book))


class CapturedStream:
    """A text stream whose lines are noted, too; all but `write` is passed to the stream."""

    def __init__(self, stream: TextIO, name: str, book: LogBook) -> None:
        self._stream = stream
        self._name = name
        self._book = book
        #: By thread: the beginning of a line.
        self._begun: dict[int, str] = {}

    def write(self, text: str) -> int:
        """Write to the stream without secrets, and note the lines that are whole now."""
        self._stream.write(self._book.masked(text))
        thread = threading.get_ident()
        *lines, rest = (self._begun.pop(thread, "") + text).split("\n")
        if len(rest) > ENTRY_CHARS:
            lines.append(rest)
            rest = ""
        if rest:
            self._begun[thread] = rest
        for line in lines:
            self._book.add(self._name, line)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each of some texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _BookHandler(logging.Handler):
    """Notes log records with their tracebacks."""

    def __init__(self, book: LogBook) -> None:
        super().__init__()
        self._book = book

    def emit(self, record: logging.LogRecord) -> None:
        """Note a record."""
        try:
            text = self.format(record)
        except Exception:  # noqa: BLE001 - arguments that do not fit the message, as in logging
            self.handleError(record)
            return
        ours = record.name.partition(".")[0] == _OURS
        self._book.add(record.levelname, text if ours else f"{record.name}: {text}")
