"""Events of a body are the same however its bytes are cut."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osbench.edges.streams import event_splitters
from osbench.edges.streams.event_splitters import (
    SPLITTERS,
    BadEvent,
    JsonLineSplitter,
    LineSplitter,
    SseSplitter,
)

#: Bodies and their events, by https://html.spec.whatwg.org/#event-stream-interpretation.
OF_WHATWG = [
    (
        b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event",
        [b"first event", b"second event"],
    ),
    (b"data\n\ndata\ndata\n\ndata:", [b"", b"\n"]),
    (b"data:test\n\ndata: test\n\n", [b"test", b"test"]),
    (b"event: x\nretry: 5\n\ndata: YHOO\ndata: +2\ndata: 10\n\n", [b"YHOO\n+2\n10"]),
    ("\ufeffdata: \u20ac\r\n\r\ndata: b\r\rdata: c\n\n".encode(), ["\u20ac".encode(), b"b", b"c"]),
    # the mark is only read at the beginning
    ("data: a\n\n\ufeffdata: b\n\ndata: c\n\n".encode(), [b"a", b"c"]),
    (b"Data: a\n\n data: b\n\ndatas: c\n\ndata : d\n\n", []),
    (b"data: a\r\n: beat\r\n\r\n\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
]

cuts = st.lists(st.integers(0, 400), max_size=40)


def events(kind: str, body: bytes, at: Iterable[int]) -> list[bytes]:
    splitter = SPLITTERS[kind]()
    places = [0, *sorted(min(one, len(body)) for one in at), len(body)]
    found: list[bytes] = []
    for begin, end in itertools.pairwise(places):
        found += splitter.feed(body[begin:end])
    return [*found, *splitter.end()]


@pytest.mark.parametrize(("body", "expected"), OF_WHATWG)
@given(at=cuts)
def test_server_sent_events_by_the_rules_of_whatwg(body, expected, at):
    assert events("sse", body, at) == expected
    assert events("sse", body, range(len(body))) == expected


texts = st.text(st.characters(exclude_characters="\r\n\ufeff", codec="utf-8"), max_size=20)


@given(
    lines=st.lists(st.lists(texts, min_size=1, max_size=3), max_size=8),
    ends=st.lists(st.sampled_from(["\r\n", "\n", "\r"]), min_size=1),
    at=cuts,
)
def test_events_of_any_text_and_line_ends(lines, ends, at):
    body, number = "", 0
    for event in lines:
        for text in [f"data: {one}" for one in event] + [""]:
            # an LF after a CR would be the same line end
            end = ends[number % len(ends)]
            end = "\r" if body.endswith("\r") and not text and end == "\n" else end
            body, number = body + text + end, number + 1

    found = events("sse", body.encode(), at)

    assert found == ["\n".join(event).encode() for event in lines]


@given(lines=st.lists(texts, max_size=10), at=cuts, last=st.booleans())
def test_lines(lines, at, last):
    body = "\r\n".join(lines) + ("\n" if last else "")

    assert events("lines", body.encode(), at) == [one.encode() for one in lines if one]


@given(values=st.lists(st.recursive(st.integers() | texts, st.lists, max_leaves=4)), at=cuts)
def test_lines_of_json(values, at):
    body = "\n\n".join(json.dumps(one, ensure_ascii=False) for one in values)

    assert [json.loads(one) for one in events("json", body.encode(), at)] == values


def test_a_line_that_is_not_json_is_refused():
    splitter = JsonLineSplitter()
    assert list(splitter.feed(b" \r\n[1]\n{")) == [b"[1]"]

    with pytest.raises(BadEvent, match="not JSON"):
        list(splitter.feed(b"\n"))


@pytest.mark.parametrize(
    ("splitter", "piece"),
    [
        (SseSplitter, b"x" * 1000),
        (SseSplitter, b"data: abc\n"),
        (SseSplitter, b"data\n"),
        (LineSplitter, b"x"),
        (LineSplitter, b"y" * 100_000),
        (JsonLineSplitter, b"[" * 10),
    ],
)
def test_an_event_without_end_is_refused_at_its_limit(monkeypatch, splitter, piece):
    limit = 1 << 16
    monkeypatch.setattr(event_splitters, "EVENT_LIMIT", limit)
    made = splitter()

    with pytest.raises(BadEvent, match="an event of the stream is longer than"):
        for _ in range(limit + 2):
            list(made.feed(piece))
            # no more than the limit is ever kept
            assert getattr(made, "_data_bytes", 0) + made._line.size <= limit


def test_comments_without_end_cost_nothing():
    splitter = SseSplitter()

    for _ in range(10_000):
        assert not list(splitter.feed(b": beat\n\nid: 7\n\n"))

    assert splitter._line.size == 0
