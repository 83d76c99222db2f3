"""Traces with known faults: trees of spans, the same as OSProfiler's events, and whole runs."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osbench.common.values.outcomes import Outcome
from osbench.edges.traces.analysis.features import Features
from osbench.edges.traces.model.span_keys import SpanKey
from osbench.edges.traces.model.spans import Span, Trace, span_key, trace_key, uuid_form

#: When the first trace starts, nanoseconds since 1970.
BEGIN = 1_775_000_000_000_000_000
MS = 1_000_000


@dataclass(kw_only=True)
class Work:
    """A span to be: instants in milliseconds after the trace's start by a true clock."""

    name: str
    start: float
    length: float
    service: str = "osbench/worker"
    host: str = "w1"
    detail: str = ""
    kind: str = ""
    error: str = ""
    inner: list[Work] = field(default_factory=list)
    #: Its stop, or all of it, was never written.
    lost_stop: bool = False
    lost: bool = False

    def add(self, *inner: Work) -> Work:
        """Put work within this one."""
        self.inner += inner
        return self

    @property
    def end(self) -> float:
        """Milliseconds after the trace's start."""
        return self.start + self.length


def spans_of(root: Work, *, number: int = 0, clocks: dict[str, float] | None = None) -> Trace:
    """The trace of some work; `clocks` says how far a host's clock is ahead, milliseconds."""
    clocks = clocks or {}
    base = BEGIN + number * 1000 * MS
    spans: list[Span] = []

    def visit(work: Work, parent: str) -> None:
        own = f"{number + 1:08x}{len(spans) + hidden[0]:08x}"
        if work.lost:
            hidden[0] += 1
        else:
            spans.append(
                Span(
                    own,
                    parent,
                    work.name,
                    work.service,
                    work.host,
                    base + round((work.start + clocks.get(work.host, 0.0)) * 1000) * 1000,
                    0 if work.lost_stop else round(work.length * 1000) * 1000,
                    work.detail,
                    work.kind,
                    work.error,
                    1 if work.lost_stop else 0,
                )
            )
        for inner in work.inner:
            visit(inner, own)

    hidden = [0]
    visit(root, "")
    spans.sort(key=lambda span: (span.start_ns, span.span_id))
    return Trace(trace_id=trace_id(number), spans=tuple(spans))


def trace_id(number: int) -> str:
    """The id of the trace of a number, spread evenly as random ones are."""
    return random.Random(number).randbytes(16).hex()


def events_of(trace: Trace, **info: Any) -> list[dict[str, Any]]:
    """A trace as OSProfiler's drivers store it, start before stop; `info` goes into each start."""
    events = []
    for span in trace.spans:
        project, _, service = span.service.partition("/")
        common = {
            "base_id": uuid_form(trace.trace_id),
            "trace_id": wide(span.span_id),
            "parent_id": wide(span.parent_id) if span.parent_id else uuid_form(trace.trace_id),
            "project": project,
            "service": service,
        }
        said: dict[str, Any] = {"host": span.host}
        if span.detail.startswith(("GET", "POST", "PUT")):
            method, _, path = span.detail.partition(" ")
            said["request"] = {"method": method, "path": path, "query": "secret=1"}
        elif span.detail:
            said["db"] = {"statement": span.detail, "params": {"password": "hunter2"}}
        events.append(
            common
            | {"name": f"{span.name}-start", "timestamp": stamp(span.start_ns), "info": said | info}
        )
        if not span.marks & 1:
            ended: dict[str, Any] = {"host": span.host}
            if span.error:
                ended |= {"etype": span.error, "message": "a secret of mine"}
            events.append(
                common
                | {"name": f"{span.name}-stop", "timestamp": stamp(span.end_ns), "info": ended}
            )
    return events


def wide(span_id: str) -> str:
    """A span's id as OSProfiler has it: a UUID whose lower half is the W3C id."""
    return uuid_form("5" * 16 + span_id)


