"""The messages between coordinator and workers: frozen dataclasses, signed when sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from osbench.common.errors import Untrusted
from osbench.common.protocol.message_fields import checked_fields
from osbench.common.values.intervals import Interval


class Message:
    """Base class of messages. A message is a dataclass whose fields are the signed body."""

    #: Kind of message that the signature covers.
    KIND: ClassVar[str]

    def body(self) -> dict[str, Any]:
        """Return the fields of the message in a new dict by name, with values of msgpack types."""
        return dict(vars(self))

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> Self:
        """Create the message from the body of a verified envelope.

        Raises Untrusted for missing, unknown or wrongly typed fields.
        """
        try:
            return cls(**checked_fields(cls, cls.KIND, body))
        except TypeError as error:
            raise Untrusted(f"malformed {cls.KIND} message: {error}") from None


@dataclass(frozen=True, kw_only=True)
class Offer(Message):
    """An invitation to one worker process: to join a run, or to follow the run's new coordinator.

    The second has a higher epoch. The worker decides.
    """

    KIND: ClassVar[str] = "offer"

    run: str
    #: Counts the coordinator processes of the run, from 1.
    epoch: int
    incarnation: str
    #: The worker's present challenge: an offer is followed once.
    challenge: str
    #: The session that begins, and the membership that it belongs to: the same id where the worker
    #: joins, the older one where the run was resumed.
    session: str
    membership: str


@dataclass(frozen=True, kw_only=True)
class Batch(Message):
    """A grant of iteration numbers of one workload to a worker, which then may start them.

    It is for one session: a worker's part in a run under one coordinator process.
    """

    KIND: ClassVar[str] = "batch"

    run: str
    incarnation: str
    session: str
    workload: int
    #: Counts the batches of a membership from 1, without gaps.
    seq: int
    #: Half-open intervals of iteration numbers, ascending.
    intervals: list[Interval]
    #: Open runners: due times, little-endian int64 nanoseconds after t0, one per number.
    dues: bytes = b""
    #: Rows of the workload's data file, one per number (`protocol.data_rows.encrypt`).
    rows: bytes = b""

    def __len__(self) -> int:
        return sum(high - low for low, high in self.intervals)


@dataclass(frozen=True, kw_only=True)
class Control(Message):
    """The coordinator's current instructions to one membership; each replaces the one before.

    Membership: one worker process's part in one run.
    """

    KIND: ClassVar[str] = "control"

    run: str
    epoch: int
    incarnation: str
    session: str
    membership: str
    #: Increases with every record of a session: an older record is never followed.
    version: int
    #: The heartbeat that it replies to: the lease counts from the time at which that was sent.
    answers: int = 0
    #: Workload to be prepared or under load; -1 is none.
    workload: int = -1
    #: SHA-256 of the workload's signed specification; no other one is followed.
    specification: bytes = b""
    #: Start of the load in Redis time, seconds since 1970; None until all are prepared.
    t0_at: float | None = None
    #: Redis time at which `t0_at` was sent: Redis' clock may be set before a worker measures it.
    told_at: float = 0.0
    #: Virtual users this worker keeps busy (closed) or may have at most (open).
    user_limit: int = 0
    #: Counts the changes of `user_limit`.
    generation: int = 0
    #: Numbers of its virtual users, in this order; half-open intervals.
    numbers: list[Interval] = field(default_factory=list)
    #: Closed: most iterations that all workers may start per second; 0 means no limit.
    pace: float = 0.0
    #: With `pace`: its part of these starts, begin and end of a part of the users, the number of
    #: all users, and the first turn of the part, as `Pacing` reads it.
    pace_part: list[int] = field(default_factory=list)
    #: No iteration starts at or after this time, seconds after t0.
    stop_s: float | None = None
    #: Result blocks up to this number are on disk, and the blocks in `have` behind the first gap.
    acknowledged: int = 0
    have: list[int] = field(default_factory=list)
    #: Batches to be given back, as far as they are not started.
    recall: list[int] = field(default_factory=list)
    #: The run is over for this membership: nothing starts, nothing more is to be delivered.
    over: bool = False


@dataclass(frozen=True, kw_only=True)
class Heartbeat(Message):
    """The state of one worker process, which it reports every half second and at news."""

    KIND: ClassVar[str] = "heartbeat"

    incarnation: str
    #: Counts the beats.
    beat: int
    host: str
    pid: int
    label: str
    #: Version of osbench.
    version: str
    #: Virtual users that it can have as threads, and as coroutines.
    capacity: int
    coroutines: int
    #: idle, preparing, ready, running, draining, stuck.
    state: str
    #: New after every joining and leaving; an offer has to name it.
    challenge: str = ""
    #: The run that it is in; with epoch, session and membership as in its offer.
    run: str = ""
    epoch: int = 0
    session: str = ""
    membership: str = ""
    #: Last batch of the membership that was taken; all before it were.
    got: int = 0
    #: Last block of the membership that was made, and the last before the first that it keeps.
    made: int = 0
    delivered: int = 0
    #: Workload that is prepared, and what went wrong with it.
    prepared: int = -1
    problem: str = ""
    #: Virtual users that it is to have by the control record that it followed last, and the
    #: generation of that limit.
    user_limit: int = 0
    generation: int = 0
    #: Running iterations, and running iterations of users beyond the limit, who end with them.
    busy: int = 0
    surplus: int = 0
    #: Virtual users that have begun and are still to end by `on_stop`.
    living: int = 0
    #: Granted and not started.
    queued: int = 0
    #: The iteration that has run for longest, if that is seconds; else empty. Its number (0: a
    #: user that begins or ends), nanoseconds, atomic action, place in the code.
    longest: list[tuple[int, int, str, str]] = field(default_factory=list)
    #: CPU usage of the process since the last beat; 1.0 is one core.
    cpu: float = 0.0
    #: Threads of the process that waited for a core since then, on average.
    waiting: float = 0.0
    #: Cores that it may run on, and how many of them any process used; -1 is not known.
    cores: int = 0
    cores_used: float = -1.0
    #: CPU quota of its container in cores, 0 for none, and the share of the quota's periods since
    #: the last beat in which it was throttled.
    quota: float = 0.0
    throttled: float = 0.0
    #: Redis time minus this host's wall clock, seconds, and its uncertainty.
    offset_s: float = 0.0
    uncertainty_s: float = 0.0
    #: How far the host's wall clock was set back and forward since the process began, seconds.
    clock_set_s: list[float] = field(default_factory=lambda: [0.0, 0.0])
    #: Threads that are still running after their iteration timed out.
    stuck: int = 0
    #: Messages refused since the start, by reason.
    refusals: dict[str, int] = field(default_factory=dict)
    #: Spans written, dropped and waiting since the process started.
    spans: list[int] = field(default_factory=lambda: [0, 0, 0])
    #: Version of Python, and whether its build was not optimised.
    python: str = ""
    unoptimised: bool = False

    @property
    def refused(self) -> int:
        """Return the number of messages refused since the process started."""
        return sum(self.refusals.values())


@dataclass(frozen=True, kw_only=True)
class Block(Message):
    """A numbered part of the results of one membership: one worker process's part in one run.

    It has parts such as result rows, returned iteration numbers, failures, log entries and spans.
    """

    KIND: ClassVar[str] = "block"

    run: str
    incarnation: str
    membership: str
    #: Without gap from 1.
    number: int
    #: The workload that all of it belongs to; -1 if it has neither rows nor numbers.
    workload: int
    #: Columns of `osbench.common.protocol.columns.encode_rows`; empty if there are no rows.
    columns: dict[str, Any] = field(default_factory=dict)
    #: Granted and given back: half-open intervals.
    returned: list[Interval] = field(default_factory=list)
    #: Batches that were recalled before they came; they are refused if they come.
    voids: list[int] = field(default_factory=list)
    #: The last block of the membership: nothing of it starts any more.
    final: bool = False
    #: Distinct failures first seen in these rows: [number, etype, message, traceback],
    #: and the resource that a worker had no more of, if it came of that.
    failures: list[list[Any]] = field(default_factory=list)
    #: User-nanoseconds spent waiting for work that arrived later, or until the stop time.
    want_ns: int = 0
    #: Outputs and failures that were cut for size.
    cut: int = 0
    #: Iterations that started although the lease had ended meanwhile.
    started_late: int = 0
    #: Virtual users that share an event loop: how late each of its beats was, 64-bit integers,
    #: nanoseconds; and where a scenario blocked it, for how long: [place, nanoseconds].
    lags: bytes = b""
    blocked: list[list[Any]] = field(default_factory=list)
    #: Virtual users that are threads: how late a thread woke at each beat, as `lags`.
    thread_lags: bytes = b""
    #: For how long the process could run nothing: [lock or stopped, nanoseconds].
    stalls: list[list[Any]] = field(default_factory=list)
    #: How virtual users began and ended: [a `LifeEvent`, number of the user, begin and end
    #: (nanoseconds after t0), number of the failure].
    life: list[list[int]] = field(default_factory=list)
    #: Errors outside the iterations, such as tasks that a scenario left behind, and how often:
    #: [text, count].
    asides: list[list[Any]] = field(default_factory=list)
    #: What the process printed and logged: [Redis time in seconds since 1970, source, workload,
    #: iteration, text]; source is stdout, stderr or a level; workload -1 and iteration 0 are none.
    log: list[list[Any]] = field(default_factory=list)
    #: Entries of `log` that were left out or cut: they were too many, or too long.
    log_cut: int = 0
    #: Spans of the iterations of a run that has no trace store, as `SpanBuffer.take` packs them.
    spans: bytes = b""


@dataclass(frozen=True, kw_only=True)
class Will(Message):
    """A will, signed by a supervisor: the work that an ended worker process cannot have started.

    The process took batches in their order, and the numbers of a closed load in theirs. `workload`
    is the last workload that it began, -1 if there is none: of all others, the numbers in batches
    behind `seq` were not started.
    """

    KIND: ClassVar[str] = "will"

    run: str
    incarnation: str
    membership: str
    workload: int
    #: Closed loads: the batch whose numbers were taken last, and the greatest number taken of it;
    #: batches behind it, and greater numbers of it, were not started. 0 is none.
    seq: int = 0
    number: int = 0
    #: Open loads: arrivals due after this were not started, nanoseconds after t0; None in a
    #: closed load.
    due_ns: int | None = None


@dataclass(frozen=True, kw_only=True)
class Specification(Message):
    """All that a worker needs to run one workload: scenario, arguments, context, limits.

    Sent encrypted, because it contains credentials.
    """

    KIND: ClassVar[str] = "specification"

    run: str
    workload: int
    scenario: str
    args: dict[str, Any]
    #: Bound of one iteration in seconds; 0 is none.
    timeout_s: float
    #: Arrivals have due times; otherwise an iteration is due when its virtual user is free.
    open: bool
    #: Open: most virtual users over all workers; 0 is unlimited.
    max_concurrency: int
    #: Closed: most virtual users of a worker process, as the workers are now; 0 is not known.
    users_each: int
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
    #: Seconds after t0 during which control records are read at short intervals, because limits
    #: change often.
    eager_s: float = 0.0
    #: The task's keys `users` (with "rows": the rows of its data file), `think` and `http`.
    users: dict[str, Any] = field(default_factory=dict)
    think: dict[str, Any] = field(default_factory=dict)
    http: dict[str, Any] = field(default_factory=dict)
    #: Header of the data file whose rows come with the batches, and the key that decrypts them.
    columns: list[str] = field(default_factory=list)
    rows_key: bytes = b""
    #: Details of the HTTP requests of iterations that are noted in `Block.log`: 0 none, 1 the
    #: requests with the beginning of their bodies, 2 their header fields, too.
    shown: int = 0
    #: The runner whose own code starts the iterations, in one worker process: its `runner` (name
    #: with its source), `config` and `source_hash`; empty for all others.
    script: dict[str, Any] = field(default_factory=dict)
    #: The run receives spans by OTLP: iterations are traced without OSProfiler's key, too, and
    #: their spans travel with results if there is no trace store.
    otlp: bool = False
