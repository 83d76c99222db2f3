"""Results of one workload as they arrive: ledger, statistics, SLA criteria, charts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from osbench.common.plugin.sla import Verdict
from osbench.common.protocol.columns import Columns, select
from osbench.common.protocol.messages import Block
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.plugins.sla.evaluator import SlaEvaluator
from osbench.coordinator.results.accounting.abort_rule import AbortRule
from osbench.coordinator.results.accounting.block_contents import BlockContents
from osbench.coordinator.results.accounting.charts import Charts
from osbench.coordinator.results.accounting.drill_statistics import DrillStatistics
from osbench.coordinator.results.accounting.generator_delay import (
    GeneratorDelay,
    Ints,
    rows_without,
)
from osbench.coordinator.results.accounting.ledger import Ledger
from osbench.coordinator.results.accounting.load_change import LoadChange
from osbench.coordinator.results.accounting.search.trials import Trials
from osbench.coordinator.results.accounting.stage_statistics import StageStatistics
from osbench.coordinator.results.accounting.workload_statistics import WorkloadStatistics
from osbench.coordinator.results.accounting.workload_users import UserRegister

#: Distinct errors outside of iterations at most, and the name of the rest.
ASIDES = 50
OTHER_ASIDES = "other faults outside the iterations"


class WorkloadResults:
    """Counts the result blocks of one workload until the run closes; late results still count.

    Passes rows on to ledger, statistics, stages, SLA criteria, charts and trials.
    """

    def __init__(
        self,
        *,
        idempotent: bool,
        sla: SlaEvaluator,
        warmup_s: float = 0.0,
        abort: AbortRule | None = None,
        stages: StageStatistics | None = None,
        trials: Trials | None = None,
        statistics: WorkloadStatistics | None = None,
    ) -> None:
        self.ledger = Ledger(idempotent=idempotent)
        self.statistics = statistics or WorkloadStatistics()
        self.stages = StageStatistics() if stages is None else stages
        self.sla = sla
        #: Rule that ends the load before its time; None if the task has none.
        self.abort = abort
        #: Trials of a search; None for other loads.
        self.trials = trials
        self.charts = Charts()
        #: Numbers of the virtual users of each membership.
        self.users = UserRegister()
        self.warmup_ns = int(warmup_s * 1e9)
        #: When the load began, seconds since 1970-01-01 UTC; 0 before.
        self.t0_at = 0.0
        #: Rows that count in the ledger alone: the load was warming up.
        self.warmup_rows = 0
        #: User-seconds of all iterations that ran.
        self.busy_s = 0.0
        #: User-nanoseconds that users waited for work that then came, or until the stop time.
        self.want_ns = 0
        #: Outputs and failures cut for size.
        self.cut = 0
        #: Iterations that started although the lease of their worker had ended meanwhile.
        self.started_late = 0
        #: Errors outside of iterations, by kind.
        self.asides: Counter[str] = Counter()
        #: Blocks that came twice, and blocks of another shape; the receiver counts them.
        self.duplicates = 0
        self.refused = 0

    def change(self, change: LoadChange) -> None:
        """Apply a change of the load: begin another stage or, in a search, begin or end a trial."""
        if self.trials is not None:
            self.trials.change(change)
            return
        if not self.stages:
            # before, the load was one stage, for which nothing is counted separately
            self.stages.begin(self.statistics)
        self.stages.change(change.at_s, change.asked)

    def judge(self, *, running: bool = False, users: int = 0) -> tuple[Verdict, ...]:
        """Return the verdict of each SLA criterion, then the verdicts of osbench's own rules.

        The own rules are on virtual users that could not begin and on the runner's own code, both
        only if they fail, and the rule to abort. A search has one verdict, and the rule to abort.
        Empty until an iteration has ended after the warm-up or the ledger is closed. `running`:
        leave out criteria that are judged only at the end. `users`: virtual users that the load may
        have at once; 0 if not known.
        """
        trials, sla = self.trials, self.sla
        if not self.statistics.ran and not self.ledger.closed:
            return ()
        if trials is not None:
            found: tuple[Verdict, ...] = (trials.verdict(),)
        else:
            delay = GeneratorDelay(self.statistics, users)
            judged = sla.judge(self.statistics, running=running, delay=delay)
            found = (*judged, *self._users_lacking(), *self._script_failed())
        return found if self.abort is None else (*found, self.abort.verdict())

    @property
    def drill(self) -> DrillStatistics | None:
        """Iterations by phase of a drill; None for other loads."""
        return self.statistics.drill_phases

    @property
    def script_end(self) -> str | None:
        """End of the code of a runner that starts iterations itself: "" for success, or its error.

        None while the code runs, and for other runners.
        """
        return self.statistics.lives.script_end

    def _users_lacking(self) -> Iterator[Verdict]:
        lives = self.statistics.lives
        if lives.shortfall and 100 * lives.never_began > self.sla.most_failures() * lives.tried:
            yield Verdict(criterion="user_starts", success=False, detail=lives.shortfall)

    def _script_failed(self) -> Iterator[Verdict]:
        if error := self.script_end:
            yield Verdict(criterion="runner", success=False, detail=error)

    def add(self, block: Block) -> tuple[int, float]:
        """Count a block that is on disk; return (iterations that ran, their user-seconds).

        Both include rows that the ledger refuses. Numbers returned unstarted go to the ledger's
        pool. Raises Untrusted if the block has another shape; then none of it was counted.
        """
        found = BlockContents.of(vars(block))
        self.want_ns += block.want_ns
        self.cut += block.cut
        self.started_late += block.started_late
        for what, count in found.asides.items():
            known = what in self.asides or len(self.asides) < ASIDES
            self.asides[what if known else OTHER_ASIDES] += count
        worker = block.incarnation
        self.statistics.add_failures(worker, found.failures)
        self.statistics.add_loop(found.lags, found.blocked)
        self.statistics.add_process(found.thread_lags, found.stalls)
        if found.life:
            told = np.array([failure for *_, failure in found.life], np.uint32)
            self.statistics.lives.add(found.life, self.statistics.errors.texts(worker, told))
        ran, busy_s = 0, 0.0
        if found.columns is not None:
            ran, busy_s = _work(found.columns)
            # a process has either
            lags = np.concatenate((found.lags, found.thread_lags))
            self._count(found.columns, worker, lags)
            if self.trials is not None:
                self.trials.add_delays(found)
            if self.drill is not None:
                self.drill.add_lateness(worker, found.columns, lags)
        self.ledger.give_back(worker, found.returned)
        return ran, busy_s

    def _count(self, columns: Columns, worker: str, lags: Ints) -> None:
        accepted = self.ledger.report(worker, columns.iteration, columns.outcome)
        if not accepted.all():
            columns = select(columns, accepted)
        self.busy_s += float((columns.ended - columns.started).sum()) / 1e9
        if self.abort is not None:
            self.abort.add(columns)
        columns = self._warm(columns)
        self.statistics.add(columns, worker=worker)
        self.stages.add(columns)
        self.charts.add(columns)
        if self.trials is not None and len(columns):
            texts = self.statistics.errors.texts(worker, columns.failure)
            self.trials.add(columns, worker, texts, self.t0_at, lags)
        elif self.sla:
            texts = self.statistics.errors.texts(worker, columns.failure)
            columns = replace(columns, failures=texts, t0_at=self.t0_at)
            apart = None
            if self.sla.takes_rows:
                lacking = self.statistics.errors.are_lacking(worker, columns.failure)
                apart = rows_without(columns, lags, lacking)
            self.sla.add(columns, apart)

    def _warm(self, columns: Columns) -> Columns:
        """Return rows after the warm-up, by start or, of drops, by due time; count the others."""
        if not self.warmup_ns:
            return columns
        ran = columns.outcome <= Outcome.TIMED_OUT
        warm = np.where(ran, columns.started, columns.due) >= self.warmup_ns
        cold = len(columns) - int(np.count_nonzero(warm))
        self.warmup_rows += cold
        return select(columns, warm) if cold else columns


def _work(columns: Columns) -> tuple[int, float]:
    """Return how many iterations ran, and the sum of their durations in seconds."""
    lengths = (columns.ended - columns.started)[columns.outcome <= Outcome.TIMED_OUT]
    return len(lengths), float(lengths.sum()) / 1e9
