"""Figures of streams equal a plan drawn at random, by a clock that only the script moves."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import struct
import tracemalloc
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import pytest

from helpers.driven import LOOP, SOCKETS
from helpers.streaming import LAST, chunk, head, recorded
from osbench.common.plugin.atomic import WIDTH, ActionTimer
from osbench.common.plugin.scenario import Scenario
from osbench.common.ports import clock
from osbench.common.protocol.columns import decode_rows, encode_rows, row
from osbench.common.values.histogram import rank
from osbench.common.values.outcomes import Outcome
from osbench.coordinator.results.accounting.workload_statistics import WorkloadStatistics
from osbench.edges.streams import event_times, stream_body
from osbench.edges.streams.event_splitters import BadEvent
from osbench.edges.streams.event_times import BETWEEN_EVENTS, FIRST_EVENT, EventTimes
from osbench.edges.streams.stream_body import StreamBody
from osbench.edges.streams.stream_connections import LoopStreamConnection, StreamConnection
from osbench.edges.streams.stream_wish import StreamWish
from osbench.worker.http import socket_connection
from osbench.worker.http.on_loop import loop_connection
from osbench.worker.http.outgoing_request import OutgoingRequest
from osbench.worker.http.ready_requests import RequestLimits
from osbench.worker.http.wire.exchange_phases import ExchangePhases
from osbench.worker.http.wire.prepared_request import PreparedRequest
from osbench.worker.http.wire.wire_errors import ReceiveTimedOut

REQUEST = PreparedRequest(OutgoingRequest("GET", "http://chat.example/", (), (), {}))
BEGUN_NS = 10**15
#: Stands for a wait that ends at its limit.
QUIET = b"QUIET"
#: Bytes, and the time at which they come, ns after the request.
Piece = tuple[int, bytes]


class Plan(NamedTuple):
    """A stream: pieces as the kernel has them, and when its events are complete."""

    pieces: Sequence[Piece]
    events_ns: Sequence[int]


class Script:
    """A socket or transport whose pieces come at their times, which it sets on the clock."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self.pieces = list(pieces)
        self.now_ns = BEGUN_NS

    def next(self) -> bytes:
        """The next bytes, at their time; b"" at the end."""
        if not self.pieces:
            return b""
        at_ns, data = self.pieces.pop(0)
        self.now_ns = BEGUN_NS + at_ns
        if data == QUIET:
            # the word of the kernel for a wait that has ended
            raise BlockingIOError
        return data

    # of a socket

    def send(self, data: bytes) -> int:
        return len(data)

    def recv(self, _: int) -> bytes:
        return self.next()

    def setsockopt(self, *_: Any) -> None: ...

    # of a transport

    def is_closing(self) -> bool:
        return False

    def write(self, _: bytes) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def abort(self) -> None: ...

    def close(self) -> None: ...


def by_thread(
    script: Script, body: StreamBody, phases: ExchangePhases, limits: RequestLimits
) -> None:
    connection = StreamConnection(script, None)
    connection.exchange(REQUEST, (), limits, phases, keep_body=body)


def by_loop(
    script: Script, body: StreamBody, phases: ExchangePhases, limits: RequestLimits
) -> None:
    with asyncio.Runner() as runner:
        connection = LoopStreamConnection(runner.get_loop(), script, None)
        connection.connection_made(script)
        done = connection.begin(REQUEST, (), limits, phases, keep_body=body)
        while not done.done():
            try:
                connection.data_received(script.next())
            except BlockingIOError:
                connection._ring()
        connection.answer(REQUEST, phases)


Read = Callable[[Script, StreamBody, ExchangePhases, RequestLimits], None]
READERS = {SOCKETS: by_thread, LOOP: by_loop}


@pytest.fixture(params=READERS)
def read(request: pytest.FixtureRequest) -> Read:
    return READERS[request.param]


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch, read: Read) -> Iterator[Any]:
    def played(
        pieces: Sequence[Piece], wish: StreamWish, limit_s: float = 0.0
    ) -> tuple[Scenario, ExchangePhases]:
        script = Script(pieces)
        for module in (clock, socket_connection, loop_connection):
            monkeypatch.setattr(module, "monotonic_ns", lambda: script.now_ns)
        iteration = Scenario({})
        with ActionTimer(iteration, "chat"):
            phases = ExchangePhases(BEGUN_NS)
            limits = RequestLimits(whole_s=limit_s)
            read(script, StreamBody(wish, iteration._recorder), phases, limits)
        return iteration, phases

    yield played


