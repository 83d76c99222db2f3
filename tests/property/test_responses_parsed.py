"""Answers are read alike however their bytes are split, and no bytes do harm to the parser."""

from __future__ import annotations

import gzip
import itertools
import zlib
from typing import Any

import h11
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from helpers.hostile import damaged
from osbench.common.network.response_bound import ResponseBound
from osbench.worker.http.wire.content_codings import decoded_body
from osbench.worker.http.wire.exchange_phases import ExchangePhases
from osbench.worker.http.wire.response_head import HEAD_LIMIT, LINES_LIMIT
from osbench.worker.http.wire.response_parser import INTERIM_LIMIT, ResponseParser
from osbench.worker.http.wire.wire_errors import BadResponse, EarlyEnd

names = st.sampled_from(["Server", "X-Any", "Date", "ETag", "content-type", "Set-Cookie"])
values = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=20)
bodies = st.binary(max_size=300)


@st.composite
def answers(draw: st.DrawFn) -> tuple[bytes, int, bytes]:
    """A valid answer, its status and its body; one that is delimited by its end comes last."""
    status = draw(st.sampled_from([200, 201, 204, 301, 304, 404, 500, 503]))
    lines = [f"HTTP/1.1 {status} some reason"]
    lines += [f"{name}: {value}" for name, value in draw(st.lists(st.tuples(names, values)))]
    body = b"" if status in (204, 304) else draw(bodies)
    if status in (204, 304):
        return _head(lines), status, b""
    if draw(st.booleans()):
        return _head([*lines, f"Content-Length: {len(body)}"]) + body, status, body
    cuts = draw(st.lists(st.integers(1, 40), max_size=12))
    extension = draw(st.sampled_from([b"", b";a=b", b" ; x"]))
    trailer = draw(st.sampled_from([b"", b"X-Sum: 1\r\n"]))
    coded, left = b"", body
    for size in cuts:
        piece, left = left[:size], left[size:]
        if piece:
            coded += b"%x%b\r\n%b\r\n" % (len(piece), extension, piece)
    if left:
        coded += b"%X\r\n%b\r\n" % (len(left), left)
    coded += b"0" + extension + b"\r\n" + trailer + b"\r\n"
    interim = draw(st.sampled_from([b"", b"HTTP/1.1 100 Continue\r\n\r\n"]))
    return interim + _head([*lines, "Transfer-Encoding: chunked"]) + coded, status, body


def _head(lines: list[str]) -> bytes:
    return "\r\n".join([*lines, "", ""]).encode("ascii")


def read(
    pieces: list[bytes], *, bodiless: bool = False, parser: ResponseParser | None = None
) -> Any:
    """What a parser makes of pieces and then the end of the stream."""
    parser = parser or ResponseParser()
    parser.expect(bodiless=bodiless, keep_body=True)
    request: Any = None
    try:
        for number, piece in enumerate(pieces):
            if piece and parser.take(piece):
                more = any(pieces[number + 1 :])
                answer = parser.answer(request, ExchangePhases(1))
                kept = parser.reusable and not more
                return answer.status, answer.reason, answer.fields, _content(answer), kept
        parser.end()
        answer = parser.answer(request, ExchangePhases(1))
        return answer.status, answer.reason, answer.fields, _content(answer), False
    except (BadResponse, EarlyEnd) as error:
        return type(error)


def _content(answer: Any) -> Any:
    return b"".join(answer._body)


