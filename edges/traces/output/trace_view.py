"""Prints a trace as a tree of spans, with its critical path marked."""

from __future__ import annotations

from rich.console import Console

from osbench.coordinator.formatting import plain
from osbench.edges.traces.collection.trace_set import TraceSet
from osbench.edges.traces.model.spans import Trace, uuid_form
from osbench.edges.traces.output import trace_text
from osbench.edges.traces.output.span_rows import left_out, rows_of

#: Spans that are left out of the tree and named below it.
_NOTES = 20


def print_trace(found: Trace, trace_set: TraceSet, iteration: int | None, console: Console) -> None:
    """Print a trace as a tree of spans, with its critical path marked.

    `trace_set` has the trace; `iteration` is its number, None if unknown. At most `_NOTES` spans
    that are left out of the tree are named below it.
    """
    tree, paths = trace_set.tree_and_paths(found)
    heading = f"Trace {plain(uuid_form(found.trace_id))}"
    if iteration is not None:
        heading += f", iteration {iteration}"
    notes = [f"left out ({one['why']}): {plain(one['span'])}" for one in left_out(tree)[:_NOTES]]
    rows = list(rows_of(tree, paths))
    trace_text.show_trace(console, f"{heading} of {trace_set.name}", rows, notes)
