"""The interface of exporters, which write a run to files or send it to a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

from osbench.common.errors import ExportError
from osbench.common.values import outcomes

#: Keys of `accounting` of a workload in the JSON object whose counts sum to `planned`.
STATES = outcomes.STATES

_RAN = frozenset(outcome.name.lower() for outcome in outcomes.RAN)


class IterationRow(NamedTuple):
    """Result of an iteration that ended or was dropped. A tuple, since runs have millions."""

    #: Counts the workloads of the run from 0.
    workload: int
    #: Counts the iterations of the workload from 1.
    iteration: int
    #: ok, failed, timed_out, or dropped_ with a reason.
    outcome: str
    #: Times in nanoseconds after t0, the start of the load. None if there is none: a dropped
    #: iteration has neither started nor ended.
    due_ns: int | None
    started_ns: int | None
    ended_ns: int | None
    #: Nanoseconds of think time: `think` and `sleep_between`.
    idle_ns: int
    #: Type of the exception, and its message; "" without an exception.
    error_type: str
    error: str
    #: "" if the iteration was not traced.
    trace_id: str
    #: Label of its worker, else host:pid; "" if the coordinator dropped it.
    worker: str
    #: It belongs to the warm-up: the accounting counts it, and no other figure of the report.
    warmup: bool
    # from here on: columns of result blocks as they are, in their order; each has a default, which
    # is that of what the coordinator dropped

    @property
    def state(self) -> str:
        """Return the iteration's state in the accounting: ok, failed, timed_out or dropped."""
        return self.outcome if self.outcome in _RAN else "dropped"

    @property
    def service_ns(self) -> int | None:
        """Return the nanoseconds from start to end, without think time; None if not run."""
        if self.started_ns is None or self.ended_ns is None:
            return None
        return self.ended_ns - self.started_ns - self.idle_ns

    @property
    def response_ns(self) -> int | None:
        """Return the nanoseconds from due time to end, without think time; None if not run."""
        lasted_ns = _between(self.due_ns, self.ended_ns)
        return None if lasted_ns is None else lasted_ns - self.idle_ns

    @property
    def start_lag_ns(self) -> int | None:
        """Return the nanoseconds from due time to start; None if it did not start."""
        return _between(self.due_ns, self.started_ns)

    @property
    def due_s(self) -> float | None:
        """Return `due_ns` in seconds after t0, or None; the next properties convert likewise."""
        return _seconds(self.due_ns)

    @property
    def started_s(self) -> float | None:
        return _seconds(self.started_ns)

    @property
    def service_s(self) -> float | None:
        return _seconds(self.service_ns)

    @property
    def response_s(self) -> float | None:
        return _seconds(self.response_ns)

    @property
    def start_lag_s(self) -> float | None:
        return _seconds(self.start_lag_ns)


def _between(begin_ns: int | None, end_ns: int | None) -> int | None:
    return None if begin_ns is None or end_ns is None else end_ns - begin_ns


