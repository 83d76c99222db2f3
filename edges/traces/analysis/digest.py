"""Digests traces one by one: keeps only the data that explanations and rankings need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from osbench.common.plugin.sla import SpanSelection
from osbench.common.values.outcomes import Outcome
from osbench.edges.traces.analysis.coverage import TraceCoverage
from osbench.edges.traces.analysis.features import FeatureTable
from osbench.edges.traces.analysis.ranking import Ranking
from osbench.edges.traces.analysis.span_calls import SpanCalls
from osbench.edges.traces.model.clock_samples import ClockSamples
from osbench.edges.traces.model.clock_skew import Clocks
from osbench.edges.traces.model.critical_path import critical_path
from osbench.edges.traces.model.spans import Trace
from osbench.edges.traces.model.stale_spans import LateWork, Usual, leave_out_stale
from osbench.edges.traces.model.tree import ORPHAN, Tree, label

#: Work that starts later than this after an iteration's end, seconds, is not part of it.
GRACE_S = 60.0


class Survey:
    """First pass over all traces: estimates clock offsets, and the usual number of late spans."""

    def __init__(self) -> None:
        self._samples = ClockSamples()
        self._late = LateWork()

    def add(self, trace: Trace) -> None:
        """Add the calls between hosts of one trace, and its late spans."""
        self._samples.add(trace)
        self._late.add(trace)

    def clocks(self) -> Clocks:
        """Return the clock offsets between hosts, estimated from all traces added so far."""
        return self._samples.estimate()

    def usual(self) -> Usual:
        """Return the usual number of late spans in a parent, by kinds of parent and late span.

        Late spans start after the end of their parent. Pairs of kinds with usually none are
        missing.
        """
        return self._late.usual()


class Digest:
    """Second pass: adds traces to feature table, ranking and counts, iterations to span calls."""

    def __init__(
        self,
        survey: Survey,
        groups: Sequence[str] = (),
        selections: Mapping[int, Sequence[SpanSelection]] | None = None,
    ) -> None:
        """Take clock offsets and usual late spans from `survey`, which has seen all traces.

        `groups` are names of workloads; `selections` are spans to count, by position of a group.
        """
        self.clocks = survey.clocks()
        self.coverage = TraceCoverage()
        self.table = FeatureTable(groups, self.clocks)
        self.ranking = Ranking()
        self.calls = SpanCalls(selections)
        self.usual = survey.usual()

    def add_iteration(
        self, trace: Trace, *, group: int, iteration: int, outcome: int, kept: bool
    ) -> None:
        """Add the trace of an iteration: count it, rank its spans, and add its row to the table.

        `group`: position of the workload, or NO_GROUP; `outcome`: of the iteration. Roots other
        than the iteration's are left out as orphans. A trace without the iteration's root is
        counted as rootless, and gets no row. `kept`: the spans of the trace are kept.
        """
        whole = self.coverage.add(trace)
        tree = Tree(trace, self.clocks)
        root = tree.iteration
        for other in list(tree.roots):
            if other != root:
                tree.leave_out(other, ORPHAN)
        if root is None:
            self.coverage.rootless += 1
            self.coverage.leave_out(tree)
            self.ranking.add(tree, ())
            return
        self._add(tree, root, group, iteration, outcome, whole, kept)
        self.coverage.leave_out(tree)

    def add_any(self, trace: Trace, *, any_root: bool = False) -> None:
        """Add a trace that is not of an iteration: each root becomes a row of the table.

        The group of a row is service, name and detail of its root, the outcome failed if the root
        has an error. `any_root`: if the trace has no root, its topmost spans, whose parents are
        missing, are roots.
        """
        whole = self.coverage.add(trace)
        tree = Tree(trace, self.clocks, any_root=any_root)
        self.coverage.headless += tree.headless
        paths = []
        for root in list(tree.roots):
            span = tree.spans[root]
            leave_out_stale(tree, root, self.usual, GRACE_S)
            path = critical_path(tree, root, self.clocks)
            paths.append(path)
            self.coverage.outlived(tree, path)
            outcome = Outcome.FAILED if span.error else Outcome.OK
            group = self.table.group(label(span))
            self.table.add(tree, root, path, group=group, outcome=outcome, whole=whole)
        self.ranking.add(tree, paths)
        self.coverage.leave_out(tree)

    def _add(
        self,
        tree: Tree,
        root: int,
        group: int,
        iteration: int,
        outcome: int,
        whole: bool,
        kept: bool,
    ) -> None:
        leave_out_stale(tree, root, self.usual, GRACE_S)
        path = critical_path(tree, root, self.clocks)
        self.coverage.outlived(tree, path)
        self.ranking.add(tree, (path,))
        self.calls.add(tree, group=group, iteration=iteration, outcome=outcome, whole=whole)
        self.table.add(
            tree,
            root,
            path,
            group=group,
            iteration=iteration,
            outcome=outcome,
            whole=whole,
            kept=kept,
        )


def digest_of(traces: Iterable[Trace], *, any_root: bool = False) -> Digest:
    """Return the digest of traces that are not of iterations; holds all of them in memory.

    `any_root`: in a trace without a root, the topmost spans, whose parents are missing, are roots.
    """
    found = list(traces)
    survey = Survey()
    for trace in found:
        survey.add(trace)
    digest = Digest(survey)
    for trace in found:
        digest.add_any(trace, any_root=any_root)
    return digest
