"""The trials of a search for the capacity: rows that count for each, and its result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from osbench.common.plugin.runner import Capacity, SearchingRunner, Trial
from osbench.common.plugin.sla import Verdict
from osbench.common.protocol.columns import Columns, select
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.formatting import count, duration
from osbench.coordinator.plugins.sla.evaluator import SlaEvaluator
from osbench.coordinator.results.accounting.block_contents import BlockContents
from osbench.coordinator.results.accounting.error_groups import Texts
from osbench.coordinator.results.accounting.generator_delay import (
    GeneratorDelay,
    Ints,
    rows_without,
)
from osbench.coordinator.results.accounting.load_change import LoadChange
from osbench.coordinator.results.accounting.search.capacity_sentence import (
    load_text,
    range_text,
    sentence,
)
from osbench.coordinator.results.accounting.totals import NOT_MADE
from osbench.coordinator.results.accounting.workload_statistics import WorkloadStatistics

#: How often a rate is tried again if the load generator was late.
LATE_MOST = 5
#: A block of results belongs to a trial if its last iteration ended so long after it, seconds.
BLOCK_S = 1.0
#: Share of the arrivals of a trial that may be dropped because they could not be started in time.
DROPS_ALLOWED = 0.01
#: Distinct errors of a trial at most.
ERRORS = 20
#: Actions that grew, as the report names them.
GROWN = 5
#: Causes why a rate was not sustained; and the cause of an unknown result: a worker or the
#: coordinator was gone, or the load generator was late.
SLA, GENERATOR, UNENDED, DISTURBED = "sla", "generator", "unended", "disturbed"
#: The generator was late whenever this rate was tried.
LATE = "generator_late"
#: The workload's own bound of concurrent iterations, while its criteria were met.
CONCURRENCY = "max_concurrency"
_NO_LAGS: Ints = np.zeros(0, np.int64)
#: Remedies if the load was not the requested one.
_REMEDIES = {
    GENERATOR: "add workers, or virtual users",
    LATE: "take dedicated hosts, or add workers",
    CONCURRENCY: "raise `max_concurrency` of the runner",
}


@dataclass(frozen=True, kw_only=True)
class TrialFigures:
    """Result of one trial of a search: its load, and whether the SLA criteria were met at it.

    Counts and times are of iterations that were due in its measured part; `ok_per_s` and
    `concurrency` of all that ended or ran in it.
    """

    #: Arrivals per second, or virtual users: `SearchOutcome.capacity` has the unit.
    rate: float
    held: bool
    #: "sla", "generator", "generator_late", "max_concurrency", "unended", "disturbed" or, if the
    #: rate was sustained, "". A disturbed trial has no result, and is repeated.
    cause: str
    #: The failed criterion in words; "" if the rate was sustained.
    detail: str
    #: When it was judged, seconds after t0.
    from_s: float
    to_s: float
    ok: int
    failed: int
    timed_out: int
    dropped: int
    #: Iterations that ended well while it was judged, per second, whenever they were due.
    ok_per_s: float
    #: Response times of successful iterations; None without any.
    p50_s: float | None
    p95_s: float | None
    p99_s: float | None
    #: Iterations in flight while it was judged, on average.
    concurrency: float
    #: Mean duration of atomic actions that ended well, seconds, by name.
    actions: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class SearchOutcome:
    """Result of a search for the capacity: capacity, trials, and actions that grew."""

    capacity: Capacity
    trials: tuple[TrialFigures, ...]
    #: Cause if the load generator, not the service, was the limit; else "".
    limit: str
    #: Actions whose mean grew most from the highest rate that held to the lowest that did not:
    #: name, seconds at the first, seconds at the second.
    grown: tuple[tuple[str, float, float], ...] = ()
    #: Parts of traces that grew beyond chance, likewise; and a message on the traces of the two
    #: rates, "" without any.
    grown_spans: tuple[tuple[str, float, float], ...] = ()
    traces: str = ""

    @property
    def parts(self) -> tuple[list[tuple[float, float]], list[tuple[float, float]]] | None:
        """Times in which the two compared rates were measured: (begin, end) in seconds after t0.

        First times of the highest sustained rate, then of the lowest that failed a criterion; a
        list each, as a rate may have several trials. None if either rate is missing.
        """
        before, after = _bounding_trials(self.capacity, self.trials)
        if not before or not after:
            return None
        return [(one.from_s, one.to_s) for one in before], [(one.from_s, one.to_s) for one in after]


class _Held:
    """State of a trial, under load or finished: measured part, statistics and SLA criteria."""

    def __init__(
        self, change: LoadChange, settle_s: float, hold_s: float, sla: SlaEvaluator
    ) -> None:
        assert change.level is not None
        self.rate = change.level
        #: When its load began; when its measured part begins and ends, seconds after t0.
        self.begun_s = change.at_s
        self.from_s = change.at_s + settle_s
        self.to_s = self.from_s + hold_s
        #: Its load has ended; and another trial has begun, or the search has ended.
        self.ended = self.over = False
        #: Iterations that had not ended when the wait for them was given up, and iterations lost
        #: with a worker.
        self.unended = self.lost = 0
        #: Virtual users that no worker had as its load ended, and users that had not begun.
        self.missing = self.waiting = 0
        #: No coordinator was there for a part of its load.
        self.interrupted = False
        self.sla = sla
        self.statistics = WorkloadStatistics()
        self.errors: Counter[str] = Counter()
        #: Iterations that ended well in the measured part, and nanoseconds in flight then.
        self.ended_ok = self.in_flight_ns = 0
        #: Whether the generator was late, and the numbers of results of which that is known.
        self.late: tuple[tuple[int, ...], bool] = ((), False)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Return how many rows and wake-ups were counted."""
        found = self.statistics
        return found.ran, found.count("dropped"), found.loop_lag.count, found.thread_lag.count

    def end(self, at_s: float) -> None:
        """End the load of this trial at `at_s`, seconds after t0, and its measured part with it.

        A measured part that ended earlier stays; if the part had not begun, it is empty.
        """
        self.ended = True
        self.to_s = max(self.from_s, min(self.to_s, at_s))

    def flow(self, columns: Columns) -> None:
        """Add to time in flight (ns) and successful ends within the measured part.

        Iterations that were due outside of it count, too.
        """
        begin, end = round(self.from_s * 1e9), round(self.to_s * 1e9)
        ran = columns.outcome <= Outcome.TIMED_OUT
        started, ended = columns.started[ran], columns.ended[ran]
        inside = np.minimum(ended, end) - np.maximum(started, begin)
        self.in_flight_ns += int(inside[inside > 0].sum())
        within = (columns.ended >= begin) & (columns.ended < end)
        self.ended_ok += int(np.count_nonzero(within & (columns.outcome == Outcome.OK)))

    def judged(self, columns: Columns) -> Columns:
        """Return the rows of iterations that were due in the trial's measured part."""
        due = columns.due
        mine = (due >= round(self.from_s * 1e9)) & (due < round(self.to_s * 1e9))
        return columns if mine.all() else select(columns, mine)


