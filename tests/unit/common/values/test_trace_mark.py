"""Trace ids of a run are known by themselves."""

from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st

from osbench.common.values.trace_mark import TraceMark
from osbench.worker.tracing.profiling import Tracer


@given(trace=st.binary(min_size=16, max_size=16), run=st.text(max_size=30))
def test_a_marked_id_is_known_and_its_random_bytes_stay(trace, run):
    mark = TraceMark(run)

    marked = mark.put(trace)

    assert mark.is_on(marked)
    assert len(marked) == 16
    assert (marked[:4], marked[8:]) == (trace[:4], trace[8:])


def test_ids_of_other_runs_and_of_strangers_are_not_known():
    mark, other = TraceMark("20260401-101500-ab12"), TraceMark("20260401-101500-ab13")

    assert not any(mark.is_on(other.put(os.urandom(16))) for _ in range(2000))
    assert not any(mark.is_on(os.urandom(16)) for _ in range(2000))
    assert not mark.is_on(b"")
    assert not mark.is_on(mark.put(bytes(16)) + b"x")


def test_the_ids_of_all_workers_of_a_run_have_its_mark():
    tracers = [Tracer("", "run-1", 1.0, None, 0) for _ in range(2)]

    ids = [tracer.end(tracer.begin(number), None) for tracer in tracers for number in range(300)]

    assert all(map(TraceMark("run-1").is_on, ids))
    assert len(set(ids)) == 600
