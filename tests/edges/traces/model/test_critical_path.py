"""Pauses of the scenario are no part of the time of an iteration, and no trace point."""

from helpers.synthetic_traces import MS, Work, spans_of
from osbench.common.plugin.atomic import PAUSE
from osbench.edges.traces.analysis.digest import Digest, Survey
from osbench.edges.traces.model.clock_skew import Clocks
from osbench.edges.traces.model.critical_path import critical_path, paused_on, paused_within
from osbench.edges.traces.model.tree import Tree


def paused() -> Work:
    """100 ms, of which 60 are two pauses, one of them within an action."""
    return Work(name="osbench.iteration", start=0, length=100).add(
        Work(name=PAUSE, start=10, length=40),
        Work(name="shop.buy", start=50, length=45).add(
            Work(name="db", start=52, length=8, service="shop/api", host="b"),
            Work(name=PAUSE, start=60, length=20),
        ),
    )


def test_pauses_within_each_span_and_on_the_path():
    trace = spans_of(paused())
    tree = Tree(trace, Clocks())
    names = [span.name for span in tree.spans]

    found = {(names[at], ns // MS) for at, ns in paused_within(tree).items()}

    assert found == {(PAUSE, 40), (PAUSE, 20), ("osbench.iteration", 60), ("shop.buy", 20)}
    assert paused_on(tree, critical_path(tree, 0, Clocks())) == 60 * MS


def test_times_are_those_without_pauses():
    traces = [spans_of(paused(), number=number) for number in range(3)]
    survey = Survey()
    for trace in traces:
        survey.add(trace)
    digest = Digest(survey, ["a"])
    for number, trace in enumerate(traces):
        digest.add_iteration(trace, group=0, iteration=number, outcome=1, kept=True)

    rows = {row.name: row for row in digest.ranking.rows()}
    features = digest.table.close()

    assert set(rows) == {"osbench.iteration", "shop.buy", "db"}
    root, action = rows["osbench.iteration"], rows["shop.buy"]
    assert (root.count, root.total_s, root.paused_s) == (3, 0.12, 0.18)
    assert (root.max_s, root.self_s, root.critical_s) == (0.04, 0.045, 0.045)
    assert (action.total_s, action.self_s, action.paused_s) == (0.075, 0.051, 0.06)
    assert (rows["db"].total_s, rows["db"].paused_s) == (0.024, 0)
    assert (digest.ranking.pauses, digest.ranking.paused_ns) == (6, 180 * MS)
    # explanations and comparisons know of them as little
    assert features.total.tolist() == [40 * MS] * 3
    assert features.time.sum() == features.total.sum()
    assert PAUSE not in {key.what for key in features.keys}