def _seconds(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e9


#: An integer; nanoseconds that are shown as seconds; one of few texts; any text; yes or no; a time
#: in nanoseconds after t0.
Kind = Literal["count", "seconds", "word", "text", "flag", "timestamp"]


class ExportColumn(NamedTuple):
    """A column of exports: its name, the kind of its values, and how to get one from a row."""

    #: As it is called in exports.
    name: str
    kind: Kind
    #: Takes it from a row: None, or "", if the iteration has none.
    get: Callable[[IterationRow], Any]


#: Columns of CSV, Parquet, OpenSearch documents and the JSON of an iteration.
ITERATION_COLUMNS = (
    ExportColumn("workload", "count", attrgetter("workload")),
    ExportColumn("iteration", "count", attrgetter("iteration")),
    ExportColumn("state", "word", attrgetter("state")),
    ExportColumn("outcome", "word", attrgetter("outcome")),
    ExportColumn("warmup", "flag", attrgetter("warmup")),
    ExportColumn("started_at", "timestamp", attrgetter("started_ns")),
    ExportColumn("due_s", "seconds", attrgetter("due_ns")),
    ExportColumn("started_s", "seconds", attrgetter("started_ns")),
    ExportColumn("service_s", "seconds", attrgetter("service_ns")),
    ExportColumn("response_s", "seconds", attrgetter("response_ns")),
    ExportColumn("start_lag_s", "seconds", attrgetter("start_lag_ns")),
    ExportColumn("error_type", "word", attrgetter("error_type")),
    ExportColumn("error", "word", attrgetter("error")),
    ExportColumn("trace_id", "text", attrgetter("trace_id")),
    ExportColumn("worker", "word", attrgetter("worker")),
)

_GETTERS = tuple((one.name, one.get) for one in ITERATION_COLUMNS)
_TIMESTAMPS = tuple(one.name for one in ITERATION_COLUMNS if one.kind == "timestamp")
_SECONDS = tuple(one.name for one in ITERATION_COLUMNS if one.kind == "seconds")
_TEXTS = tuple(one.name for one in ITERATION_COLUMNS if one.kind in ("word", "text"))


def json_values(row: IterationRow, t0_at: float | None) -> dict[str, Any]:
    """Return the columns of an iteration as a dict for JSON; missing values are None.

    Durations are seconds, points in time seconds since 1970-01-01 UTC. `t0_at`: the start of the
    load, likewise; if None, points in time are None, too.
    """
    found = {name: get(row) for name, get in _GETTERS}
    for name in _SECONDS:
        if (nanoseconds := found[name]) is not None:
            found[name] = nanoseconds / 1e9
    for name in _TIMESTAMPS:
        after = found[name]
        found[name] = None if t0_at is None or after is None else t0_at + after / 1e9
    for name in _TEXTS:
        if not found[name]:
            found[name] = None
    return found


@dataclass(frozen=True, kw_only=True)
class DurationCounts:
    """Durations as a histogram: number of durations by group of length, and the sum of all."""

    #: Nanoseconds that the durations of each group do not exceed, rising.
    upper_ns: Sequence[int] = ()
    #: Durations in each group.
    counts: Sequence[int] = ()
    #: Sum of all durations, seconds.
    sum_s: float = 0.0

    @property
    def count(self) -> int:
        """Return the number of all durations."""
        return sum(self.counts)


class RunSnapshot:
    """The state of a run at one time: under load, or finished."""

    #: The time of the snapshot, seconds since 1970-01-01 UTC.
    at: float
    #: The JSON object of the run (docs/results.schema.json); under load with what is known so far.
    summary: Mapping[str, Any]
    #: By workload: t0, seconds since 1970-01-01 UTC; 0 if it never began.
    t0_at: Sequence[float]

    def durations(self) -> Sequence[Mapping[str, DurationCounts]]:
        """Return per workload the durations by name: `service`, `response` and `start_lag`.

        The first two are of iterations that succeeded, the last is of all that ran, each without
        the warm-up. Lengths are right to 1.6 %; `rows` has them exactly. osbench implements this.
        """
        raise NotImplementedError


class ExportedRun(RunSnapshot):
    """Base of a finished run, as an exporter gets it; osbench implements the methods."""

    def rows(self) -> Iterator[IterationRow]:
        """Yield a row for every iteration that ended or was dropped; each call begins anew.

        In the order in which they were reported, read from disk on the way: a run may have more
        than memory holds. Lost and not started iterations have no row.
        """
        raise NotImplementedError

    def trace_requests(self) -> Iterator[dict[str, Any]]:
        """Yield the traces that the run has kept, as OTLP export requests in their JSON form.

        osbench implements this.
        """
        raise NotImplementedError

    def rally_results(self) -> list[dict[str, Any]]:
        """Return the run as a list of task results, in memory, as Rally gives them to exporters.

        osbench implements this.
        """
        raise NotImplementedError


class Exporter:
    """Base class of exporters. One instance per export.

    Define `export`, and `send` as well if you can send a run to a server.
    """

    #: Name on the command line.
    NAME: ClassVar[str] = ""
    #: JSON schema of the options.
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {"type": "object", "additionalProperties": False}
    #: Name of the file that it writes; "" if it writes several, whose names it chooses.
    FILE: ClassVar[str] = ""
    #: A target that has a suffix, whichever, is the path of that file.
    ANY_SUFFIX: ClassVar[bool] = False
    #: Schemes of the URLs that `send` takes, such as ("http", "https"); () for any.
    SCHEMES: ClassVar[tuple[str, ...]] = ()

    def __init__(self, config: Mapping[str, Any]) -> None:
        """Keep the options.

        Subclasses raise osbench.plugin.errors.ExportError if something is missing: no run begins
        then.
        """
        self.config = config

    def export(self, run: ExportedRun, path: Path) -> None:
        """Write the run to the file `path`; without `FILE`, to files in the folder `path`.

        The folder exists. A file is moved to its final place when this returns, so that an error
        leaves no partial file. Raise ExportError with a message to report an error, as this method
        does unless it is overridden.
        """
        raise ExportError(f"the exporter {self.NAME} writes no files: give it a URL")

    def send(self, run: ExportedRun, url: str) -> str:
        """Send the run to a server; return a message on the data that was sent.

        Raise ExportError with a message to report an error, as this method does unless it is
        overridden.
        """
        raise ExportError(f"the exporter {self.NAME} writes files; give it a path instead of {url}")

    def export_failure(self, failure: Mapping[str, Any], path: Path) -> bool:
        """Report a run that ended before it had results; return whether something was written.

        Does nothing and returns False unless it is overridden. `failure` is the JSON object of an
        error (docs/results.schema.json), with the keys `run_id` and `task`, each "" if it is not
        known.
        """
        return False


class LiveExporter(Exporter):
    """An exporter that also gets snapshots of the run while it is under load."""

    #: Seconds between two snapshots.
    INTERVAL_S: ClassVar[float] = 10.0

    def push(self, snapshot: RunSnapshot, target: str) -> None:
        """Send a snapshot to `target`: the URL, file or folder that the user has given.

        Subclasses override this. Called in a separate thread: the run does not wait for it. An
        exception is reported once, and the next snapshot is tried again.
        """
        raise NotImplementedError
