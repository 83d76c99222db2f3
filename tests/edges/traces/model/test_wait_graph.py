"""The wait graph of a trace: parallel branches, joins, and what is left as it is."""

import numpy as np
import pytest

from helpers.synthetic_traces import MS, Work, spans_of
from osbench.common.plugin.atomic import PAUSE
from osbench.edges.traces.model.clock_skew import Clocks
from osbench.edges.traces.model.tree import Tree
from osbench.edges.traces.model.wait_graph import FIXED, WaitGraph, has_branches, replayed_durations


def work(name, start, length, *inner):
    return Work(name=name, start=start, length=length, service="shop", host="b").add(*inner)


def milliseconds(root, /, **left):
    """The replayed time of some work, of whose spans a part is left."""
    tree = Tree(spans_of(root), Clocks())
    names = sorted({span.name for span in tree.spans})

    def place(segment):
        name = tree.spans[segment.span].name
        return FIXED if name == PAUSE else names.index(name)

    graph = np.array(WaitGraph(tree, tree.roots[0], Clocks(), place).packed())
    factors = np.array([left.get(name.removeprefix("osbench."), 1.0) for name in names] + [1.0])
    return replayed_durations(graph, factors[:, None])[0] / MS


def branches(root):
    tree = Tree(spans_of(root), Clocks())
    return has_branches(tree, tree.roots[0], Clocks())


def test_one_after_another():
    root = work("root", 0, 100, work("a", 10, 30), work("b", 50, 40))

    assert not branches(root)
    assert milliseconds(root) == 100
    assert milliseconds(root, a=0.5) == 85
    assert milliseconds(root, a=0, b=0) == 30
    assert milliseconds(root, root=0) == 70


def test_another_branch_takes_over():
    root = work("root", 0, 100, work("a", 10, 80), work("b", 10, 60))

    assert branches(root)
    assert milliseconds(root) == 100
    assert milliseconds(root, a=0.75) == 80
    assert milliseconds(root, a=0.5) == 80
    assert milliseconds(root, a=0) == 80
    assert milliseconds(root, b=0) == 100
    assert milliseconds(root, a=0.5, b=0.5) == 60


def test_what_comes_after_a_join_moves_with_it():
    root = work("root", 0, 100, work("a", 0, 60), work("b", 0, 40), work("c", 60, 40))

    assert milliseconds(root, a=0.5) == 80
    assert milliseconds(root, a=0.5, c=0.5) == 60


def test_a_chain_beside_a_long_branch():
    root = work(
        *("root", 0, 100),
        work("long", 0, 100),
        *(work("a", 0, 30), work("b", 30, 30), work("c", 60, 30)),
    )

    assert milliseconds(root) == 100
    assert milliseconds(root, long=0) == 90
    assert milliseconds(root, long=0, b=0) == 60


def test_branches_within_a_branch():
    inner = work("a", 0, 70, work("x", 5, 60), work("y", 5, 50))
    root = work("root", 0, 80, inner, work("b", 0, 40))

    assert milliseconds(root) == 80
    assert milliseconds(root, x=0) == 70
    assert milliseconds(root, x=0, y=0) == 50


def test_pauses_and_work_after_its_callers_end_stay():
    root = work("root", 0, 100, work(PAUSE, 0, 50), work("a", 50, 50), work("late", 60, 400))

    assert milliseconds(root, late=0) == 100
    assert milliseconds(root, a=0) == 50


def test_thousands_of_nested_and_parallel_spans():
    root = deepest = work("root", 0, 5000)
    for depth in range(1, 900):
        inner = work("deep", depth, 5000 - 2 * depth)
        deepest.add(inner)
        deepest = inner
    deepest.add(*(work("wide", 2000, 500) for _ in range(3000)))

    assert milliseconds(root) == pytest.approx(5000)
    assert milliseconds(root, wide=0) == pytest.approx(4500)


def test_spans_cut_off_by_the_span_around_them_are_looked_at_as_they_count():
    cut = work("a", -17, 26, work("b", -23, 38), work("c", 7, 10))

    assert branches(work("root", 0, 51, cut))


def test_a_child_of_a_span_cut_off_on_both_sides_that_ends_too_late_is_not_waited_for():
    late = work("c", -32, 60)
    cut = work("a", -39, 48, work("b", -2, 21, late))

    assert not branches(work("root", 0, 42, cut))
    assert milliseconds(work("root", 0, 42, cut), c=0) == 42
    assert milliseconds(work("root", 0, 42, cut), b=0) == 33
