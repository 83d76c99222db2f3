import asyncio
import threading

import osprofiler.profiler
import osprofiler.web
import pytest
from osprofiler import _utils

from helpers.engines import COROUTINES, batch, closed, until
from osbench.common.plugin.atomic import ActionTimer, Names, Recorder
from osbench.common.plugin.scenario import Scenario
from osbench.common.values.outcomes import Outcome
from osbench.common.values.trace_mark import TraceMark
from osbench.worker.tracing.iteration_profiler import SPAN_LIMIT
from osbench.worker.tracing.profiling import Tracer, trace_headers
from osbench.worker.tracing.task_profiler import TaskProfiler
from osbench.worker.tracing.trace_ids import IdPool, span_text, uuid_text
from servers.child import PATIENCE_S


class Kept:
    """Keeps traces instead of writing them."""

    def __init__(self):
        self.traces = []

    def put(self, trace):
        self.traces.append(trace)

    def tree(self):
        """The only trace: name and parent's name by span, and the info texts of each name."""
        ((_, spans),) = self.traces
        names = {span[0]: span[2] for span in spans}
        parents = {span[2]: names.get(span[1]) for span in spans}
        return parents, {span[2]: span[5] + span[6] for span in spans}


@pytest.fixture
def kept():
    yield Kept()
    osprofiler.profiler.clean()


def make(writer=None, **changes):
    given = {"hmac_key": "key", "run_id": "r1", "sample_rate": 1.0, "seed": 1, **changes}
    return Tracer(writer=writer, scenario="Dummy.dummy", **given)


@osprofiler.profiler.trace("decorated")
def decorated(secret, *, token):
    return len(secret + token)


def test_everything_that_osprofiler_offers_lands_in_the_trace_of_the_iteration(kept):
    tracer = make(kept)

    profiler = tracer.begin(7)
    osprofiler.profiler.start("outer")
    with osprofiler.profiler.Trace("inner", info={"size": 3}):
        decorated("hunter2", token="t0ken")
    osprofiler.profiler.stop()
    trace_id = tracer.end(profiler, None)

    parents, infos = kept.tree()
    assert parents == {
        "osbench.iteration": None,
        "outer": "osbench.iteration",
        "inner": "outer",
        "decorated": "inner",
    }
    assert '"iteration":7' in infos["osbench.iteration"]
    assert '"size":3' in infos["inner"]
    assert kept.traces[0][0][0] == trace_id
    assert len(trace_id) == 16


def test_arguments_of_traced_functions_are_not_recorded(kept):
    tracer = make(kept)

    profiler = tracer.begin(1)
    decorated("hunter2", token="t0ken")
    tracer.end(profiler, None)

    assert "hunter2" not in str(kept.traces)
    assert "t0ken" not in str(kept.traces)
    assert ".decorated" in kept.tree()[1]["decorated"]


