"""The `replay` runner: recorded arrivals at their recorded times, each with its request's name."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from cryptography.fernet import Fernet

from osbench.common.plugin.iteration_rows import BRANCH
from osbench.common.protocol import data_rows
from osbench.common.values.intervals import Intervals
from osbench.coordinator.plugins.runners import runner_schema
from osbench.coordinator.plugins.runners.schedule import MOST
from osbench.edges.recordings.arrival_file import ArrivalFile, ArrivalFileError
from osbench.plugin import runner
from osbench.plugin.durations import DURATION

_INSTANT: Mapping[str, Any] = {**DURATION, "minimum": 0, "maximum": 1e9}
#: Rows that a batch carries at most; open loads have no such limit.
_BATCH = 1 << 16


class Replay(runner.Runner):
    """Starts an iteration at the recorded time of every arrival in `file`, over all workers.

    `init --from-access-log` makes the file of an access log, and a task whose scenario makes the
    request of each arrival: `HttpFlow.run`, or any with an argument `branch`. `speed` 2 takes half
    the time, at twice the rate. `from` and `to` replay a part of the file, in seconds of the
    recorded time. At most `max_concurrency` iterations (any number unless given) run at once;
    arrivals beyond that are dropped.
    """

    NAME: ClassVar[str] = "replay"
    OPEN: ClassVar[bool] = True
    #: Bins of time are not stages.
    STAGED: ClassVar[bool] = False
    FILES: ClassVar[tuple[str, ...]] = ("file",)
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {
        "$schema": runner_schema.DRAFT,
        "type": "object",
        "properties": {
            "file": {
                "type": "string",
                "minLength": 1,
                "description": "the arrivals; relative to the folder of the task file",
            },
            "speed": {
                "type": "number",
                "minimum": 0.001,
                "maximum": 1000,
                "description": "how many times as fast; 1 by default",
            },
            "from": {
                **_INSTANT,
                "description": "begins with the arrivals at this time in the file; 0 by default",
            },
            "to": {
                **_INSTANT,
                "description": "ends before this time in the file; its end by default",
            },
            "max_concurrency": runner_schema.MAX_CONCURRENCY,
            "timeout": runner_schema.TIMEOUT,
        },
        "required": ["file"],
        "additionalProperties": False,
    }

    @classmethod
    def check(cls, config: Mapping[str, Any]) -> list[str]:
        """Return a message if the file is unreadable or damaged, or the part has no arrival.

        Also if `to` is not after `from`. Reads the whole file. An empty list if all is fine.
        """
        begin_s, end_s = config.get("from", 0), config.get("to")
        if end_s is not None and end_s <= begin_s:
            return [f"to must be after from, got from {begin_s:g} and to {end_s:g}"]
        try:
            made = cls(config)
            made._file.verify()
            if made.planned:
                return []
            span = f"{made._file.span_us / 1e6:g} s"
            until = "" if end_s is None else f" to {end_s:g} s"
            return [f"from {begin_s:g}{until} there is no arrival: {made._file.path} has {span}"]
        except ArrivalFileError as error:
            return [f"file: {error}"]

    @classmethod
    def notes(cls, config: Mapping[str, Any]) -> list[str]:
        """Return a note if `to` is beyond the end of the recorded time; else an empty list."""
        span_s = cls(config)._file.span_us / 1e6
        if config.get("to", 0) <= span_s:
            return []
        return [f"to {config['to']:g} s is beyond the end: the arrivals take {span_s:g} s"]

    @property
    def planned(self) -> int:
        """Return the number of arrivals between `from` and `to`."""
        return self._stop - self._start

    @property
    def lasts_s(self) -> float:
        """Return the duration of the replayed part at the given speed, seconds."""
        return (self._end_us - self._begin_us) / 1e6 / self._speed

    @cached_property
    def _file(self) -> ArrivalFile:
        return ArrivalFile(Path(self.config["file"]))

    @cached_property
    def _speed(self) -> float:
        return float(self.config.get("speed", 1))

    @cached_property
    def _begin_us(self) -> int:
        return round(float(self.config.get("from", 0)) * 1e6)

    @cached_property
    def _end_us(self) -> int:
        end_s = self.config.get("to")
        span_us = self._file.span_us
        return span_us if end_s is None else min(span_us, round(float(end_s) * 1e6))

    @cached_property
    def _start(self) -> int:
        return self._file.before(self._begin_us)

    @cached_property
    def _stop(self) -> int:
        return max(self._start, self._file.before(self._end_us))

    def rows(self, key: bytes | None = None) -> ArrivalRows:
        """Return a row per planned arrival: the argument `branch`, the name of its request.

        `key` encrypts the rows on their way to workers; None makes a new one.
        """
        return ArrivalRows(self._file, self._start, self.planned, key)

    def asked(self) -> Sequence[tuple[float, float]]:
        """Return the rate over time: (seconds after t0, arrivals per second), joined by lines.

        A rate is the mean of a bin of time in the file, at the given `speed`: two points per bin.
        """
        bins = self._file.bins
        width_us = self._file.span_us / len(bins)
        points: list[tuple[float, float]] = []
        for at, arrivals in enumerate(bins):
            low = max(at * width_us, self._begin_us)
            high = min((at + 1) * width_us, self._end_us)
            if low < high:
                rate = arrivals / width_us * 1e6 * self._speed
                points += [(self._elapsed_s(low), rate), (self._elapsed_s(high), rate)]
        return points

    def step(self, elapsed_s: float, totals: runner.Totals, capacity: Sequence[int]) -> runner.Step:
        """Return the due times of arrivals not planned yet, up to `HORIZON_S` seconds ahead.

        Seconds after t0, at most `MOST` at once; `capacity` is not used. Done when all arrivals are
        planned and settled. Raises ArrivalFileError if the file is damaged.
        """
        planned, allotted = self.planned, totals.allotted
        horizon_s = elapsed_s + runner_schema.HORIZON_S
        ahead_us = self._begin_us + horizon_s * 1e6 * self._speed
        first = self._start + allotted
        stop = min(self._file.before(ahead_us), self._stop, first + MOST)
        instants_us = self._file.instants(first, stop) - self._begin_us
        return runner.Step(
            arrivals=(instants_us / 1e6 / self._speed).tolist(),
            done=allotted >= planned and totals.settled >= planned,
        )

    def _elapsed_s(self, instant_us: float) -> float:
        return (instant_us - self._begin_us) / 1e6 / self._speed


class ArrivalRows:
    """Rows for iterations: row N, from 1, has the name of the Nth arrival of a part of a file.

    Iterations with numbers beyond the part get the names from its first arrival on again.
    """

    def __init__(self, file: ArrivalFile, first: int, count: int, key: bytes | None = None) -> None:
        """Take the `count` arrivals of `file` from number `first` on, which counts from 0.

        `key` encrypts the rows; None makes a new one.
        """
        self.file = file
        self.header: list[str] = [BRANCH]
        self.key = key or Fernet.generate_key()
        self._first = first
        self._count = count
        self._lines = [_line(name) for name in file.names]

    def __len__(self) -> int:
        return self._count

    @property
    def path(self) -> Path:
        """Return the path of the file of arrivals."""
        return self.file.path

    @property
    def name(self) -> str:
        """Return the name of the file, without its folder."""
        return self.file.path.name

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the file, in hex."""
        return self.file.digest

    @property
    def arguments(self) -> list[str]:
        """Return the arguments that rows give: `branch` alone."""
        return [BRANCH]

    @property
    def first(self) -> dict[str, Any]:
        """Return the arguments of one row, the first from `rows`. Raises ArrivalFileError."""
        return next(self.rows())

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield each different row as arguments (`branch`: a name), in the order of `file.names`.

        Names without an arrival in the part are left out. Raises ArrivalFileError if the file is
        damaged.
        """
        return ({BRANCH: self.file.names[at]} for at in self._used_positions())

    @property
    def batch_limit(self) -> int:
        """Return the most rows of one batch."""
        return _BATCH

    def encrypt(self, numbers: Intervals, ranks: Sequence[int]) -> bytes:
        """Return the rows of iterations by the `ranks` of their due times, encrypted for a batch.

        Ranks count from 1; `numbers` is ignored. Raises ArrivalFileError if the file is damaged.
        """
        low, high = min(ranks, default=1), max(ranks, default=0)
        names = self._positions(low - 1, high)
        return data_rows.encrypt(b"".join(self._lines[names[at - low]] for at in ranks), self.key)

    def within(self, step: runner.Step, totals: runner.Totals) -> runner.Step:
        """Return the step unchanged: every iteration has a row."""
        return step

    def _positions(self, low: int, high: int) -> list[int]:
        """Return for rows `low` to `high` - 1 (from 0 here) the position of the name in the file.

        That is its position in `file.names`. Raises ArrivalFileError if the file is damaged.
        """
        found: list[int] = []
        while low < high:
            # a rate that is raised under load has more iterations: they begin again
            turn, rank = divmod(low, self._count)
            stop = min(high - turn * self._count, self._count)
            found += self.file.positions(self._first + rank, self._first + stop).tolist()
            low += stop - rank
        return found

    def _used_positions(self) -> list[int]:
        """Return the positions in `file.names` of names that an arrival of the part has, ascending.

        May read the part of the file. Raises ArrivalFileError if it is damaged.
        """
        if self._count == self.file.count:
            return [at for at, share in enumerate(self.file.shares) if share]
        found: set[int] = set()
        for start in range(0, self._count, _BATCH):
            stop = min(self._count, start + _BATCH)
            part = self.file.positions(self._first + start, self._first + stop)
            found.update(np.unique(part).tolist())
        return sorted(found)


def _line(name: str) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow([name])
    return text.getvalue().encode("utf-8")
