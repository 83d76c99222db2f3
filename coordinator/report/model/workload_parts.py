"""Parts of a workload in a report: search, requests, users, errors, verdicts, hooks, contexts.

Names and order of the fields are as in the JSON object (docs/results.schema.json). Parts that a run
computes in the form in which they are reported, such as its accounting, are classes of other
packages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from osbench.common.plugin.plugin_names import NATIVE
from osbench.common.plugin.runner import Capacity
from osbench.coordinator.plugins.contexts.history import Fault
from osbench.coordinator.plugins.hooks.executor import Error
from osbench.coordinator.report.model.json_codec import OMITTED
from osbench.coordinator.report.model.time_figures import BriefTimes
from osbench.coordinator.results.accounting.search.trials import TrialFigures


@dataclass(frozen=True, kw_only=True)
class RunnerChoice:
    """The runner of a workload as the task configures it; secrets are masked."""

    type: str = ""
    config: Any = None


@dataclass(frozen=True, kw_only=True)
class GrownAction:
    """An action that became slower in a search: its mean seconds at two rates.

    Before: the highest sustained rate; after: the lowest that was not.
    """

    action: str = ""
    before_s: float = 0.0
    after_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class GrownSpan:
    """A part of traces that grew in a search: its mean seconds at two rates.

    Before: the highest sustained rate; after: the lowest that was not.
    """

    span: str = ""
    before_s: float = 0.0
    after_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class SearchReport(Capacity):
    """Result of a search for the capacity: capacity, limit, trials, and parts that grew."""

    #: Reason if the load generator was the limit; else None.
    limit: str | None = None
    grown: tuple[GrownAction, ...] = ()
    grown_spans: tuple[GrownSpan, ...] = ()
    #: Explanation by the traces of the last two rates.
    traces: str | None = None
    trials: tuple[TrialFigures, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RequestCounts:
    """Counts of HTTP requests of a workload or an action, and times of their phases in seconds.

    Phases, connections, statuses and bytes are only of requests by osbench's client.
    """

    requests: int = 0
    unanswered: int = 0
    sent_twice: int = 0
    false_bodies: int = 0
    new_connections: int = 0
    reused_connections: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0
    #: Responses by status code.
    statuses: Mapping[str, int] = field(default_factory=dict)
    by_other_clients: int = 0
    phases: Mapping[str, BriefTimes] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ClientRequests:
    """Number of requests that a client other than osbench's made, and why that client was used."""

    client: str = ""
    why: str = ""
    requests: int = 0


