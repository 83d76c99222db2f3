"""The log of a run's coordinator in the run directory, with its private workers' output.

A bounded file of JSON lines in addition to stderr: for users who watch the run from elsewhere.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from osbench.common.config.logs import SafeFormatter
from osbench.common.files.foreign_json import read_json
from osbench.common.files.regular_files import open_regular
from osbench.common.ports import clock as time
from osbench.common.ports import threads as threading
from osbench.common.secrets.masking import mask_text
from osbench.common.text.escaping import escaped
from osbench.coordinator.results.storage.run_directory import RunDirectory

#: File of the run directory.
LOG = "log"
#: Levels, the least first.
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
#: Largest file, bytes; the older half of a larger one is dropped.
MOST_BYTES = 256 << 10
#: Between two writes, seconds.
WRITE_S = 0.5
#: Lines that wait to be written, and letters of one.
_WAITING = 1000
_LETTERS = 2000
#: Bytes of the workers' file that are read at once; what is more is left out.
_AT_ONCE = 64 << 10
#: Longest wait for the end of the thread, seconds.
_JOIN_S = 5.0
#: A line of a worker process, as `logs.begin` writes it.
_LINE = re.compile(
    r"(?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d{3} (?P<pid>\d+) "
    r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<text>.*)"
)
#: Words of lines that are not by logging, and grave.
_GRAVE = re.compile(r"(?i)error|warning|exception|traceback|fatal|kill|abort|memory")
COORDINATOR = "coordinator"


@dataclass(frozen=True, kw_only=True)
class LogLine:
    """A line of the log of a run: a log record, a message to the user, or worker output."""

    #: Wall clock, seconds since 1970-01-01 UTC.
    at: float
    #: One of `LEVELS`.
    level: str
    #: `coordinator`, or a process of its workers.
    source: str
    #: Without secrets, escaped; a traceback has several lines.
    text: str


class RunLog(logging.Handler):
    """A logging handler that writes records and messages of a run to the file `log`, in a thread.

    Active inside its `with` block, for all loggers. Its failures never end the run.
    """

    def __init__(self, directory: RunDirectory) -> None:
        """`directory` may be made later: up to `_WAITING` lines wait for it."""
        super().__init__()
        self.setFormatter(SafeFormatter("%(message)s"))
        self._directory = directory.path
        self._waiting: deque[LogLine] = deque(maxlen=_WAITING)
        self._followed: FollowedFile | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._write_on, name="log", daemon=True)

    def __enter__(self) -> Self:
        logging.getLogger().addHandler(self)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        logging.getLogger().removeHandler(self)
        self._over.set()
        self._thread.join(_JOIN_S)

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a log record for the file; does not wait for the disk.

        If `_WAITING` lines wait already, the oldest is dropped.
        """
        try:
            self._keep(record.created, _level(record.levelno), self.format(record))
        except Exception:  # noqa: BLE001 - as all handlers do: the call may be wrong
            self.handleError(record)

    def say(self, sentence: str) -> None:
        """Queue a message to the user for the file, as level INFO and with secrets masked."""
        self._keep(time.time(), "INFO", escaped(mask_text(sentence), breaks=True))

    def follow(self, path: Path | None) -> None:
        """Copy also the lines of the workers' log file `path`, from its beginning, as they come.

        The thread does that until the end of the `with` block. None: there is no such file.
        """
        self._followed = FollowedFile(path) if path is not None else None

    def _keep(self, at: float, level: str, text: str) -> None:
        line = LogLine(at=at, level=level, source=COORDINATOR, text=text[:_LETTERS])
        self._waiting.append(line)

    def _write_on(self) -> None:
        while not self._over.wait(WRITE_S):
            self._write()
        self._write()

    def _write(self) -> None:
        if not self._directory.is_dir():
            return
        lines = [self._waiting.popleft() for _ in range(len(self._waiting))]
        if self._followed is not None:
            lines += self._followed.fresh()
        # a log must not end a run, and must not log itself
        with contextlib.suppress(OSError):
            _append(self._directory / LOG, lines)


