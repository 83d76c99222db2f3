"""Predictions against the truth: simulated requests, made again with one call really faster."""

import json
import random
from dataclasses import replace

import msgpack
import numpy as np
import pytest

from helpers.synthetic_traces import Work, spans_of, table_of, trace_id
from osbench.common.errors import OsbenchError, UsageError
from osbench.common.values.outcomes import Outcome
from osbench.edges.traces.analysis.digest import digest_of
from osbench.edges.traces.analysis.features import Features
from osbench.edges.traces.analysis.graph_table import GraphRows
from osbench.edges.traces.analysis.span_changes import read_change
from osbench.edges.traces.analysis.what_if import (
    DurationLimit,
    PredictedLoad,
    best_places,
    predict,
)
from osbench.edges.traces.model.wait_graph import WaitGraph

COUNT = 300
#: Of p95.
PLACE = 284


class Clock:
    """A request as it runs: calls one after another or side by side, and work between."""

    def __init__(self, seed, **factors):
        self._chance = random.Random(seed)
        self._factors = factors

    def length(self, name, usual):
        """Milliseconds of a call; the same in each request of this number, times its factor."""
        return self._chance.lognormvariate(0, 0.5) * usual * self._factors.get(name, 1.0)

    def call(self, at, name, usual):
        return Work(name=name, start=at, length=self.length(name, usual), service="shop", host="b")


def sequential(clock):
    a = clock.call(2, "a", 20)
    b = clock.call(a.end + 1, "b", 10)
    c = clock.call(b.end + 3, "c", 5)
    return [a, b, c], c.end + 1


def parallel(clock):
    calls = [clock.call(1, name, usual) for name, usual in (("a", 20), ("b", 18), ("c", 10))]
    return calls, max(one.end for one in calls) + 2


def joined(clock):
    a, b = clock.call(1, "a", 15), clock.call(1, "b", 15)
    c = clock.call(max(a.end, b.end) + 1, "c", 10)
    return [a, b, c], c.end + 1


def chained(clock):
    """Two calls, each within a branch of its own, beside a third."""
    branch = Work(name="branch", start=1, length=0, service="shop", host="b")
    a = clock.call(2, "a", 12)
    b = clock.call(a.end + 1, "b", 12)
    branch.add(a, b).length = b.end + 1 - branch.start
    c = clock.call(1, "c", 25)
    return [branch, c], max(branch.end, c.end) + 1


def waiting(clock):
    """Waits for a lock before the first call, and sleeps before the last."""
    lock = clock.call(1, "lock", 10)
    a = clock.call(lock.end, "a", 10)
    b = clock.call(a.end + 5, "b", 8)
    c = clock.call(a.end + 5, "c", 6)
    return [lock, a, b, c], max(b.end, c.end) + 4


def made(shape, **factors):
    """The traces of many requests, some of whose calls take other times."""
    for number in range(COUNT):
        inner, end = shape(Clock(number, **factors))
        api = Work(name="api", start=1, length=end, service="shop", host="b").add(*inner)
        root = Work(name="osbench.iteration", start=0, length=end + 2).add(api)
        yield spans_of(root, number=number)


def durations(found):
    return np.sort([max(span.duration_ns for span in one.spans) for one in found]) / 1e9