def texts_of(kind: str, drawn: random.Random, count: int) -> list[bytes]:
    words = [
        "".join(drawn.choices("ab \u20ac\U0001f600", k=drawn.randint(1, 30))) for _ in range(count)
    ]
    if kind == "sse":
        between = ("", ": beat\n\n", "id: 1\n")
        return [f"{drawn.choice(between)}data: {one}\n\n".encode() for one in words]
    return [
        f"{json.dumps(one) if kind == 'json' else one}x\n".replace('"x', '"').encode()
        for one in words
    ]


def planned(kind: str, coding: str, drawn: random.Random) -> Plan:
    """A stream whose events are cut anywhere, each complete with the last byte of its piece."""
    coder = zlib.compressobj(wbits=31)
    fields = ["Transfer-Encoding: chunked"] + (["Content-Encoding: gzip"] if coding else [])
    at_ns = drawn.randrange(10**6, 10**9)
    pieces, events_ns = [(at_ns, head(*fields))], []
    for text in texts_of(kind, drawn, drawn.randint(2, 60)):
        data = coder.compress(text) + coder.flush(zlib.Z_SYNC_FLUSH) if coding else text
        wire = chunk(data)
        # a coded event may be complete before its last byte
        most = 0 if coding else min(drawn.randint(0, 4), len(wire) - 1)
        cuts = sorted(drawn.sample(range(1, len(wire)), most))
        parts = [wire[a:b] for a, b in zip([0, *cuts], [*cuts, len(wire)], strict=True)]
        for part in parts:
            at_ns += int(drawn.expovariate(1) * 10 ** drawn.randint(3, 8)) + 1
            pieces.append((at_ns, part))
        events_ns.append(_complete_ns(pieces[-len(parts) :], wire, kind))
    rest = chunk(coder.flush()) if coding else b""
    events_ns += [at_ns + 5] if rest and kind == "chunks" else []
    return Plan([*pieces, (at_ns + 5, rest + LAST)], events_ns)


def _complete_ns(pieces: Sequence[Piece], wire: bytes, kind: str) -> int:
    """The time of the last byte of an event: of a chunk with its line end, else before that."""
    left = len(wire) if kind == "chunks" else len(wire) - 2
    for at_ns, data in pieces:
        left -= len(data)
        if left <= 0:
            return at_ns
    raise AssertionError


@pytest.mark.parametrize("kind", ["sse", "lines", "json", "chunks"])
@pytest.mark.parametrize("coding", ["", "gzip"])
def test_times_of_events_are_those_of_the_plan(play, kind, coding):
    for _ in range(10):
        seed = random.randrange(10**9)
        print(f"{kind} {coding} seed {seed}")
        plan = planned(kind, coding, random.Random(seed))

        iteration, phases = play(plan.pieces, StreamWish(events=kind))

        lines = recorded(iteration)[1:]
        assert [one.name for one in lines] == [FIRST_EVENT] + [BETWEEN_EVENTS] * (len(lines) - 1)
        assert lines[0].begun_ns == BEGUN_NS
        assert [one.ended_ns - BEGUN_NS for one in lines] == [*plan.events_ns]
        assert phases.wait_ns == plan.pieces[0][0]
        assert phases.ended_ns - BEGUN_NS == plan.pieces[-1][0]
        assert phases.received_bytes == sum(len(data) for _, data in plan.pieces)


def test_percentiles_of_reports_are_those_of_the_plan(play):
    seed = random.randrange(10**9)
    print(f"seed {seed}")
    drawn = random.Random(seed)
    statistics, gaps, firsts = WorkloadStatistics(), [], []

    for number in range(1, 31):
        plan = planned("sse", "", drawn)
        iteration, _ = play(plan.pieces, StreamWish(events="sse"))
        firsts.append(plan.events_ns[0])
        gaps += [b - a for a, b in zip(plan.events_ns, plan.events_ns[1:], strict=False)]
        made = row(
            iteration=number,
            outcome=Outcome.OK,
            due=BEGUN_NS,
            started=BEGUN_NS,
            ended=BEGUN_NS + plan.pieces[-1][0],
            actions=iteration._recorder.actions,
        )
        packed = encode_rows([made], iteration._recorder.names.names, BEGUN_NS)
        statistics.add(decode_rows(packed), worker="w")

    for name, times in (("first event", firsts), ("between events", gaps)):
        found = statistics.actions[f"chat > {name}"].ok
        assert found.count == len(times)
        for percent in (1, 50, 90, 95, 99, 100):
            exact = sorted(times)[rank(len(times), percent) - 1]
            assert exact <= found.percentile(percent) <= exact * 1.001


