"""What a run came to: the report of its workloads, its notes and its exit code."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from oslo_config import cfg

from osbench.common.plugin.plugins import Plugins
from osbench.common.task import Subtask, Task, Workload
from osbench.coordinator.fleet.worker import Member
from osbench.coordinator.report.generator_limits import exit_code, generator_limits
from osbench.coordinator.report.model import RunReport, WorkloadReport
from osbench.coordinator.results.totals import Tracing, Warmup
from osbench.coordinator.run.sampling import Sampling
from osbench.coordinator.run.state import RunState
from osbench.coordinator.run.workload import Conductor
from osbench.coordinator.traces.collection.collector import Collected


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A workload that was begun."""

    subtask: Subtask
    workload: Workload
    conductor: Conductor
    #: Which of its iterations are profiled.
    sampling: Sampling


class Closing:
    """Makes the report of one run."""

    def __init__(
        self,
        *,
        run_id: str,
        task: Task,
        tags: Sequence[str],
        conf: cfg.ConfigOpts,
        plugins: Plugins,
        started_at: float,
    ) -> None:
        self._run_id = run_id
        self._task = task
        self._tags = tuple(tags)
        self._conf = conf
        self._plugins = plugins
        self._started_at = started_at

    def report(
        self,
        state: RunState,
        pieces: Sequence[Piece],
        collected: Collected,
        *,
        refused: str,
        broken: str,
    ) -> RunReport:
        """The report of a run that is over.

        `refused` is why a context refused the rest of it, `broken` why it could not go on.
        """
        reports = []
        limits: list[str] = []
        for number, piece in enumerate(pieces):
            report = self._workload(state, number, piece, collected)
            found = generator_limits(
                report.accounting,
                report.offered,
                report.statistics,
                self._conf.benchmark.lag_limit_s,
            )
            limits += [f"{piece.workload.scenario}: {limit}" for limit in found]
            reports.append(report)
        notes = [reason for reason in (refused, broken) if reason]
        if state.interruption.level and not any(piece.conductor.begun for piece in pieces):
            notes.append("interrupted before there was load")
        notes += self._aborted(state, pieces)
        notes += state.losses
        notes += limits
        notes += collected.notes
        code = exit_code(
            broken=bool(broken),
            interrupted=state.interruption.level > 0,
            aborted=bool(state.breach),
            accountings=[report.accounting for report in reports],
            limited=any(limits),
            verdicts=[verdict for report in reports for verdict in report.verdicts],
            refused=bool(refused),
            left_behind=bool(state.contexts.left),
        )
        return RunReport(
            run_id=self._run_id,
            title=self._task.title,
            description=self._task.description,
            tags=self._tags,
            started_at=self._started_at,
            finished_at=time.time(),
            exit_code=code,
            workloads=tuple(reports),
            notes=tuple(notes + self.left(state) + _remarks(pieces)),
        )

    def _aborted(self, state: RunState, pieces: Sequence[Piece]) -> list[str]:
        if not state.breach:
            return []
        begun = [piece.workload for piece in pieces]
        left = [w.scenario for w in self._task.workloads if not any(w is one for one in begun)]
        rest = f"; workloads not started: {', '.join(left)}" if left else ""
        return [f"aborted for a failed SLA: {state.breach}{rest}"]

    def left(self, state: RunState) -> list[str]:
        """What contexts could not undo, and what to do."""
        again = f"`osbench-coord cleanup {self._run_id}` tries again"
        return [f"{problem}; {again}" for problem in state.contexts.left]

    def _workload(
        self, state: RunState, number: int, piece: Piece, collected: Collected
    ) -> WorkloadReport:
        workload, conductor = piece.workload, piece.conductor
        book = conductor.book
        statistics = book.statistics
        refused = state.channel.refused + state.fleet.refused + book.refused
        members = [state.fleet.members[name] for name in sorted(conductor.crew.served)]
        return WorkloadReport(
            name=workload.scenario,
            source=self._plugins.scenario(workload.scenario).source,
            title=piece.subtask.title,
            subtask_description=piece.subtask.description,
            subtask_tags=piece.subtask.tags,
            position=workload.position,
            description=workload.description,
            runner=workload.runner,
            accounting=book.ledger.accounting(
                duplicates=book.duplicates,
                refused=refused + sum(member.beat.refused for member in members),
            ),
            warmup=Warmup(seconds=workload.warmup_s, left_out=book.warmup_rows),
            offered=conductor.offered(),
            tracing=_tracing(piece, number, collected),
            statistics=statistics,
            verdicts=book.criteria.judge(statistics),
            sla_sources=tuple(self._plugins.find("sla", one.name).source for one in workload.sla),
            hooks=conductor.hooks.report(),
            contexts=state.contexts.history.of(number),
            charts=book.charts,
            too_large=book.cut,
            workers=tuple(_worker(member) for member in members),
        )


def _tracing(piece: Piece, number: int, collected: Collected) -> Tracing:
    written, dropped = piece.conductor.crew.spans()
    return Tracing(
        state=piece.sampling.state,
        traced=piece.conductor.book.statistics.traced,
        sample_rate=piece.sampling.rate,
        rate_reason=piece.sampling.reason,
        spans_written=written,
        spans_dropped=dropped,
        cost=collected.costs[number] if collected.costs else None,
        kept=collected.kept[number] if collected.kept else 0,
        explanation=collected.sentences[number] if collected.sentences else "",
    )


def _remarks(pieces: Sequence[Piece]) -> list[str]:
    return [
        f"{piece.workload.scenario}: the load ended with the last row of {piece.workload.args_from}"
        for piece in pieces
        if piece.conductor.used_up
    ]


def _worker(member: Member) -> dict[str, Any]:
    beat = member.beat
    return {
        "incarnation": beat.incarnation,
        "host": beat.host,
        "pid": beat.pid,
        "label": beat.label,
        "version": beat.version,
        "lost": member.fenced,
        "offset_s": beat.offset_s,
        "uncertainty_s": beat.uncertainty_s,
        "stuck": beat.stuck,
        "refused": beat.refused,
    }
