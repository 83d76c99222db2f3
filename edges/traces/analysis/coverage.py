"""Counts of the traces and spans that were read, and of spans that had to be left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from osbench.common.deployment.service_catalogue import SERVICES
from osbench.edges.traces.model.critical_path import Path
from osbench.edges.traces.model.spans import LOST_START, LOST_STOP, STEPPED, Trace
from osbench.edges.traces.model.tree import ORPHAN, STALE, Tree

#: Limit on services, and on kinds of work after the reply, that are counted separately.
_NAMES = 500
_OTHER = "(other)"


def is_ours(service: str) -> bool:
    """Return whether a service is osbench itself ("osbench" or "osbench/...")."""
    return service.partition("/")[0] == "osbench"


@dataclass(kw_only=True)
class SpanCounts:
    """Counts of the spans of one service: all of them, and spans left out of trees, by reason."""

    count: int = 0
    #: Left out because the parent was not recorded, or because the thread had kept an old trace.
    orphan: int = 0
    stale: int = 0


@dataclass(kw_only=True)
class WorkAfterReply:
    """Spans of one service and name that ended after their parent: number, and time after it."""

    count: int = 0
    #: Total nanoseconds after that end.
    after_ns: int = 0


@dataclass(kw_only=True)
class TraceCoverage:
    """Counts over all traces that were read, for notes on their quality.

    Traces, spans by service, spans left out of trees, and records that are missing or duplicate.
    """

    traces: int = 0
    #: Traces without the span of their iteration, which cannot be analysed.
    rootless: int = 0
    #: Traces without a root, whose topmost spans are used as roots.
    headless: int = 0
    #: Traces with spans whose start or stop was not recorded.
    incomplete: int = 0
    lost_stops: int = 0
    lost_starts: int = 0
    #: Spans during which a clock was set back.
    stepped: int = 0
    #: Events or spans that occurred more than once.
    duplicates: int = 0
    services: dict[str, SpanCounts] = field(default_factory=dict)
    after: dict[str, WorkAfterReply] = field(default_factory=dict)
    #: Traces with an atomic action of a service of OpenStack, such as nova.boot_server, by service.
    called: dict[str, int] = field(default_factory=dict)

    @property
    def silent(self) -> dict[str, int]:
        """Return for each OpenStack service that was called but wrote no spans its calling traces.

        As their number, by name of the service. Empty if no service wrote any span.
        """
        if self.unanswered:
            return {}
        return {
            name: traces
            for name, traces in self.called.items()
            if not any(one.startswith(name) for one in self.services)
        }

    @property
    def unanswered(self) -> bool:
        """Return whether there are spans, and all are of osbench itself: services wrote none."""
        return self.traces > 0 and all(map(is_ours, self.services)) and bool(self.services)

    def add(self, trace: Trace) -> bool:
        """Count a trace and its spans; return whether every span has start and stop.

        Services beyond the first `_NAMES` are counted together.
        """
        self.traces += 1
        self.duplicates += trace.duplicates
        stops = starts = 0
        called = {
            span.name.partition(".")[0] for span in trace.spans if is_ours(span.service)
        } & SERVICES.keys()
        for name in called:
            self.called[name] = self.called.get(name, 0) + 1
        for span in trace.spans:
            if span.marks:
                stops += bool(span.marks & LOST_STOP)
                starts += bool(span.marks & LOST_START)
                self.stepped += bool(span.marks & STEPPED)
            self._service(span.service).count += 1
        self.lost_stops += stops
        self.lost_starts += starts
        self.incomplete += bool(stops or starts)
        return not (stops or starts)

    def leave_out(self, tree: Tree) -> None:
        """Count, by service, the spans that were left out of a tree, as orphan or stale."""
        for at, why in tree.left_out.items():
            spans = self._service(tree.spans[at].service)
            spans.orphan += why == ORPHAN
            spans.stale += why == STALE

    def outlived(self, tree: Tree, path: Path) -> None:
        """Count the spans of `path.outlived`, which ended after their parent, by service and name.

        Names beyond the first `_NAMES` are counted together.
        """
        for at in path.outlived:
            span = tree.spans[at]
            name = f"{span.service} {span.name}".strip()
            if name not in self.after and len(self.after) >= _NAMES:
                name = _OTHER
            entry = self.after.setdefault(name, WorkAfterReply())
            entry.count += 1
            entry.after_ns += tree.end[at] - tree.end[tree.parent[at]]

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as a dictionary for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Self:
        """Return the counts from the dictionary that `to_dict` made.

        Raises KeyError, TypeError, AttributeError if the dictionary has another form.
        """
        services = {name: SpanCounts(**spans) for name, spans in form["services"].items()}
        after = {name: WorkAfterReply(**entry) for name, entry in form["after"].items()}
        return cls(**{**form, "services": services, "after": after})

    def _service(self, name: str) -> SpanCounts:
        if name not in self.services and len(self.services) >= _NAMES:
            name = _OTHER
        return self.services.setdefault(name, SpanCounts())