@pytest.mark.parametrize("shape", [sequential, parallel, joined, chained, waiting])
@pytest.mark.parametrize(
    ("said", "factors"),
    [
        (["shop a: -50%"], {"a": 0.5}),
        (["shop b: 0"], {"b": 0}),
        (["shop c: -25%"], {"c": 0.75}),
        (["shop a: -50%", "shop b: -80 %"], {"a": 0.5, "b": 0.2}),
    ],
)
def test_predictions_are_the_truth(shape, said, factors):
    features = digest_of(made(shape)).table.close()
    truth = durations(made(shape, **factors))

    (found,) = predict(features, [read_change(one) for one in said])

    for one in found.shifts:
        true = truth[-(-COUNT * int(one.name[1:]) // 100) - 1]
        # spans are written in whole microseconds
        assert one.after_s == pytest.approx(true, abs=1e-5)
        assert one.before_interval[0] <= one.before_s <= one.before_interval[1]
        assert one.gain_interval[0] - 1e-9 <= one.gain_s <= one.gain_interval[1] + 1e-9


def test_the_best_place_is_the_one_whose_halving_gives_most():
    shape = chained
    features = digest_of(made(shape)).table.close()

    best = best_places(features, features.groups[0])

    gains = {
        name: durations(made(shape))[PLACE] - durations(made(shape, **{name: 0.5}))[PLACE]
        for name in "abc"
    }
    assert best[0].what == max(gains, key=gains.get) == "c"
    for one in best:
        if one.what in gains:
            assert one.p95_s == pytest.approx(gains[one.what], abs=1e-5)
    assert [one.tail_s for one in best] == sorted((one.tail_s for one in best), reverse=True)
    assert not any(one.who.startswith("osbench/") for one in best)


def test_what_a_table_says_outlives_the_run_directory():
    features = digest_of(made(joined)).table.close()

    again = Features.from_dict(msgpack.unpackb(msgpack.packb(features.to_dict())))

    change = [read_change("shop a: 0")]
    assert predict(again, change) == predict(features, change)


def test_a_run_of_an_earlier_version_is_read():
    form = digest_of(made(sequential)).table.close().to_dict()
    del form["graphs"]

    (found,) = predict(Features.from_dict(form), [read_change("shop a: -50%")])

    assert found.shifts[0].gain_s > 0


def test_limits_of_an_sla_and_how_much_of_the_excess_would_be_gone():
    ms = 1_000_000
    features = table_of(np.array([[60 * ms, 40 * ms]] * 100))
    limits = tuple(
        DurationLimit(criterion="percentile", p=p, max_s=max_s, of=of)
        for p, max_s, of in (
            (95.0, 0.04, "service"),
            (50.0, 0.2, "service"),
            (95.0, 0.1, "response"),
        )
    )
    load = PredictedLoad(is_open=True, limits=limits, lag=np.full(100, 20 * ms))

    (found,) = predict(features, [read_change("shop/api part-0: -50%")], [load])

    assert [(one.share, one.share_interval) for one in found.repairs] == [
        (pytest.approx(0.5), (pytest.approx(0.5), pytest.approx(0.5))),
        (None, None),
        (1.0, (1.0, 1.0)),
    ]
    assert found.repairs[2].shift.before_s == pytest.approx(0.12)
    assert "true gain is larger: a lower bound" in found.caveat
    json.dumps(found.caveat)


@pytest.mark.parametrize(
    ("is_open", "part"), [(True, "lower bound"), (False, "closed load"), (None, "true gain")]
)
def test_queues_are_said_to_be_left_out(is_open, part):
    features = table_of(np.full((40, 1), 10**9))

    (found,) = predict(features, [read_change("*: 0")], [PredictedLoad(is_open=is_open)])

    assert "Left out: queues" in found.caveat
    assert part in found.caveat


def test_failed_and_incomplete_traces_count_for_nothing():
    outcome = np.array([Outcome.OK] * 50 + [Outcome.FAILED] * 50)
    features = table_of(np.full((100, 1), 10**9), outcome=outcome)
    failed = replace(features, outcome=np.full(100, Outcome.FAILED))

    (found,) = predict(features, [read_change("*: 0")])

    assert found.traces == 50
    with pytest.raises(UsageError, match="no trace is complete"):
        predict(failed, [read_change("*: 0")])


def test_a_few_traces_predict_nothing():
    (found,) = predict(table_of(np.full((29, 1), 10**9)), [read_change("*: 0")])

    assert found.shifts == ()
    assert found.sentence == "There are 29 traces: a prediction takes 30."
    assert best_places(table_of(np.full((29, 1), 10**9)), "Shop.buy") == ()


def test_a_span_that_nothing_waited_for():
    def traces():
        for number in range(40):
            root = Work(name="osbench.iteration", start=0, length=50)
            calls = [
                Work(name=name, start=1, length=length, service="shop", host="b")
                for name, length in (("long", 45), ("short", 5))
            ]
            yield spans_of(root.add(*calls), number=number)

    (found,) = predict(digest_of(traces()).table.close(), [read_change("shop short: 0")])

    assert found.sentence == "No iteration waited for these spans: no time would change."


def test_too_many_graphs_leave_a_random_part_of_the_traces():
    rows = GraphRows(most=1000)
    for number in range(1000):
        # every second trace has branches
        rows.add(trace_id(number), [0, 1, 0, number] if number % 2 else ())

    table = rows.close()

    left = table.replayable([trace_id(number) for number in range(1000)], np.arange(1000))
    assert len(table.numbers) <= 1000
    assert 150 < len(left) < 700
    # neither kind is preferred
    assert 0.4 < (left % 2).mean() < 0.6
    for at in left.tolist():
        assert table.graph(at).tolist() == ([0, 1, 0, at] if at % 2 else [])


def test_a_graph_that_is_too_large_leaves_its_trace_out():
    rows = GraphRows()
    rows.add(trace_id(0), [0] * 200_000)
    rows.add(trace_id(1), ())

    assert rows.close().replayable([trace_id(0), trace_id(1)], np.arange(2)).tolist() == [1]


@pytest.mark.parametrize("numbers", [[5, 1, 2], [0, 1, 99, 7], [0, -4], [1, 3, 0]])
def test_a_damaged_graph_is_an_error_of_the_run(numbers):
    features = digest_of(made(parallel)).table.close()
    begin = np.array([0, *[len(numbers)] * len(features)])
    graphs = replace(features.graphs, begin=begin, numbers=np.array(numbers))

    try:
        predict(replace(features, graphs=graphs), [read_change("shop a: 0")])
    except OsbenchError as error:
        assert "is damaged" in str(error)


def test_parallel_spans_are_no_reason_to_pack_sequential_ones(monkeypatch):
    monkeypatch.setattr(WaitGraph, "packed", lambda _: pytest.fail("no branches"))

    digest_of(made(sequential))
