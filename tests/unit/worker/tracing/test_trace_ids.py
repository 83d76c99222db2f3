"""Which iterations are traced, and ids of traces: unique, and UUIDs of the same bits."""

from __future__ import annotations

import subprocess
import sys
import threading
import uuid

import pytest
from oslo_utils import uuidutils

from osbench.common.values.trace_mark import TraceMark
from osbench.worker.tracing.profiling import Tracer
from osbench.worker.tracing.trace_ids import IdPool, mix, seed_of, span_text, traceparent, uuid_text


def test_texts_are_uuids_of_the_same_bits():
    ids = IdPool(TraceMark("r")).mint()

    trace, span = uuid_text(ids[0]), span_text(ids, 3)

    assert uuidutils.is_uuid_like(trace)
    assert uuidutils.is_uuid_like(span)
    assert uuid.UUID(trace).bytes == ids[0]
    assert uuid.UUID(span).bytes == ids[1] + (ids[2] + 3).to_bytes(6, "big")
    assert traceparent(ids, 3) == f"00-{uuid.UUID(trace).hex}-{uuid.UUID(span).hex[16:]}-01"


@pytest.mark.parametrize("ratio", [0.01, 0.1, 0.5, 0.9])
def test_ratio_sampling_by_the_low_half_takes_its_share(ratio):
    # TraceIdRatioBased of OpenTelemetry: low 64 bits of the trace id below ratio * 2**64
    pool, count = IdPool(TraceMark("r")), 20_000

    low = [int.from_bytes(pool.mint()[0][8:], "big") for _ in range(count)]
    taken = sum(value < ratio * 2**64 for value in low)

    # eight standard deviations: the ids are random
    assert abs(taken - count * ratio) < 8 * (count * ratio * (1 - ratio)) ** 0.5


def test_span_numbers_never_leave_their_48_bits_nor_meet_zero(monkeypatch):
    for byte in (b"\x00", b"\xff"):
        monkeypatch.setattr("os.urandom", lambda size, byte=byte: byte * size)

        ids = IdPool(TraceMark("r")).mint()

        assert 0 < ids[2] < ids[2] + 10_000 < 2**48


def test_threads_never_share_an_id():
    pool, minted = IdPool(TraceMark("r")), []

    def mint():
        minted.extend([pool.mint() for _ in range(2000)])

    threads = [threading.Thread(target=mint) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len({ids[0] for ids in minted}) == 16_000
    assert len({ids[1:] for ids in minted}) == 16_000


def chosen(rate, seed, count=20_000):
    tracer = Tracer("key", "r1", rate, None, seed)
    return {number for number in range(1, count + 1) if tracer.sampled(number)}


def test_all_and_none():
    everything, nothing = chosen(1.0, 5), chosen(0.0, 5)

    assert len(everything) == 20_000
    assert nothing == set()


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5, 0.9])
def test_the_share_is_the_rate(rate):
    found = len(chosen(rate, seed_of("a run")))

    # five standard deviations of a binomial variable
    assert abs(found - 20_000 * rate) < 5 * (20_000 * rate * (1 - rate)) ** 0.5


def test_a_higher_rate_adds_iterations_and_takes_none_away():
    assert chosen(0.1, 5) < chosen(0.2, 5)


def test_runs_choose_differently():
    first, second = chosen(0.5, seed_of("run 1")), chosen(0.5, seed_of("run 2"))

    assert 9_000 < len(first ^ second) < 11_000


def test_every_process_chooses_alike():
    code = (
        "from osbench.worker.tracing.trace_ids import mix, seed_of;"
        "print(sum(mix(seed_of('a run'), n) for n in range(1000)))"
    )

    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert int(said.stdout) == sum(mix(seed_of("a run"), number) for number in range(1000))


def test_the_mix_is_splitmix64():
    # the first outputs of the reference implementation for seed 1234567
    known = [6457827717110365317, 3203168211198807973, 9817491932198370423]

    assert [mix(1234567, number) for number in (1, 2, 3)] == known