def test_a_stream_is_left_at_the_time_of_its_plan(play):
    body = [(7 + n * 10**8, chunk(b"data: x\n\n")) for n in range(30)]
    pieces = [(5, head("Transfer-Encoding: chunked")), *body]

    iteration, phases = play(pieces, StreamWish(events="sse", read_for_s=1.0))

    # the piece that comes after the end of a second is the last that is read
    assert len(recorded(iteration)) - 1 == 11
    assert phases.ended_ns == BEGUN_NS + 7 + 10**9
    assert phases.received_bytes == sum(len(data) for _, data in pieces[:12])


def test_a_quiet_stream_is_left_when_its_time_is_over(play):
    pieces = [(5, head("Transfer-Encoding: chunked") + chunk(b"data: x\n\n")), (5 + 10**9, QUIET)]

    iteration, phases = play(pieces, StreamWish(events="sse", read_for_s=1.0))

    assert len(recorded(iteration)) - 1 == 1
    assert phases.received_bytes == len(pieces[0][1])
    assert phases.status == 200


def test_no_wait_of_a_thread_is_longer_than_the_time_that_is_left(monkeypatch):
    waits_s: list[float] = []

    class Waiting(Script):
        def setsockopt(self, _: int, name: int, packed: Any) -> None:
            if name == socket.SO_RCVTIMEO:
                whole, millionths = struct.unpack("@ll", packed)
                limit.append(whole + millionths / 1e6)

        def recv(self, size: int) -> bytes:
            waits_s.append(limit[-1] - (BEGUN_NS + 5 + 10**9 - self.now_ns) / 1e9)
            return super().recv(size)

    limit: list[float] = [0.0]
    body = [(7 + n * 10**7, chunk(b"data: x\n\n")) for n in range(200)]
    script = Waiting([(5, head("Transfer-Encoding: chunked")), *body])
    for module in (clock, socket_connection):
        monkeypatch.setattr(module, "monotonic_ns", lambda: script.now_ns)
    wish = StreamBody(StreamWish(events="sse", read_for_s=1.0), Scenario({})._recorder)
    by_thread(script, wish, ExchangePhases(BEGUN_NS), RequestLimits())

    # the first is for the head, which has no limit here
    assert len(waits_s) > 90
    assert max(waits_s[1:]) < 0.0011


@pytest.mark.parametrize("coding", ["", "gzip"])
@pytest.mark.parametrize("stream", [{"until": "x"}, {"max_events": 1}])
def test_nothing_after_the_last_event_is_judged(play, stream, coding):
    fields = ["Transfer-Encoding: chunked"] + ([f"Content-Encoding: {coding}"] if coding else [])
    coder = zlib.compressobj(wbits=31)
    event = b'"x"\nodd\n'
    text = coder.compress(event) + coder.flush(zlib.Z_SYNC_FLUSH) if coding else event
    # the same piece of the network has bytes that are no JSON, and no gzip
    wire = head(*fields) + chunk(text) + chunk(b"odd\n" * 9) + LAST

    iteration, phases = play([(3, wire)], StreamWish.of({"events": "json", **stream}))

    assert len(recorded(iteration)) - 1 == 1
    assert phases.received_bytes == len(wire)


def test_a_small_piece_of_very_many_events_is_refused(play, monkeypatch):
    monkeypatch.setattr(stream_body, "_EVENTS_LIMIT", 50_000)
    coded = zlib.compress(b"a\n" * 100_000, wbits=31)
    fields = ["Content-Encoding: gzip", f"Content-Length: {len(coded)}"]

    with pytest.raises(BadEvent, match="decode to more than 16 MiB, or 50,000 events"):
        play([(3, head(*fields) + coded)], StreamWish(events="lines"))


