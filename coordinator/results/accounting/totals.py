"""Final numbers of a workload: states of iterations, load offered, warm-up and tracing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from osbench.common.values.outcomes import STATES

#: Reasons of dropped arrivals that the load generator itself is to blame for.
NOT_MADE = ("worker_lost", "coordinator_gone")


@dataclass(frozen=True, kw_only=True)
class Accounting:
    """Counts of a workload's iterations by final state, and of repeated or refused messages.

    The six states of `STATES` sum to `planned` once the ledger is closed; other fields are in
    addition.
    """

    planned: int = 0
    ok: int = 0
    failed: int = 0
    timed_out: int = 0
    dropped: int = 0
    lost: int = 0
    not_started: int = 0
    #: Dropped arrivals by reason: max_concurrency, capacity, late, worker_lost,
    #: coordinator_gone.
    drops: Mapping[str, int] = field(default_factory=dict)
    #: Iterations run a second time because the first start's fate was unknown (idempotent only).
    reruns: int = 0
    #: Results of a worker that was counted as lost, or after the close, that still settled their
    #: iteration.
    late: int = 0
    #: Results for iterations that were settled already, or that the worker did not have.
    stale: int = 0
    #: Result blocks that arrived more than once.
    duplicates: int = 0
    #: Messages that could not be verified or belonged to another run or worker.
    refused: int = 0

    def state(self, name: str) -> int:
        """Return the count called `name`: a state of `STATES`, or another field with a number."""
        return int(getattr(self, name))

    @property
    def well(self) -> bool:
        """Return whether all planned iterations succeeded, and none was started twice."""
        return self.ok == self.planned and not self.reruns

    @property
    def settled(self) -> int:
        """Number of iterations in a final state of `STATES`."""
        return sum(self.state(name) for name in STATES)


@dataclass(frozen=True, kw_only=True)
class Offered:
    """The offered load and the requested load: virtual users or arrivals, and length."""

    #: Seconds from t0 to the end of the last iteration.
    duration_s: float = 0.0
    #: Closed runners: virtual users requested, and the share of the requested user-seconds that
    #: were not spent waiting for work; None for open runners.
    concurrency: int | None = None
    concurrency_held: float | None = None
    #: Closed runners: seconds that a virtual user waited for work, on average.
    waited_s: float | None = None
    #: Open runners: arrivals per second planned and started, over the planned span.
    rate_planned: float | None = None
    rate_offered: float | None = None
    #: Cause if the load was cut short, or None: "interrupted", "sla" (aborted on SLA failure),
    #: "abort" (by the workload's own rule), "no_users", "runner_failed" or "runner_lost".
    cut_short: str | None = None

    @property
    def is_open(self) -> bool:
        """Return whether the load is open: iterations start at planned times."""
        return self.concurrency is None


@dataclass(frozen=True, kw_only=True)
class Bound:
    """A reason why a load was not the requested one, or was not measured accurately."""

    #: A key of the table in `osbench.coordinator.report.findings.load_bounds`.
    cause: str
    #: Whose it is: "generator", "service" or "task".
    fault: str
    #: Message on the problem and its remedy.
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Warmup:
    """Iterations of the warm-up, which count in accounting and run directory, not in statistics."""

    #: Seconds from t0 in which iterations that started were left out.
    seconds: float = 0.0
    #: Iterations left out.
    left_out: int = 0


@dataclass(frozen=True, kw_only=True)
class Shift:
    """A percentile of traced iterations minus the untraced ones' percentile, with its interval."""

    added_s: float
    #: Bounds of the 95 % interval, seconds; None if there are too few iterations.
    low_s: float | None
    high_s: float | None


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Cost of tracing: how much longer traced iterations took than untraced ones.

    From service times of successful iterations; `traced` and `untraced` are their numbers.
    """

    traced: int
    untraced: int
    p50: Shift
    p99: Shift


@dataclass(frozen=True, kw_only=True)
class Tracing:
    """State of tracing of a workload: counts of traces and spans, and the cost of tracing."""

    #: "on", or why not: "switched off", "no key", "sample rate 0", "no store in the record",
    #: "store not redis://".
    state: str = ""
    #: Iterations with a trace id.
    traced: int = 0
    sample_rate: float = 1.0
    spans_written: int = 0
    #: Spans that never reached the store (queue full, store failing).
    spans_dropped: int = 0
    #: How the sample rate was worked out; "" if it was given.
    rate_reason: str = ""
    #: Effect of tracing on service times; None if all or no iterations were traced.
    cost: Cost | None = None
    #: Traces kept in the run directory, and why the slow ones are slow; "" if it is not known.
    kept: int = 0
    explanation: str = ""
