"""Counts the spans and SQL statements that each request of a run causes, from its kept traces.

A request is an atomic action, and within an action each kind of call that reaches a service. Only
complete traces of successful iterations after the warm-up count. They are read one by one: in a
service that is full, one trace may have ten thousand spans.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from osbench.coordinator.results.statistics.action_paths import NESTED
from osbench.coordinator.results.storage.run_directory import RunDirectory
from osbench.edges.traces.collection.archive import Archive
from osbench.edges.traces.model.spans import Span, Trace, joined_words, trace_key
from osbench.edges.traces.model.tree import ITERATION

#: Service of the spans of osbench's own workers.
_WORKER = "osbench/worker"
#: Spans of a run that are counted at most; further traces are left out.
MOST_SPANS = 5_000_000
#: Kinds of spans of a request that are counted one by one; further ones only in sums.
_KINDS = 500
#: Requests of a run that are counted at most; further calls count for their action alone.
_REQUESTS = 500
#: First word of a statement; DELETE may also be an HTTP method, with a path.
_SQL = re.compile(
    r"\s*(?:SELECT|INSERT|UPDATE|DELETE|REPLACE|MERGE|WITH|CALL|EXEC|EXECUTE|VALUES|SHOW)\s+"
    r"(?!/|\w+://)\S",
    re.I,
)
_WORDS = frozenset(("select", "insert", "update", "delete", "replace", "merge"))
_OPERATIONS = ("db.operation.name", "db.operation")
_SYSTEMS = ("db.system.name", "db.system")
#: Systems of spans with `db.system` that do not speak SQL.
_NOT_SQL = frozenset(
    ("redis", "memcached", "mongodb", "couchdb", "elasticsearch", "opensearch", "dynamodb", "neo4j")
)
_METHOD = re.compile(r"[A-Z]+ /")


class RequestKey(NamedTuple):
    """A request of a run: its workload by number, its action by path, a call within that action.

    `call` is "" for the whole action; `action` is "" for iterations without actions.
    """

    workload: int
    action: str
    call: str = ""


class CallCounts(NamedTuple):
    """A request in one iteration: its calls, and their spans, statements and nanoseconds in all."""

    calls: int
    spans: int
    sql: int
    duration_ns: int


@dataclass(kw_only=True)
class CountedRequest:
    """A request in all counted iterations."""

    iterations: list[CallCounts] = field(default_factory=list)
    #: Spans by service, name and detail, summed over the iterations.
    kinds: Counter[str] = field(default_factory=Counter)

    @property
    def calls(self) -> int:
        """Calls of the request in all iterations."""
        return sum(one.calls for one in self.iterations)


@dataclass(frozen=True, kw_only=True)
class TracedCounts:
    """The counted requests of a run, and how many traces are behind them."""

    requests: Mapping[RequestKey, CountedRequest]
    #: Counted traces, and traces of successful iterations that lack spans.
    counted: int = 0
    incomplete: int = 0
    #: Whether traces are left out above `MOST_SPANS`.
    cut: bool = False

    @property
    def has_spans(self) -> bool:
        """Whether a service has sent spans."""
        return any(one.spans for request in self.requests.values() for one in request.iterations)


def traced_counts(
    directory: RunDirectory,
    workloads: Mapping[str, int],
    actions: Mapping[int, Collection[str]],
) -> TracedCounts:
    """Count the requests in the kept traces of a run.

    `workloads`: number of the workload by trace id, in any form, of the iterations that count.
    `actions`: paths of the actions of each workload; other spans of workers are not requests.
    Raises DamagedRun, OSError.
    """
    requests: dict[RequestKey, CountedRequest] = defaultdict(CountedRequest)
    numbers = {trace_key(trace_id): workload for trace_id, workload in workloads.items()}
    counted = incomplete = read = 0
    cut = False
    for trace in Archive(directory.path, directory.files).traces():
        workload = numbers.get(trace_key(trace.trace_id))
        if workload is None:
            continue
        if read + len(trace.spans) > MOST_SPANS and counted:
            cut = True
            break
        read += len(trace.spans)
        found = _TraceCount(trace, actions.get(workload, ())) if trace.is_whole else None
        if found is None or not found.has_root:
            incomplete += 1
            continue
        counted += 1
        for (action, call), counts in found.counts.items():
            key = RequestKey(workload, action, call)
            if call and key not in requests and len(requests) >= _REQUESTS:
                continue
            request = requests[key]
            request.iterations.append(counts)
            _add_kinds(request.kinds, found.kinds[action, call])
    return TracedCounts(requests=dict(requests), counted=counted, incomplete=incomplete, cut=cut)


def _add_kinds(kinds: Counter[str], more: Counter[str]) -> None:
    for name, number in more.items():
        if name in kinds or len(kinds) < _KINDS:
            kinds[name] += number


class _TraceCount:
    """Counts the requests in one complete trace, by action path and call."""

    def __init__(self, trace: Trace, actions: Collection[str]) -> None:
        self._spans = trace.spans
        self._actions = actions
        self._children: list[list[int]] = [[] for _ in trace.spans]
        place = {span.span_id: at for at, span in enumerate(trace.spans)}
        roots = []
        for at, span in enumerate(trace.spans):
            if span.parent_id:
                self._children[place[span.parent_id]].append(at)
            elif span.name == ITERATION:
                roots.append(at)
        self.has_root = len(roots) == 1
        self._sums: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
        self.kinds: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        if self.has_root:
            self._walk(roots[0])

    @property
    def counts(self) -> dict[tuple[str, str], CallCounts]:
        """The counts by (action path, call)."""
        return {key: CallCounts(*sums) for key, sums in self._sums.items()}

    def _walk(self, root: int) -> None:
        """Visit all spans below the root once, with the requests around each."""
        self._begin("", "", self._spans[root])
        # position; paths of the actions around; its call, once in a service; below a statement
        waiting: list[tuple[int, tuple[str, ...], str, bool]] = [(root, ("",), "", False)]
        while waiting:
            at, paths, call, in_statement = waiting.pop()
            for inner in self._children[at]:
                waiting.append(self._visit(inner, paths, call, in_statement))

    def _visit(
        self, at: int, paths: tuple[str, ...], call: str, in_statement: bool
    ) -> tuple[int, tuple[str, ...], str, bool]:
        span = self._spans[at]
        if span.service == _WORKER:
            path = f"{paths[-1]}{NESTED}{span.name}" if paths[-1] else span.name
            if path in self._actions:
                paths = (*paths, path)
                self._begin(path, "", span)
            return at, paths, call, in_statement
        if not call:
            call = call_name(span)
            for path in paths:
                self._begin(path, call, span)
        statement = is_statement(span)
        kind = joined_words(span.service, span.name, span.detail)
        for path in paths:
            for key in ((path, ""), (path, call)):
                sums = self._sums[key]
                sums[1] += 1
                # an instrumented driver below an instrumented ORM sends the same statement
                sums[2] += statement and not in_statement
                self.kinds[key][kind] += 1
        return at, paths, call, in_statement or statement

    def _begin(self, path: str, call: str, span: Span) -> None:
        sums = self._sums[path, call]
        sums[0] += 1
        sums[3] += span.duration_ns


def call_name(span: Span) -> str:
    """Return the name of a call that reaches a service: method and path, or name and detail."""
    for text in (span.detail, span.name):
        if _METHOD.match(text):
            return text
    return joined_words("", span.name, span.detail) or span.service


def is_statement(span: Span) -> bool:
    """Return whether a span is a statement in SQL, of OSProfiler or OpenTelemetry."""
    about = span.attributes
    systems = [str(about[name]).lower() for name in _SYSTEMS if about.get(name)]
    if _NOT_SQL.intersection(systems):
        return False
    if _SQL.match(span.detail) or _SQL.match(span.name):
        return True
    # instrumentations may leave the text of statements out
    words = [str(about[name]).lower() for name in _OPERATIONS if about.get(name)]
    return bool(systems) and bool(_WORDS.intersection(words))


def largest_kinds(counts: CountedRequest, most: int) -> Iterator[tuple[str, float]]:
    """Yield the `most` most frequent kinds of spans with their number per call of the request."""
    calls = counts.calls
    for name, number in counts.kinds.most_common(most):
        if calls:
            yield name, number / calls


def per_call(iterations: Sequence[CallCounts], field_name: str) -> list[float]:
    """Return a count of each iteration per call of the request; iterations without calls lack."""
    return [getattr(one, field_name) / one.calls for one in iterations if one.calls]
