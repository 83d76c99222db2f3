"""Trace points in a log, one per line, in Mistral's format.

    <time> <seconds, or blank> <trace> <parent> <span> <name>-start|-stop [<- !!!] [{JSON}]

Trace, parent and span are UUIDs; the second column of a stop is the duration of the span. Lines
are recognized by their three ids and the end of the name, not by the width of columns: 1,000 s
and more take another digit. Seconds are in Python's notation: less than 0.1 ms is `8.6e-05`, and
if the clock was set back they are negative.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from osbench.common.errors import UsageError
from osbench.common.files.foreign_json import read_json
from osbench.common.files.regular_files import open_regular
from osbench.edges.traces.model.spans import LATEST_S, Trace, trace_key
from osbench.edges.traces.sources.pairing import SpanEvent, instant_us, pair, split_name

#: Most characters of a line that are read at once.
LINE_CHARS = 1 << 20

_ID = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
_LINE = re.compile(
    r"(?P<at>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?)\s+"
    r"(?:(?P<seconds>-?\d+(?:\.\d+)?(?:e-?\d+)?)\s+)?"
    rf"(?P<trace>{_ID})\s+(?P<parent>{_ID})\s+(?P<span>{_ID})\s+"
    r"(?P<name>\S+-(?:start|stop))(?:\s+<- !!!)?(?:\s+(?P<db>\{.*\}))?\s*\Z"
)


def lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file; a line longer than `LINE_CHARS` characters comes in parts.

    Bytes that are not UTF-8 are replaced. Raises OSError.
    """
    with (
        open_regular(path) as binary,
        io.TextIOWrapper(binary, encoding="utf-8-sig", errors="replace") as file,
    ):
        while line := file.readline(LINE_CHARS):
            yield line


def is_trace_point(line: str) -> bool:
    """Return whether a line is a trace point in Mistral's format."""
    return bool(_LINE.match(line))


class MistralLog:
    """Traces in a log file of Mistral's trace points; each `all` or `read` reads the file anew."""

    def __init__(self, path: Path, *, everything: bool = False) -> None:
        """Prepare reading the log at `path`; nothing is read yet.

        `everything` keeps statements and parameters as logged.
        """
        self._path = path
        self._everything = everything
        #: Lines that are not trace points.
        self.skipped = 0

    def all(self) -> Iterator[Trace]:
        """Yield every trace of the log, after reading it; count other lines in `skipped`.

        Raises UsageError if the file cannot be read.
        """
        return self._pair(lambda _: True)

    def read(self, wanted: Collection[str]) -> Iterator[Trace]:
        """Yield the traces with these ids (keys as `trace_key` makes them), after reading the log.

        Counts lines that are not trace points in `skipped`. Raises UsageError if the file cannot be
        read.
        """
        ids = frozenset(wanted)
        return self._pair(lambda trace: trace_key(trace) in ids)

    def _pair(self, is_wanted: Callable[[str], bool]) -> Iterator[Trace]:
        yield from pair(self._events(is_wanted), everything=self._everything).values()

    def _events(self, is_wanted: Callable[[str], bool]) -> Iterator[SpanEvent]:
        try:
            for line in lines(self._path):
                found = _LINE.match(line)
                if found is not None and not is_wanted(found["trace"]):
                    continue
                event = _event(found) if found is not None else None
                if event is not None:
                    yield event
                else:
                    self.skipped += bool(line.strip())
        except OSError as error:
            raise UsageError(
                f"cannot read {self._path}: {error.strerror}; give a file that can be read"
            ) from None


def _event(found: re.Match[str]) -> SpanEvent | None:
    """Return the start or stop of a span in a matched line; None if a time is invalid."""
    name, is_stop = split_name(found["name"])
    seconds = float(found["seconds"] or 0.0)
    try:
        at_us = instant_us(found["at"])
    except ValueError:
        return None
    if abs(seconds) > LATEST_S:
        return None
    return SpanEvent(
        found["trace"],
        found["span"],
        found["parent"],
        name,
        is_stop,
        at_us,
        "",
        "",
        {"db": _object(found["db"])} if found["db"] else {},
        round(seconds * 1e9) if is_stop and found["seconds"] else None,
    )


def _object(text: str) -> Any:
    try:
        return read_json(text)
    except ValueError:
        return {}
