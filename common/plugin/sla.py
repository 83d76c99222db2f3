"""The interface of SLA criteria, which judge the merged results of one workload."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from osbench.common.protocol.columns import Columns
from osbench.common.values.histogram import Histogram
from osbench.common.values.outcomes import Outcome

#: Includes the types that a criterion is given: plug-ins need no other import.
__all__ = [
    "Columns",
    "Drill",
    "Histogram",
    "Outcome",
    "Sla",
    "SpanFigures",
    "SpanSelection",
    "Statistics",
    "Times",
    "Verdict",
    "remaining",
]


class Times(Protocol):
    """Durations of iterations, or of one action, as a histogram for each way of ending."""

    def state(self, name: str) -> Histogram:
        """Return the histogram of durations, ns, with one ending: "ok", "failed" or "timed_out"."""
        ...


class Drill(Protocol):
    """A drill: a fault that hooks cause under load, and how the workload fared so far."""

    @property
    def problem(self) -> str:
        """Return why the drill is void: a hook failed, or did not fire; "" if it is valid."""
        ...

    @property
    def bad(self) -> int:
        """Return the number of failed, timed out and dropped iterations since the fault."""
        ...

    @property
    def recovery_s(self) -> float | None:
        """Return the seconds from the fault until the load is as before.

        None if unknown: `doubt` has the reason.
        """
        ...

    @property
    def recovery_ci(self) -> tuple[float | None, ...] | None:
        """Return the bounds of `recovery_s`'s 95 % interval, seconds; None without one."""
        ...

    @property
    def doubt(self) -> str:
        """Return why `recovery_s` is unknown; "" if it is known."""
        ...

    @property
    def left_in_error(self) -> int | None:
        """Return the number of resources in error, or still changing, after the load.

        None if they were not searched.
        """
        ...

    @property
    def left_doubt(self) -> str:
        """Return why `left_in_error` is None or may lack some; "" if it is exact."""
        ...


