import threading
import uuid

import pytest
from oslo_utils import uuidutils

from osbench.worker.tracing.trace_ids import IdPool, span_text, traceparent, uuid_text


def test_texts_are_uuids_of_the_same_bits():
    ids = IdPool().mint()

    trace, span = uuid_text(ids[0]), span_text(ids, 3)

    assert uuidutils.is_uuid_like(trace)
    assert uuidutils.is_uuid_like(span)
    assert uuid.UUID(trace).bytes == ids[0]
    assert uuid.UUID(span).bytes == ids[1] + (ids[2] + 3).to_bytes(6, "big")
    assert traceparent(ids, 3) == f"00-{uuid.UUID(trace).hex}-{uuid.UUID(span).hex[16:]}-01"


@pytest.mark.parametrize("ratio", [0.01, 0.1, 0.5, 0.9])
def test_ratio_sampling_by_the_low_half_takes_its_share(ratio):
    # TraceIdRatioBased of OpenTelemetry: low 64 bits of the trace id below ratio * 2**64
    pool, count = IdPool(), 20_000

    low = [int.from_bytes(pool.mint()[0][8:], "big") for _ in range(count)]
    taken = sum(value < ratio * 2**64 for value in low)

    # eight standard deviations: the ids are random
    assert abs(taken - count * ratio) < 8 * (count * ratio * (1 - ratio)) ** 0.5


def test_span_numbers_never_leave_their_48_bits_nor_meet_zero(monkeypatch):
    for byte in (b"\x00", b"\xff"):
        monkeypatch.setattr("os.urandom", lambda size, byte=byte: byte * size)

        ids = IdPool().mint()

        assert 0 < ids[2] < ids[2] + 10_000 < 2**48


def test_threads_never_share_an_id():
    pool, minted = IdPool(), []

    def mint():
        minted.extend([pool.mint() for _ in range(2000)])

    threads = [threading.Thread(target=mint) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len({ids[0] for ids in minted}) == 16_000
    assert len({ids[1:] for ids in minted}) == 16_000
