"""The messages between coordinator and workers: frozen, sealed on the wire."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from osbench.common.errors import Untrusted
from osbench.common.intervals import Interval


class Message:
    """Base of messages: a dataclass whose fields are the body."""

    #: Kind of message that the signature covers.
    KIND: ClassVar[str]

    def body(self) -> dict[str, Any]:
        """The fields as msgpack types."""
        return dict(vars(self))

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> Self:
        """A message from a verified body. Raises Untrusted where fields are missing or unknown."""
        try:
            return cls(**body)
        except TypeError as error:
            raise Untrusted(f"malformed {cls.KIND} message: {error}") from None


@dataclass(frozen=True, kw_only=True)
class Batch(Message):
    """A run of iteration numbers of one workload for one worker."""

    KIND: ClassVar[str] = "batch"

    run: str
    epoch: str
    incarnation: str
    workload: int
    #: Increases over the run, never used twice.
    batch: int
    #: Half-open intervals of iteration numbers, ascending.
    intervals: list[Interval]
    #: Open runners: due instants, little-endian int64 nanoseconds after t0, one per number.
    dues: bytes = b""
    #: Rows of the workload's data file, one per number (`osbench.common.protocol.data_rows.seal`).
    rows: bytes = b""

    def __len__(self) -> int:
        return sum(high - low for low, high in self.intervals)


@dataclass(frozen=True, kw_only=True)
class Control(Message):
    """The coordinator's current instructions to one worker; replaces the previous record."""

    KIND: ClassVar[str] = "control"

    run: str
    epoch: str
    incarnation: str
    #: Increases with every change: an older record is never followed.
    version: int
    #: Workload to be prepared or under load; -1 is none.
    workload: int = -1
    #: Start of the load in Redis time, seconds since 1970; None until all are prepared.
    t0_at: float | None = None
    #: Virtual users this worker keeps busy (closed) or may have at most (open).
    share: int = 0
    #: Counts the changes of `share`.
    generation: int = 0
    #: No iteration starts at or after this instant, seconds after t0.
    stop_s: float | None = None
    #: Result blocks up to this number are on disk.
    acknowledged: int = 0
    #: This worker counts as lost: its unfinished work was reassigned.
    fenced: bool = False
    #: The run is over for this worker.
    released: bool = False


@dataclass(frozen=True, kw_only=True)
class Heartbeat(Message):
    """The state that a worker process reports every half second."""

    KIND: ClassVar[str] = "heartbeat"

    incarnation: str
    #: Counts the beats.
    beat: int
    host: str
    pid: int
    label: str
    #: Version of osbench.
    version: str
    #: Virtual users it can have.
    capacity: int
    #: idle, preparing, ready, running, draining, stuck.
    state: str
    run: str = ""
    #: Workload that is prepared, and what went wrong with it.
    prepared: int = -1
    problem: str = ""
    #: Generation of `share` that is in force, and virtual users with an iteration in hand.
    generation: int = 0
    busy: int = 0
    #: Claimed and not started.
    queued: int = 0
    #: CPU usage of the process since the last beat; 1.0 is one core.
    cpu: float = 0.0
    #: Redis time minus this host's wall clock, seconds, and its uncertainty.
    offset_s: float = 0.0
    uncertainty_s: float = 0.0
    #: Threads that are still running after their iteration timed out.
    stuck: int = 0
    #: Messages refused since the start.
    refused: int = 0
    #: Spans written, dropped and waiting since the process started.
    spans: list[int] = field(default_factory=lambda: [0, 0, 0])


@dataclass(frozen=True, kw_only=True)
class Block(Message):
    """Numbered results of one worker: rows, returned numbers and failures."""

    KIND: ClassVar[str] = "block"

    run: str
    epoch: str
    incarnation: str
    #: Without gap from 1.
    number: int
    workload: int
    #: Columns of `osbench.common.protocol.blocks.encode_rows`; empty where there are no rows.
    columns: dict[str, Any] = field(default_factory=dict)
    #: Claimed and not started: half-open intervals.
    returned: list[Interval] = field(default_factory=list)
    #: Distinct failures first seen in these rows: [number, etype, message, traceback].
    failures: list[list[Any]] = field(default_factory=list)
    #: User-nanoseconds spent waiting for work that arrived later, or until the stop instant.
    want_ns: int = 0
    #: Outputs and failures that were cut for size.
    cut: int = 0


@dataclass(frozen=True, kw_only=True)
class Fence(Message):
    """A mark in the result stream: all entries before it are read before its worker is fenced."""

    KIND: ClassVar[str] = "fence"

    run: str
    epoch: str
    incarnation: str
    nonce: str


@dataclass(frozen=True, kw_only=True)
class Specification(Message):
    """All that a worker needs to know of a workload. Sent encrypted: it contains credentials."""

    KIND: ClassVar[str] = "specification"

    run: str
    workload: int
    scenario: str
    args: dict[str, Any]
    #: Bound of one iteration in seconds; 0 is none.
    timeout_s: float
    #: Arrivals have due instants; otherwise an iteration is due when its virtual user is free.
    open: bool
    #: Open: most virtual users over all workers; 0 is unlimited.
    max_concurrency: int
    #: Open: an arrival later than this is dropped.
    max_lag_s: float
    #: Prepared by contexts; contains at least "task" {"uuid"}.
    context: dict[str, Any]
    #: The deployment record (`Deployment.to_dict`), or empty.
    deployment: dict[str, Any]
    #: Source hash the coordinator validated against.
    source_hash: str
    #: Profile iterations: the rate, 0 for none.
    sample_rate: float
    #: Longest time between two result blocks of a worker, seconds.
    ship_interval_s: float
    #: Seconds after t0 during which control records are read at short intervals, because shares
    #: change often.
    eager_s: float = 0.0
    #: Header of the data file whose rows come with the batches, and the key that decrypts them.
    columns: list[str] = field(default_factory=list)
    rows_key: bytes = b""
