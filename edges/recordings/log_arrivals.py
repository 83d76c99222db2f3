"""Sorts the arrivals of an access log by time in bounded memory, and writes a file of them.

Servers write a line after the response, and some note the time of the request: lines are not in
order. Sorted parts go to a temporary file, and are merged from there.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from osbench.common.errors import UsageError
from osbench.edges.recordings.arrival_file import ArrivalWriter

Ints = NDArray[np.int64]

#: Arrivals that are sorted at once.
PART = 1 << 20
#: Arrivals of each part that are in memory while parts are merged.
PIECE = 1 << 15
_SECOND_US = 1_000_000
_BYTES = 16


class SortedArrivals:
    """Sorts arrivals by time, in a temporary file if there are many; equal times keep their order.

    An arrival is a time and the number of its request's template.
    """

    def __init__(self, folder: Path) -> None:
        """`folder`: of the temporary file, which has no name and is created when first needed."""
        self._folder = folder
        self._file: BinaryIO | None = None
        self._times: list[Ints] = []
        self._codes: list[Ints] = []
        self._waiting = 0
        #: Place of each part in the file, and its length, in arrivals.
        self._parts: list[tuple[int, int]] = []
        #: All times are full seconds: the log does not say more.
        self.coarse = True

    def close(self) -> None:
        """Close the temporary file, if there is one, which removes it."""
        if self._file is not None:
            self._file.close()

    def add(self, times_us: Ints, codes: Ints) -> None:
        """Add arrivals: `times_us` (microseconds since the epoch), `codes` (templates' numbers).

        After each `PART` arrivals writes a sorted part to the temporary file. Raises OSError if
        that fails.
        """
        self._times.append(times_us)
        self._codes.append(codes)
        self._waiting += len(times_us)
        self.coarse = self.coarse and not (times_us % _SECOND_US).any()
        if self._waiting >= PART:
            self._flush()

    def _flush(self) -> None:
        times, codes = np.concatenate(self._times), np.concatenate(self._codes)
        order = np.argsort(times, kind="stable")
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - see close
        self._file.write(np.stack((times[order], codes[order]), axis=1).tobytes())
        begin = sum(self._parts[-1]) if self._parts else 0
        self._parts.append((begin, len(times)))
        self._times, self._codes, self._waiting = [], [], 0

    def seconds(self) -> Iterator[tuple[Ints, Ints]]:
        """Yield all arrivals sorted by time, as arrays (times in microseconds, templates' numbers).

        Each yield has whole seconds: no second is split over two. Arrivals in memory are written to
        the temporary file first. May be called several times. Raises OSError if the file fails.
        """
        if self._waiting:
            self._flush()
        heads = [_Head(self._file, begin, count) for begin, count in self._parts if self._file]
        while heads:
            for head in heads:
                head.fill(PIECE)
            until = min(head.known_until for head in heads)
            # a whole second: those within it are spread together
            until = until if until == _END else until // _SECOND_US * _SECOND_US
            taken = [head.take(until) for head in heads]
            if not any(map(len, taken)):
                for head in heads:
                    head.fill(len(head) + PIECE)
            else:
                rows = np.concatenate(taken)
                rows = rows[np.argsort(rows[:, 0], kind="stable")]
                yield rows[:, 0], rows[:, 1]
            heads = [head for head in heads if head]


#: After all times.
_END = 1 << 62


class _Head:
    """The next arrivals of one sorted part, read piece by piece from the temporary file.

    True as long as it has arrivals; its length is the number of arrivals in memory.
    """

    def __init__(self, file: BinaryIO, begin: int, count: int) -> None:
        self._file = file
        self._begin, self._left = begin, count
        self._rows: Ints = np.empty((0, 2), np.int64)

    def __len__(self) -> int:
        return len(self._rows)

    def __bool__(self) -> bool:
        return bool(self._left or len(self._rows))

    @property
    def known_until(self) -> int:
        """Return the time, microseconds, before which all arrivals of the part are in memory."""
        return int(self._rows[-1, 0]) if self._left else _END

    def fill(self, least: int) -> None:
        """Read from the file until `least` arrivals are in memory, or the part has ended."""
        count = min(self._left, least - len(self._rows))
        if count <= 0:
            return
        self._file.seek(self._begin * _BYTES)
        content = self._file.read(count * _BYTES)
        self._rows = np.concatenate((self._rows, np.frombuffer(content, np.int64).reshape(-1, 2)))
        self._begin += count
        self._left -= count

    def take(self, until_us: int) -> Ints:
        """Remove and return the arrivals in memory whose time is before `until_us`, microseconds.

        An array with a row per arrival: time, number of the template.
        """
        count = int(np.searchsorted(self._rows[:, 0], until_us))
        taken, self._rows = self._rows[:count], self._rows[count:]
        return taken


@dataclass(frozen=True, kw_only=True)
class WrittenArrivals:
    """Figures of a written file of arrivals: number of arrivals, begin, length and peak."""

    count: int
    #: Seconds since the epoch of its beginning, and its length, seconds.
    began_at: float
    span_s: float
    #: Most arrivals of a second.
    peak: int


def write_arrivals(
    path: Path, arrivals: SortedArrivals, names: Sequence[str], positions: Ints
) -> WrittenArrivals:
    """Write arrivals to the new file `path`, with times from the begin of the first one's second.

    `positions`: by number of a template, its index in `names`; arrivals with -1 are left out, and
    at least one must be left. If the log has full seconds only, arrivals are spread within them.
    Raises UsageError if the file exists or cannot be written; a file that was begun is removed.
    Raises OSError if the temporary file of `arrivals` cannot be written before.
    """
    begin_us, end_us = _bounds(arrivals, positions)
    count = peak = 0
    try:
        with path.open("xb") as file:
            try:
                writer = ArrivalWriter(file, names, end_us - begin_us)
                for times_us, codes in _chosen_arrivals(arrivals, positions):
                    seconds = (times_us - begin_us) // _SECOND_US
                    peak = max(peak, int(np.unique(seconds, return_counts=True)[1].max()))
                    placed = spread(times_us) if arrivals.coarse else times_us
                    writer.add(placed - begin_us, codes)
                    count += len(codes)
                writer.close()
            except BaseException:
                with contextlib.suppress(OSError):
                    path.unlink()
                raise
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror or error}; free space, or give a path in a "
            "writable folder"
        ) from None
    span_s = (end_us - begin_us) / _SECOND_US
    return WrittenArrivals(count=count, began_at=begin_us / _SECOND_US, span_s=span_s, peak=peak)


def _chosen_arrivals(arrivals: SortedArrivals, positions: Ints) -> Iterator[tuple[Ints, Ints]]:
    for times_us, codes in arrivals.seconds():
        placed = positions[codes]
        kept = placed >= 0
        if kept.any():
            yield times_us[kept], placed[kept]


def _bounds(arrivals: SortedArrivals, positions: Ints) -> tuple[int, int]:
    """Return the last full second up to the arrivals to be written, and the first after them.

    Both in microseconds since the epoch. `positions`: as in `write_arrivals`.
    """
    first, last = _END, 0
    for times_us, _ in _chosen_arrivals(arrivals, positions):
        first, last = min(first, int(times_us[0])), int(times_us[-1])
    return first // _SECOND_US * _SECOND_US, (last // _SECOND_US + 1) * _SECOND_US


def spread(times_us: Ints) -> Ints:
    """Return a copy of `times_us` with equal times spread at equal distances within their second.

    `times_us`: full seconds in microseconds, ascending.
    """
    _, at, counts = np.unique(times_us, return_inverse=True, return_counts=True)
    begins = np.cumsum(counts) - counts
    ranks = np.arange(len(times_us)) - begins[at]
    within_us = np.floor_divide((2 * ranks + 1) * _SECOND_US, 2 * counts[at])
    placed: Ints = (times_us + within_us).astype(np.int64)
    return placed