class Statistics(Protocol):
    """The merged results of one workload so far, as SLA criteria get them."""

    def count(self, state: str) -> int:
        """Return the number of iterations in a state of `osbench.common.values.outcomes.STATES`."""
        ...

    @property
    def service(self) -> Times:
        """Return service times: iterations' durations from start to end, without think time."""
        ...

    @property
    def response(self) -> Times:
        """Return response times: iterations' durations from due time to end, without think time."""
        ...

    @property
    def actions(self) -> Mapping[str, Times]:
        """Return durations of atomic actions by name, or if nested, by path: "outer > inner"."""
        ...

    @property
    def checks(self) -> Mapping[str, Sequence[int]]:
        """Return how often each soft check held, and how often it did not, by its name."""
        ...

    @property
    def drill(self) -> Drill | None:
        """Return the drill of the workload; None for loads without the key `phases`."""
        ...

    @property
    def start_lag(self) -> Histogram:
        """Return the start lags, nanoseconds from due time to start, of all iterations that ran."""
        ...

    @property
    def ok_per_s(self) -> float | None:
        """Return successful iterations per second of the load; None if a single iteration ended."""
        ...

    @property
    def first_start(self) -> int | None:
        """Return when the first iteration started, nanoseconds after t0; None while none has."""
        ...

    @property
    def last_end(self) -> int | None:
        """Return when the last iteration ended, nanoseconds after t0; None while none has."""
        ...


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Judgement of one criterion on one workload: success or failure, with a message."""

    criterion: str
    success: bool
    detail: str
    #: Numbers of its configuration, such as {"max": 0.0}; osbench adds them.
    limits: Mapping[str, float] = field(default_factory=dict)
    #: It fails, and the load generator's own delays may be why; osbench says so.
    disputed: bool = False


@dataclass(frozen=True, kw_only=True)
class SpanSelection:
    """Spans to be judged: of services that match `service`, with names that match `name`.

    `*` in either text stands for any characters.
    """

    #: Name of the service; its first part, such as `shop` for `shop/web`, is enough.
    service: str
    #: Name of the span, or name and detail: a statement or a path.
    name: str


@dataclass(frozen=True, kw_only=True)
class SpanFigures:
    """Figures of spans that a SpanSelection selects, in complete traces of good iterations."""

    #: Number of these traces, and of incomplete ones, which are left out.
    traces: int = 0
    incomplete: int = 0
    #: Number of traces by calls in the trace.
    calls: Mapping[int, int] = field(default_factory=dict)
    #: The iterations with most and with fewest calls; None without traces.
    most: int | None = None
    fewest: int | None = None
    #: Nanoseconds of the calls.
    durations: Histogram = field(default_factory=Histogram)


class Sla:
    """Base class of SLA criteria. One instance per workload; `check` may be called many times.

    A subclass that overrides `add` has a second instance, for rows as they may have been without
    the load generator's delays: a failed criterion that this one meets is disputed.
    """

    #: JSON schema of the criterion's configuration.
    CONFIG_SCHEMA: ClassVar[Mapping[str, Any]] = {"type": "object"}
    #: Name in task files.
    NAME: ClassVar[str] = ""
    #: The results so far say nothing: there is no verdict while the load goes on.
    AT_END: ClassVar[bool] = False
    #: Name of the only runner whose loads it judges; "" if it judges loads of all runners.
    RUNNER: ClassVar[str] = ""
    #: A load whose iterations all fail, fast, cannot meet it.
    JUDGES_FAILURES: ClassVar[bool] = True

    def __init__(self, config: Any) -> None:
        self.config = config

    @classmethod
    def check_config(cls, config: Any) -> list[str]:
        """Return messages on errors that the schema cannot detect; `config` fits the schema.

        [] unless a subclass overrides it.
        """
        return []

    @classmethod
    def judged_actions(cls, config: Any) -> Collection[str]:
        """Return the atomic actions that a criterion so configured judges; () unless overridden.

        Nested ones are named "outer > inner".
        """
        return ()

    def add(self, columns: Columns) -> None:
        """Take result rows, for criteria that need more than `Statistics` provides.

        Each iteration is passed once, in the order in which results arrive: by end time for one
        worker, interleaved for several. Iterations of the warm-up are left out; dropped ones, which
        have an outcome above `TIMED_OUT`, are not. Times are nanoseconds after t0. Does nothing by
        default.
        """

    def check(self, statistics: Statistics) -> Verdict:
        """Return the verdict on the results so far; subclasses override this.

        Without data the verdict has to be a failure.
        """
        raise NotImplementedError

    def selections(self) -> Sequence[SpanSelection]:
        """Return the spans that the criterion judges; if any, `check_spans` replaces `check`.

        () unless a subclass overrides it.
        """
        return ()

    def check_spans(self, figures: Sequence[SpanFigures]) -> Verdict:
        """Return the verdict on a finished run's spans: `figures` in the order of `selections`.

        Subclasses with `selections` override this.
        """
        raise NotImplementedError

    def breach(self, statistics: Statistics, plan: int | None) -> Verdict | None:
        """Return a failed verdict as soon as failure is certain, whatever remaining iterations do.

        Else None, as always unless it is overridden. `plan`: most iterations of the workload; None
        is unlimited. A run that aborts on SLA failure stops at the first breach.
        """
        return None

    def verdict(self, success: bool, detail: str) -> Verdict:
        """Return a Verdict of this criterion with these values; limits are added later."""
        # a comparison of numpy's numbers is another type
        return Verdict(criterion=self.NAME, success=bool(success), detail=detail)


def remaining(statistics: Statistics, plan: int | None) -> int | None:
    """Return how many iterations may still end, at most; None if `plan` is None (unlimited)."""
    if plan is None:
        return None
    seen = sum(map(statistics.count, ("ok", "failed", "timed_out", "dropped")))
    return max(0, plan - seen)
