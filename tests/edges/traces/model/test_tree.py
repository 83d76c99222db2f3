import random

import pytest

from helpers.synthetic_traces import BEGIN, MS, Work, iteration, spans_of, traces
from osbench.edges.traces.model import clock_samples, stale_spans
from osbench.edges.traces.model.clock_samples import ClockSamples
from osbench.edges.traces.model.clock_skew import Clocks, HostSkew
from osbench.edges.traces.model.critical_path import critical_path
from osbench.edges.traces.model.spans import Span, Trace
from osbench.edges.traces.model.stale_spans import LateWork, leave_out_stale
from osbench.edges.traces.model.tree import ORPHAN, STALE, Tree, label


def clocks_of(found):
    samples = ClockSamples()
    for trace in found:
        samples.add(trace)
    return samples.estimate()


def on(host):
    """A span of a host."""
    return Span("1", "", "work", "s", host, BEGIN, MS)


def shares(trace, clocks=None):
    """Milliseconds by span name of the critical path; waits under `> name`."""
    clocks = clocks or Clocks()
    tree = Tree(trace, clocks)
    path = critical_path(tree, tree.iteration, clocks)
    found = {}
    for segment in path.segments:
        name = tree.spans[segment.span].name
        if segment.awaited >= 0:
            name = f"> {tree.spans[segment.awaited].name}"
        found[name] = found.get(name, 0) + (segment.end - segment.start) / MS
    return found, [tree.spans[at].name for at in path.outlived]


def root(length, *inner):
    return Work(name="osbench.iteration", start=0, length=length).add(*inner)


def test_time_goes_to_the_innermost_span_that_was_waited_for():
    work = root(
        100,
        Work(name="a", start=10, length=40).add(Work(name="b", start=20, length=10)),
        Work(name="c", start=60, length=30),
    )

    found, _ = shares(spans_of(work))

    assert found == {"osbench.iteration": 10 + 10 + 10, "a": 10 + 20, "b": 10, "c": 30}


def test_of_parallel_work_only_the_last_to_end_counts():
    work = root(100, Work(name="quick", start=0, length=60), Work(name="slow", start=10, length=90))

    found, _ = shares(spans_of(work))

    assert found == {"slow": 90, "osbench.iteration": 10}


def test_work_that_goes_on_after_the_reply_is_no_part_of_it():
    api = Work(name="api", start=10, length=20, service="s")
    api.add(Work(name="cast", start=25, length=50, service="engine"))

    found, outlived = shares(spans_of(root(100, api)))

    assert found == {"> api": 10, "api": 20, "osbench.iteration": 70}
    assert outlived == ["cast"]


def test_time_before_another_service_begins_is_waiting():
    api = Work(name="wsgi", start=30, length=40, service="api", host="b")
    action = Work(name="get", start=10, length=70).add(api)

    found, _ = shares(spans_of(root(90, action)))

    assert found == {"osbench.iteration": 20, "> wsgi": 20, "wsgi": 40, "get": 10}


def test_time_between_several_requests_is_the_callers_own():
    first = Work(name="wsgi", start=10, length=10, service="api")
    second = Work(name="wsgi", start=40, length=10, service="api")

    found, _ = shares(spans_of(root(60, first, second)))

    assert found == {"osbench.iteration": 40, "wsgi": 20}


def test_a_lost_stop_ends_with_what_is_within_it():
    outer = Work(name="api", start=10, length=50, lost_stop=True)
    outer.add(Work(name="db", start=20, length=30))

    found, _ = shares(spans_of(root(100, outer)))

    assert found == {"osbench.iteration": 60, "api": 10, "db": 30}


