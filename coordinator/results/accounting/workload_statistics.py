"""Statistics of one workload: all result rows that count are added here, in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osbench.common.protocol.columns import Columns, Failure
from osbench.common.protocol.exchanges import FALSE_BODY
from osbench.common.values.histogram import Histogram
from osbench.common.values.outcomes import DROP_REASONS, Outcome
from osbench.coordinator.results.accounting.breakdown import Breakdown
from osbench.coordinator.results.accounting.drill_figures import DrillFigures
from osbench.coordinator.results.accounting.drill_statistics import DrillStatistics
from osbench.coordinator.results.accounting.error_groups import ErrorGroups, FailurePlace
from osbench.coordinator.results.accounting.examples import ErrorExample, Exemplars
from osbench.coordinator.results.accounting.latency_over_time import LatencyOverTime, WorkerLatency
from osbench.coordinator.results.accounting.load_profile import LoadProfile, arrival_window
from osbench.coordinator.results.accounting.workload_requests import WorkloadRequests
from osbench.coordinator.results.accounting.workload_users import UserLives
from osbench.coordinator.results.statistics.action_paths import entries_by_group, name_paths
from osbench.coordinator.results.statistics.soft_checks import SoftChecks

Ints = NDArray[np.int64]

#: States that an iteration which ran, or an action, ends in; their times are kept apart.
TIMED = ("ok", "failed", "timed_out")

#: Actions kept apart; scenarios that make up names from data would fill the memory.
ACTIONS = 200
#: Name of the actions beyond.
OTHER_ACTIONS = "(other actions)"

#: Places at which the scenario blocked an event loop, likewise.
PLACES = 50
OTHER_PLACES = "(other places)"

#: Causes of stalls.
STALLS = ("lock", "stopped")

#: Status codes of errors begin here.
_ERROR_STATUS = 400

_OUTCOMES = len(Outcome) + 1


class Timings:
    """Durations in nanoseconds: a histogram for each state of `TIMED`."""

    __slots__ = TIMED

    def __init__(self) -> None:
        self.ok = Histogram()
        self.failed = Histogram()
        self.timed_out = Histogram()

    def state(self, name: str) -> Histogram:
        """Return the histogram of one state of `TIMED`."""
        found: Histogram = getattr(self, name)
        return found


class WorkloadStatistics:
    """Statistics of a workload's iterations after the warm-up, in bounded memory."""

    def __init__(
        self,
        *,
        is_open: bool = False,
        planned_s: float | None = None,
        drill: DrillStatistics | None = None,
        breakdowns: Sequence[Breakdown] = (),
    ) -> None:
        """`planned_s`: seconds in which an open load's iterations are planned to start, or None.

        `is_open`: iterations start at planned times. `drill`: also gets all rows, to count them by
        phase; `breakdowns` get rows of blocks in which iterations ran.
        """
        #: Iterations start at planned times.
        self.is_open = is_open
        self._planned_ns = None if planned_s is None else int(planned_s * 1e9)
        #: Rows by outcome code.
        self._outcomes = [0] * _OUTCOMES
        #: Service time (ended - started - idle) and response time (ended - due - idle).
        self.service = Timings()
        self.response = Timings()
        #: Started - due, of all iterations that ran.
        self.start_lag = Histogram()
        #: Durations of atomic actions by name path. An action that its iteration's end cut
        #: short is timed out.
        self.actions: dict[str, Timings] = {}
        self.requests = WorkloadRequests()
        #: Slow traced iterations, by state of `TIMED`.
        self.exemplars = {name: Exemplars() for name in TIMED}
        self.errors = ErrorGroups()
        self.profile = LoadProfile()
        self.over_time = LatencyOverTime()
        #: Lateness of the event loops that virtual users share, at each of their beats; and
        #: nanoseconds for which the scenario blocked them, by place.
        self.loop_lag = Histogram()
        self.blocked: Counter[str] = Counter()
        #: Wake-up lateness of threads, for virtual users that are threads; and nanoseconds for
        #: which processes could run nothing, by cause: `lock` of the interpreter, or `stopped`.
        self.thread_lag = Histogram()
        self.stalls: Counter[str] = Counter()
        self.soft_checks = SoftChecks()
        #: Iterations by phase of a drill; None for other loads.
        self.drill_phases = drill
        self.breakdowns = breakdowns
        #: How virtual users began and ended.
        self.lives = UserLives()
        #: Iterations with a trace id.
        self.traced = 0
        #: Nanoseconds after t0; None before the first iteration.
        self.first_start: int | None = None
        self.last_start: int | None = None
        self.first_end: int | None = None
        self.last_end: int | None = None

    def count(self, state: str) -> int:
        """Return how many rows had the state `state` of `STATES`; 0 for lost and not_started."""
        if state == "dropped":
            return sum(self.drops.values())
        return self._outcomes[Outcome[state.upper()]] if state in TIMED else 0

    @property
    def checks(self) -> Mapping[str, Sequence[int]]:
        """Counts [passed, failed] of each soft check (it does not fail its iteration), by name."""
        return self.soft_checks.counts

    @property
    def drill(self) -> DrillFigures | None:
        """Figures of the drill so far; None if the load is not a drill."""
        return self.drill_phases.figures() if self.drill_phases is not None else None

    @property
    def undisturbed_drill(self) -> DrillFigures | None:
        """Figures of the drill as they may have been without the load generator's delays."""
        return self.drill_phases.figures_without_delays() if self.drill_phases is not None else None

    @property
    def ran(self) -> int:
        """Number of iterations that ran, whatever their outcome."""
        return sum(self.count(state) for state in TIMED)

    @property
    def drops(self) -> dict[str, int]:
        """Number of dropped iterations by reason, without reasons that did not occur."""
        return {
            reason: self._outcomes[outcome]
            for outcome, reason in DROP_REASONS.items()
            if self._outcomes[outcome]
        }

    @property
    def rate_started(self) -> float | None:
        """Iterations started per second of the window of starts; None for fewer than two.

        The window lasts from the first start until the next start after the last would be due.
        """
        window = self._starts_window
        return self.ran * 1e9 / window if window else None

    @property
    def _starts_window(self) -> float | None:
        if self.first_start is None or self.last_start is None:
            return None
        return arrival_window(self.first_start, self.last_start, self.ran, self._planned_ns)

    @property
    def starts_until_s(self) -> float | None:
        """End of the window of an open load's starts, seconds after t0.

        None if it is not known, and for a closed load.
        """
        window = self._starts_window if self.is_open else None
        return ((self.first_start or 0) + window) / 1e9 if window else None

    @property
    def span_s(self) -> float | None:
        """Seconds in which throughput is counted; None for fewer than two starts, or if it is 0.

        A closed load's window lasts from its first start to its last end. The window of an open
        load is as long as its starts are planned for and begins with the first end, so that neither
        the first responses nor responses after the load change its rate.
        """
        if self.is_open:
            window = self._starts_window
            return window / 1e9 if window else None
        if self.ran < 2 or self.first_start is None or self.last_end is None:
            return None
        return (self.last_end - self.first_start) / 1e9 or None

    @property
    def ok_per_s(self) -> float | None:
        """Successful iterations per second of the window `span_s`; None without a window."""
        span_s = self.span_s
        if span_s is None or self.first_end is None or self.last_end is None:
            return None
        ok: float = self.count("ok")
        until = self.first_end + span_s * 1e9
        if self.is_open and self.last_end > until:
            ok = min(ok, self.profile.ended_well(until))
        return ok / span_s

    @property
    def busy_s(self) -> float:
        """Seconds that iterations were running, summed over all iterations that ran."""
        return float(self.profile.running_ns().sum()) / 1e9

    def example(self, etype: str) -> ErrorExample | None:
        """Return the example iteration of an error type; None without one, or beyond the limit."""
        return self.over_time.failures.examples.get(etype)

    def part_of(self, worker: str) -> WorkerLatency | None:
        """Return the figures of the worker with this incarnation; None if it ran nothing."""
        return self.over_time.workers.get(worker)

    def add_failures(self, worker: str, failures: Sequence[Failure]) -> None:
        """Store the texts of failure numbers, which result rows of `worker` refer to."""
        self.errors.learn(worker, failures)

    def add_loop(self, lags: Ints, blocked: Mapping[str, int]) -> None:
        """Add measurements of a worker's event loop (ns): lags, and blocking time by place.

        Places beyond `PLACES` are summed as `OTHER_PLACES`.
        """
        self.loop_lag.add(lags)
        for place, lasted in blocked.items():
            known = place in self.blocked or len(self.blocked) < PLACES
            self.blocked[place if known else OTHER_PLACES] += lasted

    def add_process(self, lags: Ints, stalls: Mapping[str, int]) -> None:
        """Add measurements of a worker process, in ns: lags of its threads, and stalls by cause.

        Causes that are not in `STALLS` are ignored.
        """
        self.thread_lag.add(lags)
        for cause in STALLS:
            self.stalls[cause] += stalls.get(cause, 0)

    def add(self, columns: Columns, *, worker: str) -> None:
        """Count a worker's rows, one per iteration; dropped ones only by reason and by phase."""
        if not len(columns):
            return
        outcomes = np.bincount(columns.outcome, minlength=_OUTCOMES).tolist()
        for code, count in enumerate(outcomes[:_OUTCOMES]):
            self._outcomes[code] += count
        if self.drill_phases is not None:
            self.drill_phases.add(columns, self.errors.are_lacking(worker, columns.failure))
        ran = sum(outcomes[Outcome[name.upper()]] for name in TIMED)
        if not ran:
            return
        started, ended = columns.started, columns.ended
        service = ended - started - columns.idle
        response = columns.response
        lag = started - columns.due
        for name, rows in _rows_by_state(columns.outcome, outcomes):
            self.service.state(name).add(service[rows])
            self.response.state(name).add(response[rows])
        codes = (outcomes[Outcome.OK], outcomes[Outcome.FAILED], outcomes[Outcome.TIMED_OUT])
        self.over_time.add(columns, worker, service, codes)
        if ran == len(columns):
            self._add_instants(columns, started, ended, lag)
        else:
            rows_ran = np.flatnonzero(columns.outcome <= Outcome.TIMED_OUT)
            self._add_instants(columns, started[rows_ran], ended[rows_ran], lag[rows_ran])
        if outcomes[Outcome.OK] < ran:
            self._add_errors(columns, worker)
        if len(columns.actions) or len(columns.exchanges):
            number, paths = name_paths(columns.actions, columns.names)
            self._add_actions(columns, number, paths)
            if len(columns.exchanges):
                self.requests.add(columns, number, paths)
        if len(columns.traced):
            self._add_traces(columns, service)
        self.soft_checks.add(columns.outputs)
        for one in self.breakdowns:
            one.add(columns, worker)

    def _add_instants(self, columns: Columns, started: Ints, ended: Ints, lag: Ints) -> None:
        self.start_lag.add(lag)
        outcome = columns.outcome
        failed = (outcome == Outcome.FAILED) | (outcome == Outcome.TIMED_OUT)
        self.profile.add(started, ended, columns.ended[failed])
        self._extend(
            int(np.minimum.reduce(started)),
            int(np.maximum.reduce(started)),
            int(np.minimum.reduce(ended)),
            int(np.maximum.reduce(ended)),
        )

    def _add_errors(self, columns: Columns, worker: str) -> None:
        outcome, failure = columns.outcome, columns.failure
        # a timeout needs no error to explain it, a failure does
        rows = (outcome == Outcome.FAILED) | ((outcome == Outcome.TIMED_OUT) & (failure > 0))
        self.errors.add(
            worker, failure[rows], columns.iteration[rows], partial(_failed_at, columns)
        )
        failed = np.flatnonzero((outcome == Outcome.FAILED) | (outcome == Outcome.TIMED_OUT))
        self._add_failures(columns, worker, failed)

    def _add_failures(self, columns: Columns, worker: str, failed: Ints) -> None:
        iteration, due = columns.iteration[failed], columns.due[failed]
        took = columns.ended[failed] - due
        failures = self.over_time.failures
        failures.add(iteration, due, took)
        traces = _traces_of(columns, set(iteration.tolist()))
        types = self.errors.types(worker, columns.failure[failed])
        for name in sorted(set(types)):
            of_type = np.flatnonzero([one == name for one in types])
            failures.add_type(name, iteration[of_type], due[of_type], took[of_type], traces)

    def _add_actions(self, columns: Columns, number: Ints, labels: Sequence[str]) -> None:
        lines = columns.actions
        begun, ended, state = lines[:, 3], lines[:, 4], lines[:, 5]
        duration = ended - begun
        open_ = ended < begun
        if open_.any():
            duration = np.where(open_, columns.ended[lines[:, 0]] - begun, duration)
            state = np.where(open_, TIMED.index("timed_out"), state)
        for group, rows in entries_by_group(number * len(TIMED) + state):
            path, code = divmod(group, len(TIMED))
            values = duration[rows]
            self._action(labels[path]).state(TIMED[code]).add(values)
            if TIMED[code] == "ok":
                self.over_time.add_action(labels[path], columns.due[lines[rows, 0]], values)

    def _add_traces(self, columns: Columns, service: Ints) -> None:
        self.traced += len(columns.traced)
        rows = _rows_of(columns.traced, columns.iteration)
        outcome = columns.outcome[rows]
        for name, kept in self.exemplars.items():
            found = np.flatnonzero(outcome == Outcome[name.upper()])
            if len(found):
                kept.add(service[rows[found]], columns.traced[found], columns.traces[found])

    def _action(self, path: str) -> Timings:
        timings = self.actions.get(path)
        if timings is None:
            if len(self.actions) >= ACTIONS:
                path = OTHER_ACTIONS
            timings = self.actions.setdefault(path, Timings())
        return timings

    def _extend(self, first_start: int, last_start: int, first_end: int, last_end: int) -> None:
        if (
            self.first_start is None
            or self.last_start is None
            or self.first_end is None
            or self.last_end is None
        ):
            self.first_start, self.last_start = first_start, last_start
            self.first_end, self.last_end = first_end, last_end
        else:
            self.first_start = min(self.first_start, first_start)
            self.last_start = max(self.last_start, last_start)
            self.first_end = min(self.first_end, first_end)
            self.last_end = max(self.last_end, last_end)