class Trials:
    """The trials of a search: each tries a constant rate for some time.

    The results depend only on the added changes of the load and result rows, so a resumed run finds
    the same.
    """

    def __init__(
        self, runner: SearchingRunner, criteria: Callable[[], SlaEvaluator], lag_limit_s: float
    ) -> None:
        """`criteria` returns new SLA criteria for a trial.

        `lag_limit_s`: p99 start lag above which the generator did not offer the rate, seconds.
        """
        self.runner = runner
        self._criteria = criteria
        self._lag_limit_s = lag_limit_s
        self._held: list[_Held] = []
        #: Progress of the search, in words.
        self.progress = ""

    def change(self, change: LoadChange) -> None:
        """Apply a change of the load: begin a trial, or end the last trial's load, or the search.

        With a level it begins a trial, and the trial before is over. Without a level it ends the
        search if it is the `last` change, else the load of the last trial. Updates `progress`.
        """
        if self._held and (change.level or change.last):
            self._held[-1].over = True
            self._held[-1].unended, self._held[-1].lost = change.unended, change.lost
            self._held[-1].waiting = change.waiting
        if change.level:
            self._held.append(
                _Held(change, self.runner.settle_s, self.runner.hold_s, self._criteria())
            )
        elif self._held and not change.last:
            self._held[-1].end(change.at_s)
            self._held[-1].interrupted = change.interrupted
            self._held[-1].missing = change.missing
        self.progress = self._progress()

    def _progress(self) -> str:
        last = self._held[-1] if self._held else None
        if last is None or last.over:
            return "the search is over"
        made = self._trials(self.figures())
        unit = self.runner.unit
        words = f"trial {len(self._held)} at {load_text(last.rate, unit)}"
        found = self.runner.found(made)
        if found.low is None or found.high is None or found.held is None or found.broke is None:
            return words
        return f"{words}, capacity {range_text(found.low, found.high, unit, 'to')}"

    def add(
        self,
        columns: Columns,
        worker: str,
        texts: Mapping[int, Texts],
        t0_at: float,
        lags: Ints = _NO_LAGS,
    ) -> None:
        """Count result rows, at least one, in the trials in whose measured part they were due.

        Each iteration once. `texts`: type, message and traceback by failure number; `t0_at`: start
        of the load, seconds since 1970; `lags`: latenesses of the worker's wake-ups since its block
        before, nanoseconds.
        """
        first, last = int(columns.due.min()), int(columns.due.max())
        for one in reversed(self._held):
            one.flow(columns)
            if first < round(one.to_s * 1e9) and last >= round(one.from_s * 1e9):
                mine = one.judged(columns)
                if len(mine):
                    one.statistics.add(mine, worker=worker)
                    told = replace(mine, failures=texts, t0_at=t0_at)
                    apart = rows_without(told, lags) if one.sla.takes_rows else None
                    one.sla.add(told, apart)
                    self._name_errors(one, mine, texts)
            if first >= round(one.from_s * 1e9):
                return

    def add_delays(self, contents: BlockContents) -> None:
        """Count the late wake-ups of a block in the trial in which the last of its rows ended.

        Ignored without rows, or if they ended `BLOCK_S` seconds or more after its measured part.
        """
        if contents.columns is None:
            return
        ended_s = int(contents.columns.ended.max()) / 1e9
        for one in reversed(self._held):
            # what came late before the measured part is still in the queue then
            if one.begun_s <= ended_s:
                if ended_s < one.to_s + BLOCK_S:
                    one.statistics.add_loop(contents.lags, contents.blocked)
                    one.statistics.add_process(contents.thread_lags, contents.stalls)
                return

    def _name_errors(self, one: _Held, mine: Columns, texts: Mapping[int, Texts]) -> None:
        for number in mine.failure[mine.failure > 0].tolist():
            etype, message, _ = texts.get(number, ("", "", ""))
            name = f"{etype}: {message}".partition("\n")[0][:200]
            if etype and (name in one.errors or len(one.errors) < ERRORS):
                one.errors[name] += 1

    @property
    def is_loaded(self) -> bool:
        """Return whether the last trial is under load: its load has begun and not ended."""
        return bool(self._held) and not self._held[-1].ended

    @property
    def begins_s(self) -> float:
        """Begin of that measured part, s after t0. Raises IndexError without a trial."""
        return self._held[-1].from_s

    @property
    def ends_s(self) -> float:
        """End of the last trial's measured part, s after t0. Raises IndexError without a trial."""
        return self._held[-1].to_s

    def is_lost(self, elapsed_s: float) -> bool:
        """Return whether the last trial is sure to fail a criterion, whatever results still come.

        False before its measured part. `elapsed_s`: seconds after t0. Raises IndexError without a
        trial.
        """
        one = self._held[-1]
        if elapsed_s <= one.from_s:
            return False
        # users begin as many iterations as the service lets them
        plan = int(one.rate * self.runner.hold_s) + 1 if self.runner.OPEN else None
        return one.sla.breach(one.statistics, plan) is not None

    @property
    def disturbed(self) -> int:
        """Number of disturbed trials whose load has ended; they have no result."""
        return sum(one.cause == DISTURBED for one in self.figures(judged_only=False))

    def made(self, unended: int = 0, lost: int = 0, waiting: int = 0) -> list[Trial]:
        """Return rate and verdict of each trial whose load has ended, without disturbed trials.

        `unended`, `lost`: iterations of the last trial that have not ended, or were lost with a
        worker; `waiting`: its users that had not begun. Used if that trial is not over.
        """
        if self._held and not self._held[-1].over:
            self._held[-1].waiting = waiting
        return self._trials(self.figures(unended=unended, lost=lost, judged_only=False))

    @staticmethod
    def _trials(figures: Iterable[TrialFigures]) -> list[Trial]:
        return [Trial(rate=one.rate, held=one.held) for one in figures if one.cause != DISTURBED]

    def figures(
        self, *, unended: int = 0, lost: int = 0, judged_only: bool = True
    ) -> Iterator[TrialFigures]:
        """Yield the results of finished trials in order, also of disturbed ones.

        `judged_only=False` adds a trial whose load has ended but which is not over; `unended` and
        `lost` are its iterations that have not ended, or were lost with a worker.
        """
        for one in self._held:
            if one.over:
                yield self._figures(one, one.unended, one.lost)
            elif one.ended and not judged_only:
                yield self._figures(one, unended, lost)

    def _figures(self, one: _Held, unended: int, lost: int) -> TrialFigures:
        statistics, length_s = one.statistics, max(1e-9, one.to_s - one.from_s)
        cause, detail = self._broken(one, unended, lost)
        times = statistics.response.ok
        p50, p95, p99 = (times.percentile(p) / 1e9 if times.count else None for p in (50, 95, 99))
        return TrialFigures(
            rate=one.rate,
            held=not cause,
            cause=cause,
            detail=detail,
            from_s=one.from_s,
            to_s=one.to_s,
            ok=statistics.count("ok"),
            failed=statistics.count("failed"),
            timed_out=statistics.count("timed_out"),
            dropped=statistics.count("dropped"),
            ok_per_s=one.ended_ok / length_s,
            p50_s=p50,
            p95_s=p95,
            p99_s=p99,
            concurrency=one.in_flight_ns / 1e9 / length_s,
            actions={
                name: timings.ok.mean / 1e9
                for name, timings in statistics.actions.items()
                if timings.ok.count
            },
        )

    def _broken(self, one: _Held, unended: int, lost: int) -> tuple[str, str]:
        """Return (cause, message) if a rate was not sustained, or is not known; else ("", "").

        Causes are checked in order: disturbed, no results, a late generator, failed criteria,
        iterations that did not end (`unended`), drops and start lag. `lost`: iterations lost with a
        worker. A late generator also disturbs a trial, at most `LATE_MOST` times a rate.
        """
        disturbed = self._disturbed(one, lost)
        if disturbed:
            return DISTURBED, disturbed
        statistics = one.statistics
        if lack := self._lacking(one):
            return SLA, lack
        cause, limit = self._generator(one)
        if self._is_late(one):
            return self._late(one)
        failing = one.sla.failing(statistics)
        # a user that starts late was kept waiting by the generator, never by the service
        if failing and (self.runner.OPEN or cause != GENERATOR or one.missing):
            said = "; ".join(f"{verdict.criterion}: {verdict.detail}" for verdict in failing)
            common = one.errors.most_common(1)
            said += f" ({common[0][0]})" if common else ""
            # response time counts from when an iteration was due
            return SLA, f"{said}; and {limit}" if limit else said
        if unended:
            return UNENDED, f"{unended} of its iterations did not end"
        return cause, limit

    def _lacking(self, one: _Held) -> str:
        """Return why a trial has too few users or no rows to judge by its criteria; "" if not."""
        if one.waiting:
            return f"{one.waiting} of its users had not begun: `on_start` failed or took longer"
        if one.statistics.ran or one.statistics.count("dropped"):
            return ""
        longer = "" if self.runner.OPEN else ": hold longer than an iteration takes"
        return f"no iteration has ended{longer}"

    def _is_late(self, one: _Held) -> bool:
        """Return whether the generator's delay may be why the rate of a trial was not sustained."""
        if one.late[0] != one.sizes:
            one.late = (one.sizes, self._found_late(one))
        return one.late[1]

    def _found_late(self, one: _Held) -> bool:
        if not one.statistics.ran:
            # a criterion may not know what to make of no rows
            return False
        delay = GeneratorDelay(one.statistics)
        if delay.statistics_without is None:
            return False
        failing = one.sla.failing(one.statistics, delay)
        # near the capacity what a delay held back comes at once, and all behind it waits
        if delay.late_s(99) > self._lag_limit_s:
            return bool(failing) or self._generator(one)[0] == GENERATOR
        return bool(failing) and all(verdict.disputed for verdict in failing)

    def _late(self, one: _Held) -> tuple[str, str]:
        """Return (cause, message) of a delayed trial; `LATE` after `LATE_MOST` of its rate."""
        earlier = self._held[: self._held.index(one)]
        again = sum(self._is_late(other) for other in earlier if other.rate == one.rate)
        said = f"the load generator disturbed it: {GeneratorDelay(one.statistics).sentence}"
        if again < LATE_MOST:
            return DISTURBED, said
        return LATE, f"in {again + 1} trials {said}"

    @staticmethod
    def _disturbed(one: _Held, lost: int) -> str:
        """Return why a trial is disturbed, so that it has no result; "" if it is not.

        It is if arrivals were dropped with a worker or the coordinator, the coordinator was gone
        for a part of the load, or iterations (`lost`) were lost with a worker.
        """
        gone = sum(one.statistics.drops.get(reason, 0) for reason in NOT_MADE)
        if gone:
            return f"{gone} arrivals were dropped with a worker or the coordinator"
        if one.interrupted:
            return "the coordinator or a worker was gone for a part of it"
        return f"{lost} of its iterations were lost with a worker" if lost else ""

    def _generator(self, one: _Held) -> tuple[str, str]:
        """Return cause and message if the offered load was not the requested one; else ("", "").

        It was not if workers lacked virtual users at its end, if more than the fraction
        `DROPS_ALLOWED` of arrivals was dropped, either for `max_concurrency` or for lateness and
        capacity, or if p99 start lag is above the limit.
        """
        if one.missing:
            return GENERATOR, f"the workers lacked {count(one.missing, 'virtual user')}"
        statistics = one.statistics
        drops = Counter(statistics.drops)
        late, own = drops["capacity"] + drops["late"], drops["max_concurrency"]
        arrivals = statistics.ran + statistics.count("dropped")
        if own > DROPS_ALLOWED * arrivals:
            return CONCURRENCY, f"{own} of {arrivals} arrivals were dropped for max_concurrency"
        if late > DROPS_ALLOWED * arrivals:
            return GENERATOR, f"{late} of {arrivals} arrivals could not be started in time"
        lag_s = statistics.start_lag.percentile(99) / 1e9 if statistics.start_lag.count else 0.0
        if lag_s > self._lag_limit_s:
            return GENERATOR, f"p99 start lag was {duration(lag_s)}"
        return "", ""

    def outcome(self) -> SearchOutcome:
        """Return the result of the search so far, from finished trials, without traces."""
        capacity = self._found()
        trials = tuple(self.figures())
        return SearchOutcome(
            capacity=capacity,
            trials=trials,
            limit=self._limit(capacity),
            grown=tuple(_slower_actions(capacity, trials)),
        )

    def verdict(self) -> Verdict:
        """Return the result of the search as a verdict of the criterion "search".

        It fails if the search did not end, or found no rate that is sustained. It is then disputed
        if the load generator was the limit.
        """
        found = self._found()
        broken = self._at(found.broke)
        success = found.kind in ("found", "above")
        return Verdict(
            criterion="search",
            success=success,
            disputed=not success and bool(self._limit(found)),
            detail=sentence(found, broken.detail if broken is not None else ""),
        )

    def _found(self) -> Capacity:
        found = self.runner.found(self._trials(self.figures()))
        found = replace(found, unit=self.runner.unit)
        broken = self._at(found.broke)
        if broken is not None and broken.cause == LATE:
            # it says nothing about the service
            found = replace(found, kind="unfinished", rate=None, low=None, high=None)
        # other rates do not help if the load generator was the limit
        return replace(found, advice="") if self._limit(found) else found

    def _limit(self, found: Capacity) -> str:
        if found.kind not in ("found", "above") and self._held and self._is_late(self._held[-1]):
            return (
                f"the load generator disturbed {self.disturbed} trials, so the search ended: take "
                "dedicated hosts, or add workers"
            )
        broken = self._at(found.broke)
        if found.kind == "above" or broken is None or broken.cause not in _REMEDIES:
            return ""
        remedy = _REMEDIES[broken.cause]
        return f"at {load_text(broken.rate, found.unit)} {broken.detail}: {remedy}"

    def _at(self, rate: float | None) -> TrialFigures | None:
        """Return the first finished trial at `rate` that failed and was not disturbed, or None."""
        broken = (one for one in self.figures() if not one.held and one.cause != DISTURBED)
        return next((one for one in broken if one.rate == rate), None)


def _bounding_trials(
    capacity: Capacity, trials: Sequence[TrialFigures]
) -> tuple[list[TrialFigures], list[TrialFigures]]:
    """Return the trials at the highest sustained rate, and trials at the lowest failed rate.

    Of the latter, trials that failed a criterion only; each list may be empty.
    """
    best = [trial for trial in trials if trial.rate == capacity.held and trial.held]
    worst = [trial for trial in trials if trial.rate == capacity.broke and trial.cause == SLA]
    return best, worst


def _slower_actions(
    capacity: Capacity, trials: Sequence[TrialFigures]
) -> Iterator[tuple[str, float, float]]:
    """Yield (name, mean seconds before, after) of actions that became slower, the most first.

    Compares the last trials at the highest sustained and the lowest failed rate. Looks at the
    `GROWN` actions that grew most; nothing if either rate is missing.
    """
    best, worst = _bounding_trials(capacity, trials)
    if not best or not worst:
        return
    before, after = best[-1].actions, worst[-1].actions
    both = [(name, before[name], after[name]) for name in before if name in after]
    both.sort(key=lambda action: action[1] - action[2])
    yield from (action for action in both[:GROWN] if action[2] > action[1])
