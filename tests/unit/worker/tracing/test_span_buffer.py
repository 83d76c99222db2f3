"""Spans on their way with results: bounded, counted, and the same at the other end."""

from __future__ import annotations

import pytest

from osbench.edges.traces.sources.worker_spans import worker_spans
from osbench.worker.tracing.profiling import Tracer, trace_headers
from osbench.worker.tracing.span_buffer import SpanBuffer


def traced(buffer: SpanBuffer, iteration: int = 1, failure=None, inner: int = 1) -> bytes:
    tracer = Tracer("", "run-1", 1.0, buffer, 1, scenario="Shop.buy")
    profiler = tracer.begin(iteration)
    for _ in range(inner):
        profiler.close(profiler.open("step", {"db": {"statement": "SELECT 'x'", "params": 1}}))
    return tracer.end(profiler, failure)


def test_what_is_put_in_comes_out_as_spans_of_the_trace():
    buffer = SpanBuffer(100)

    trace = traced(buffer, 7, ("ValueError", "no"))

    found = [span for of, span in worker_spans(buffer.take(), everything=False) if of == trace]
    step, root = found
    assert (step.name, root.name) == ("step", "osbench.iteration")
    assert (step.parent_id, root.parent_id) == (root.span_id, "")
    assert len(root.span_id) == len(step.span_id) == 16
    assert step.detail == "SELECT ?"
    assert root.service == "osbench/worker"
    assert root.error == "ValueError"
    assert root.attributes["iteration"] == 7
    assert root.start_ns <= step.start_ns <= step.end_ns <= root.end_ns


def test_the_span_that_a_request_names_is_the_one_that_is_kept():
    buffer = SpanBuffer(100)
    tracer = Tracer("", "run-1", 1.0, buffer, 1)
    profiler = tracer.begin(1)
    number = profiler.open("call")

    headers = trace_headers()

    assert list(headers) == ["traceparent"], "nothing of OSProfiler's without a key"
    _, trace, parent, sampled = headers["traceparent"].split("-")
    profiler.close(number)
    tracer.end(profiler, None)
    ids = {
        span.name: (of.hex(), span.span_id)
        for of, span in worker_spans(buffer.take(), everything=False)
    }
    assert ids["call"] == (trace, parent)
    assert sampled == "01"


def test_an_abandoned_iteration_sends_no_headers():
    tracer = Tracer("", "run-1", 1.0, None, 1)
    profiler = tracer.begin(1)

    tracer.abandon(profiler)

    assert trace_headers() == {}
    tracer.clear()


def test_what_is_above_the_limit_is_dropped_and_counted():
    buffer = SpanBuffer(5)

    for number in range(4):
        traced(buffer, number)

    assert buffer.stats() == {"written": 0, "dropped": 4, "waiting": 4}
    assert len(list(worker_spans(buffer.take(), everything=False))) == 4
    assert buffer.stats() == {"written": 4, "dropped": 4, "waiting": 0}
    assert buffer.take() == b""
    traced(buffer)
    assert buffer.stats()["waiting"] == 2


def test_many_spans_take_several_blocks():
    buffer = SpanBuffer(100_000)
    for number in range(50):
        traced(buffer, number, inner=100)

    blocks = list(iter(buffer.take, b""))

    assert len(blocks) == 3
    assert sum(len(list(worker_spans(one, everything=False))) for one in blocks) == 50 * 101


def test_what_an_earlier_run_has_left_is_dropped():
    buffer = SpanBuffer(100)
    traced(buffer)

    buffer.clear()

    assert buffer.take() == b""
    assert buffer.stats() == {"written": 0, "dropped": 2, "waiting": 0}


def test_names_of_any_characters_can_be_shipped():
    buffer = SpanBuffer(100)
    tracer = Tracer("", "run-1", 1.0, buffer, 1)
    profiler = tracer.begin(1)
    profiler.close(profiler.open("lone \udcff surrogate"))
    tracer.end(profiler, None)

    names = [span.name for _, span in worker_spans(buffer.take(), everything=False)]

    assert names == ["lone ? surrogate", "osbench.iteration"]


@pytest.mark.parametrize("packed", [b"", b"\xc1", b"\x92\xa1h\x05", b"\x93\x01\x02\x03", 5, None])
def test_blocks_of_another_shape_have_no_spans(packed):
    assert list(worker_spans(packed, everything=False)) == []