def _rows_by_state(outcome: NDArray[np.uint8], counts: Sequence[int]) -> Iterator[tuple[str, Any]]:
    """Yield each state of `TIMED` that occurs, with a numpy index of its rows.

    `counts`: number of rows by outcome code.
    """
    for name in TIMED:
        code = Outcome[name.upper()]
        if counts[code] == len(outcome):
            yield name, slice(None)
        elif counts[code]:
            yield name, np.flatnonzero(outcome == code)


def _failed_at(columns: Columns, iteration: int) -> FailurePlace:
    """Return the step and HTTP status with which an iteration of a block failed.

    The step is the last action that failed or did not end; the status is of the last response with
    an error; "" and 0 without any.
    """
    row = int(np.flatnonzero(columns.iteration == iteration)[0])
    lines = columns.actions[columns.actions[:, 0] == row]
    bad = lines[(lines[:, 5] != 0) | (lines[:, 4] < lines[:, 3])]
    statuses = columns.exchanges["status"][columns.exchanged == row] & ~FALSE_BODY
    errors = statuses[statuses >= _ERROR_STATUS]
    return FailurePlace(
        step=columns.names[int(bad[-1, 1])] if len(bad) else "",
        status=int(errors[-1]) if len(errors) else 0,
    )


def _traces_of(columns: Columns, numbers: Container[int]) -> dict[int, bytes]:
    """Return the trace ids (16 bytes) by number of the traced iterations in `numbers`."""
    found = {}
    for at, number in enumerate(columns.traced.tolist()):
        if number in numbers:
            found[number] = columns.traces[at].tobytes()
    return found


def _rows_of(numbers: Ints, iteration: Ints) -> Ints:
    """Return for each of `numbers` its index in `iteration`, which has all of them."""
    if len(numbers) == len(iteration) and np.array_equal(numbers, iteration):
        return np.arange(len(iteration))
    order = np.argsort(iteration)
    return order[np.searchsorted(iteration, numbers, sorter=order)]