def split(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({cut % (len(data) + 1) for cut in cuts})
    edges = [0, *places, len(data)]
    return [data[low:high] for low, high in itertools.pairwise(edges)]


@given(answers(), st.lists(st.integers(0, 10**6), max_size=8))
def test_an_answer_is_the_same_in_whatever_pieces_it_comes(answer, cuts):
    data, status, body = answer

    whole = read([data])

    assert (whole[0], whole[3], whole[4]) == (status, body, True)
    assert read(split(data, cuts)) == whole
    assert read([data[i : i + 1] for i in range(len(data))]) == whole


@given(answers(), st.data(), st.lists(st.integers(0, 10**6), max_size=8), st.booleans())
def test_damaged_answers_are_the_same_in_whatever_pieces_they_come(answer, data, cuts, bodiless):
    hostile = data.draw(damaged(answer[0]))

    whole = read([hostile], bodiless=bodiless)

    assert read(split(hostile, cuts), bodiless=bodiless) == whole
    assert read([hostile[i : i + 1] for i in range(len(hostile))], bodiless=bodiless) == whole


@given(st.binary(max_size=400), st.booleans())
def test_any_bytes_are_an_answer_or_refused(data, headed):
    if headed:
        data = b"HTTP/1.1 200 OK\r\n" + data
    whole = read([data])

    assert read([data[i : i + 1] for i in range(len(data))]) == whole


@given(answers(), answers(), st.lists(st.integers(0, 10**6), max_size=4))
def test_answers_one_after_another_do_not_touch_each_other(first, second, cuts):
    parser = ResponseParser()
    for data, *_ in (first, first, second, first):
        assert read(split(data, cuts), parser=parser) == read([data])


@given(answers(), st.data())
def test_what_is_read_is_what_another_parser_reads(answer, data):
    hostile = data.draw(st.one_of(st.just(answer[0]), damaged(answer[0])))
    ours = read([hostile])
    if isinstance(ours, type):
        return

    other = h11.Connection(h11.CLIENT)
    other.send(h11.Request(method="GET", target="/", headers=[("Host", "h")]))
    other.send(h11.EndOfMessage())
    other.receive_data(hostile)
    other.receive_data(b"")
    body, status = b"", 0
    try:
        while not isinstance(event := other.next_event(), h11.EndOfMessage):
            if isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
    except h11.RemoteProtocolError:
        return  # stricter than we are

    assert (status, body) == (ours[0], ours[3])


REFUSED = {
    "both lengths": b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    "lengths that differ": b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    "lengths that differ in a line": b"Content-Length: 3, 4\r\n\r\nabcd",
    "a signed length": b"Content-Length: +3\r\n\r\nabc",
    "no length": b"Content-Length: \r\n\r\n",
    "a folded line": b"X-A: 1\r\n  more\r\nContent-Length: 0\r\n\r\n",
    "a folded length": b"Content-Length:\r\n 3\r\n\r\nabc",
    "space before a colon": b"Content-Length : 3\r\n\r\nabc",
    "a line without a colon": b"nonsense\r\nContent-Length: 0\r\n\r\n",
    "a bare line feed": b"X-A: 1\nContent-Length: 0\r\n\r\n",
    "a bare carriage return": b"X-A: 1\rContent-Length: 0\r\n\r\n",
    "a null": b"X-A: \0\r\nContent-Length: 0\r\n\r\n",
    "another transfer coding": b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "chunked twice": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a chunk without a size": b"Transfer-Encoding: chunked\r\n\r\n\r\nabc",
    "a chunk of a signed size": b"Transfer-Encoding: chunked\r\n\r\n+3\r\nabc\r\n0\r\n\r\n",
    "a chunk with a wrong size": b"Transfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n",
    "a chunk with an endless line": b"Transfer-Encoding: chunked\r\n\r\n3;" + b"x" * 5000,
    "endless trailers": b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"X-A: 1\r\n" * 5000,
    "too many lines": b"X-A: 1\r\n" * (LINES_LIMIT + 1) + b"\r\n",
    "an endless head": b"X-A: " + b"x" * HEAD_LIMIT,
}


@pytest.mark.parametrize("rest", REFUSED.values(), ids=REFUSED.keys())
def test_what_can_be_read_in_two_ways_is_refused(rest):
    assert issubclass(read([b"HTTP/1.1 200 OK\r\n" + rest]), BadResponse)


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 200OK\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * (INTERIM_LIMIT + 1),
    ],
)
def test_what_is_no_answer_is_refused(data):
    assert read([data]) is BadResponse


@pytest.mark.parametrize("count", [32, 33])
def test_interim_responses_are_skipped_up_to_a_limit(count):
    parser = ResponseParser()
    parser.expect(bodiless=False, keep_body=False)
    interim = count * b"HTTP/1.1 102 Processing\r\n\r\n"
    data = interim + b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

    if count == 32:
        assert parser.take(data)
    else:
        with pytest.raises(BadResponse, match="more than 32 interim responses"):
            parser.take(data)


def test_bytes_after_an_answer_cost_the_connection():
    parser = ResponseParser()
    parser.expect(bodiless=False, keep_body=False)

    assert parser.take(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\n")
    assert not parser.reusable
    with pytest.raises(BadResponse, match="without a request"):
        parser.take(b"x")


@pytest.mark.parametrize(
    ("head", "kept"),
    [
        (b"HTTP/1.1 200 OK\r\n", True),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n", False),
        (b"HTTP/1.1 200 OK\r\nConnection: x, Close\r\n", False),
        (b"HTTP/1.0 200 OK\r\n", False),
        (b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n", True),
    ],
)
def test_whether_a_connection_may_be_used_again(head, kept):
    *_, reusable = read([head + b"Content-Length: 2\r\n\r\nab"])

    assert reusable is kept


def test_an_answer_to_head_has_no_body():
    for length in (b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n", b""):
        answer = read([b"HTTP/1.1 200 OK\r\n" + length + b"\r\n"], bodiless=True)

        assert answer[3:] == (b"", True)


@given(st.binary(max_size=2000))
def test_content_codings_are_undone(body):
    raw = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    cases = {
        "gzip": gzip.compress(body),
        "deflate": zlib.compress(body),
        "Deflate": raw.compress(body) + raw.flush(),
        "zstd": zstandard.compress(body),
        "gzip, zstd": zstandard.compress(gzip.compress(body)),
        "identity": body,
        "unknown": body,
    }
    for coding, data in cases.items():
        assert decoded_body(data, coding, ResponseBound(4000)) == body


@given(st.data(), st.sampled_from(["gzip", "deflate", "zstd"]))
def test_damaged_content_is_refused(data, coding):
    body = bytes(2000)
    makers = {"gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstandard.compress}
    hostile = data.draw(damaged(makers[coding](body)))
    try:
        found = decoded_body(hostile, coding, ResponseBound(4000))
    except BadResponse:
        return

    assert len(found) <= 4000


@pytest.mark.parametrize("coding", ["gzip", "deflate", "zstd", "br"])
def test_content_that_grows_beyond_its_limit_is_refused(coding):
    body = bytes(10_000_000)
    if coding == "br":
        data = pytest.importorskip("brotli").compress(body)
    else:
        makers = {"gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstandard.compress}
        data = makers[coding](body)

    assert decoded_body(data, coding, ResponseBound(len(body))) == body
    with pytest.raises(BadResponse, match="more than the 9,999,999 bytes"):
        decoded_body(data, coding, ResponseBound(len(body) - 1))
