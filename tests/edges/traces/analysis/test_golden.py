"""What is found where the fault is known: a golden file a fault."""

import io
import random

import pytest
from rich.console import Console

from helpers.synthetic_traces import (
    Fault,
    Work,
    events_of,
    find,
    iteration,
    many_queries,
    queue_wait,
    shuffled,
    slow_query,
    spans_of,
    traces,
)
from osbench.coordinator.formatting import duration
from osbench.edges.traces.analysis.digest import GRACE_S, digest_of
from osbench.edges.traces.analysis.explanation import explain
from osbench.edges.traces.analysis.notes import trace_notes
from osbench.edges.traces.model.critical_path import critical_path
from osbench.edges.traces.model.stale_spans import leave_out_stale
from osbench.edges.traces.model.tree import Tree
from osbench.edges.traces.output import trace_text
from osbench.edges.traces.output.span_rows import left_out, rows_of
from osbench.edges.traces.sources.pairing import event_of, pair

MANY = 1000
SLOW = Fault(share=0.05, harm=slow_query)


def notify(work, chance):
    """The API sends a message to a bus, whose work continues after the reply."""
    api = find(work, "wsgi")
    api.add(Work(name="notify", start=api.end - 0.1, length=50, service="bus", host="c"))


def lose_stops(work, chance):
    if chance.random() < 0.1:
        find(work, "db", "SELECT items").lost_stop = True


def lose_parents(work, chance):
    if chance.random() < 0.1:
        find(work, "rpc").lost = True


def kept_by_threads():
    """The engine runs every request in one of two threads that keep the first trace."""
    chance = random.Random(1)
    works = [iteration(chance) for _ in range(MANY)]
    for work in works:
        if chance.random() < SLOW.share:
            SLOW.harm(work, chance)
    calls = [find(work, "rpc") for work in works]
    for number, call in enumerate(calls):
        engine = call.inner.pop()
        engine.start += (number - number % 2) * 1000
        calls[number % 2].inner.append(engine)
    return [spans_of(work, number=number) for number, work in enumerate(works, 1)]


FAULTS = {
    "slow-call": lambda: traces(MANY, SLOW),
    "many-calls": lambda: traces(MANY, Fault(share=0.05, harm=many_queries)),
    "clocks": lambda: traces(
        MANY, Fault(share=0.05, harm=queue_wait), clocks={"b": 10.0, "c": -10.0}
    ),
    "after-the-reply": lambda: traces(MANY, SLOW, change=notify),
    "lost-stops": lambda: traces(MANY, SLOW, change=lose_stops),
    "missing-parents": lambda: traces(MANY, SLOW, change=lose_parents),
    "stale-threads": kept_by_threads,
}


def story_of(found):
    """The differences, the notes on the traces, and the tree of the slowest one with gaps."""
    file = io.StringIO()
    console = Console(file=file, width=100)
    digest = digest_of(found)
    (answer,) = explain(digest.table.close()).answers
    for band in answer.bands:
        if band.clear:
            how = "more calls" if band.clear.more_calls_s > band.clear.slower_calls_s else "slower"
            where = f" on {band.clear.host}" if band.clear.host else ""
            print(f"stands out: {band.clear.key}{where}, by {how}", file=file)
    for line in trace_notes(digest.coverage, digest.clocks, 0):
        print(line, file=file)
    slowest = max(found, key=lambda one: (not one.is_whole, _length(one), one.trace_id))
    tree = Tree(slowest, digest.clocks)
    leave_out_stale(tree, tree.iteration, digest.usual, GRACE_S)
    path = critical_path(tree, tree.iteration, digest.clocks)
    assert sum(segment.end - segment.start for segment in path.segments) == _length(slowest)
    rows = list(rows_of(tree, [path]))
    left = [f"left out ({one['why']}): {one['span']}" for one in left_out(tree)[:5]]
    trace_text.show_trace(console, f"The slowest, {duration(rows[0].duration_s)}", rows, left)
    return "".join(f"{line.rstrip()}\n" for line in file.getvalue().splitlines())


def _length(trace):
    return next(span.duration_ns for span in trace.spans if not span.parent_id)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_known_fault_is_found(golden, fault):
    golden(f"traces-{fault}.txt", story_of(list(FAULTS[fault]())))


def test_neither_order_nor_repetition_changes_what_is_found():
    found = list(traces(MANY, SLOW, change=notify, clocks={"b": 10.0}))
    events = [event for trace in found for event in events_of(trace)]

    again = pair(map(event_of, shuffled(events, 7)))
    plain = pair(map(event_of, events))

    # traces come in the order of their first events
    assert story_of([again[trace.trace_id] for trace in found]) == story_of(list(plain.values()))
