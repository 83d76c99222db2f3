"""Whatever a trace looks like, its parts sum to its duration, and so does its replay."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.examples import examples
from osbench.edges.traces.model.clock_samples import ClockSamples
from osbench.edges.traces.model.clock_skew import Clocks
from osbench.edges.traces.model.critical_path import critical_path
from osbench.edges.traces.model.spans import Span, Trace
from osbench.edges.traces.model.tree import Tree
from osbench.edges.traces.model.wait_graph import WaitGraph, has_branches, replayed_durations

INSTANTS = st.integers(0, 60)


@st.composite
def any_trace(draw):
    """Spans of random length within any span, with parents that may be missing, or in a ring."""
    count = draw(st.integers(1, 25))
    spans = [Span("0", "", "osbench.iteration", "w", "w1", draw(INSTANTS), draw(INSTANTS))]
    for number in range(1, count):
        parent = draw(st.integers(-1, number + 2))
        spans.append(
            Span(
                str(number),
                "" if parent < 0 else str(parent),
                draw(st.sampled_from("abc")),
                draw(st.sampled_from(("s", "t"))),
                draw(st.sampled_from(("", "w1", "h"))),
                draw(INSTANTS),
                draw(INSTANTS),
                kind=draw(st.sampled_from(("", "client"))),
                marks=draw(st.sampled_from((0, 0, 0, 1))),
            )
        )
    return Trace(trace_id="0" * 32, spans=tuple(spans))


@settings(max_examples=examples(200))
@given(any_trace(), st.booleans())
def test_the_parts_sum_to_the_whole_and_do_not_overlap(trace, correct):
    clocks = Clocks()
    if correct:
        samples = ClockSamples()
        samples.add(trace)
        clocks = samples.estimate()
    tree = Tree(trace, clocks)

    for root in tree.roots:
        path = critical_path(tree, root, clocks)

        segments = sorted(path.segments, key=lambda segment: segment.start)
        assert all(segment.start < segment.end for segment in segments)
        assert sum(p.end - p.start for p in segments) == tree.end[root] - tree.start[root]
        at = tree.start[root]
        for segment in segments:
            assert segment.start == at
            at = segment.end
        assert len(set(path.visited)) == len(path.visited)
        assert {segment.span for segment in segments} <= set(path.visited)
        assert not set(path.visited) & set(path.outlived)


@settings(max_examples=examples(80))
@given(any_trace())
def test_every_span_stands_in_a_tree_or_is_left_out(trace):
    tree = Tree(trace, Clocks())

    inside = [at for root in tree.roots for at in tree.below(root)]

    assert sorted([*inside, *tree.left_out]) == list(range(len(trace.spans)))


def corrected_ns(graph):
    """Sum of the parts below 0 of a packed graph: spans overlap within the error of clocks.

    The critical path cuts the earlier of two such spans; a replay keeps both and the correction.
    """
    at, total, numbers = 0, 0, graph.tolist()
    while at < len(numbers):
        at += 1 + numbers[at]
        lengths = numbers[at + 2 : at + 1 + 2 * numbers[at] : 2]
        total -= sum(length for length in lengths if length < 0)
        at += 1 + 2 * numbers[at]
    return total


@settings(max_examples=examples(200))
@given(any_trace(), st.lists(st.floats(0, 1), min_size=25, max_size=25))
def test_a_replay_is_exact_and_shorter_spans_make_nothing_longer(trace, left):
    clocks = Clocks()
    tree = Tree(trace, clocks)

    for root in tree.roots:
        graph = np.array(WaitGraph(tree, root, clocks, lambda segment: segment.span).packed())
        same = np.ones(len(tree.spans) + 1)
        less = np.array([*left[: len(tree.spans)], 1.0])
        length = tree.end[root] - tree.start[root]

        as_it_was, shorter = replayed_durations(graph, np.column_stack((same, less)))

        assert as_it_was == length
        assert shorter <= length + 1e-6
        path = critical_path(tree, root, clocks)
        if not has_branches(tree, root, clocks):
            gone = sum((one.end - one.start) * (1 - less[one.span]) for one in path.segments)
            assert abs(shorter - (length - gone)) <= corrected_ns(graph) + 1e-6
