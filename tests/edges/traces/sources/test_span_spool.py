"""A spool of spans: what is written in any order is read trace by trace."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import msgpack
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from osbench.edges.traces.model.spans import Span
from osbench.edges.traces.sources import span_spool
from osbench.edges.traces.sources.span_spool import SpanSpool, SpooledTraces
from servers import folder


def span(number: int, **changes) -> Span:
    made = Span(f"{number:016x}", "", "GET", "shop", "h1", 1000 + number, 5, attributes={"a": 1})
    return made._replace(**changes)


def written(path: Path, entries, limit: int = 1 << 30) -> None:
    spool = SpanSpool(path, limit)
    for trace, one in entries:
        spool.add(trace, one)
    spool.flush()
    spool.close()


@given(
    entries=st.lists(
        st.tuples(
            st.sampled_from([bytes([n]) * 16 for n in (0, 1, 7, 200, 255)]), st.integers(0, 9)
        )
    ),
    cuts=st.sets(st.integers(0, 30)),
)
def test_every_span_is_read_once_in_its_trace(entries, cuts):
    with folder() as home:
        spool = SpanSpool(home / "spool", 1 << 30)
        for at, (trace, number) in enumerate(entries):
            spool.add(trace, span(number))
            if at in cuts:
                spool.flush()
        spool.flush()
        spool.close()

        traces = SpooledTraces(home / "spool")
        found = {trace.trace_id: trace for trace in traces}

        wanted: dict[str, set[int]] = {}
        for trace, number in entries:
            wanted.setdefault(trace.hex(), set()).add(number)
        assert found.keys() == wanted.keys()
        for name, numbers in wanted.items():
            assert [one.start_ns - 1000 for one in found[name].spans] == sorted(numbers)
            assert traces.get(name) == found[name]
            total = sum(trace.hex() == name for trace, _ in entries)
            assert found[name].duplicates == total - len(numbers)
        assert traces.get("ab" * 16) is None
        assert (traces.cut, traces.damaged) == (0, 0)


def test_half_a_record_is_passed_over_and_written_over(tmp_path):
    path, first, second = tmp_path / "spool", b"\x01" * 16, b"\x02" * 16
    written(path, [(first, span(1)), (second, span(2))])
    os.truncate(path, path.stat().st_size - 3)

    cut = SpooledTraces(path)

    assert cut.damaged == 1
    assert [trace.trace_id for trace in cut] == [first.hex()]
    # by a coordinator that resumes
    written(path, [(second, span(3))])
    again = SpooledTraces(path)
    assert [len(trace.spans) for trace in again] == [1, 1]
    assert again.damaged == 0


def test_a_record_that_was_changed_is_passed_over(tmp_path):
    path = tmp_path / "spool"
    written(path, [(b"\x01" * 16, span(1)), (b"\x02" * 16, span(2))])
    content = bytearray(path.read_bytes())
    content[12] ^= 0xFF
    path.write_bytes(content)

    traces = SpooledTraces(path)

    assert [trace.trace_id for trace in traces] == ["02" * 16]
    assert traces.damaged == 1


GOOD = msgpack.packb((b"\x01" * 16, span(1)))


@pytest.mark.parametrize(
    "bad",
    [
        msgpack.packb((b"\x01" * 16, ["too", "few"])),
        msgpack.packb((b"\x01" * 16, 7)),
        msgpack.packb((["no", "bytes"], span(2))),
        msgpack.packb("text"),
        b"\xc1",
        GOOD[:-2],
    ],
)
def test_a_record_with_another_content_is_read_up_to_it_and_counted(tmp_path, bad):
    path = tmp_path / "spool"
    record = zstandard.compress(GOOD + bad)
    path.write_bytes(struct.pack("<BI", 1, len(record)) + record)
    written(path, [(b"\x01" * 16, span(3)), (b"\x02" * 16, span(4))])

    traces = SpooledTraces(path)

    assert [len(trace.spans) for trace in traces] == [2, 1]
    assert [len(trace.spans) for trace in traces] == [2, 1]
    assert traces.damaged == 1


def test_a_changed_byte_of_a_text_is_found_too(tmp_path):
    path = tmp_path / "spool"
    written(path, [(b"\x01" * 16, span(1, detail=bytes(range(33, 127)).decode()))])
    content = path.read_bytes()
    assert b"ABCDEF" in content
    path.write_bytes(content.replace(b"ABCDEF", b"ABCDEG"))

    traces = SpooledTraces(path)

    assert [list(traces), traces.damaged] == [[], 1]


def test_a_trace_with_very_many_spans_is_cut(tmp_path, monkeypatch):
    monkeypatch.setattr(span_spool, "SPANS", 3)
    written(tmp_path / "spool", [(b"\x01" * 16, span(number)) for number in range(5)])

    traces = SpooledTraces(tmp_path / "spool")

    assert [len(trace.spans) for trace in traces] == [3]
    assert [len(trace.spans) for trace in traces] == [3]
    assert traces.cut == 2


def test_a_spool_is_full_at_its_limit_and_private(tmp_path):
    path = tmp_path / "spool"
    spool = SpanSpool(path, 200)
    assert not spool.is_full

    while not spool.is_full:
        spool.add(os.urandom(16), span(1, detail=os.urandom(50).hex()))
        spool.flush()

    assert path.stat().st_size < 400
    assert path.stat().st_mode & 0o777 == 0o600


def test_spans_that_the_disk_does_not_take_are_counted(tmp_path, monkeypatch):
    spool = SpanSpool(tmp_path / "spool", 1 << 30)
    spool.add(b"\x01" * 16, span(1))
    spool.flush()
    spool.add(b"\x01" * 16, span(2))
    spool.add(b"\x01" * 16, span(3))
    write = os.write
    monkeypatch.setattr("os.write", lambda file, data: write(file, data[: len(data) // 2]))

    with pytest.raises(OSError, match="No space"):
        spool.flush()

    assert spool.lost == 2
    monkeypatch.undo()
    assert [len(trace.spans) for trace in SpooledTraces(tmp_path / "spool")] == [1]


def test_a_missing_spool_has_no_traces(tmp_path):
    assert list(SpooledTraces(tmp_path / "none")) == []