@dataclass(frozen=True, kw_only=True)
class RequestsReport:
    """Counts of HTTP requests: in total, by action path, and by client other than osbench's."""

    total: RequestCounts = field(default_factory=RequestCounts)
    actions: Mapping[str, RequestCounts] = field(default_factory=dict)
    clients: tuple[ClientRequests, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Blocked:
    """A place in a scenario's code that blocked event loops, and the seconds of blocking in sum."""

    place: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Loops:
    """Lateness of the event loops of virtual users, and places in code that blocked loops."""

    lag: BriefTimes = field(default_factory=BriefTimes)
    blocked_s: float = 0.0
    #: The longest first.
    blocked: tuple[Blocked, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Threads:
    """Wake-up lateness of worker threads, for virtual users that are threads."""

    lag: BriefTimes = field(default_factory=BriefTimes)


@dataclass(frozen=True, kw_only=True)
class StallTimes:
    """Seconds in which worker processes could run nothing, summed: lock of Python, or stopped."""

    lock_s: float = 0.0
    stopped_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class UserTimes:
    """Times in seconds that virtual users took to begin (`on_start`), or to end (`on_stop`)."""

    p50: float = 0.0
    p95: float = 0.0
    max: float = 0.0


@dataclass(frozen=True, kw_only=True)
class UserError:
    """An error of virtual users and its count; `what` is on_start (begin) or on_stop (end)."""

    what: str = ""
    type: str = ""
    message: str = ""
    count: int = 0


@dataclass(frozen=True, kw_only=True)
class UserFigures:
    """Counts of starts, ends and replacements of virtual users, times to begin and end, errors."""

    tried: int = 0
    never_started: int = 0
    started: int = 0
    start_failures: int = 0
    stopped: int = 0
    stop_failures: int = 0
    replaced: int = 0
    start_s: UserTimes | None = None
    stop_s: UserTimes | None = None
    #: The most frequent first.
    errors: tuple[UserError, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CheckCounts:
    """Numbers of times that one soft check (it does not fail its iteration) passed and failed."""

    held: int = 0
    failed: int = 0


@dataclass(frozen=True, kw_only=True)
class OwnLateness:
    """The load generator's own lateness in latency, by percentile, in seconds.

    None if it is too small to notice, or not computed.
    """

    #: The time that counts: service or response.
    of: str = "service"
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None

    def percentile(self, key: str) -> float | None:
        """Return the own lateness at a percentile such as "p50", seconds.

        None if it is small, not computed, or `key` is unknown.
        """
        found: float | None = getattr(self, key, None)
        return found


@dataclass(frozen=True, kw_only=True)
class ThroughputFigures:
    """Iterations per second of a workload: ok, and all that ran; None if too few give no rate."""

    #: Seconds that were counted.
    span_s: float = 0.0
    ok_per_s: float | None = None
    ran_per_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class SlowIteration:
    """A traced iteration that is among the slowest of its outcome."""

    iteration: int = 0
    trace_id: str = ""
    service_s: float = 0.0
    outcome: str = "ok"


@dataclass(frozen=True, kw_only=True)
class ErrorReport:
    """Iterations that ended with the same error, with an example; None for values not known."""

    type: str = ""
    message: str = ""
    resource: str | None = None
    traceback: str = ""
    count: int = 0
    first_iteration: int | None = None
    example_iteration: int | None = None
    trace_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class SlaVerdict:
    """The verdict of one SLA criterion, and whose criterion it is: osbench's or Rally's."""

    criterion: str = ""
    success: bool = False
    detail: str = ""
    source: str = NATIVE
    #: Numbers of its configuration by path.
    limits: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class TriggeredBy:
    """The event that fired a hook: `value` is seconds of load, or a number of iterations."""

    event_type: str = ""
    value: float = 0


@dataclass(frozen=True, kw_only=True)
class HookResult:
    """A firing of a hook and its result. Times are ISO 8601, UTC."""

    status: str = ""
    started_at: str | None = None
    finished_at: str | None = None
    triggered_by: TriggeredBy = field(default_factory=TriggeredBy)
    error: Error | None = field(default=None, metadata=OMITTED)
    output: Mapping[str, Any] | None = field(default=None, metadata=OMITTED)


@dataclass(frozen=True, kw_only=True)
class HookRun:
    """A hook and all its firings; action and trigger are a mapping from name to configuration."""

    action: Mapping[str, Any] = field(default_factory=dict)
    trigger: Mapping[str, Any] = field(default_factory=dict)
    description: str = ""
    results: tuple[HookResult, ...] = ()
    #: Firings by status.
    summary: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ContextStepReport:
    """The set-up or the cleanup of a context. Times are ISO 8601, UTC."""

    started_at: str = ""
    finished_at: str = ""
    error: Fault | None = None


@dataclass(frozen=True, kw_only=True)
class ContextReport:
    """A context of a workload with its set-up and cleanup; None if that step did not take place."""

    name: str = ""
    source: str = NATIVE
    config: Any = None
    setup: ContextStepReport | None = None
    cleanup: ContextStepReport | None = None


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """Charts of the outputs of iterations, in Rally's form, and counts of parts left out."""

    additive: tuple[Mapping[str, Any], ...] = ()
    complete: tuple[Mapping[str, Any], ...] = ()
    cut: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class LoadProfileBins:
    """The load by bin of time from t0 on: iterations started, ended, failed, and mean running."""

    bin_s: float = 0.0
    starts: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()
    failures: tuple[int, ...] = ()
    running: tuple[float, ...] = ()