def test_a_quiet_stream_ends_as_a_timeout_before_its_time(play):
    pieces = [(5, head("Transfer-Encoding: chunked") + chunk(b"data: x\n\n")), (10**8, QUIET)]

    with pytest.raises(ReceiveTimedOut):
        play(pieces, StreamWish(events="sse", read_for_s=1.0), limit_s=0.05)


def test_events_of_one_piece_came_at_one_time(play):
    pieces = [(3, head("Transfer-Encoding: chunked") + chunk(b"data: x\n\n" * 3) + LAST)]

    iteration, _ = play(pieces, StreamWish(events="sse"))

    assert [one.ended_ns - one.begun_ns for one in recorded(iteration)[1:]] == [3, 0, 0]


def recorded_gaps(iteration: Scenario) -> list[int]:
    return [
        one.ended_ns - one.begun_ns for one in recorded(iteration) if one.name == BETWEEN_EVENTS
    ]


def test_a_million_events_take_no_more_memory_than_some_thousands():
    iteration = Scenario({})
    times = EventTimes(iteration._recorder)
    at_ns, prime, sizes = 1, 1_000_003, []

    for numbers in (range(20_000), range(20_000, 10**6)):
        for number in numbers:
            # each time from 0 to a million once, in no order
            at_ns += number * 7919 % prime
            times.add(at_ns)
        sizes.append(len(iteration._recorder.actions))

    # the first event, the sample, and the longest that is not in it
    assert sizes == [(event_times.MOST_ACTIONS + 2) * WIDTH] * 2
    assert times.count == 10**6
    assert times.are_sampled
    gaps = recorded_gaps(iteration)
    assert max(gaps) == max(number * 7919 % prime for number in range(10**6))
    # the mean of 10,000 of even ones: within five standard deviations
    assert abs(sum(gaps) / len(gaps) - prime / 2) < 5 * prime / 12**0.5 / 100


def test_a_long_body_takes_no_more_memory_than_a_short_one(play):
    kept = []
    for count in (100, 1_000):
        # 8 kB of text for each event
        wire = chunk(b"data: " + b"x" * 8000 + b"\n\n")
        pieces = [(1, head("Transfer-Encoding: chunked"))]
        pieces += [(n + 2, wire) for n in range(count)]
        pieces.append((count + 2, LAST))
        tracemalloc.start()
        play(pieces, StreamWish(events="sse"))
        kept.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()

    # 8 bytes for each of the pieces, and an action of each event: not the text
    assert kept[1] - kept[0] < 900 * 1000


@pytest.mark.parametrize("seed", range(3))
def test_each_time_between_events_has_the_same_chance_to_be_sampled(monkeypatch, seed):
    monkeypatch.setattr(event_times, "MOST_ACTIONS", 200)
    monkeypatch.setattr(event_times.random, "randrange", random.Random(seed).randrange)
    kept = [0] * 10
    for _ in range(30):
        iteration = Scenario({})
        times = EventTimes(iteration._recorder)
        at_ns = 1
        for number in range(2001):
            at_ns += number
            times.add(at_ns)
        for gap in recorded_gaps(iteration):
            kept[min(gap * 10 // 2001, 9)] += 1

    # 600 of each tenth by chance, within five standard deviations; and one that is the longest
    # of the rest in each stream
    assert sum(kept) == 6030
    assert all(abs(one - 600) < 5 * 600**0.5 + 30 for one in kept)


def test_streams_side_by_side_share_the_actions_of_their_iteration():
    iteration = Scenario({})
    streams = [EventTimes(iteration._recorder) for _ in range(50)]
    for number in range(2000):
        for stream in streams:
            stream.add(1 + number)

    assert len(iteration._recorder.actions) // WIDTH <= event_times.MOST_ACTIONS + 50 * 2
    assert all(stream.are_sampled for stream in streams)
    assert len(recorded_gaps(iteration)) > event_times.MOST_ACTIONS - 100


def test_an_iteration_of_many_streams_records_few_of_each():
    iteration = Scenario({})
    for stream in range(300):
        times = EventTimes(iteration._recorder)
        for number in range(200):
            times.add(1 + stream * 1000 + number)

    assert len(iteration._recorder.actions) // WIDTH < event_times.MOST_ACTIONS + 300 * 101