def stamp(instant_ns: int) -> str:
    """An instant as OSProfiler writes it."""
    second, rest = divmod(instant_ns // 1000, 1_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime(second)) + f"{rest:06d}"


def narrow(text: str) -> str:
    """The id by which a span of `events_of` is found again."""
    return span_key(trace_key(text))


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What is wrong with some iterations."""

    #: Share of the iterations.
    share: float
    #: Changes the work of one of them.
    harm: Callable[[Work, random.Random], None]


def iteration(chance: random.Random) -> Work:
    """A healthy iteration: a request to an API that asks a database twice and a second service.

    About 10 ms; each part varies by itself.
    """

    def about(middle: float) -> float:
        return middle * chance.lognormvariate(0.0, 0.25)

    at = about(0.3)
    root = Work(name="osbench.iteration", start=0.0, length=0.0)
    action = Work(name="shop.buy", start=at, length=0.0)
    at += about(0.4)
    api = Work(name="wsgi", start=at, length=0.0, service="shop/api", host="b", detail="GET /items")
    at += about(1.0)
    for text in ("SELECT items", "SELECT prices"):
        took = about(1.2)
        api.add(Work(name="db", start=at, length=took, service="shop/api", host="b", detail=text))
        at += took + about(0.3)
    call = Work(name="rpc", start=at, length=0.0, service="shop/api", host="b", kind="client")
    at += about(0.5)
    took = about(2.0)
    call.add(Work(name="reserve", start=at, length=took, service="stock/engine", host="c"))
    at += took + about(0.3)
    call.length = at - call.start
    at += about(0.5)
    api.add(call)
    api.length = at - api.start
    at += about(0.3)
    action.length = at - action.start
    at += about(0.1)
    root.length = at
    return root.add(action.add(api))


def stretch(work: Work, at: float, by: float) -> None:
    """Have everything after an instant happen later, and what is under way then take longer."""
    if work.start >= at:
        work.start += by
    elif work.end >= at:
        work.length += by
    for inner in work.inner:
        stretch(inner, at, by)


def find(work: Work, name: str, detail: str = "") -> Work:
    """The first work of a name."""
    if work.name == name and work.detail.startswith(detail):
        return work
    for inner in work.inner:
        try:
            return find(inner, name, detail)
        except LookupError:
            continue
    raise LookupError(name)


def slow_query(root: Work, chance: random.Random) -> None:
    """The second query takes 40 ms longer."""
    query = find(root, "db", "SELECT prices")
    stretch(root, query.end - 0.01, 40.0 * chance.lognormvariate(0.0, 0.1))


def many_queries(root: Work, chance: random.Random) -> None:
    """The first query is asked 21 times."""
    api, query = find(root, "wsgi"), find(root, "db", "SELECT items")
    at, length = query.end, query.length
    stretch(root, at + 1e-6, 20 * (length + 0.05))
    for number in range(20):
        api.add(
            Work(
                name="db",
                start=at + 0.05 + number * (length + 0.05),
                length=length,
                service="shop/api",
                host="b",
                detail="SELECT items",
            )
        )


def queue_wait(root: Work, chance: random.Random) -> None:
    """The message to the engine waits 30 ms in its queue."""
    stretch(root, find(root, "reserve").start, 30.0 * chance.lognormvariate(0.0, 0.1))


def traces(
    count: int,
    *faults: Fault,
    seed: int = 1,
    clocks: dict[str, float] | Callable[[float], dict[str, float]] | None = None,
    change: Callable[[Work, random.Random], None] | None = None,
    healthy: Callable[[random.Random], Work] = iteration,
) -> Iterator[Trace]:
    """Traces of a run, some of them with faults; `change` is done to all of them.

    `clocks` may be a function of the part of the run that is over, from 0 to 1.
    """
    works = _works(count, faults, seed, change, healthy)
    for number, root in enumerate(works, 1):
        now = clocks(number / count) if callable(clocks) else clocks
        yield spans_of(root, number=number, clocks=now)


@lru_cache(maxsize=1)
def _works(
    count: int,
    faults: tuple[Fault, ...],
    seed: int,
    change: Callable[[Work, random.Random], None] | None,
    healthy: Callable[[random.Random], Work],
) -> list[Work]:
    """The work of all traces; kept for the next test, whose clocks alone differ."""
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        root = healthy(chance)
        for fault in faults:
            if chance.random() < fault.share:
                fault.harm(root, chance)
        if change is not None:
            change(root, chance)
        found.append(root)
    return found


def shuffled(events: Sequence[dict[str, Any]], seed: int) -> list[dict[str, Any]]:
    """The events in another order, some of them twice."""
    chance = random.Random(seed)
    found = [*events, *(event for event in events if chance.random() < 0.3)]
    chance.shuffle(found)
    return found


def table_of(times: NDArray[np.int64], **columns: Any) -> Features:
    """Traces by what they spent their time on, nanoseconds: one row per trace, one column per key.

    `columns` are those of the table that are not those of traces that succeeded and are whole.
    """
    count, keys = times.shape
    entries = np.arange(count * keys)
    given: dict[str, Any] = {
        "group": np.zeros(count, np.int64),
        "iteration": np.full(count, -1),
        "outcome": np.full(count, Outcome.OK),
        "whole": np.ones(count, bool),
    }
    return Features(
        keys=tuple(SpanKey("shop/api", f"part-{at}", "") for at in range(keys)),
        places=tuple((at, "b") for at in range(keys)),
        groups=("Shop.buy",),
        shapes=((0,),),
        traces=tuple(map(trace_id, range(count))),
        total=times.sum(axis=1),
        shape=np.zeros(count, np.int64),
        kept=np.ones(count, bool),
        begin=np.arange(0, len(entries) + 1, keys),
        place=entries % keys,
        time=times.ravel(),
        calls=np.ones(len(entries), np.int64),
        **(given | columns),
    )