def test_what_is_below_a_missing_parent_is_left_out():
    lost = Work(name="api", start=10, length=50, service="api", lost=True)
    lost.add(
        Work(name="db", start=20, length=30, service="api").add(Work(name="x", start=21, length=1))
    )
    tree = Tree(spans_of(root(100, lost)), Clocks())

    assert [(tree.spans[at].name, why) for at, why in sorted(tree.left_out.items())] == [
        ("db", ORPHAN),
        ("x", ORPHAN),
    ]
    assert shares(spans_of(root(100, lost)))[0] == {"osbench.iteration": 100}


def test_a_trace_without_its_iteration_has_no_root_of_ours():
    (trace,) = traces(1)

    rootless = Trace(trace_id=trace.trace_id, spans=trace.spans[1:])

    assert Tree(rootless, Clocks()).iteration is None


@pytest.mark.parametrize(("ahead_b", "ahead_c"), [(10, -10), (-10, 10), (3, 7), (-250, 0.5)])
def test_clocks_that_differ_are_found_and_change_little(ahead_b, ahead_c):
    right = list(traces(300))
    skewed = list(traces(300, clocks={"b": ahead_b, "c": ahead_c}))

    clock_skew = clocks_of(skewed)

    for host, ahead in (("b", ahead_b), ("c", ahead_c)):
        reference = "w1" if host == "b" else "b"
        apart = ahead - (ahead_b if host == "c" else 0)
        found = clock_skew.add_ns(on(reference), on(host)) / MS
        width = clock_skew.error_ns(reference, host) / MS
        assert abs(found + apart) <= width + 0.01
        assert width < 0.8
    for one, other in zip(right, skewed, strict=True):
        before, after = shares(one)[0], shares(other, clock_skew)[0]
        for name in before.keys() - {"> wsgi", "> reserve"}:
            assert after[name] == pytest.approx(before[name], abs=0.8)


def test_what_ends_late_by_no_more_than_the_clocks_uncertainty_was_waited_for():
    api = Work(name="api", start=20, length=40, host="b")
    late = root(100, Work(name="get", start=10, length=48).add(api))
    (trace,) = [spans_of(late)]
    width = HostSkew(reference="b", host="w1", add_ns=0, low_ns=-3 * MS, high_ns=3 * MS, samples=9)

    _, without = shares(trace)
    found, outlived = shares(trace, Clocks([width]))

    assert (without, outlived) == (["api"], [])
    assert found["api"] == 38


def test_casts_alone_say_nothing_of_a_clock():
    """They begin at any time, and most of them when no caller waits any more."""

    def cast(work, chance):
        api = work.inner[0].inner[0]
        start = api.start + chance.uniform(0, 5 * api.length)
        api.inner = [Work(name="cast", start=start, length=1, host="c")]

    (offset,) = (one for one in clocks_of(traces(200, change=cast)).skews if one.host == "c")

    assert (offset.add_ns, offset.high_ns) == (0, None)


def test_clocks_that_may_agree_are_left_as_they_are():
    clock_skew = clocks_of(traces(100))

    assert [offset.add_ns for offset in clock_skew.skews] == [0, 0]
    assert all(offset.low_ns < 0 < offset.high_ns for offset in clock_skew.skews)


def test_casts_and_stale_threads_do_not_move_a_clock():
    def cast(work, chance):
        api = work.inner[0].inner[0]
        for late in (chance.uniform(5, 400), chance.uniform(5, 4000)):
            api.add(Work(name="cast", start=api.end + late, length=3, service="stock", host="c"))

    clock_skew = clocks_of(traces(200, clocks={"c": 10}, change=cast))

    assert clock_skew.add_ns(on("b"), on("c")) / MS == pytest.approx(-10, abs=0.6)


def test_the_same_clock_is_corrected_back_where_a_call_returns_to_a_host():
    back = Work(name="back", start=30, length=10, host="w1", service="hook")
    work = root(100, Work(name="api", start=20, length=40, service="api", host="b").add(back))
    found = [spans_of(work, number=n, clocks={"b": 5000}) for n in range(30)]
    clock_skew = clocks_of(found)

    tree = Tree(found[0], clock_skew)

    at = next(at for at, span in enumerate(tree.spans) if span.name == "back")
    assert tree.start[at] == tree.spans[at].start_ns