def test_a_pause_of_the_scenario_is_a_span_also_where_it_is_interrupted(kept, monkeypatch):
    tracer = make(kept)
    profiler = tracer.begin(1)
    scenario = Scenario({})
    scenario._recorder = Recorder(Names(), profiler)

    with ActionTimer(scenario, "think"):
        scenario.sleep_between(0.002)
    monkeypatch.setattr("osbench.common.plugin.scenario.pause", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        scenario.sleep_between(1.0)
    tracer.end(profiler, None)

    ((_, spans),) = kept.traces
    (think,) = (span for span in spans if span[2] == "think")
    first, second = (span for span in spans if span[2] == "osbench.pause")
    assert (first[1], second[1]) == (think[0], 0)
    assert think[3] <= first[3]
    assert first[3] + 2_000_000 <= first[4] <= think[4]
    # nothing is added to iterations that are not traced
    untraced = Scenario({})
    monkeypatch.undo()
    untraced.sleep_between(0.001)
    assert untraced._idle_ns >= 1_000_000


def test_the_thread_has_no_profiler_after_the_iteration(kept):
    tracer = make(kept)

    inside = tracer.begin(1)
    found = osprofiler.profiler.get()
    tracer.end(inside, None)

    assert found is inside
    assert osprofiler.profiler.get() is None
    assert trace_headers() == {}


def test_a_profiler_left_behind_is_replaced_and_counted(kept):
    tracer = make(kept)
    left = osprofiler.profiler.init("another key")

    profiler = tracer.begin(1)
    tracer.end(profiler, None)
    osprofiler.profiler.init("another key")
    tracer.clear()

    assert profiler.get_base_id() != left.get_base_id()
    assert osprofiler.profiler.get() is None
    assert tracer.stale == 2


def test_a_failed_iteration_names_its_error(kept):
    tracer = make(kept)

    profiler = tracer.begin(1)
    tracer.end(profiler, ("ValueError", 'no "such" thing'))

    assert kept.traces[0][1][-1][6] == r',"etype":"ValueError","message":"no \"such\" thing"'


def test_spans_left_open_are_closed_and_marked(kept):
    tracer = make(kept)

    profiler = tracer.begin(1)
    profiler.start("forgotten")
    profiler.start("forgotten too")
    tracer.end(profiler, None)

    parents, infos = kept.tree()
    assert parents["forgotten too"] == "forgotten"
    assert infos["forgotten"] == infos["forgotten too"] == ',"unfinished":true'
    assert "unfinished" not in infos["osbench.iteration"]


def test_stopping_too_often_leaves_the_root_open(kept):
    tracer = make(kept)

    profiler = tracer.begin(1)
    osprofiler.profiler.stop()
    osprofiler.profiler.stop()
    with osprofiler.profiler.Trace("after"):
        pass
    tracer.end(profiler, None)

    assert kept.tree()[0] == {"osbench.iteration": None, "after": "osbench.iteration"}


def test_an_action_is_closed_by_its_own_end(kept):
    tracer = make(kept)
    scenario = Scenario({})

    profiler = scenario_profiler = tracer.begin(1)
    scenario._recorder = Recorder(Names(), scenario_profiler)
    with ActionTimer(scenario, "leaking"):
        profiler.start("never stopped")
    with ActionTimer(scenario, "robbed"):
        profiler.stop()
    with ActionTimer(scenario, "last"):
        pass
    tracer.end(profiler, None)

    parents, infos = kept.tree()
    assert parents["never stopped"] == "leaking"
    assert parents["robbed"] == parents["last"] == "osbench.iteration"
    assert "unfinished" in infos["never stopped"]
    assert "unfinished" not in infos["leaking"] + infos["robbed"] + infos["last"]


def test_an_action_that_raises_what_cannot_be_printed_fails_as_itself(kept):
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError("no words")

    tracer = make(kept)
    scenario = Scenario({})
    scenario._recorder = Recorder(Names(), tracer.begin(1))

    with pytest.raises(Mute), ActionTimer(scenario, "mute"):
        raise Mute
    tracer.end(scenario._recorder.profiler, None)

    assert '"etype":"Mute"' in kept.tree()[1]["mute"]


def test_spans_have_their_parents_interval_around_them(kept):
    tracer = make(kept)

    profiler = tracer.begin(1)
    with osprofiler.profiler.Trace("inner"):
        pass
    tracer.end(profiler, None)

    inner, root = kept.traces[0][1]
    assert root[3] <= inner[3] <= inner[4] <= root[4]


def test_an_abandoned_iteration_is_marked_and_later_calls_do_nothing(kept):
    tracer = make(kept)
    reached, go_on, late = threading.Event(), threading.Event(), []

    def stuck():
        profiler = tracer.begin(1)
        running.append(profiler)
        profiler.start("hanging")
        reached.set()
        go_on.wait(PATIENCE_S)
        profiler.stop()
        with osprofiler.profiler.Trace("late"):
            late.append(trace_headers())
            late.append(osprofiler.web.get_trace_id_headers())

    running = []
    thread = threading.Thread(target=stuck)
    thread.start()
    reached.wait(PATIENCE_S)
    trace_id = tracer.abandon(running[0], ("TimedOut", "after 1 s"))
    go_on.set()
    thread.join(PATIENCE_S)

    parents, infos = kept.tree()
    assert trace_id == kept.traces[0][0][0]
    assert parents == {"osbench.iteration": None, "hanging": "osbench.iteration"}
    assert infos["hanging"] == ',"unfinished":true'
    assert '"message":"after 1 s","timed_out":true' in infos["osbench.iteration"]
    assert late == [{}, {}]


def test_one_iteration_cannot_fill_the_memory(kept):
    tracer = make(kept)

    profiler = tracer.begin(1)
    for _ in range(SPAN_LIMIT + 5):
        profiler.start("again")
        profiler.stop()
    profiler.start("left open")
    tracer.end(profiler, None)

    assert len(kept.traces[0][1]) == SPAN_LIMIT + 1
    assert tracer.cut == 6


def test_every_iteration_has_its_own_id(kept):
    tracer = make(kept)

    ids = [tracer.end(tracer.begin(number), None) for number in range(1000)]

    assert len(set(ids)) == 1000


def test_without_a_store_requests_still_carry_headers():
    tracer = make(None)

    profiler = tracer.begin(1)
    headers = trace_headers()
    tracer.end(profiler, None)

    assert set(headers) == {"X-Trace-Info", "X-Trace-HMAC", "traceparent"}


def test_headers_say_what_osprofiler_would_say():
    tracer = make(None)

    profiler = tracer.begin(1)
    profiler.start("request")
    ours, theirs = trace_headers(), osprofiler.web.get_trace_id_headers()
    tracer.end(profiler, None)

    def read(headers):
        return _utils.signed_unpack(headers["X-Trace-Info"], headers["X-Trace-HMAC"], ["key"])

    assert read(ours) == read(theirs)
    assert read(ours)["base_id"] == uuid_text(profiler._ids[0])
    assert read(ours)["parent_id"] == span_text(profiler._ids, 1)


def test_traceparent_names_the_same_trace_and_span():
    tracer = make(None)

    profiler = tracer.begin(1)
    profiler.start("request")
    version, trace, span, flags = trace_headers()["traceparent"].split("-")
    base, current = profiler.get_base_id(), profiler.get_id()
    tracer.end(profiler, None)

    assert (version, flags) == ("00", "01")
    assert trace == base.replace("-", "")
    assert span == current.replace("-", "")[16:]


def test_a_root_has_the_trace_for_a_parent():
    tracer = make(None)

    profiler = tracer.begin(1)
    base = profiler.get_base_id()
    of_root = profiler.get_parent_id()
    root = profiler.get_id()
    profiler.start("inner")
    of_inner = profiler.get_parent_id()
    tracer.end(profiler, None)

    assert of_root == base
    assert of_inner == root


def test_a_profiler_of_the_scenarios_own_gives_osprofilers_headers():
    osprofiler.profiler.init("key")

    headers = trace_headers()
    osprofiler.profiler.clean()

    assert set(headers) == {"X-Trace-Info", "X-Trace-HMAC"}


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan")])
def test_an_impossible_sample_rate_is_refused(rate):
    with pytest.raises(ValueError, match="between 0 and 1"):
        make(None, sample_rate=rate)


def test_a_scenario_gets_headers_that_name_its_innermost_action(kept):
    tracer = make(kept)
    by_hand = Scenario({})
    scenario = Scenario({})

    profiler = tracer.begin(1)
    scenario._recorder = Recorder(Names(), profiler)
    with ActionTimer(scenario, "act"):
        inside = scenario.trace_headers()
        same = trace_headers()
    outside = scenario.trace_headers()
    tracer.abandon(profiler)

    assert by_hand.trace_headers() == {}
    assert inside == same
    ids = [
        _utils.signed_unpack(headers["X-Trace-Info"], headers["X-Trace-HMAC"], ["key"])
        for headers in (inside, outside)
    ]
    ((base, spans),) = kept.traces
    numbers = {span[2]: span[0] for span in spans}
    assert {one["base_id"] for one in ids} == {uuid_text(base[0])}
    assert [one["parent_id"] for one in ids] == [
        span_text(base, numbers[name]) for name in ("act", "osbench.iteration")
    ]
    # the iteration was given up: nothing joins its trace any more
    assert scenario.trace_headers() == {}


async def _part(scenario, name):
    with ActionTimer(scenario, name):
        await asyncio.sleep(0.002)
        scenario.headers.append(trace_headers())
        with osprofiler.profiler.Trace(f"within {name}"):
            await scenario.run_blocking(decorated, "a", token="b")


def test_tasks_side_by_side_have_spans_of_their_own(kept):
    """Two iterations at once, of two tasks each, in one thread."""

    async def work(scenario):
        scenario.headers = []
        with ActionTimer(scenario, "whole"):
            await asyncio.gather(_part(scenario, "a"), _part(scenario, "b"))
        with ActionTimer(scenario, "after"):
            pass
        headers = [scenario.trace_headers(), *scenario.headers]
        assert len({one["X-Trace-Info"] for one in headers}) == 3

    tracer = make(kept, kind=TaskProfiler)
    with closed(work, users=COROUTINES, tracer=tracer) as engine:
        engine.add(batch((1, 9)))
        engine.set_user_limit(2)
        until(lambda: len(engine.rows) == 8)

    assert {row[1] for row in engine.rows} == {Outcome.OK}
    assert {row[8][0] for row in engine.rows} == {ids[0] for ids, _ in kept.traces}
    for _, spans in kept.traces:
        names = {span[0]: span[2] for span in spans}
        found = sorted((span[2], names.get(span[1])) for span in spans)
        assert found == [
            ("a", "whole"),
            ("after", "osbench.iteration"),
            ("b", "whole"),
            ("decorated", "within a"),
            ("decorated", "within b"),
            ("osbench.iteration", None),
            ("whole", "osbench.iteration"),
            ("within a", "a"),
            ("within b", "b"),
        ]
        assert spans[-1][2] == "osbench.iteration"
        assert all(span[3] <= span[4] for span in spans)
        assert "unfinished" not in str(spans)


def test_a_coroutine_that_times_out_leaves_a_whole_trace_and_no_later_spans(kept):
    async def work(scenario):
        with ActionTimer(scenario, "stuck"):
            try:
                await asyncio.Event().wait()
            finally:
                with osprofiler.profiler.Trace("late"):
                    assert trace_headers() == {}

    tracer = make(kept, kind=TaskProfiler)
    with closed(work, users=COROUTINES, tracer=tracer, timeout_s=0.5) as engine:
        engine.add(batch((1, 2)))
        engine.set_user_limit(1)
        until(lambda: engine.rows)
        until(lambda: not any(one.is_alive() for one in engine.abandoned))

    parents, infos = kept.tree()
    assert parents == {"osbench.iteration": None, "stuck": "osbench.iteration"}
    assert '"unfinished":true' in infos["stuck"]
    assert '"timed_out":true' in infos["osbench.iteration"]


def test_surplus_and_missing_calls_in_a_task_do_no_harm():
    profiler = TaskProfiler("key", IdPool(TraceMark("r")).mint(), "")
    profiler.stop()
    outer = profiler.open("outer")
    profiler.start("inner")
    profiler.close(outer)
    profiler.close(outer)
    profiler.stop()
    _, spans = profiler.finish("")

    assert [(span[2], span[1]) for span in spans] == [
        ("inner", outer),
        ("outer", 0),
        ("osbench.iteration", -1),
    ]
    assert '"unfinished":true' in spans[0][6]