class FollowedFile:
    """Reads lines as they are appended to the log file of a run's private worker processes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._rest = b""

    def fresh(self) -> list[LogLine]:
        """Return the lines since the last call; beyond `_AT_ONCE` bytes the oldest are left out.

        Then a first line says how many bytes were left out. An incomplete last line waits for the
        next call; blank lines are left out. [] if the file cannot be read.
        """
        left_out = 0
        try:
            with open_regular(self._path) as file:
                size = os.fstat(file.fileno()).st_size
                if size - self._offset > _AT_ONCE:
                    left_out = size - _AT_ONCE - self._offset
                    self._offset, self._rest = size - _AT_ONCE, b""
                file.seek(self._offset)
                content = file.read(_AT_ONCE)
        except OSError:
            return []
        self._offset += len(content)
        *whole, self._rest = (self._rest + content).split(b"\n")
        # no line without an end grows for ever
        self._rest = self._rest[-_AT_ONCE:]
        found = [_of_worker(line.decode("utf-8", "replace")) for line in whole if line.strip()]
        if left_out:
            text = f"{left_out:,} bytes of the workers' log are left out here"
            found.insert(0, LogLine(at=time.time(), level="WARNING", source="workers", text=text))
        return found


def _of_worker(line: str) -> LogLine:
    """Parse a line of the workers' log.

    A line in another format than logging has the present time, and level WARNING if its words are
    grave, else INFO.
    """
    text, at, source = line, time.time(), "workers"
    level = "WARNING" if _GRAVE.search(line) else "INFO"
    match = _LINE.match(line)
    if match is not None:
        with contextlib.suppress(ValueError, OverflowError):
            at = datetime.fromisoformat(match["at"]).astimezone().timestamp()
        level, source = _level(getattr(logging, match["level"])), f"worker {match['pid']}"
        text = match["text"]
    return LogLine(
        at=at, level=level, source=source, text=escaped(mask_text(text), breaks=True)[:_LETTERS]
    )


def _level(number: int) -> str:
    """CRITICAL counts as ERROR, levels below DEBUG as DEBUG."""
    return LEVELS[min(max(number // 10 - 1, 0), len(LEVELS) - 1)]


def _append(path: Path, lines: Sequence[LogLine]) -> None:
    """Append lines, and drop the older half of a log above `MOST_BYTES`. Raises OSError."""
    if not lines:
        return
    content = b"".join(json.dumps(asdict(line)).encode() + b"\n" for line in lines)
    with path.open("ab") as file:
        file.write(content)
        size = file.tell()
    if size > MOST_BYTES:
        kept = path.read_bytes()[-MOST_BYTES // 2 :].partition(b"\n")[2]
        draft = path.with_suffix(".draft")
        draft.write_bytes(kept)
        draft.replace(path)


def read_log(directory: RunDirectory) -> list[LogLine]:
    """Return the stored lines of a run's log, oldest first; malformed lines are left out.

    [] if the log is missing or cannot be read. Reads the last `MOST_BYTES` bytes.
    """
    try:
        with open_regular(directory.path / LOG) as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - MOST_BYTES))
            content = file.read(MOST_BYTES)
    except OSError:
        return []
    return [line for one in content.split(b"\n") if (line := _log_line(one)) is not None]


def _log_line(content: bytes) -> LogLine | None:
    try:
        document: Any = read_json(content)
    except ValueError:
        return None
    match document:
        case {
            "at": int() | float() as at,
            "level": str(level),
            "source": str(source),
            "text": str(text),
        } if level in LEVELS:
            return LogLine(at=float(at), level=level, source=source, text=text)
    return None


def last_lines(lines: Iterable[LogLine], most: int, most_grave: int) -> list[LogLine]:
    """Return the last `most` lines, after up to `most_grave` earlier warnings and errors.

    Both numbers are at least 1. The lines stay in their order.
    """
    every = list(lines)
    recent, before = every[-most:], every[:-most]
    grave = [line for line in before if LEVELS.index(line.level) >= LEVELS.index("WARNING")]
    return [*grave[-most_grave:], *recent]