def stale_threads(count, *, threads, chance):
    """Traces whose engine runs every request in one of a few threads that keep their trace."""
    works = [iteration(chance) for _ in range(count)]
    calls = [work.inner[0].inner[0].inner[-1] for work in works]
    for number, call in enumerate(calls):
        first = number % threads
        engine = call.inner.pop()
        engine.start += (number - first) * 1000
        calls[first].inner.append(engine)
    return [spans_of(work, number=number) for number, work in enumerate(works)]


def test_work_of_threads_that_keep_an_old_trace_is_left_out():
    found = stale_threads(40, threads=2, chance=random.Random(3))
    usual = LateWork()
    for trace in found:
        usual.add(trace)

    left = []
    for trace in found:
        tree = Tree(trace, Clocks())
        leave_out_stale(tree, tree.iteration, usual.usual(), 60.0)
        left += [(tree.spans[at].service, why) for at, why in tree.left_out.items()]

    # two were where they belong
    assert left == [("stock/engine", STALE)] * 38


def test_work_that_every_trace_goes_on_with_is_not_stale():
    def cast(work, chance):
        api = work.inner[0].inner[0]
        for _ in range(chance.choice((1, 2, 2, 3))):
            api.add(Work(name="cast", start=api.end + 5, length=30, service="stock", host="c"))

    found = list(traces(50, change=cast))
    usual = LateWork()
    for trace in found:
        usual.add(trace)
    trees = [Tree(trace, Clocks()) for trace in found]
    for tree in trees:
        leave_out_stale(tree, tree.iteration, usual.usual(), 60.0)

    assert usual.usual() == {(("shop/api", "wsgi", "GET /items"), ("stock", "cast")): 2}
    assert not any(tree.left_out for tree in trees)


def test_what_one_of_several_calls_goes_on_with_is_not_stale():
    """As Nova's compute service does with a boot: others of its calls end with their reply."""

    def change(work, chance):
        api = work.inner[0].inner[0]
        boot = Work(name="rpc", start=api.start, length=1, service="compute", detail="boot")
        calls = [
            Work(name="rpc", start=boot.end + n, length=1, service="conductor") for n in range(1, 6)
        ]
        others = [
            Work(name="rpc", start=api.start, length=1, service="compute", detail=f"other {n}")
            for n in range(4)
        ]
        api.add(boot.add(*calls), *others)

    found = list(traces(10, change=change))
    usual = LateWork()
    for trace in found:
        usual.add(trace)

    trees = [Tree(trace, Clocks()) for trace in found]
    for tree in trees:
        leave_out_stale(tree, tree.iteration, usual.usual(), 60.0)

    assert not any(tree.left_out for tree in trees)


def test_what_begins_long_after_the_end_is_stale():
    work = iteration(random.Random(1))
    api = work.inner[0].inner[0]
    api.add(Work(name="cast", start=api.end + 61_000, length=1, service="stock", host="c"))
    tree = Tree(spans_of(work), Clocks())

    leave_out_stale(tree, tree.iteration, {}, 60.0)

    assert [tree.spans[at].name for at in tree.left_out] == ["cast"]


def test_a_span_in_words():
    (trace,) = traces(1)

    assert label(trace.spans[2]) == "shop/api wsgi GET /items"


def test_names_made_up_from_data_do_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr(clock_samples, "KINDS", 3)
    monkeypatch.setattr(stale_spans, "KINDS", 3)
    late, samples = LateWork(), ClockSamples()

    for number in range(50):
        root = Work(name=f"request-{number}", start=0, length=10)
        trace = spans_of(root.add(Work(name="late", start=20, length=1, host="b")), number=number)
        late.add(trace)
        samples.add(trace)

    assert len(late.usual()) == 2
    assert sum(offset.samples for offset in samples.estimate().skews) == 3
